"""Dual windows in the one engine, against the slow twin."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

import shedjoin as sj
from matrix import MORE_CPUS, Case
from naive import Dual
from shedjoin.engine import waiting_rows
from strategies import share
from waiting_cases import CONDITIONS, PREDICATE_CONDITIONS, check, drawn, sample, some

pytestmark = pytest.mark.small

CPU = sj.VirtualCpu(1.5, probe=0.5, comparison=0.25, lookup=0.125, update=0.25)
QUEUES = {
    "random": sj.Queue(tuples=2),
    "semantic": sj.Queue(span=3, drop="semantic"),
    "integrated": sj.Queue(integrated=True, drop="semantic"),
}
EVERY_KIND = pytest.mark.parametrize(
    ("cpu", "conditions"),
    [
        (cpu, conditions)
        for cpu in ("dual", "selective dual", *MORE_CPUS)
        for conditions in (CONDITIONS, PREDICATE_CONDITIONS)
    ],
    ids=["keys", "predicates", "keys, selective", "predicates, selective", "keys, deadline", "predicates, deadline"],
)
KNOWN = ((1.0, 2.0, 3.0, 1.0, 1.0), (2.0, 1.0, 1.0, 1.0, 4.0))


def with_dials(case: Case, **dials: Any) -> Case:
    return replace(case, join=replace(case.join, **dials))


@EVERY_KIND
def test_the_engine_does_as_its_twin(cpu: str, conditions: tuple[str, ...]) -> None:
    for seed, combination in enumerate(sample(cpu, 16, conditions)):
        check(drawn(combination, seed))


@EVERY_KIND
def test_a_join_goes_on_from_snapshots(cpu: str, conditions: tuple[str, ...]) -> None:
    for seed, combination in enumerate(sample(cpu, 12, conditions)):
        check(drawn(combination, 100 + seed), resumes=True, tells=True)


@EVERY_KIND
@pytest.mark.parametrize("queue", QUEUES)
def test_queues_in_front_of_the_aux_window(queue: str, cpu: str, conditions: tuple[str, ...]) -> None:
    for seed, combination in enumerate(sample(cpu, 8, conditions)):
        case = drawn(combination, 200 + seed)
        if queue != "integrated" or (
            case.join.budget is not None
            and not {combination.policy, combination.estimator} & {"age", "age_weighed", "met"}
        ):
            check(with_dials(case, cpu=CPU, queue=QUEUES[queue]), resumes=seed % 2 == 0)


def test_a_table_says_which_row_goes() -> None:
    """The policy asks none; nothing but the queue knows the table."""
    for seed, combination in enumerate(some("dual", 30)):
        case = drawn(combination, 500 + seed)
        table = sj.Table([0.1, 0.4, 0.2], {1: 0.3, 3: 0.5}, [[0.2, 0.3, 0.3, 0.3]][: combination.streams - 2])
        if case.join.policy.estimator is None and not isinstance(case.join.policy, sj.Prospect) and not case.policies:
            check(with_dials(case, cpu=CPU, queue=sj.Queue(tuples=2, drop=table)), resumes=seed % 2 == 0)


@pytest.mark.parametrize("distribution", [None, KNOWN], ids=["learned", "known"])
@pytest.mark.parametrize("rear", [True, 0.3, False])
def test_front_shedding_follows_the_best_speed(rear: bool | float, distribution: Any) -> None:
    on_key = [one for one in some("dual", 200) if one.streams == 2 and one.condition == "key"]
    assert len(on_key) > 8
    for seed, combination in enumerate(Random(3).sample(on_key, 4)[: share(4)]):
        case = drawn(combination, 300 + seed, size=80)
        check(with_dials(case, cpu=CPU, dual=Dual(rear, True, 5, distribution)), resumes=seed % 2 == 0)


@EVERY_KIND
def test_arrays_grow(cpu: str, conditions: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_rows, "LEAST", 2)
    for seed, combination in enumerate(sample(cpu, 8, conditions)):
        check(drawn(combination, 400 + seed, size=80), resumes=seed % 2 == 0)


def test_rows_with_few_partners_do_not_probe() -> None:
    """Half of the rows expect a partner, half none: with k_r of one half, few results are lost."""
    spec = sj.JoinSpec(sj.RowWindow(8), dual=sj.Dual(rear=0.5, front=False))
    engine = spec.build()
    keys = [1, 2] * 20
    others = [1 if key == 1 else 3 for key in keys]
    out = engine.push(left={"key": keys, "ts": range(40)}, right={"key": others, "ts": range(40)})
    assert engine.counters["unprobed"] > 20
    exact = (
        sj.JoinSpec(sj.RowWindow(8))
        .build()
        .push(left={"key": keys, "ts": range(40)}, right={"key": others, "ts": range(40)})
    )
    found = {tuple(row) for row in out.rows.tolist()} | {tuple(row) for row in engine.flush().rows.tolist()}
    assert found <= {tuple(row) for row in exact.rows.tolist()}
    assert len(found) > 0.8 * len(exact)
    assert engine.shares == (0.5, 0.0)


def test_errors_name_the_argument() -> None:
    for settings, name in (
        ({"rear": 2.0}, "Dual.rear"),
        ({"front": "all"}, "Dual.front"),
        ({"period": 0}, "Dual.period"),
        ({"distribution": 3}, "Dual.distribution"),
    ):
        with pytest.raises(sj.SpecError, match=name):
            sj.Dual(**settings)  # type: ignore[arg-type]


def test_a_policy_without_an_estimator_follows_met() -> None:
    """By Met() tuples of a join graph are groups of their own; by another policy they share cells, and their values are known."""
    graphs = [one for one in some("dual", 60, ("graph",)) if one.budget is not None and one.also is None][:3]
    for number, combination in enumerate(graphs):
        met = replace(combination, policy="prob", estimator="met")
        for queue in (None, QUEUES["semantic"]):
            case = replace(drawn(met, 600 + number), policies={2: sj.Simp()})
            check(with_dials(case, cpu=CPU, queue=queue), resumes=number % 2 == 0)
            check(with_dials(case, cpu=CPU, queue=queue or QUEUES["random"], dual=None), resumes=number % 2 == 0)
