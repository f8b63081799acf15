"""Joins under the names of their papers are specs."""

from __future__ import annotations

import json
from typing import Any

import pytest

import shedjoin as sj

pytestmark = pytest.mark.small
CPU = sj.VirtualCpu(capacity=1.0, probe=2.0, update=3.0)


def test_dual_windows_are_a_spec() -> None:
    join = sj.DualJoin((sj.TimeWindow(4), sj.TimeWindow(5)), cpu=CPU, rear=0.5, front=False, queue=9, drop="semantic")
    assert join == sj.JoinSpec(
        (sj.TimeWindow(4), sj.TimeWindow(5)),
        cpu=CPU,
        queue=sj.Queue(tuples=9, drop="semantic"),
        dual=sj.Dual(rear=0.5, front=False),
    )


@pytest.mark.parametrize("drop", ["random", "semantic", sj.Table({-3: 0.5}, [0.25, 0.75])])
def test_plain_data_and_back(drop: str | sj.Table) -> None:
    join = sj.DualJoin(sj.RowWindow(4), cpu=CPU, queue=2, drop=drop)
    assert sj.JoinSpec.from_dict(json.loads(json.dumps(join.to_dict()))) == join


def test_the_queue_and_the_policy_ask_one_table() -> None:
    table = sj.Table([0.5], [0.5])
    settings = {"cpu": CPU, "queue": sj.Queue(tuples=2, drop=table), "budget": sj.Budget(tuples=4)}
    sj.JoinSpec(sj.TimeWindow(4), policy=sj.Prob(table), **settings)  # type: ignore[arg-type]
    with pytest.raises(sj.SpecError, match=r"policy must use the same Table as the queue, or no estimator"):
        sj.JoinSpec(sj.TimeWindow(4), policy=sj.Prob(sj.InMemory()), **settings)  # type: ignore[arg-type]


TIME, SETS = sj.TimeWindow(5), sj.Overlap("x", at_least=2)
FULL = sj.PredicateJoin(
    (TIME, sj.TimeWindow(7)),
    sj.Overlap(("a", "b"), at_least=2),
    selective=sj.Selective(basic=2, types=2),
    cpu=sj.VirtualCpu(capacity=3.5),
    queue=sj.Queue(tuples=9),
    budget=sj.Budget(tuples=8),
    policy=sj.Rand(),
    importance="max",
    lateness=1,
    max_skew=4,
)


def test_a_join_on_a_predicate_is_a_spec() -> None:
    assert sj.PredicateJoin(TIME, SETS) == sj.PredicateJoin(TIME, SETS, index="lists") == sj.JoinSpec(TIME, on=SETS)
    assert sj.PredicateJoin(TIME, SETS, index="scan").index == "scan"
    assert FULL.policy == sj.Rand()
    assert FULL.queue == sj.Queue(tuples=9)


@pytest.mark.parametrize(
    "join",
    [
        FULL,
        sj.PredicateJoin(TIME, sj.Theta("x", "<", offset=2.0)),
        sj.PredicateJoin(TIME, SETS, cpu=sj.Deadline(2.0), selective=sj.Selective(basic=1)),
        sj.PredicateJoin(TIME, SETS, index="scan"),
    ],
)
def test_plain_data_of_predicates(join: sj.JoinSpec) -> None:
    assert sj.JoinSpec.from_dict(json.loads(json.dumps(join.to_dict()))) == join


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"predicate": "overlap"}, ["predicate", "Overlap", "'overlap'"]),
        ({"index": "tree"}, ["index", "'scan'", "'tree'"]),
        ({"predicate": sj.Theta("x", "<"), "index": "lists"}, ["index", "scan", "Theta"]),
        ({"queue": sj.Queue(tuples=3)}, ["queue", "VirtualCpu"]),
        ({"cpu": sj.Deadline(1.0)}, ["cpu", "Selective"]),
        ({"cpu": CPU, "queue": sj.Queue(integrated=True, drop="semantic")}, ["integrated", "budget"]),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(sj.SpecError) as caught:
        sj.PredicateJoin(**{"window": TIME, "predicate": SETS, **settings})
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_slow_cpu_serves_one_join() -> None:
    with pytest.raises(sj.SpecError, match="one CPU serves one join"):
        sj.JoinSpec(TIME, on=SETS, cpu=CPU).build(part=(0, 2))
