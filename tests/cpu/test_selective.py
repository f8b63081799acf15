"""Selective processing: exact at r = 1, never more than the exact join, and within its budget of comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shedjoin as sj
from predicate_strategies import PREDICATES, exact_pairs, pairs, streams, table

WAYS = st.fixed_dictionaries(
    {
        "basic": st.integers(1, 6),
        "correlation": st.booleans(),
        "direction": st.booleans(),
        "types": st.sampled_from([0, 2]),
        "period": st.integers(1, 9),
        "rank_period": st.integers(1, 9),
        "sample": st.sampled_from([0.1, 0.5, 1.0]),
    }
)


@pytest.mark.small
@settings(max_examples=40, deadline=None)
@given(data=st.data(), ways=WAYS, fraction=st.sampled_from([1.0, 0.6, 0.2, 0.01]))
def test_a_part_of_the_exact_join_and_all_of_it_at_1(
    data: st.DataObject, ways: dict[str, Any], fraction: float
) -> None:
    predicate = data.draw(st.sampled_from(PREDICATES))
    left, right = data.draw(streams(predicate.kind))
    windows = (data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8)))
    join = sj.PredicateJoin(
        (sj.TimeWindow(windows[0]), sj.TimeWindow(windows[1])),
        predicate,
        selective=sj.Selective(rate=False, fraction=fraction, **ways),
    )
    kinds = [[row % 2 for row in range(len(stream))] for stream in (left, right)]
    out = join.build(seed=3).push(left=table(left, kind=kinds[0]), right=table(right, kind=kinds[1]))
    found, whole = pairs(out), exact_pairs(predicate, windows, left, right)
    assert len(set(found)) == len(found), "a pair twice"
    assert set(found) <= set(whole)
    if fraction == 1.0:
        assert found == whole
        assert len(out.shed) == 0
    partial = {(int(s), int(n)) for s, n in zip(out.shed.stream, out.shed.seq, strict=True)}
    # Whatever is missing, the younger row of the pair says that it was compared with a part only.
    arrival = _arrival(left, right)
    for i, j in set(whole) - set(found):
        younger = (0, i) if arrival[(0, i)] > arrival[(1, j)] else (1, j)
        assert younger in partial


def _arrival(left: list[tuple[int, Any]], right: list[tuple[int, Any]]) -> dict[tuple[int, int], int]:
    rows = sj.Batch.of({"ts": [t for t, _ in left], "key": [0] * len(left)},
                       {"ts": [t for t, _ in right], "key": [0] * len(right)})  # fmt: skip
    seen, order = [0, 0], {}
    for place, stream in enumerate(rows.stream.tolist()):
        order[(stream, seen[stream])] = place
        seen[stream] += 1
    return order


def uniform(rows: int, seed: int, values: int = 50) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [{"x": rng.integers(0, values, rows), "ts": np.arange(rows)} for _ in range(2)]


@pytest.mark.parametrize("correlation", [False, True])
def test_the_fraction_is_the_share_of_comparisons(correlation: bool) -> None:
    left, right = uniform(4000, 1)
    whole = sj.PredicateJoin(sj.TimeWindow(300), sj.Equal("x"), index="scan").build()
    whole.push(left=left, right=right)
    ways = sj.Selective(
        basic=23,
        rate=False,
        fraction=0.3,
        correlation=correlation,
        direction=False,
        sample=0.001 if correlation else 0.0,
    )
    some = sj.PredicateJoin(sj.TimeWindow(300), sj.Equal("x"), index="scan", selective=ways).build(seed=2)
    some.push(left=left, right=right)
    assert some.counters["compared"] == pytest.approx(0.3 * whole.counters["compared"], rel=0.01)


def lagged(rows: int, lag: int, seed: int) -> list[dict[str, Any]]:
    """The right stream repeats the left one's values `lag` later."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**40, rows)
    return [{"x": values, "ts": np.arange(rows)}, {"x": np.roll(values, lag), "ts": np.arange(rows)}]


def test_correlation_finds_where_the_partners_are() -> None:
    left, right = lagged(8000, 130, 4)
    found = {}
    for correlation in (False, True):
        ways = sj.Selective(
            basic=20,
            rate=False,
            fraction=0.25,
            correlation=correlation,
            direction=False,
            period=500,
            rank_period=500,
            sample=0.2,
        )
        engine = sj.PredicateJoin(sj.TimeWindow(200), sj.Equal("x"), selective=ways).build(seed=1)
        found[correlation] = len(engine.push(left=left, right=right))
        if correlation:
            assert engine.ranking[0][0] in (6, 7), "130 / 20"
    assert found[False] < 1500
    assert found[True] > 7000


def test_direction_prefers_the_window_that_brings_more() -> None:
    left, right = lagged(6000, 130, 4)  # rows of the right stream find their partners in the left window
    ways = sj.Selective(basic=20, rate=False, fraction=0.4, correlation=False, period=500, rank_period=500, sample=0.3)
    engine = sj.PredicateJoin(sj.TimeWindow(200), sj.Equal("x"), selective=ways).build(seed=1)
    engine.push(left=left, right=right)
    assert engine.fractions == pytest.approx((0.8, 0.0))


def test_types_of_high_utility_are_compared_with_more() -> None:
    left, right = uniform(6000, 5)
    for side in (left, right):
        side["kind"] = np.arange(6000) % 3
        side["importance"] = np.array([10.0, 1.0, 0.1])[side["kind"]]
    utility = {}
    for types in (0, 3):
        ways = sj.Selective(
            basic=20, rate=False, fraction=0.3, direction=False, period=500, rank_period=500, types=types
        )
        engine = sj.PredicateJoin(sj.TimeWindow(200), sj.Equal("x"), selective=ways, importance="max").build(seed=1)
        engine.push(left=left, right=right)
        utility[types] = engine.matched_importance
        if types:
            # Of outputs worth 10, 4 and 3.7 on average.
            assert (engine.type_fractions[:, 0] > 2 * engine.type_fractions[:, 2]).all()
            assert engine.type_fractions.mean() == pytest.approx(0.3, abs=0.03)
    assert utility[3] > 1.2 * utility[0]


def test_r_follows_the_load_and_comes_back() -> None:
    """Ten times the rate for a while: r falls until the CPU keeps up, and is 1 again afterwards."""
    rate = np.concatenate((np.full(3000, 1), np.full(3000, 10), np.full(6000, 1)))
    ts = np.repeat(np.arange(rate.size), rate)
    rng = np.random.default_rng(0)
    tables = [{"x": rng.integers(0, 100, ts.size), "ts": ts} for _ in range(2)]
    cpu = sj.VirtualCpu(capacity=500.0)  # twice what 1 a time unit needs: 2 x 1 x 100
    join = sj.PredicateJoin(
        sj.TimeWindow(100), sj.Equal("x"), index="scan", cpu=cpu, queue=sj.Queue(span=20),
        selective=sj.Selective(basic=10, period=100, rank_period=100),
    )  # fmt: skip
    engine = join.build(seed=1)
    seen = []
    for start in range(0, rate.size, 100):
        part = [
            {"x": one["x"][(ts >= start) & (ts < start + 100)], "ts": ts[(ts >= start) & (ts < start + 100)]}
            for one in tables
        ]
        out = engine.push(left=part[0], right=part[1])
        seen.append((engine.fraction, out.stats["dropped"]))
    assert all(fraction == 1.0 for fraction, _ in seen[:30])
    burst = [fraction for fraction, _ in seen[45:60]]
    assert min(burst) > 0.015
    assert max(burst) < 0.05, "500 of 2 x 10 x 1000 comparisons: 0.025"
    assert sum(dropped for _, dropped in seen[45:60]) < 0.1 * 15 * 100 * 20
    assert all(fraction == 1.0 for fraction, _ in seen[-15:])
