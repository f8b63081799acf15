"""Joins under the names of their papers are specs."""

from __future__ import annotations

import json

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
    with pytest.raises(sj.SpecError, match=r"policy must ask the same Table as the queue, or no estimator"):
        sj.JoinSpec(sj.TimeWindow(4), policy=sj.Prob(sj.InMemory()), **settings)  # type: ignore[arg-type]
