"""With two streams the n-way loop is the two-stream engine: same results, same shed log, for every policy and estimator."""

from __future__ import annotations

from dataclasses import replace

import pytest

import shedjoin as sj
from naive import Row
from strategies import (
    EVERY_CHOOSER,
    REPRESENTATIVES,
    Case,
    Chooser,
    Told,
    cases_of,
    changing_cases,
    for_all,
    go_on,
    long_case,
    records,
)

EXAMPLES = 6


def as_multi(spec: sj.JoinSpec) -> sj.JoinSpec:
    return sj.MultiJoinSpec(
        windows=dict(zip(("left", "right"), spec.windows, strict=True)),
        on="key",
        order=("left", "right"),
        index=dict.fromkeys(("left", "right"), "auto"),  # of each window, and so not by the common key
        budget=spec.budget,
        policy=spec.policy,
        importance=spec.importance,
        lateness=spec.lateness,
        max_skew=spec.max_skew,
    )


def batch(engine: sj.Engine, rows: list[Row]) -> sj.Batch:
    names = ("stream", "key", "ts", "importance", "bytes", "kind")
    return engine.rows(
        dict(zip(names, zip(*(row[:6] for row in rows), strict=True) if rows else ((),) * 6, strict=True))
    )


def told(engine: sj.Engine, out: sj.Output) -> Told:
    results = sorted((*row, worth) for row, worth in zip(out.rows.tolist(), out.importance.tolist(), strict=True))
    return Told(results, records(out.shed), engine.residents, engine.used)


def run_multi(case: Case, *, stop_at: int | None = None) -> list[Told]:
    spec = as_multi(case.spec)
    engine = spec.build(seed=case.seed)
    history = []
    for number, rows in enumerate(case.pushes):
        if number == stop_at:
            budget = engine.budget
            engine = spec.with_budget(budget).resume(engine.snapshot())
        if number in case.changes:
            history.append(told(engine, engine.set_budget(case.changes[number])))
        history.append(told(engine, engine.push(batch(engine, rows))))
    return history


def run_two(case: Case) -> list[Told]:
    return go_on(case.spec.build(seed=case.seed), case)


@EVERY_CHOOSER
def test_same_as_the_two_stream_engine(chooser: Chooser) -> None:
    def check(case: Case) -> None:
        assert run_multi(case) == run_two(case)

    for_all(cases_of(chooser), check, label=f"two {chooser}", examples=EXAMPLES)


@EVERY_CHOOSER
def test_same_on_a_long_stream_and_over_a_snapshot(chooser: Chooser) -> None:
    case = long_case(chooser, 1)
    assert run_multi(case, stop_at=3) == run_two(case)


@pytest.mark.parametrize("chooser", REPRESENTATIVES, ids=str)
def test_same_when_the_budget_changes(chooser: Chooser) -> None:
    def check(case: Case) -> None:
        if chooser.policy == "replay":
            case = replace(case, changes={})
        assert run_multi(case) == run_two(case)

    for_all(changing_cases(chooser), check, label=f"changing {chooser}", examples=EXAMPLES)
