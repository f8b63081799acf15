"""A slow CPU and the queue in front of it: bounded, deterministic, and nothing that goes is not logged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shedjoin as sj
from predicate_strategies import exact_pairs, pairs, streams, table

QUEUES = st.sampled_from(
    [
        None,
        sj.Queue(tuples=2),
        sj.Queue(span=3),
        sj.Queue(tuples=3, drop="semantic"),
        sj.Queue(integrated=True, drop="semantic"),
    ]
)


def make(data: st.DataObject) -> tuple[sj.PredicateJoin, list[list[tuple[int, Any]]]]:
    predicate = data.draw(st.sampled_from([sj.Overlap("x", 1), sj.Equal("x"), sj.Band("x", 1.0)]))
    queue = data.draw(QUEUES)
    integrated = queue is not None and queue.integrated
    budget = sj.Budget(tuples=6, allocation="variable") if integrated else data.draw(
        st.sampled_from([None, sj.Budget(tuples=4), sj.Budget(tuples=5, allocation="variable")]))  # fmt: skip
    policy = None if budget is None else data.draw(st.sampled_from([sj.Rand(), sj.Simp(), sj.SimpProb()]))
    selective = data.draw(st.sampled_from([None, sj.Selective(basic=2, period=3, rank_period=4)]))
    join = sj.PredicateJoin(
        sj.TimeWindow(6),
        predicate,
        cpu=sj.VirtualCpu(capacity=data.draw(st.sampled_from([0.5, 2.0, 50.0])), probe=0.5, update=0.25, lookup=0.1),
        queue=queue,
        budget=budget,
        policy=policy,
        selective=selective,
    )
    return join, data.draw(streams(predicate.kind))


@pytest.mark.small
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_queue_memory_and_cpu_together(data: st.DataObject) -> None:
    """A part of the exact join, within all bounds, the same however it is cut or resumed."""
    join, (left, right) = make(data)
    weights = [[1.0 + row % 3 for row in range(len(stream))] for stream in (left, right)]
    times = sorted({ts for stream in (left, right) for ts, _ in stream})
    cut = data.draw(st.sampled_from([*times, 0]))
    parts = []
    for early in (True, False):
        sides = []
        for stream, weight in zip((left, right), weights, strict=True):
            rows = [(row, w) for row, w in zip(stream, weight, strict=True) if (row[0] < cut) == early]
            sides.append(table([row for row, _ in rows], importance=[w for _, w in rows]))
        parts.append(sides)
    engine = join.build(seed=7)
    outs = []
    for sides in parts:
        outs.append(engine.push(left=sides[0], right=sides[1]))
        _check_bounds(join, engine)
        engine = join.resume(engine.snapshot())
    outs.append(engine.flush())
    assert engine.queued == (0, 0)
    found, whole = pairs(*outs), exact_pairs(join.predicate, (6, 6), left, right)
    assert len(set(found)) == len(found)
    assert set(found) <= set(whole)
    counters = engine.counters
    assert counters["rows"] == len(left) + len(right)
    assert counters["probed"] + counters["dropped"] + counters["null"] == counters["rows"]
    words = [sj.WHY[code] for out in outs for code in out.shed.why]
    assert words.count("dropped") == counters["dropped"]
    assert words.count("evicted") == counters["evicted"]
    assert words.count("partial") == counters["partial"]
    if not words:
        assert found == whole
    again = join.build(seed=7)
    whole_out = again.push(
        left=table(left, importance=weights[0]), right=table(right, importance=weights[1]), flush=True
    )
    assert pairs(whole_out) == found
    assert again.counters == counters
    assert again.worked == pytest.approx(engine.worked)


def _check_bounds(join: sj.PredicateJoin, engine: sj.PredicateEngine) -> None:
    queue = join.queue
    if queue is not None and queue.tuples is not None:
        assert max(engine.queued) <= queue.tuples
    if queue is not None and queue.integrated and join.budget is not None:
        assert sum(engine.queued) + sum(engine.residents) <= (join.budget.tuples or 0)


def overload(drop: str, seed: int) -> sj.PredicateEngine:
    """Zipf values, four times what the CPU can do."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / np.arange(1, 51)
    rows = 6000
    ts = np.arange(rows) // 4
    tables = [{"x": rng.choice(50, rows, p=chance / chance.sum()), "ts": ts} for _ in range(2)]
    join = sj.PredicateJoin(
        sj.TimeWindow(100),
        sj.Equal("x"),
        cpu=sj.VirtualCpu(capacity=2.0, probe=1.0, comparison=0.0),
        queue=sj.Queue(tuples=100, drop=drop),
    )
    engine = join.build(seed=seed, emit=False)
    engine.push(left=tables[0], right=tables[1], flush=True)
    return engine


def test_semantic_dropping_finds_more_than_chance() -> None:
    random, semantic = overload("random", 1), overload("semantic", 1)
    assert random.counters["dropped"] == pytest.approx(0.75 * 12000, rel=0.05)
    assert semantic.counters["dropped"] == pytest.approx(random.counters["dropped"], rel=0.02)
    assert semantic.counters["results"] > 1.5 * random.counters["results"]


def test_the_cpu_does_no_more_than_it_can() -> None:
    engine = overload("random", 2)
    assert engine.worked <= 2.0 * (1500 + 110), "capacity times the time, and the queue at the end"


def test_a_deadline_lowers_the_fraction() -> None:
    """A real clock: an impossible deadline makes r as small as it gets, a generous one leaves it at 1."""
    rng = np.random.default_rng(0)
    tables = [{"x": rng.integers(0, 9, 3000), "ts": np.arange(3000)} for _ in range(2)]
    fractions = {}
    for seconds in (1e-9, 1e9):
        join = sj.PredicateJoin(
            sj.TimeWindow(500), sj.Equal("x"), cpu=sj.Deadline(seconds), selective=sj.Selective(basic=50)
        )
        engine = join.build()
        engine.push(left=tables[0], right=tables[1])
        fractions[seconds] = engine.fraction
    assert fractions == {1e-9: pytest.approx(1e-4), 1e9: 1.0}
