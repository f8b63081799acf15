"""N-way joins within a budget: the twin, and the laws that hold for every policy and estimator."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

import shedjoin as sj
from naive import Row, Twin, exact, missing, numbers, without_limits
from strategies import (
    CHOOSERS,
    EVERY_CHOOSER,
    INTERPRETED,
    REPRESENTATIVES,
    Chooser,
    choosers,
    columns_of,
    for_all,
    policies,
    records,
)
from strategies.policies import FOLLOWING

Draw = Callable[[st.SearchStrategy[Any]], Any]
LONGEST = 20 if INTERPRETED else 36
NAMES = ("a", "b", "c")
GRAPHS: tuple[Any, ...] = (
    "x",
    ("a.x = b.x", "b.y = c.y"),
    ("a.x = b.x", "b.x = c.x", "a.y = c.y"),
    ("a.x = b.x", "c.y > a.y"),
)
WINDOWS = st.one_of(
    st.builds(sj.TimeWindow, st.sampled_from((2, 4, 8, 30))), st.builds(sj.RowWindow, st.sampled_from((2, 3, 6, 10)))
)
BUDGETS = st.one_of(
    st.builds(sj.Budget, tuples=st.integers(3, 15)),
    st.builds(sj.Budget, tuples=st.integers(8, 18), shares=st.sampled_from(((3, 1, 1), (1.0, 2.5, 1.0)))),
    st.builds(sj.Budget, tuples=st.integers(3, 15), allocation=st.just("variable")),
    st.builds(sj.Budget, bytes=st.integers(600, 2500), allocation=st.sampled_from(("fixed", "variable"))),
)
SIDE = st.dictionaries(st.sampled_from((0, 1, 2, 3)), st.sampled_from((0.0, 0.1, 0.3, 2.0)), max_size=4)


@st.composite
def inputs(draw: Draw) -> list[list[Row]]:
    size = draw(st.integers(0, LONGEST))
    dice = iter(draw(st.binary(min_size=7 * size, max_size=7 * size)))
    values = draw(st.sampled_from(((0, 1, 2), (0, 0, 1), (0, 1, None), tuple(range(6)))))
    lags, apart = draw(st.sampled_from(((0,), (0, 0, 1, 4)))), draw(st.booleans())
    sizes, worths = draw(st.sampled_from(((192,), (50, 192, 300)))), draw(st.sampled_from(((1.0,), (1.0, 2.0, 0.5))))
    time = [0, 0, draw(st.sampled_from((0, 0, 20)))]
    rows = []
    for _ in range(size):
        stream, step = next(dice) % 3, (0, 0, 1, 1, 3)[next(dice) % 5]
        for one in (stream,) if apart else range(3):
            time[one] += step
        picked = {column: values[next(dice) % len(values)] for column in "xy"}
        worth, weight = worths[next(dice) % len(worths)], sizes[next(dice) % len(sizes)]
        rows.append(Row(stream, picked, time[stream] - lags[next(dice) % len(lags)], worth, weight))
    cuts = sorted(draw(st.lists(st.integers(0, max(size, 1)), max_size=3)))
    return [rows[start:end] for start, end in itertools.pairwise([0, *cuts, size])]


def for_three(policy: sj.Policy, side: dict[int, float]) -> sj.Policy:
    """A policy whose table, if it has one, is for three streams."""
    if isinstance(policy.estimator, sj.Table):
        table = policy.estimator
        return replace(policy, estimator=sj.Table(table.left, table.right, [side]))  # type: ignore[type-var]
    return policy


@st.composite
def cases(draw: Draw, chooser: Chooser) -> tuple[sj.JoinSpec, list[list[Row]]]:
    pushes = draw(inputs())
    if chooser.policy == "replay":
        stays = draw(st.lists(st.sampled_from((-1, 0, 1, 3, 8)), min_size=1, max_size=9))
        came = [row for push in pushes for _, run in itertools.groupby(push, lambda r: r.ts) for row in run]
        until = [
            [row.ts + stays[k % len(stays)] for k, row in enumerate(r for r in came if r.stream == s)] for s in range(3)
        ]
        policy: sj.Policy = sj.Replay(until[0], until[1], [until[2]])
    else:
        policy = for_three(draw(policies(chooser)), draw(SIDE))
    spec = sj.MultiJoinSpec(
        windows={name: draw(WINDOWS) for name in NAMES},
        on="x" if chooser.policy == "prospect" else draw(st.sampled_from(list(GRAPHS))),
        index=draw(st.sampled_from(("auto", "scan", 3))),
        budget=draw(BUDGETS),
        policy=policy,
        lateness=draw(st.sampled_from((0, 0, 2, 50, sj.UNLIMITED))),
        max_skew=draw(st.sampled_from((None, None, 4))),
        reordering=sj.Reordering(every=7, drift=0.0),
    )
    return spec, pushes


def run(spec: sj.JoinSpec, pushes: list[list[Row]], *, stop_at: int | None = None):
    engine = spec.build(seed=5)
    parts = [engine.push({})]
    for number, push in enumerate(pushes):
        if number == stop_at:
            engine = spec.resume(engine.snapshot())
        if push:
            parts.append(engine.push(engine.rows(columns_of(push))))
    return sj.Output.joined(parts), engine


def results(out: sj.Output) -> Counter:
    return Counter(map(tuple, out.rows.tolist()))


def shed_of(out: sj.Output) -> list[tuple[int, int]]:
    return list(zip(out.shed.stream.tolist(), out.shed.seq.tolist(), strict=True))


def used(engine: sj.Engine, budget: sj.Budget) -> list[int]:
    held = list(engine.used)
    return [sum(held)] if budget.allocation == "variable" else held


def kept(spec: sj.JoinSpec, pushes: list[list[Row]], log: sj.ShedLog) -> Counter:
    """What the shed log and the inputs say is in the output."""
    return Counter(numbers(exact(spec, pushes))) - Counter(numbers(missing(spec, pushes, records(log))))


def told(spec: sj.JoinSpec, pushes: list[list[Row]]) -> tuple[Any, ...]:
    """All that the engine says: results with their importance, the shed log, what is stored."""
    out, engine = run(spec, pushes)
    log = records(out.shed)
    out = sj.Output.joined([out, engine.flush()])
    worths = [(tuple(row), pytest.approx(worth)) for row, worth in zip(out.rows.tolist(), out.importance, strict=True)]
    stored = [set(engine.live(name).tolist()) for name in NAMES]
    return sorted(worths, key=lambda one: one[0]), log, stored, list(engine.used)


def told_by_twin(spec: sj.JoinSpec, pushes: list[list[Row]]) -> tuple[Any, ...]:
    twin = Twin(spec, seed=5)
    outs = [*(twin.push(push) for push in pushes), twin.flush()]
    found = sorted((result.rows, result.importance) for out in outs for result in out.results)
    stored = [{x.seq for x in side} for side in twin.stored]
    return found, [record for out in outs for record in out.shed], stored, list(twin.used)


@EVERY_CHOOSER
def test_engine_does_what_the_twin_does(chooser: Chooser) -> None:
    def check(case: tuple[sj.JoinSpec, list[list[Row]]]) -> None:
        assert told(*case) == told_by_twin(*case)

    for_all(cases(chooser), check, label=f"n-way twin {chooser}", examples=8)


@pytest.mark.parametrize("chooser", choosers(REPRESENTATIVES))
def test_laws(chooser: Chooser) -> None:
    """The cap holds; what is missing follows from the log; cutting and stopping change nothing."""

    def check(case: tuple[sj.JoinSpec, list[list[Row]]]) -> None:
        spec, pushes = case
        out, engine = run(spec, pushes)
        caps = spec.budget.caps(3, sj.ROW_BYTES)
        assert all(mine <= cap for mine, cap in zip(used(engine, spec.budget), caps, strict=True))
        assert results(out) == kept(spec, pushes, out.shed)
        again, stopped = run(spec, pushes, stop_at=len(pushes) // 2)
        assert results(again) == results(out)
        assert shed_of(again) == shed_of(out)
        alone = [[*run_] for push in pushes for _, run_ in itertools.groupby(push, key=lambda row: row.ts)]
        piecemeal, _ = run(spec, alone)
        assert results(piecemeal) == results(out)
        assert shed_of(piecemeal) == shed_of(out)
        assert stopped.counters["evicted"] == engine.counters["evicted"]

    for_all(cases(chooser), check, label=f"n-way laws {chooser}", examples=3)


LAZY = [one for one in CHOOSERS if one.policy not in FOLLOWING]


@pytest.mark.parametrize("chooser", choosers(LAZY))
def test_lazy_evaluation_within_a_budget_costs_nothing(chooser: Chooser) -> None:
    """A full memory brings the round forward, so that results and shed log are those of eager evaluation."""
    # Lists that RAND draws from, and what is stored when a priority is fixed, depend on when expired tuples go.
    alike = chooser.policy != "rand" and chooser.estimator != "in_memory"

    def check(case: tuple[tuple[sj.JoinSpec, list[list[Row]]], int, int]) -> None:
        (spec, pushes), every, expire = case
        lazy = replace(spec, evaluate_every=every, expire_every=expire * max(every, 1))
        out, engine = run(lazy, pushes, stop_at=len(pushes) // 2)
        log = out.shed
        out = sj.Output.joined([out, engine.flush()])
        caps = spec.budget.caps(3, sj.ROW_BYTES)
        assert all(mine <= cap for mine, cap in zip(used(engine, spec.budget), caps, strict=True))
        assert results(out) == kept(spec, pushes, log)
        if alike:
            eager, _ = run(spec, pushes)
            assert shed_of(out) == shed_of(eager)
            assert log.seen.tolist() == eager.shed.seen.tolist()

    drawn = st.tuples(cases(chooser), st.sampled_from((0, 2, 5, 40)), st.sampled_from((1, 3)))
    for_all(drawn, check, label=f"n-way lazy {chooser}", examples=3)


@pytest.mark.parametrize("chooser", choosers(LAZY))
def test_lazy_engine_does_what_the_twin_does(chooser: Chooser) -> None:
    """To the last record, whatever the policy: the twin leaves expired tuples in memory as the engine does."""

    def check(case: tuple[tuple[sj.JoinSpec, list[list[Row]]], int, int]) -> None:
        (spec, pushes), every, expire = case
        lazy = replace(spec, evaluate_every=every, expire_every=expire * max(every, 1))
        assert told(lazy, pushes) == told_by_twin(lazy, pushes)

    drawn = st.tuples(cases(chooser), st.sampled_from((0, 2, 5, 40)), st.sampled_from((1, 3)))
    for_all(drawn, check, label=f"n-way lazy twin {chooser}", examples=6)


@pytest.mark.small
@pytest.mark.parametrize("chooser", REPRESENTATIVES, ids=str)
def test_engine_does_what_the_twin_does_when_clocks_are_told_and_budgets_change(chooser: Chooser) -> None:
    def check(case: tuple[tuple[sj.JoinSpec, list[list[Row]]], int, list[tuple[int, sj.Budget]]]) -> None:
        (spec, pushes), every, changes = case
        if chooser.policy not in FOLLOWING:
            spec = replace(spec, evaluate_every=every)
        engine, twin = spec.build(seed=5), Twin(spec, seed=5)
        for push, (ahead, budget) in zip(pushes, itertools.cycle(changes)):
            time = max((row.ts for row in push), default=0) + ahead
            rows = engine.rows(columns_of(push)) if push else None
            outs = [engine.push(rows, clocks={"b": time}), engine.set_budget(budget)]
            theirs = [twin.push(push, (None, time, None)), twin.set_budget(budget)]
            for out, other in zip(outs, theirs, strict=True):
                assert results(out) == Counter(other.pairs)
                assert records(out.shed) == other.shed
            assert tuple(engine.used) == twin.used

    changes = st.lists(st.tuples(st.sampled_from((-3, 0, 2, 9)), BUDGETS), min_size=1, max_size=4)
    drawn = st.tuples(cases(chooser), st.sampled_from((0, 0, 3)), changes)
    for_all(drawn, check, label=f"n-way changes {chooser}", examples=8)


@pytest.mark.small
def test_lazy_results_wait_as_long_as_memory_lasts() -> None:
    spec = sj.MultiJoinSpec(
        windows=dict.fromkeys(NAMES, sj.TimeWindow(100)),
        on="x",
        evaluate_every=50,
        budget=sj.Budget(tuples=12, allocation="fixed"),
    )
    engine = spec.build()
    rows = {name: {"x": [1, 2], "ts": [0, 1]} for name in NAMES}
    assert len(engine.push(rows)) == 0  # six tuples: there is room, so they wait
    saved = engine.snapshot()
    later = {name: {"x": [1, 2, 1], "ts": [3, 4, 5]} for name in NAMES}
    out = engine.push(later)  # at 5 each stream has one too many
    assert (len(out), len(out.shed), engine.counters["evaluations"]) == (3**3 + 2**3, 3, 1)
    engine = spec.resume(saved)
    assert len(engine.set_budget(sj.Budget(tuples=3, allocation="fixed"))) == 2  # what waited is joined first
    assert max(engine.residents) == 1
    again = replace(spec, budget=sj.Budget(tuples=3, allocation="fixed")).resume(saved)
    out = again.push({"a": {"x": [9], "ts": [101]}})
    assert len(out) == 2
    assert max(again.residents) == 1


@pytest.mark.small
@pytest.mark.parametrize("chooser", REPRESENTATIVES, ids=str)
def test_exact_when_the_cap_allows_and_a_smaller_budget_takes_hold(chooser: Chooser) -> None:
    def check(case: tuple[sj.JoinSpec, list[list[Row]]]) -> None:
        spec, pushes = case
        wide = replace(spec, budget=sj.Budget(tuples=1000, allocation="fixed"))
        out, engine = run(wide, pushes)
        if chooser.policy != "replay":
            assert results(out) == Counter(without_limits(spec, pushes))
        engine.set_budget(sj.Budget(tuples=3, allocation="fixed"))
        assert max(engine.residents) <= 1
        engine.set_budget(sj.Budget(tuples=3, allocation="variable"))
        assert sum(engine.residents) <= 3

    for_all(cases(chooser), check, label=f"n-way wide {chooser}", examples=3)


@pytest.mark.small
def test_prob_keeps_what_can_be_completed() -> None:
    """A value that one stream never brings is worth nothing in the others, however frequent it is there."""
    table = sj.Table({1: 0.9, 2: 0.1}, {1: 0.9, 2: 0.1}, [{2: 1.0}])
    spec = sj.MultiJoinSpec(
        windows=dict.fromkeys(NAMES, sj.TimeWindow(100)),
        on="x",
        budget=sj.Budget(tuples=6, allocation="fixed"),
        policy=sj.Prob(table),
    )
    engine = spec.build()
    engine.push({"a": {"x": [1, 1, 2, 1, 2, 1]}, "b": {"x": [1, 2, 1, 1, 2, 1]}})
    assert engine.live("a").tolist() == [2, 4]
    assert engine.live("b").tolist() == [1, 4]
    assert len(engine.push({"c": {"x": [2], "ts": [6]}})) == 4


@pytest.mark.small
def test_shed_log_as_a_table() -> None:
    spec = sj.MultiJoinSpec(
        windows=dict.fromkeys(NAMES, sj.TimeWindow(100)),
        on="x",
        budget=sj.Budget(tuples=3, allocation="fixed"),
        policy=sj.Rand(),
    )
    out = spec.build().push({"a": {"x": [1, 2, 3]}})
    assert out.shed.to_arrow().column_names[:2] == ["stream", "seq"]
    assert set(out.shed.to_arrow()["stream"].to_pylist()) == {"a"}
    assert out.shed.seen[-1].tolist() == [3, 0, 0]
    assert repr(out.shed) == "ShedLog(2 rows)"
    assert out["b"].tolist() == []


@pytest.mark.parametrize("allocation", ["fixed", "variable"])
def test_a_stream_that_stops_or_runs_wild_neither_blocks_nor_breaks_the_cap(allocation: str) -> None:
    """c stops for a while and comes back; then b has a hundred times its rows. Others are not held up, and the cap holds."""
    spec = sj.MultiJoinSpec(
        windows=dict.fromkeys(NAMES, sj.TimeWindow(50)), on="x", budget=sj.Budget(tuples=60, allocation=allocation)
    )
    engine = spec.build()
    results = []
    for step in range(8):
        count = {"a": 20, "b": 2000 if step == 6 else 20, "c": 0 if step in (2, 3, 4) else 20}
        tables = {
            name: {"x": [n % 3 for n in range(rows)], "ts": [20 * step + 20 * n // max(rows, 1) for n in range(rows)]}
            for name, rows in count.items()
        }
        engine.forget_peaks()
        results.append(len(engine.push(tables)))
        assert engine.counters["peak_tuples"] <= 60
        assert engine.residents[0] > 0
    assert min(results[:2] + results[5:]) > 0
    assert engine.arrived == (160, 2140, 100)


def test_without_a_budget_an_idle_stream_bounds_nothing_but_max_skew_does() -> None:
    windows = dict.fromkeys(NAMES, sj.TimeWindow(10))
    engines = [sj.MultiJoinSpec(windows=windows, on="x", max_skew=skew).build() for skew in (None, 30)]
    for engine in engines:
        engine.push({name: {"x": [1], "ts": [0]} for name in NAMES})
        engine.push({name: {"x": [1] * 500, "ts": list(range(500))} for name in ("a", "b")})
    assert engines[0].residents[0] == 501
    assert engines[1].residents[0] <= 41
