"""`estimate_top`: the twin by the definitions, limits that hold, and no false certainty over many seeds."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shedjoin as sj
from shedjoin.workloads import zipf

RESULTS = st.lists(
    st.tuples(
        st.sampled_from([1.0, 1.0, 1.5, 4.0]), st.integers(0, 9), st.integers(0, 4), st.sampled_from([0.0, 1.0, 3.0])
    ),
    max_size=40,
)


def twin(
    results: list[tuple[float, int, int, float]], k: int, level: float
) -> list[tuple[int, float, float, float, bool]]:
    """Group, total, limits, certain: by the definitions, one group after the other."""
    total, sure = defaultdict(float), defaultdict(float)
    shares: dict[tuple[int, int], float] = defaultdict(float)
    for weight, row, group, value in results:
        total[group] += weight * value
        sure[group] += value if weight == 1.0 else 0.0
        shares[group, row] += weight * value if weight > 1.0 else 0.0
    if not total:
        return []
    most = max(shares.values())
    nats = -math.log((1.0 - level) / (2 * len(total) + 1))
    limits = {group: _limits(total[group], sure[group], most, nats) for group in total}
    unseen = most * nats
    for _ in range(100):
        if unseen > 0.0:
            unseen = most * (nats + max(0.0, math.log(sum(high for _, high in limits.values()) / unseen)))
    ranked = sorted(total, key=lambda group: (-total[group], group))[:k]
    lines = []
    for group in ranked:
        low, high = limits[group]
        above = sum(limits[other][1] >= low for other in total if other != group)
        lines.append((group, total[group], low, high, above < k and unseen < low))
    return lines


def _limits(total: float, sure: float, most: float, nats: float) -> tuple[float, float]:
    """The means at which the found sum is as unlikely as the level allows; searched from the sum outwards."""
    if most == 0.0:
        return total, total
    found = (total - sure) / most

    def apart(mean: float) -> float:
        return mean - found + (found * math.log(found / mean) if found > 0.0 else 0.0)

    def search(inside: float, outside: float) -> float:
        for _ in range(200):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if apart(middle) > nats else (middle, outside)
        return inside

    low = search(found, 0.0) if found > 0.0 and apart(1e-300) > nats else 0.0
    return sure + most * low, sure + most * search(found, 10.0 * (found + nats + 1.0))


@settings(deadline=None)
@given(RESULTS, st.integers(1, 6), st.sampled_from([0.5, 0.95]))
def test_the_twin_agrees(results: list[tuple[float, int, int, float]], k: int, level: float) -> None:
    weight, row, group, value = (list(column) for column in zip(*results, strict=True)) if results else ([],) * 4
    top = sj.estimate_top(weight, np.array(row, np.int64), np.array(group, np.int64), k, value, level=level)
    lines = twin(results, k, level)
    assert top.group.tolist() == [line[0] for line in lines]
    for column, place in ((top.value, 1), (top.low, 2), (top.high, 3)):
        assert column == pytest.approx([line[place] for line in lines], rel=1e-6, abs=1e-6)
    assert top.certain.tolist() == [line[4] for line in lines]


@pytest.mark.parametrize("policy", [sj.Sample(), sj.Sample(power=0.0), sj.Sample(keep=0.5)], ids=str)
def test_limits_hold_and_nothing_is_falsely_certain(policy: sj.Policy) -> None:
    streams = zipf(1500, seed=3, domain=40, skew=1.0, ranks="correlated")
    keys = np.asarray(streams.left["key"])
    exact = sj.simulate(sj.JoinSpec(sj.TimeWindow(100)), streams.left, streams.right)
    counts = np.bincount(keys[exact.pairs()[0]], minlength=40)
    spec = sj.JoinSpec(sj.TimeWindow(100), sj.Budget(tuples=100), policy)
    certain = wrong = 0
    for seed in range(20):
        out = spec.build(seed=seed).push(left=streams.left, right=streams.right)
        top = sj.estimate_top(out.weight, out.stored, keys[out.left], 5)
        certain += int(top.certain.sum())
        listed, others = counts[top.group], np.delete(counts, top.group)
        rank = np.array([(counts > count).sum() for count in listed])
        wrong += bool((rank[top.certain] >= 5).any())
        wrong += bool((listed < top.low).any() or (listed > top.high).any() or others.max() > top.others)
    assert certain > 0
    assert wrong <= 1


def test_without_losses_all_is_certain_but_ties() -> None:
    top = sj.estimate_top([1.0] * 9, range(9), [5, 5, 5, 5, 2, 2, 7, 7, 1], 2)
    assert (top.group.tolist(), top.value.tolist(), top.certain.tolist()) == ([5, 2], [4.0, 2.0], [True, False])
    assert top.low.tolist() == top.high.tolist() == [4.0, 2.0]
    assert top.others == 2.0
    assert sj.estimate_top([1.0] * 3, range(3), [4, 4, 6], 5).certain.tolist() == [True, True]


def test_nothing_delivered_says_nothing() -> None:
    top = sj.estimate_top([], [], [], 3)
    assert top.group.size == 0
    assert top.others == math.inf


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"k": 0}, "k must be a whole number from 1 on, not 0"),
        ({"k": True}, "k must be a whole number from 1 on, not True"),
        ({"k": 1, "value": [-1.0, 2.0]}, "value must be at least 0"),
        ({"k": 1, "level": 1.0}, "level must be above 0 and below 1"),
        ({"k": 1, "value": [1.0]}, "must be columns of one length"),
    ],
)
def test_refused(more: dict[str, Any], text: str) -> None:
    with pytest.raises(sj.InputError, match=text):
        sj.estimate_top([1.0, 2.0], [1, 2], [0, 1], **more)
