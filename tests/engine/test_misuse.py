"""What users do by mistake: a clear word, and nothing that was done is lost."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shedjoin as sj
from shedjoin.engine.codes import KEY, LIFE, PRODUCT, SCHEDULE, Order
from shedjoin.policies import Policy

pytestmark = pytest.mark.small
SPEC = sj.JoinSpec(window=sj.TimeWindow(10), budget=sj.Budget(tuples=6))
ROWS = {"key": [1, 2, 1, 2, 1], "ts": [0, 1, 2, 3, 4]}


CPU = sj.VirtualCpu(capacity=1.0, probe=1.0, update=1.0)
JOINS = {
    "two": SPEC,
    "three": sj.JoinSpec(dict.fromkeys("abc", sj.TimeWindow(9))),
    "predicate": sj.PredicateJoin(sj.TimeWindow(9), sj.Equal("key")),
    "dual": sj.DualJoin(sj.RowWindow(2), cpu=CPU, queue=3, period=5),
}


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_engines_are_not_copied_by_accident(join, take) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError, match="snapshot"):
        take(join.build())


def test_what_is_no_batch_is_refused_and_the_engine_goes_on() -> None:
    engine, other = SPEC.build(), SPEC.build()
    with pytest.raises(sj.InputError, match="there is no stream 'key'; the streams are left, right"):
        engine.push({"key": [1]})
    with pytest.raises(sj.InputError, match="clocks must be times"):
        engine.push(left=ROWS, clocks=3)  # type: ignore[arg-type]
    assert engine.push(left=ROWS, right=ROWS).left.tolist() == other.push(left=ROWS, right=ROWS).left.tolist()
    assert engine.snapshot() == other.snapshot()


def test_columns_of_a_batch_are_checked() -> None:
    with pytest.raises(sj.InputError, match=r"rows.key has 3 rows where stream has 1"):
        sj.Batch.rows({"stream": [1], "key": [1, 2, 3]})
    whole, flags = np.zeros(2, np.int64), np.zeros(2, np.bool_)
    with pytest.raises(sj.InputError, match=r"Batch.importance must be a flat array of float64"):
        sj.Batch(whole, whole, flags, whole, whole, whole)  # type: ignore[arg-type]
    with pytest.raises(sj.InputError, match=r"Batch.ts has 1 rows where stream has 2"):
        sj.Batch(whole, whole, flags, whole[:1], np.ones(2), whole)
    with pytest.raises(sj.InputError, match=r"Batch.stream must be the number of a stream"):
        sj.Batch(whole + 16, whole, flags, whole, np.ones(2), whole)
    with pytest.raises(sj.InputError, match=r"Batch.stream must be from 0 to 1: left, right"):
        SPEC.build().push(sj.Batch(whole + 5, whole, flags, whole, np.ones(2), whole + 1))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"key": [1], "ts": [-(2**63)]}, "left.ts must lie within"),
        ({"key": 5}, "left.key is not a column"),
        ({"key": [2**70]}, "left.key is not a column"),
        ({"key": [1], "importance": 1.0}, "left.importance is not a column"),
        ({"key": [1], "importance": [2**60 + 1]}, "left.importance must be numbers that a float can hold"),
        ({"key": [1], "ts": [0.5]}, "left.ts must be a column of whole numbers, not double$"),
        ({"key": ["a"]}, "hash or number other kinds of keys first"),
        (pd.DataFrame({"key": [1], "ts": pd.to_datetime([1], unit="ns")}), "whole microseconds"),
        (pa.table([[1], [2]], names=["key", "key"]), "more than one column 'key'"),
    ],
)
def test_columns_that_cannot_be_read(table: object, words: str) -> None:
    with pytest.raises(sj.InputError, match=words):
        SPEC.build().push(left=table)


@dataclass(frozen=True, slots=True)
class Odd(Policy):
    given: Order
    name = "odd"

    def order(self) -> Order:
        return self.given


@pytest.mark.parametrize(
    "order",
    [Order(99), Order(KEY, 7), Order(SCHEDULE), Order(KEY, PRODUCT, matches=-1.0), Order(KEY, PRODUCT, 3.0, 1.0),
     Order(LIFE, PRODUCT, 1.0, 1.0, 1.0), Order(KEY, loss=0.0, matches=1.0), Order(KEY, matches=float("nan"))],
)  # fmt: skip
def test_orders_that_kernels_cannot_follow(order: Order) -> None:
    with pytest.raises(sj.SpecError, match="the policy's order"):
        sj.JoinSpec(window=sj.TimeWindow(5), budget=sj.Budget(tuples=4), policy=Odd(order)).build()


def test_heavy_weights_are_refused() -> None:
    with pytest.raises(sj.SpecError, match=r"Table.left must hold numbers from 0 to 1e"):
        sj.Table({1: 1.7e308}, {})
    with pytest.raises(sj.SpecError, match=r"Table.left must have whole-number keys here, not 1 keys such as 1.5"):
        sj.JoinSpec(sj.TimeWindow(5), sj.Budget(tuples=4), sj.Prob(sj.Table({1.5: 1.0}, {})))
    assert sj.Table(pd.Series([0.5, 0.25], index=[7, 9]), {}).left == {7: 0.5, 9: 0.25}


def test_shares_are_what_they_are_written_as() -> None:
    assert sj.Budget(tuples=30, shares=(0.1, 0.2)).caps(2) == (10, 20)
    assert sj.Budget(tuples=100, shares=(0.29, 0.71)).caps(2) == (29, 71)
    assert sj.Budget(tuples=10, shares=(1e308, 1e308)).caps(2) == (5, 5)


def test_a_large_budget_costs_nothing_until_it_is_used() -> None:
    engine = sj.JoinSpec(window=sj.TimeWindow(10), budget=sj.Budget(tuples=10**9)).build()
    engine.push(left=ROWS, right=ROWS)
    assert len(engine.snapshot()) < 10**7
    with pytest.raises(sj.SpecError, match=r"below 2\*\*30"):
        sj.Budget(tuples=2**30)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    one = np.int64(5)
    spec = sj.JoinSpec(window=sj.TimeWindow(one), budget=sj.Budget(tuples=one))  # type: ignore[arg-type]
    assert spec == sj.JoinSpec(window=sj.TimeWindow(5), budget=sj.Budget(tuples=5))
    assert sj.JoinSpec.from_dict(spec.to_dict()) == spec
    spec.build(seed=np.int64(3))  # type: ignore[arg-type]


def test_an_exact_join_can_be_given_a_budget() -> None:
    assert sj.JoinSpec(window=sj.TimeWindow(5)).with_budget(sj.Budget(tuples=4)).policy == sj.Prospect()


@pytest.mark.small
@pytest.mark.parametrize("stream", [2, -1, "middle", None, True])
def test_there_are_two_streams_to_look_into(stream: object) -> None:
    with pytest.raises(sj.InputError, match=r"stream must be one of 0 \(left\), 1 \(right\), not "):
        sj.JoinSpec(sj.TimeWindow(5)).build().live(stream)  # type: ignore[arg-type]


@pytest.mark.small
def test_a_snapshot_goes_on_with_another_schedule_in_vain() -> None:
    one, other = (sj.JoinSpec(sj.TimeWindow(5), policy=sj.Replay([until], [])) for until in (1, 2))
    with pytest.raises(sj.SnapshotError, match="it is another schedule, and what left by the old one is gone"):
        other.resume(one.build().snapshot())


@pytest.mark.small
def test_a_budget_can_be_taken_away_and_given() -> None:
    capped = sj.JoinSpec(sj.TimeWindow(5), sj.Budget(tuples=4), sj.Simp())
    exact = sj.JoinSpec(sj.TimeWindow(5)).resume(capped.build().snapshot())
    exact.push(left={"key": [1] * 9, "ts": [0] * 9})
    assert exact.residents == (9, 0)
    assert capped.resume(exact.snapshot()).residents == (4, 0)
