"""The engine against its slow twin: the same pairs, the same importances, the same shed log, the same memory."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

import shedjoin as sj
from naive import Output, Row, Twin, exact, missing, numbers
from strategies import (
    CHOOSERS,
    EVERY_CHOOSER,
    EXACT,
    HALVES,
    REPRESENTATIVES,
    Case,
    Chooser,
    Combination,
    Told,
    cases,
    cases_of,
    changing_cases,
    choosers,
    for_all,
    go_on,
    learning_cases,
    long_case,
    records,
    side_table,
)

#: The combinations that also run without the compiler.
SMALL = [
    Combination(chooser, *rest) for chooser in REPRESENTATIVES for rest in (("fixed", "time"), ("variable", "row_time"))
]


def told_by(twin: Twin, out: Output) -> Told:
    results = sorted((*result.rows, result.importance) for result in out.results)
    return Told(results, out.shed, twin.residents, twin.used)


def run_twin(twin: Twin, case: Case) -> list[Told]:
    history = []
    for number, rows in enumerate(case.pushes):
        if number in case.changes:
            history.append(told_by(twin, twin.set_budget(case.changes[number])))
        if number in case.policies:
            twin.set_policy(case.policies[number])
        history.append(told_by(twin, twin.push(rows)))
    return history


def assert_agree(case: Case) -> None:
    twin, engine = Twin(case.spec, case.seed), case.spec.build(seed=case.seed)
    assert go_on(engine, case) == run_twin(twin, case)
    assert {name: engine.counters[name] for name in twin.counters} == twin.counters


@pytest.mark.parametrize(
    "combination",
    [
        pytest.param(one, marks=pytest.mark.small if one in SMALL else (), id=str(one))
        for one in dict.fromkeys((*HALVES[0], *SMALL, *EXACT))
    ],
)
def test_engine_agrees_with_twin(combination: Combination) -> None:
    for_all(cases(combination), assert_agree, label=combination, examples=6)


def rows_of(*rows: tuple[int, int, int] | tuple[int, int, int, float]) -> list[Row]:
    return [Row(*row) for row in rows]


BOTH = sj.Budget(tuples=5, allocation="variable")
#: Inputs that once told engine and twin apart, as small as they get.
PINNED = {
    "a budget that changes is logged with the last instant": Case(
        sj.JoinSpec(sj.TimeWindow(9), sj.Budget(tuples=4)),
        rows_of((0, 1, 0), (0, 1, 1), (0, 1, 2)),
        cuts=[2],
        changes={1: sj.Budget(tuples=2)},
    ),
    "life: of tuples worth nothing the one that ends first goes": Case(
        sj.JoinSpec(sj.TimeWindow(8), sj.Budget(tuples=2), sj.Life(sj.Table({}, {})), lateness=3),
        rows_of((0, 7, 1), (0, 7, 0)),
    ),
    "life: nor does it matter which key it has": Case(
        sj.JoinSpec(sj.TimeWindow(8), sj.Budget(tuples=2), sj.Life(sj.Table({}, {})), lateness=3),
        rows_of((0, 7, 1), (0, 8, 0)),
    ),
    "cumulative: six rows arrive where the window has three": Case(
        sj.JoinSpec(sj.RowWindow(3), BOTH, sj.Cumulative(2.0, 0.1, 1.0, 3.0, 0.5, sj.CountMin(4, 2))),
        rows_of((0, 1, 0), (0, 1, 0), (0, 1, 40), *[(1, 1, 288)] * 4, (1, 1, 288, 1e-9), (1, 1, 288)),
    ),
    "decayed: equal but for the rounding": Case(
        sj.JoinSpec(
            (sj.TimeWindow(3), sj.TimeWindow(20)),
            sj.Budget(tuples=4, allocation="variable"),
            sj.Additive(0.0, 1.0, 0.0, "always", sj.Decayed(10.0)),
            lateness=1,
        ),
        rows_of((1, 2, 0), (0, 2, 9), (1, 0, 2), (0, 2, 20), (0, 0, 21), (0, 0, 22)),
    ),
    "decayed: a weight that vanishes when all are scaled": Case(
        sj.JoinSpec(sj.TimeWindow(500), sj.Budget(tuples=16, shares=(3, 1)), sj.DimpProb(sj.Decayed(0.01))),
        rows_of((1, 1, 1), (0, 1, 0), (1, 2, 2), (1, 2, 12), (1, 1, 13), (1, 1, 14)),
    ),
    "decayed: a key that comes back after many half-lives": Case(
        sj.JoinSpec(sj.TimeWindow(20), sj.Budget(tuples=4, shares=(1, 2.5)), sj.Prob(sj.Decayed(0.01))),
        rows_of((0, 0, 0), (1, 0, 0), (1, 1, 1), (0, 2, 3), (1, 0, 4)),
    ),
}


@pytest.mark.small
@pytest.mark.parametrize("case", PINNED.values(), ids=PINNED.keys())
def test_engine_agrees_with_twin_where_it_once_did_not(case: Case) -> None:
    assert_agree(case)


@EVERY_CHOOSER
def test_engine_agrees_with_twin_when_the_budget_changes(chooser: Chooser) -> None:
    for_all(changing_cases(chooser), assert_agree, label=f"{chooser} changes", examples=8)


#: Policies with numbers of their own, and whatever reads a count that decays.
NUMBERED = (
    "dgl",
    "cumulative",
    "additive_arrival",
    "additive_always",
    "multiplicative_arrival",
    "multiplicative_always",
)
LEARNING = [chooser for chooser in CHOOSERS if chooser.policy in NUMBERED or chooser.estimator == "decayed"]


@pytest.mark.parametrize("chooser", choosers(LEARNING))
def test_engine_agrees_with_twin_when_the_numbers_of_the_policy_change(chooser: Chooser) -> None:
    for_all(learning_cases(chooser), assert_agree, label=f"{chooser} learns", examples=10)


@pytest.mark.parametrize("chooser", choosers(LEARNING))
def test_a_snapshot_goes_on_by_other_numbers(chooser: Chooser) -> None:
    """To resume with other numbers is to resume, then to change them; and what comes of it can be saved in turn."""

    def check(case: Case) -> None:
        for number, policy in case.policies.items():
            case = replace(case, policies={}, changes={})
            engine = case.spec.build(seed=case.seed)
            go_on(engine, case, last=number)
            saved = engine.snapshot()
            engine.set_policy(policy)
            other = replace(case.spec, policy=policy).resume(saved)
            assert other.snapshot() == engine.snapshot()
            again = replace(case.spec, policy=policy).resume(other.snapshot())
            assert go_on(again, case, first=number) == go_on(engine, case, first=number)

    for_all(learning_cases(chooser), check, label=f"{chooser} resumed", examples=6)


@EVERY_CHOOSER
def test_engine_agrees_with_twin_over_a_long_run(chooser: Chooser) -> None:
    for number in range(2):
        assert_agree(long_case(chooser, number))


@EVERY_CHOOSER
def test_simulation_agrees_with_twin(chooser: Chooser) -> None:
    settings = st.tuples(cases_of(chooser), st.integers(0, 63), st.sampled_from((0, 1, 3)))
    for_all(settings, lambda drawn: assert_simulated(*drawn), label=f"{chooser} simulated", examples=8)


def assert_simulated(case: Case, warm: int, every: int) -> None:
    """`warm` chooses a row; results before its time are warm-up."""
    case = case.interleaved()
    warmup = case.rows[warm % len(case.rows)].ts if case.rows else 0
    twin = Twin(case.spec, case.seed)
    out = twin.push(case.rows)
    run = sj.simulate(
        case.spec, side_table(case, 0), side_table(case, 1), warmup=warmup, seed=case.seed, late="log", trace=every
    )
    counted = [result for result in out.results if result.produced >= warmup]
    left, right = run.pairs()
    assert sorted(zip(left.tolist(), right.tolist(), strict=True)) == sorted(result.rows for result in counted)
    assert (run.matches, run.results) == (len(counted), len(out.results))
    assert math.isclose(run.importance, math.fsum(result.importance for result in counted), rel_tol=1e-9)
    assert records(run.shed) == out.shed
    assert run.peak_tuples == max((sum(border.tuples) for border in out.borders), default=0)
    traced = [[border.ts, *border.tuples] for border in out.borders[::every]] if every else []
    assert np.asarray(run.trace).reshape(-1, 3).tolist() == traced
    assert {name: run.counters[name] for name in twin.counters} == twin.counters


@EVERY_CHOOSER
def test_twin_loses_only_what_it_logs(chooser: Chooser) -> None:
    """The twin is held by brute force, so that it does not only share the engine's mistakes."""

    def check(case: Case) -> None:
        twin = Twin(case.spec, case.seed)
        outs = [twin.push(rows) for rows in case.pushes]
        log = [record for out in outs for record in out.shed]
        lost = numbers(missing(case.spec, case.pushes, log))
        assert sorted([*lost, *(pair for out in outs for pair in out.pairs)]) == sorted(
            numbers(exact(case.spec, case.pushes))
        )

    for_all(cases_of(chooser), check, label=f"{chooser} logged", examples=6)
