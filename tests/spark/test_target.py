"""A target on shards: memory shrinks to what it takes, metrics say so, and a stop or a lost copy changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dict_store import DictStore
from shards import Shards, cut, job

import shedjoin as sj
from shedjoin.cli.view import of_rows
from shedjoin.errors import SpecError
from shedjoin.spark import reshard
from shedjoin.spark.arguments import spec_of
from shedjoin.spark.exchange import METRIC
from shedjoin.spark.join import shed_join
from shedjoin.spark.join_args import complete

ROWS, BATCHES, WINDOW = 6000, 30, 300


def tables(skew: float = 1.0) -> Any:
    rng = np.random.default_rng(5)
    likely = 1.0 / np.arange(1, 151) ** skew
    keys = [rng.choice(150, ROWS, p=likely / likely.sum()) for _ in range(2)]
    return cut([(key, np.arange(ROWS)) for key in keys], BATCHES)


def metrics(target: float | None, limit: int, shards: int, skew: float = 1.0, **more: Any) -> list[dict[str, Any]]:
    spec = sj.JoinSpec(sj.TimeWindow(WINDOW), sj.Budget(tuples=limit), sj.Prob())
    run = Shards(job(spec, shards, target=target, **more))
    return [row for part in tables(skew) for row in run.batch(*part)[METRIC]]


def allowed(rows: list[dict[str, Any]]) -> list[int]:
    found = np.zeros(BATCHES, int)
    for row in rows:
        found[row["batch"]] += row["allowed"]
    return found.tolist()


def test_memory_of_all_shards_follows_the_target_and_the_budget_is_its_limit() -> None:
    rows = metrics(0.8, 600, 2)
    memory = allowed(rows)
    assert memory[0] == 600
    assert memory[-1] < 0.8 * 600
    assert max(memory) <= 600
    assert all(row["resident_left"] + row["resident_right"] <= row["allowed"] for row in rows)
    view = of_rows(rows, {"tuples": 600})
    assert view is not None
    assert (view.allowed, view.limited) == (memory[-1], False)
    assert view.recent is not None
    assert view.recent[0] > 0.75


def test_a_limit_that_is_too_low_is_told() -> None:
    rows = metrics(0.95, 100, 1, skew=0.0)
    assert set(allowed(rows)) == {100}
    view = of_rows(rows, {"tuples": 100})
    assert view is not None
    assert view.limited


def test_a_query_without_recall_may_take_a_target() -> None:
    """Its recall is then that of the rows that come."""
    spec = sj.JoinSpec(sj.TimeWindow(WINDOW), sj.Budget(tuples=100), sj.Prob())
    stores = [DictStore()]
    first, *others = tables()
    Shards(job(spec, recall=False), stores).batch(*first)
    told = [row for tables in others for row in Shards(job(spec, target=0.9), stores).batch(*tables)[METRIC]]
    assert {row["recall_from"] for row in told} == {1}
    assert told[-1]["allowed"] is not None
    assert 0.0 < told[-1]["recall"] < 1.0
    assert "with a target" in str(
        reshard.why_not({"spec": spec.to_dict()}, {"spec": spec.to_dict(), "target": 0.9, "archive": False}, "x")
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"target": "fine"}, "target must be a share of results such as '95% recall'"),
        ({"target": 0.9, "budget": None}, "memory needs an upper limit"),
        ({"target": 0.9, "policy": "sample"}, r"would bias the weights of Sample\(\)"),
    ],
)
def test_arguments_are_checked(given: dict[str, Any], sentence: str) -> None:
    args = complete({"on": "k", "time": "ts", "window": 10, "budget": 100, **given}, shed_join)  # type: ignore[typeddict-item]
    with pytest.raises(SpecError, match=sentence):
        spec_of(args, ("left", "right"), lateness=0, shards=1)
