"""Several joins behind one queue on one CPU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shedjoin as sj
from predicate_strategies import exact_pairs, pairs, streams, table

JOINS = [
    sj.PredicateJoin(sj.TimeWindow(6), sj.Overlap("x", 1)),
    sj.PredicateJoin(sj.TimeWindow(3), sj.Subset("x"), selective=sj.Selective(basic=2, period=3, rank_period=4)),
    sj.PredicateJoin(sj.TimeWindow(9), sj.SameSet("x"), budget=sj.Budget(tuples=6), policy=sj.Rand()),
]
QUEUES = [None, sj.Queue(tuples=2), sj.Queue(span=3), sj.Queue(tuples=3, drop="semantic")]


@pytest.mark.small
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_every_join_gets_the_same_rows(data: st.DataObject) -> None:
    left, right = data.draw(streams("set"))
    cpu = sj.VirtualCpu(capacity=data.draw(st.sampled_from([0.5, 3.0, 100.0])), probe=0.3, update=0.2)
    queue = data.draw(st.sampled_from(QUEUES))
    cut = data.draw(st.integers(-3, 20))
    whole = sj.SharedQueue(JOINS, cpu, queue, seed=3)
    expected = whole.push(left=table(left), right=table(right), flush=True)
    shared = sj.SharedQueue(JOINS, cpu, queue, seed=3)
    outs = []
    for early in (True, False):
        part = [table([row for row in stream if (row[0] < cut) == early]) for stream in (left, right)]
        outs.append(shared.push(left=part[0], right=part[1]))
        shared = sj.SharedQueue.resume(JOINS, cpu, queue, shared.snapshot())
    outs.append(shared.flush())
    for k, join in enumerate(JOINS):
        found = pairs(*(out[k] for out in outs))
        assert found == pairs(expected[k])
        assert set(found) <= set(exact_pairs(join.predicate, (join.window.size, join.window.size), left, right))  # type: ignore[union-attr]
    dropped = [engine.counters["dropped"] for engine in shared.engines]
    assert len(set(dropped)) == 1
    if queue is None:
        assert pairs(*(out[0] for out in outs)) == exact_pairs(JOINS[0].predicate, (6, 6), left, right)


def test_one_join_alone_is_the_same_as_with_a_queue_of_its_own() -> None:
    rng = np.random.default_rng(1)
    tables = [{"x": rng.integers(0, 20, 2000), "ts": np.arange(2000)} for _ in range(2)]
    cpu, queue = sj.VirtualCpu(capacity=20.0), sj.Queue(tuples=50, drop="semantic")
    join = sj.PredicateJoin(sj.TimeWindow(400), sj.Equal("x"))
    alone = sj.PredicateJoin(sj.TimeWindow(400), sj.Equal("x"), cpu=cpu, queue=queue).build(seed=5)
    out = alone.push(left=tables[0], right=tables[1], flush=True)
    (shared,) = sj.SharedQueue([join], cpu, queue, seed=5).push(left=tables[0], right=tables[1], flush=True)
    assert out.stats["dropped"] > 500
    assert shared.stats == out.stats
    assert pairs(shared) == pairs(out)


@pytest.mark.small
def test_what_makes_no_sense_is_refused() -> None:
    cpu = sj.VirtualCpu(capacity=1.0)
    slow = sj.PredicateJoin(sj.TimeWindow(6), sj.Equal("x"), cpu=cpu)
    with pytest.raises(sj.SpecError, match="at least one"):
        sj.SharedQueue([], cpu)
    with pytest.raises(sj.SpecError, match="neither cpu nor queue"):
        sj.SharedQueue([slow], cpu)
    with pytest.raises(sj.SpecError, match="VirtualCpu"):
        sj.SharedQueue(JOINS, None)  # type: ignore[arg-type]
    with pytest.raises(sj.SpecError, match="modular"):
        sj.SharedQueue(JOINS, cpu, sj.Queue(integrated=True, drop="semantic"))
    with pytest.raises(sj.SnapshotError, match="cut short"):
        sj.SharedQueue.resume(JOINS, cpu, None, sj.SharedQueue(JOINS[:2], cpu).snapshot())
