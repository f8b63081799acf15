"""Laws of our answers to the papers' open questions: bounds are below all, divisions are the best there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shedjoin.join_order import Model, StreamStats
from shedjoin.workloads import zipf
from shedjoin_lab.papers.open import archive, shared, top
from shedjoin_lab.papers.open.division import divide, gains
from shedjoin_lab.papers.open.index_choice import by_cost, choices, largest_first, plan_cost
from shedjoin_lab.papers.open.whole_keys import fewest_incomplete, priorities

KEYS = st.lists(st.integers(0, 2), min_size=1, max_size=7)


@settings(max_examples=60, deadline=None)
@given(left=KEYS, right=KEYS, window=st.integers(1, 5), half=st.integers(1, 3))
def test_the_bound_is_the_most_stretches_that_fit(left: list[int], right: list[int], window: int, half: int) -> None:
    size = min(len(left), len(right))
    keys = [np.array(left[:size]), np.array(right[:size])]
    expected = 0
    for mine, other in (keys, keys[::-1]):
        stretches = []
        for row in range(size):
            partners = [at for at in range(row + 1, min(size, row + window)) if other[at] == mine[row]]
            if partners:
                stretches.append((row, partners[-1]))
        most = max(
            count
            for count in range(len(stretches) + 1)
            for some in itertools.combinations(stretches, count)
            if all(sum(begin <= at < end for begin, end in some) <= half for at in range(size))
        )
        expected += len(stretches) - most
    assert fewest_incomplete(keys, window, 2 * half) == expected


@pytest.mark.parametrize("ranks", archive.RANKS)
def test_no_policy_is_below_the_bound(ranks: str) -> None:
    for memory, seed in ((6, 0), (20, 1), (36, 2)):
        params = {"window": 20, "domain": 8, "skew": 1.0, "rows": 300, "ranks": ranks, "memory": memory, "seed": seed}
        found = {
            method: int(str(archive.measure({**params, "method": method}, None)[0]["incomplete"]))
            for method in (*archive.ONLINE, "BOUND")
        }
        assert all(count >= found["BOUND"] for count in found.values()), found


def test_keys_that_are_worth_most_are_given_up_last() -> None:
    p = np.array([0.6, 0.3, 0.1])
    left, right = priorities(p, p, window=4, memory=100)
    assert len({*left, *right}) == 6
    assert left[0] > left[1] > left[2]
    assert right[0] > right[1] > right[2]
    left, _ = priorities(p, p, window=40, memory=40)
    assert left[1] > left[0], "24 tuples of the first key do not fit into half of the memory, 12 of the second do"


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_division_is_better(data: st.DataObject) -> None:
    worth = st.lists(st.integers(0, 9), min_size=1, max_size=4)
    curves = [np.sort(data.draw(worth))[::-1].astype(float) for _ in range(3)]
    pairs = data.draw(st.integers(0, sum(curve.size for curve in curves)))
    found = divide(curves, pairs)
    assert sum(found) == pairs
    every = itertools.product(*(range(curve.size + 1) for curve in curves))
    best = max(_total(curves, split) for split in every if sum(split) == pairs)
    assert _total(curves, found) == pytest.approx(best)


def _total(curves: list[np.ndarray], split: tuple[int, ...]) -> float:
    return float(sum(curve[:part].sum() for curve, part in zip(curves, split, strict=True)))


def test_each_further_tuple_gains_less_and_all_of_them_everything() -> None:
    workload = zipf(10, seed=0, domain=9, skew=1.0)
    assert workload.probabilities is not None
    curve = gains(*workload.probabilities, 50)
    assert (np.diff(curve) <= 1e-12).all()
    left, right = workload.probabilities
    assert curve.sum() == pytest.approx(2 * 50 * (left * right).sum())


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_choice_of_indexes_costs_less(data: st.DataObject) -> None:
    many = data.draw(st.integers(2, 4))
    number = st.integers(1, 30)
    model = Model.of([StreamStats(data.draw(number), data.draw(number), data.draw(number)) for _ in range(many)])
    sizes = [model.size(stream) for stream in range(many)]
    memory = data.draw(st.floats(0.0, 1.0)) * sum(sizes)
    found, rule = by_cost(model, 10, memory), largest_first(model, 10, memory)
    for some in (found, rule):
        assert sum(size for size, buckets in zip(sizes, some, strict=True) if buckets > 1) <= memory
    assert plan_cost(model, found) == min(plan_cost(model, one) for one in choices(model, 10, memory))
    assert plan_cost(model, found) <= plan_cost(model, rule) <= plan_cost(model, (1,) * many)


def test_parts_never_exceed_the_memory() -> None:
    curves = [np.full(2 * window, 1.0) for window, *_ in shared.JOINS]
    for method in shared.METHODS:
        assert sum(shared.parts(method, curves, 450)) <= 450


@pytest.mark.parametrize("by", top.GROUPS)
def test_a_top_ten_from_the_whole_memory_is_exact(by: str) -> None:
    params = {"by": by, "ranks": "uncorrelated", "part": 1.0, "rows": 900, "window": 100, "seed": 1}
    for method in top.METHODS:
        row = top.measure({**params, "method": method}, None)[0]
        assert row["precision"] == 1.0, method
        assert row["wrong"] == 0, method


def test_more_memory_makes_the_top_ten_better() -> None:
    params = {"method": "Sample", "by": "key", "ranks": "correlated", "rows": 2000, "window": 200, "seed": 0}
    little, much = (float(str(top.measure({**params, "part": part}, None)[0]["precision"])) for part in (0.03, 0.5))
    assert little < much
