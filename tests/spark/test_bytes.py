"""A budget in bytes is the memory of all shards together: their arrays, and the columns of their rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plans import large_plans
from shards import Shards, Sides, cut, job
from streams import SECOND, begin, exact, pairs, rows_of, side, write

import shedjoin as sj
from shedjoin.engine import growth, memory
from shedjoin.spark import payload, refine, room
from shedjoin.spark.error_columns import ErrorColumns
from shedjoin.spark.room import Room
from shedjoin.spark.shard_state import ShardState

WHOLE, SHARDS = 400_000, 2


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays begin small, so that they grow with a few hundred rows."""
    for module in (memory, growth):
        monkeypatch.setattr(module, "LEAST", 64)
        monkeypatch.setattr(module, "FIRST_ENTRIES", 64)
    for module in (payload, room):
        monkeypatch.setattr(module, "UNCLEARED", 4096)


def rows(seed: int) -> Sides:
    """Keys of many rows, then keys that come once, then those of many rows again."""
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        many, once = random.zipf(1.3, (2, 400)) % 60, random.integers(0, 2**40, 400)
        sides.append((np.concatenate([many[0], once, many[1]]), np.sort(random.integers(0, 9000, 1200))))
    return sides


@pytest.mark.parametrize("shares", ["adaptive", "equal"])
@pytest.mark.parametrize(
    "policy",
    [sj.Prospect(), pytest.param(sj.Prob(), marks=pytest.mark.small), sj.Prob(sj.InWindow()), sj.Rand()],
    ids=str,
)
def test_shards_stay_within_the_budget(policy: sj.Policy, shares: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of every micro-batch."""
    spec = sj.JoinSpec(sj.TimeWindow(8000), sj.Budget(bytes=WHOLE), policy)
    budget = Room(spec, SHARDS, recall=False).rows_budget()
    taken: dict[int, int] = {}
    save = ShardState.save

    def saved(state: ShardState, *args: Any, **more: Any) -> None:
        save(state, *args, **more)
        taken[state.number] = state.engine.nbytes + sum(one.nbytes for one in state.payloads)

    monkeypatch.setattr(ShardState, "save", saved)
    plain = {"bytes": WHOLE}
    shards = Shards(job(spec.with_budget(budget), SHARDS, asked=plain, shares=shares, recall=False))
    counts = []
    for batch in cut(rows(1), 9):
        counts += shards.batch(*batch)["metric"]
        assert sum(taken.values()) <= WHOLE
    assert sum(taken.values()) > WHOLE / 2
    assert sum(one["evicted"] for one in counts) > 200
    if policy.estimator is not None:
        assert sum(one["forgotten"] for one in counts) > 100


#: What runs beside the join, and how much more than for its own rows there has to be for that.
BESIDE: dict[str, tuple[dict[str, Any], int]] = {
    "miniatures of other memories": (
        {"policy": sj.Prob(), "what_if": sj.WhatIf(tuples=64, memory=1e3, every=200)},
        5_000_000,
    ),
    "miniatures of other policies": ({"policy": sj.Auto(memory=4.0, every=200)}, 4 * WHOLE),
    "a pilot": ({"policy": sj.Sample()}, 0),
}


@pytest.mark.parametrize("beside", BESIDE)
def test_what_runs_beside_the_join_is_part_of_the_budget(beside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of every micro-batch."""
    pilot, (settings, more) = beside == "a pilot", BESIDE[beside]
    spec = sj.JoinSpec(sj.TimeWindow(8000), sj.Budget(bytes=1 << 30), **settings)
    whole = SHARDS * Room(spec, SHARDS, recall=False, pilot=pilot).apart + WHOLE + more
    spec = spec.with_budget(sj.Budget(bytes=whole))
    budget = Room(spec, SHARDS, recall=False, pilot=pilot).rows_budget()
    taken: dict[int, int] = {}
    ran: set[bool] = set()
    save = ShardState.save

    def saved(state: ShardState, *args: Any, **more: Any) -> None:
        save(state, *args, **more)
        engine = state.engine
        others = [] if state.error is None else [state.error.control.pilot]
        for tries in (engine.trying, engine.foreseeing):
            others += [] if tries is None else tries._engines
        ran.add(any(sum(one.residents) for one in others))
        known = 0 if state.error is None else sum(part.nbytes for part in state.error.control._sums.open)
        taken[state.number] = sum(one.nbytes for one in (engine, *others, *state.payloads)) + known

    monkeypatch.setattr(ShardState, "save", saved)
    error = ErrorColumns(sj.ErrorTarget(0.001), (), None) if pilot else None
    shards = Shards(job(spec.with_budget(budget), SHARDS, asked={"bytes": whole}, recall=False, error=error))
    shed, allowed = 0, set()
    for batch in cut(rows(1), 9):
        told = shards.batch(*batch)["metric"]
        shed += sum(one["evicted"] for one in told)
        allowed |= {one["allowed"] for one in told if pilot}
        assert sum(taken.values()) <= whole
    assert shed > 100
    assert True in ran
    assert all(shards.job.set_aside < one < whole for one in allowed)


@pytest.mark.small
def test_too_little_for_the_arrays_is_refused() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(8000), sj.Budget(bytes=100_000), sj.Prob())
    with pytest.raises(
        sj.SpecError, match=r"budget: 100 kB are too few for 2 shards, each of which takes .* give .* or more"
    ):
        Room(spec, SHARDS, recall=True).rows_budget()


@pytest.mark.small
def test_a_row_counts_what_bytes_for_says() -> None:
    """So `shedjoin plan` and `shedjoin explain` count alike."""
    spec = sj.JoinSpec(sj.TimeWindow(8000), sj.Budget(bytes=1 << 40), sj.Prob())
    for tuples in (1000, 50_000, 10**6):
        asked = Room(spec, 3, recall=True).bytes_for(tuples, columns=40)
        budget = Room(spec.with_budget(sj.Budget(bytes=asked)), 3, recall=True).rows_budget()
        each = budget.row_bytes + budget.key_bytes + payload.COPIES * 40
        assert tuples <= budget.total / each + 1 < 1.01 * tuples + 2


def test_a_query_goes_over_to_a_budget_in_bytes(spark: Any, tmp_path: Path, cache: str) -> None:
    """It says what was asked for, runs within what is left for rows, and refine completes what was shed."""
    sides = [side(41, 900, 40, "a"), side(42, 900, 40, "b")]
    join: dict[str, Any] = {
        "streams": "lr", "on": "k", "time": "ts", "window": "3 seconds", "select": ["k", "a", "b"], "lateness": 0,
        "archive": True, "cache": cache, "shards": 2,
    }  # fmt: skip
    for first, budget in ((0, 60), (3, "8 MB")):
        for name, table in zip("lr", sides, strict=True):
            write(tmp_path / name, table.slice(first * 150, 450), 3, first)
        (query,) = begin(spark, tmp_path, tmp_path, {"out": {**join, "budget": budget}}, trigger={"availableNow": True})
        query.awaitTermination()
    assert json.loads((tmp_path / "out" / "job.json").read_text())["spec"]["budget"]["bytes"] == 8_000_000
    told = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "out" / "metrics")).toArrow().to_pylist()
    (change,) = {row["changed"] for row in told if row["changed"]}
    assert change == "budget: 60 tuples -> 8000000 bytes"
    assert {row["forgotten"] for row in told if row["batch"] < 3} == {None}
    last = [row for row in told if row["batch"] == max(row["batch"] for row in told)]
    rows = sum(row["resident_left"] + row["resident_right"] for row in last)
    assert sum(row["bytes_left"] + row["bytes_right"] for row in last) > 290 * rows
    with large_plans(spark):
        done = refine(tmp_path / "out")
    found = [*pairs(spark, tmp_path / "out" / "results"), *rows_of(done.rows, "ab")]
    assert sorted(found) == exact(*sides, 3 * SECOND)
