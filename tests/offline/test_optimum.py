"""The optimum against exhaustive search, against every policy, and graph against graph."""

from __future__ import annotations

import itertools
import signal
from random import Random
from typing import Any

import numpy as np
import pytest

import naive
import shedjoin as sj
from naive import Row
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.offline import solver
from strategies import CHOOSERS, Case, Chooser, cases_of, for_all, side_table

WINDOWS: tuple[Any, ...] = (
    sj.TimeWindow(1),
    sj.TimeWindow(3),
    sj.TimeWindow(6),
    sj.RowWindow(1),
    sj.RowWindow(3),
    (sj.TimeWindow(2), sj.TimeWindow(5)),
    (sj.TimeWindow(4), sj.RowWindow(2)),
    (sj.RowWindow(4), sj.TimeWindow(3)),
)
#: Around 0, on either side of it, and a single distance.
INTERVALS = ((-2, 3), (0, 2), (1, 4), (2, 2), (-4, -1))
BUDGETS = (
    sj.Budget(tuples=2, shares=(1, 1)),
    sj.Budget(tuples=4, shares=(1, 1)),
    sj.Budget(tuples=4, shares=(3, 1)),
    sj.Budget(tuples=2, allocation="variable"),
    sj.Budget(tuples=3, allocation="variable"),
)
WORTH = {
    "min": min,
    "max": max,
    "sum": lambda x, y: x + y,
    "product": lambda x, y: x * y,
    "mean": lambda x, y: (x + y) / 2,
}


def tables(rows: list[Row]) -> tuple[dict[str, Any], dict[str, Any]]:
    left, right = (side_table(Case(sj.JoinSpec(sj.TimeWindow(1)), rows), stream) for stream in (0, 1))
    return left, right


def random_rows(random: Random, most: int) -> list[Row]:
    """In order of time, with ties, gaps, null keys, and up to `most` rows a stream."""
    rows = []
    step = random.choice(((1,), (0, 1), (0, 0, 1), (1, 2, 5)))
    keys: tuple[int | None, ...] = random.choice(((1, 2), (1, 2, 3), (1,), (1, 1, 2, 3, None)))
    for stream in (0, 1):
        time = random.choice((0, 0, 2, -3))
        for _ in range(random.randint(0, most)):
            rows.append(Row(stream, random.choice(keys), time, random.choice((1.0, 2.0, 0.5, 7.0))))
            time += random.choice(step)
    sides = [[row for row in rows if row.stream == stream] for stream in (0, 1)]
    return naive.interleave(*sides)


def exhaustive(spec: sj.JoinSpec, rows: list[Row], objective: str, warmup: int) -> float:
    """The best over every way to keep tuples: after each instant, any choice of what memory can hold."""
    assert spec.budget is not None
    caps = spec.budget.caps(2)
    worth = (lambda x, y: 1) if objective == "matches" else WORTH[spec.importance]
    gains: dict[int, dict[tuple[int, int], float]] = {}
    total = 0.0
    for r, s in naive.exact(spec, [rows]):
        older, newer = sorted((r, s), key=lambda x: x.arrival)
        if max(r.row.ts, s.row.ts) < warmup:
            continue
        value = worth(r.row.importance, s.row.importance)
        if older.instant == newer.instant:
            total += value
        else:
            at = gains.setdefault(newer.instant, {})
            name = (older.row.stream, older.seq)
            at[name] = at.get(name, 0) + value
    placed = naive.place([rows])
    states: dict[frozenset[tuple[int, int]], float] = {frozenset(): 0.0}
    for instant in range(max((x.instant for x in placed), default=-1) + 1):
        new = [(x.row.stream, x.seq) for x in placed if x.instant == instant and x.value is not None]
        here = gains.get(instant, {})
        following: dict[frozenset[tuple[int, int]], float] = {}
        for state, value in states.items():
            reached = value + sum(here.get(x, 0) for x in state)
            for kept in choices([*state, *new], caps):
                following[kept] = max(following.get(kept, 0), reached)
        states = following
    return total + max(states.values())


def choices(tuples: list[tuple[int, int]], caps: tuple[int, ...]) -> list[frozenset[tuple[int, int]]]:
    """All largest sets within the caps: to drop more than one must helps nobody."""
    groups = [tuples] if len(caps) == 1 else [[x for x in tuples if x[0] == stream] for stream in (0, 1)]
    parts = [itertools.combinations(group, min(cap, len(group))) for group, cap in zip(groups, caps, strict=True)]
    return [frozenset(itertools.chain(*chosen)) for chosen in itertools.product(*parts)]


@pytest.mark.parametrize("seed", range(4))
def test_optimum_is_what_exhaustive_search_finds(seed: int) -> None:
    """Every window and allocation in turn, on streams of up to 8 rows."""
    random = Random(seed)
    for window, budget in itertools.product(WINDOWS, BUDGETS):
        for _ in range(4):
            rows = random_rows(random, 8)
            spec = sj.JoinSpec(window, budget, importance=random.choice(list(IMPORTANCE)))
            warmup = random.choice((-(2**40), -(2**40), 2, 4))
            left, right = tables(rows)
            for objective, graphs in (("matches", ("key", "tuple")), ("importance", ("auto",))):
                expected = exhaustive(spec, rows, objective, warmup)
                for graph in graphs:
                    best = sj.optimum(spec, left, right, warmup=warmup, objective=objective, graph=graph)
                    assert best.value == pytest.approx(expected, abs=1e-9), (spec, rows, objective, graph)
                    assert best.bound == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_optimum_of_an_interval_is_what_exhaustive_search_finds(seed: int) -> None:
    random = Random(seed)
    for between, budget in itertools.product(INTERVALS, BUDGETS):
        rows = random_rows(random, 8)
        spec = sj.JoinSpec(between=between, budget=budget, importance=random.choice(list(IMPORTANCE)))
        left, right = tables(rows)
        for objective in ("matches", "importance"):
            best = sj.optimum(spec, left, right, objective=objective)
            assert best.value == pytest.approx(exhaustive(spec, rows, objective, -(2**40)), abs=1e-9), (spec, rows)
            assert best.bound == pytest.approx(best.value, abs=1e-6)


def test_the_compact_graph_refuses_an_interval_without_zero() -> None:
    spec = sj.JoinSpec(between=(1, 4), budget=sj.Budget(tuples=2))
    with pytest.raises(sj.SpecError, match="intervals that hold 0"):
        sj.optimum(spec, {"key": [1]}, {"key": [1]}, graph="key")


@pytest.mark.parametrize("chooser", CHOOSERS, ids=str)
def test_no_policy_beats_the_optimum(chooser: Chooser) -> None:
    def check(case: Case) -> None:
        rows = sorted(case.rows, key=lambda row: row.ts)
        spec = case.spec
        assert spec.budget is not None
        if spec.budget.unit == "bytes":
            rows = [row._replace(bytes=sj.ROW_BYTES) for row in rows]
        left, right = tables(rows)
        run = sj.simulate(spec, left, right, seed=case.seed)
        assert sj.optimum(spec, left, right).matches >= run.matches
        best = sj.optimum(spec, left, right, objective="importance")
        assert best.importance >= run.importance * (1 - 1e-9)

    for_all(cases_of(chooser), check, label=f"optimum {chooser}", examples=4)


def zipf(rows: int, domain: int, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    random = np.random.default_rng(seed)
    chance = 1 / np.arange(1, domain + 1)
    left, right = (random.choice(domain, rows, p=chance / chance.sum()) for _ in range(2))
    names = random.permutation(domain)
    weights = random.choice([1.0, 1.5, 9.0], (2, rows), p=[0.7, 0.2, 0.1])
    return {"key": left, "importance": weights[0]}, {"key": names[right], "importance": weights[1]}


@pytest.mark.parametrize("allocation", ["fixed", "variable"])
def test_blocks_and_graphs_agree_on_long_streams(allocation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solved in one piece, in many blocks, and by the other graph."""
    left, right = zipf(1500, 20, 3)
    spec = sj.JoinSpec(sj.TimeWindow(60), sj.Budget(tuples=60, allocation=allocation))
    monkeypatch.setattr(solver, "BLOCK", 10**9)
    whole = {objective: sj.optimum(spec, left, right, objective=objective) for objective in ("matches", "importance")}
    monkeypatch.setattr(solver, "BLOCK", 100)
    monkeypatch.setattr(solver, "FAN", 3)
    for objective, best in whole.items():
        again = sj.optimum(spec, left, right, objective=objective)
        assert again.value == pytest.approx(best.value, rel=1e-9)
        assert again.value <= again.bound <= again.value * (1 + 1e-6)
    assert sj.optimum(spec, left, right, graph="tuple").matches == whole["matches"].matches
    assert whole["importance"].importance > whole["matches"].importance
    assert whole["importance"].matches < whole["matches"].matches


def test_the_example_of_das2003() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(3), sj.Budget(tuples=2, shares=(1, 1)))
    left, right = {"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]}
    assert sj.simulate(sj.JoinSpec(sj.TimeWindow(3)), left, right).matches == 7
    assert sj.optimum(spec, left, right).matches == 5
    # The paper's flow keeps r0 to s2 and r2 to s3; r1 for both is as good. Its schedule must be an optimum here too.
    papers = sj.simulate(
        sj.JoinSpec(sj.TimeWindow(3), spec.budget, sj.Replay([2, 0, 3, 4, 0], [0, 3, 0, 0, 0])), left, right
    )
    missing = {(0, 2), (1, 2), (2, 2), (1, 3), (2, 3), (3, 1), (3, 4)} - set(
        zip(*map(list, papers.pairs()), strict=True)
    )
    assert missing == {(1, 2), (1, 3)}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (dict(spec=sj.JoinSpec(sj.TimeWindow(3))), "spec needs a budget"),
        (dict(objective="profit"), "objective must be one of matches, importance, not 'profit'"),
        (dict(graph="round"), "graph must be one of auto, key, tuple, not 'round'"),
        (dict(objective="importance", graph="key"), "results that all weigh the same"),
        (dict(within=1), "within must be a share"),
        (dict(left={"key": [1, 1], "ts": [2, 1], "importance": [1, 2]}), "left.ts must be in order"),
        (dict(spec=sj.JoinSpec(sj.TimeWindow(3), sj.Budget(bytes=900))), "rows of one size"),
    ],
)
def test_refusals(arguments: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = dict(
        spec=sj.JoinSpec(sj.TimeWindow(3), sj.Budget(tuples=2, shares=(1, 1))),
        left={"key": [1, 2], "importance": [1, 2], "bytes": [200, 100]},
        right={"key": [2, 1]},
    )
    with pytest.raises(sj.ShedjoinError, match=sentence):
        sj.optimum(**{**given, **arguments})


def test_ctrl_c_reports_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real signal, in the middle of the left stream's work: it ends between two blocks, and the usual handler is back."""
    monkeypatch.setattr(solver, "BLOCK", 100)
    monkeypatch.setattr(solver, "FAN", 3)
    left, right = zipf(1500, 20, 3)
    spec = sj.JoinSpec(sj.TimeWindow(60), sj.Budget(tuples=60, shares=(1, 1)))

    pressed: list[int] = []

    def press(stage: str, done: int, total: int) -> None:
        if not pressed and total // 4 <= done < total:  # progress may pass over a number
            pressed.append(done)
            signal.raise_signal(signal.SIGINT)  # to this thread: one from outside may come too late

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores Ctrl-C
    usual = signal.getsignal(signal.SIGINT)
    part = sj.optimum(spec, left, right, progress=press)
    assert not part.complete
    assert 0 < part.matches < sj.optimum(spec, left, right).matches <= part.bound
    assert signal.getsignal(signal.SIGINT) is usual
    signal.signal(signal.SIGINT, before)


def test_interrupted_work_reports_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "BLOCK", 100)
    monkeypatch.setattr(solver, "FAN", 3)
    left, right = zipf(1500, 20, 3)
    spec = sj.JoinSpec(sj.TimeWindow(60), sj.Budget(tuples=60, allocation="variable"))
    best = sj.optimum(spec, left, right)

    def stop(stage: str, done: int, total: int) -> None:
        if done > total // 2 or stage == "proof":
            raise KeyboardInterrupt

    part = sj.optimum(spec, left, right, progress=stop)
    assert not part.complete
    assert 0 < part.matches < best.matches <= part.bound
    assert 0 < part.gap < 1


@pytest.mark.parametrize("part", [1, 2, 5])
@pytest.mark.parametrize("allocation", ["fixed", "variable"])
def test_short_blocks_that_see_little_ahead_are_put_right(
    part: int, allocation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = zipf(600, 20, 3)
    spec = sj.JoinSpec(sj.TimeWindow(60), sj.Budget(tuples=30, allocation=allocation))
    at_once = sj.optimum(spec, left, right)
    for name, value in (("BLOCK", 20), ("FAN", 3), ("PART", part)):
        monkeypatch.setattr(solver, name, value)
    assert sj.optimum(spec, left, right).value == at_once.value
