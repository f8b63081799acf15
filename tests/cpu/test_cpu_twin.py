"""Predicates and CPU stages of today's engines against the one twin, wherever decision 017 leaves their meaning as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shedjoin as sj
from naive import Join, Output, Row, Twin, exact, missing, numbers
from predicate_strategies import PREDICATES, rows_of, streams, table
from shedjoin.cpu.pace import Script
from shedjoin.cpu.rows import Rows

pytestmark = pytest.mark.small
Stream = list[tuple[int, Any]]


def rows_at_once(predicate: sj.Predicate, rows: list[Row]) -> Rows:
    sides = [[row for row in rows if row.stream == stream] for stream in (0, 1)]
    tables = [
        {
            "ts": [row.ts for row in side],
            "x": [row.value for row in side],
            "importance": [row.importance for row in side],
            "kind": [row.kind for row in side],
        }
        for side in sides
    ]
    return Rows.of(predicate, tables[0] if sides[0] else None, tables[1] if sides[1] else None)


def results(out: sj.Output) -> list[tuple[int, int, float]]:
    return sorted(zip(out.left.tolist(), out.right.tolist(), out.importance.tolist(), strict=True))


def results_of_twin(out: Output) -> list[tuple[float, ...]]:
    return sorted((*result.rows, result.importance) for result in out.results)


def left(out: sj.Output) -> list[tuple[int, int, str]]:
    """What left or lost something, in order. A probe that was partial and left nothing out is not in the twin's log."""
    columns = (out.shed.stream.tolist(), out.shed.seq.tolist(), out.shed.why.tolist())
    return [(stream, seq, sj.WHY[why]) for stream, seq, why in zip(*columns, strict=True) if sj.WHY[why] != "partial"]


def left_of_twin(out: Output) -> list[tuple[int, int, str]]:
    return [(record.stream, record.seq, record.why) for record in out.shed if record.why != "partial"]


def cut_in_two(rows: list[Row], at: int) -> list[list[Row]]:
    """Two pushes; rows of one time are in one of them."""
    return [[row for row in rows if (row.ts < at) == early] for early in (True, False)]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_predicates_without_a_budget(data: st.DataObject) -> None:
    predicate = data.draw(st.sampled_from(PREDICATES))
    disorder = data.draw(st.sampled_from([0, 3]))
    sides = data.draw(streams(predicate.kind, disorder=disorder))
    join = sj.PredicateJoin(
        (sj.TimeWindow(data.draw(st.integers(1, 8))), sj.TimeWindow(data.draw(st.integers(1, 8)))),
        predicate,
        lateness=data.draw(st.sampled_from([0, disorder, sj.UNLIMITED])),
        max_skew=data.draw(st.sampled_from([None, 2])),
        importance=data.draw(st.sampled_from(["min", "sum"])),
    )
    engine, twin = join.build(), Twin(join)
    clocks = data.draw(st.sampled_from([None, (None, 4), (9, 2)]))
    for rows in cut_in_two(rows_of(*sides), data.draw(st.integers(-3, 20))):
        out, theirs = engine.push(rows_at_once(predicate, rows), clocks=clocks), twin.push(rows, clocks)
        assert results(out) == results_of_twin(theirs)
        assert left(out) == left_of_twin(theirs)
        assert [engine.live(stream).tolist() for stream in (0, 1)] == [
            sorted(x.seq for x in side) for side in twin.stored
        ]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_budgets_of_predicates(data: st.DataObject) -> None:
    """One row an instant: lots fall on lists whose order follows that of expiry. Equal importances: they break ties now."""
    predicate = data.draw(st.sampled_from(PREDICATES))
    rows = [row._replace(ts=ts) for ts, row in enumerate(rows_of(*data.draw(streams(predicate.kind))))]
    allocation = data.draw(st.sampled_from(["fixed", "variable"]))
    join = sj.PredicateJoin(
        sj.TimeWindow(data.draw(st.integers(3, 20))),
        predicate,
        budget=sj.Budget(tuples=data.draw(st.integers(2, 8)), allocation=allocation),
        policy=data.draw(st.sampled_from([sj.Rand(), sj.Simp(), sj.SimpProb()])),
    )
    engine, twin = join.build(seed=4), Twin(join, seed=4)
    out, theirs = engine.push(rows_at_once(predicate, rows)), twin.push(rows)
    assert results(out) == results_of_twin(theirs)
    assert left(out) == left_of_twin(theirs)


WAYS = st.fixed_dictionaries(
    {
        "basic": st.integers(1, 6),
        "correlation": st.booleans(),
        "direction": st.booleans(),
        "types": st.sampled_from([0, 2]),
        "period": st.integers(1, 9),
        "rank_period": st.integers(1, 9),
        "sample": st.sampled_from([0.1, 0.5, 1.0]),
        "fraction": st.sampled_from([1.0, 0.6, 0.2, 0.01]),
    }
)


@st.composite
def selective_cases(draw: st.DrawFn, **more: Any) -> tuple[sj.PredicateJoin, list[Row]]:
    """A join on a scan: what is compared is then the part of the window itself."""
    predicate = draw(st.sampled_from(PREDICATES))
    rows = rows_of(*draw(streams(predicate.kind, rows=25)))
    join = sj.PredicateJoin(
        (sj.TimeWindow(draw(st.integers(1, 12))), sj.TimeWindow(draw(st.integers(1, 12)))),
        predicate,
        selective=sj.Selective(**draw(WAYS)),
        importance=draw(st.sampled_from(["max", "mean"])),
        index="scan",
        **more,
    )
    # From 1 on: the CPU of today's engine is busy until 0.
    first = min((row.ts for row in rows), default=0)
    kinds = [(1.0, 0), (3.0, 1), (1.0, 1)]
    return join, [
        row._replace(ts=row.ts - first + 1, importance=kinds[place % 3][0], kind=kinds[place % 3][1])
        for place, row in enumerate(rows)
    ]


def assert_same_selection(engine: sj.PredicateEngine, twin: Twin) -> None:
    assert twin.selection is not None
    assert engine.fraction == twin.selection.fraction
    assert list(engine.fractions) == twin.selection.fractions
    if twin.selection.settings.types:
        assert engine.type_fractions.tolist() == twin.selection.kind_fractions
    assert [[age + twin.selection.ahead for age in of] for of in engine.ranking] == twin.selection.ranking
    for name in ("probed", "sampled", "compared"):
        assert engine.counters[name] == twin.more_counters[name], name


def assert_law(join: sj.PredicateJoin | Join, pushes: list[list[Row]], outs: list[Output]) -> None:
    """Results and what the logs say is missing are disjoint, and together the exact join."""
    log = [record for out in outs for record in out.shed]
    left_out = [one for out in outs for one in out.left_out]
    found = [pair for out in outs for pair in out.pairs]
    assert sorted([*found, *numbers(missing(join, pushes, log, left_out))]) == sorted(numbers(exact(join, pushes, log)))


@settings(max_examples=80, deadline=None)
@given(case=selective_cases(), at=st.integers(0, 30), said=st.lists(st.sampled_from([1.0, 0.5, 0.1]), max_size=9))
def test_selective_processing_and_deadlines(
    case: tuple[sj.PredicateJoin, list[Row]], at: int, said: list[float]
) -> None:
    """Types are counted when an instant arrives, and not row by row: a deadline may look at them in between."""
    join, rows = case
    assert join.selective is not None
    script = None if join.selective.types else said
    engine, twin = join.build(seed=3), Twin(join, seed=3)
    pushes, outs = cut_in_two(rows, at), []
    for push in pushes:
        batch = rows_at_once(join.predicate, push)
        pace = None if script is None else Script(script)
        out = sj.Output.joined(list(engine.chunks(batch, limit=1000, pace=pace)))
        theirs = twin.push(push, script=script)
        assert results(out) == results_of_twin(theirs)
        assert_same_selection(engine, twin)
        partial = {(stream, seq) for stream, seq in zip(out.shed.stream.tolist(), out.shed.seq.tolist(), strict=True)}
        assert {(record.stream, record.seq) for record in theirs.shed} <= partial
        outs.append(theirs)
    assert_law(join, pushes, outs)


QUEUES = st.sampled_from([None, sj.Queue(tuples=2), sj.Queue(span=3), sj.Queue(tuples=1)])


@settings(max_examples=80, deadline=None)
@given(data=st.data(), at=st.integers(0, 30), selective=st.booleans())
def test_a_slow_cpu(data: st.DataObject, at: int, selective: bool) -> None:
    cpu = sj.VirtualCpu(capacity=data.draw(st.sampled_from([0.5, 2.0, 50.0])), probe=0.5, update=0.25)
    join, rows = data.draw(selective_cases(cpu=cpu, queue=data.draw(QUEUES)))
    join = join if selective else replace(join, selective=None)
    engine, twin = join.build(seed=7), Twin(join, seed=7)
    pushes, outs = cut_in_two(rows, at), []
    for push in pushes:
        out, theirs = engine.push(rows_at_once(join.predicate, push)), twin.push(push)
        assert results(out) == results_of_twin(theirs)
        assert left(out) == left_of_twin(theirs)
        assert engine.queued == tuple(len(side) for side in twin.admission.waiting)
        assert engine.worked == twin.worked
        if selective:
            assert_same_selection(engine, twin)
        outs.append(theirs)
    out, theirs = engine.flush(), twin.flush()
    assert results(out) == results_of_twin(theirs)
    assert_law(join, pushes, [*outs, theirs])


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_queue_that_knows_the_memory(data: st.DataObject) -> None:
    """Nothing expires: lists of today's engine count what has expired until they are touched. No nulls: they count as 0."""
    rows = [row for row in rows_of(*data.draw(streams("value", rows=25))) if row.value is not None]
    rows = [row._replace(ts=row.ts + 10) for row in rows]
    join = sj.PredicateJoin(
        sj.TimeWindow(1000),
        sj.Equal("x"),
        cpu=sj.VirtualCpu(capacity=data.draw(st.sampled_from([0.5, 2.0])), probe=0.5, update=0.25, lookup=0.25),
        queue=sj.Queue(tuples=2, drop="semantic"),
    )
    rows = [row._replace(importance=1.0 + place % 3) for place, row in enumerate(rows)]
    engine, twin = join.build(seed=1), Twin(join, seed=1)
    out, theirs = engine.push(rows_at_once(join.predicate, rows), flush=True), twin.push(rows, flush=True)
    assert results(out) == results_of_twin(theirs)
    assert left(out) == left_of_twin(theirs)
    assert engine.counters["compared"] == twin.more_counters["compared"]


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_dual_windows(data: st.DataObject) -> None:
    """No nulls: they take a place now. No queue: its bound is one a stream now."""
    kind = data.draw(st.sampled_from([sj.RowWindow, sj.TimeWindow]))
    cpu = data.draw(st.sampled_from([None, sj.VirtualCpu(0.5, probe=2.0, update=0.5, comparison=0.0)]))
    share = st.sampled_from([False, 0.0, 0.3, 0.7])
    join = sj.DualJoin(
        (kind(data.draw(st.integers(1, 6))), kind(data.draw(st.integers(1, 6)))),
        cpu=cpu,
        rear=data.draw(st.one_of(share, st.just(True))),
        front=data.draw(st.one_of(share, st.just(True))),
        period=3,
    )
    sides: list[Stream] = data.draw(streams("value", rows=25))
    rows = [row._replace(ts=row.ts + 4) for row in rows_of(*sides) if row.value is not None]
    pushes = cut_in_two(rows, data.draw(st.integers(0, 40)))
    engine, twin = join.build(seed=5), Twin(join, seed=5)
    outs = []
    for push in [*pushes, []]:
        parts = [[(row.ts, row.value) for row in push if row.stream == stream] for stream in (0, 1)]
        tables = [{"ts": table(part)["ts"], "key": table(part)["x"]} if part else None for part in parts]
        out = engine.push(left=tables[0], right=tables[1]) if push else engine.flush()
        theirs = twin.push(push) if push else twin.flush()
        assert results(out) == results_of_twin(theirs)
        assert left(out) == left_of_twin(theirs)
        aux = twin.admission.aux
        assert aux is not None
        assert engine.shares == (pytest.approx(aux.rear), pytest.approx(aux.front))
        outs.append(theirs)
    assert_law(Join.of(join), pushes, outs)
