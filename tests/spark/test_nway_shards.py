"""Shards of three and more streams, their state and their copies, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shards import Shards, Sides, Tables, cut, job, numbers, table

import shedjoin as sj
from shedjoin.spark import state

NAMES = ("a", "b", "c", "d")
LENGTHS = (60, 90, 60, 75)
LATENESS = 20


def spec(streams: int = 3, **more: Any) -> sj.JoinSpec:
    windows = {name: sj.TimeWindow(length) for name, length in zip(NAMES[:streams], LENGTHS, strict=False)}
    return sj.MultiJoinSpec(windows=windows, on="key", lateness=LATENESS, **more)


def rows(seed: int, streams: int = 3, count: int = 150, keys: int = 8) -> Sides:
    """Keys and times of each stream, out of order within the lateness; key 3 will be null."""
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(streams):
        ts = np.arange(count) * 4
        ts = ts[np.argsort(ts + random.integers(0, LATENESS, count), kind="stable")]
        sides.append(((random.pareto(1.0, count) * 2).astype(np.int64) % keys, ts))
    return sides


def exact(sides: Sides, lengths: Sequence[int] = LENGTHS) -> list[tuple[int, ...]]:
    """Every combination of rows is looked at: with the newest, no row is older than its window."""
    found: list[tuple[int, ...]] = []
    for key in set(sides[0][0].tolist()) - {3}:
        mine = [np.flatnonzero(keys == key) for keys, _ in sides]
        grid = np.meshgrid(*mine, indexing="ij")
        times = [ts[places] for (_, ts), places in zip(sides, grid, strict=True)]
        newest = reduce(np.maximum, times)
        fits = reduce(np.logical_and, (newest - one < length for one, length in zip(times, lengths, strict=False)))
        found += zip(*(places[fits].tolist() for places in grid), strict=True)
    return sorted(found)


def run(shards: Shards, batches: Tables, kind: str = "result") -> list[dict[str, Any]]:
    return [row for batch in batches for row in shards.batch(*batch)[kind]]


@pytest.mark.parametrize(("streams", "shards", "batches"), [(3, 1, 1), (3, 3, 7), (4, 2, 5)])
def test_without_a_budget_the_join_is_exact(streams: int, shards: int, batches: int) -> None:
    sides = rows(1, streams, 150 if streams == 3 else 60)
    found = run(Shards(job(spec(streams), shards)), cut(sides, batches))
    assert numbers(found, streams) == exact(sides)
    assert len(found) > 1000


def test_streams_may_be_read_to_their_ends_one_after_another() -> None:
    sides = rows(2)
    parts = cut(sides, 3)
    apart = [
        tuple(side if stream == now else [] for stream, side in enumerate(part)) for now in (2, 0, 1) for part in parts
    ]
    assert numbers(run(Shards(job(spec(), 2)), apart), 3) == exact(sides)


BUDGETS = [
    (sj.Budget(tuples=40), sj.Prob()),
    (sj.Budget(tuples=40, allocation="variable"), sj.Life(sj.InWindow())),
    (sj.Budget(bytes=9000), sj.Rand()),
]


@pytest.mark.parametrize(("budget", "policy"), BUDGETS, ids=["prob", "life", "rand"])
def test_a_shard_is_the_engine_on_sorted_batches(budget: sj.Budget, policy: sj.Policy) -> None:
    """Results, shed log and memory; the state is read anew in every batch, from a base and a log of batches."""
    how = spec(budget=budget, policy=policy)
    sides, named = rows(3), [[], [], []]  # type: ignore[var-annotated]
    shards, engine = Shards(job(how)), how.build(seed=0)
    for batch in cut(sides, 6):
        given = shards.batch(*batch)
        parts = [pa.concat_batches(tasks) for tasks in batch]
        parts = [part.take(np.argsort(part["ts"], kind="stable")) for part in parts]
        for names, part in zip(named, parts, strict=True):
            names += part["row"].to_pylist()
        out = engine.push({name: part.select(["key", "ts"]) for name, part in zip(how.names, parts, strict=True)})
        wanted = [tuple(named[stream][seq] for stream, seq in enumerate(row)) for row in out.rows.tolist()]
        assert numbers(given["result"], 3) == sorted(wanted)
        log = [(row["stream"], row["seq"], row["seen_a"], row["seen_b"], row["seen_c"]) for row in given["shed"]]
        assert log == list(zip(out.shed.stream.tolist(), out.shed.seq.tolist(), *out.shed.seen.T.tolist(), strict=True))
        (told,) = given["metric"]
        assert [told[f"resident_{name}"] for name in "abc"] == list(engine.residents)
        assert [told[f"clock_{name}"] for name in "abc"] == list(engine.clocks)
        assert told["peak_tuples"] == engine.counters["peak_tuples"] <= (budget.tuples or 100)
        assert told["evicted"] + told["late"] == len(log)
        engine.forget_peaks()


def test_copies_and_rebuilt_engines_go_on_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From copies, from the log alone, and from bases that are written often."""
    how = spec(budget=sj.Budget(tuples=60), policy=sj.Dgl())
    batches = cut(rows(4), 8)
    results, restored = [], []
    for cache, least in ((str(tmp_path), 1 << 22), (False, 1 << 22), (False, 1)):
        monkeypatch.setattr(state, "LEAST_REDO", least)
        given = [Shards.batch(shards, *batch) for shards in [Shards(job(how, 2, cache=cache))] for batch in batches]
        results.append([numbers(one["result"], 3) for one in given])
        restored.append([any(row["restored"] for row in one["metric"]) for one in given])
    assert results[0] == results[1] == results[2]
    assert restored[0] == [False] * 8
    assert restored[1] == restored[2] == [False] + [True] * 7


def test_what_may_change_does_and_the_rest_is_refused() -> None:
    how = spec(budget=sj.Budget(tuples=60), policy=sj.Dgl())
    first, second = cut(rows(5), 2)
    shards = Shards(job(how))
    shards.batch(*first)

    def go_on(change: sj.JoinSpec, **more: Any) -> dict[str, list[dict[str, Any]]]:
        return Shards(job(change, **more), [shards.stores[0].copy()]).batch(*second)

    given = go_on(how.with_budget(sj.Budget(tuples=12)))
    assert given["metric"][0]["peak_tuples"] == 12
    assert len(go_on(replace(how, budget=None, policy=None))["shed"]) < len(given["shed"])
    assert go_on(replace(how, policy=sj.Prob()))["metric"][0]["changed"].startswith("policy: Dgl(")
    assert go_on(replace(how, policy=sj.Rand()))["shed"] != go_on(replace(how, policy=sj.Dgl(gain=9.0)))["shed"]
    for what, change in (
        ("window", replace(how, window={**how.window, "c": sj.TimeWindow(61)})),  # type: ignore[dict-item]
        ("window", replace(how, window=dict(zip("abx", how.window.values(), strict=True)))),  # type: ignore[union-attr]
        ("lateness", replace(how, lateness=5)),
    ):
        with pytest.raises(sj.SnapshotError, match=f"another {what}"):
            go_on(change)
    with pytest.raises(sj.SnapshotError, match="another seed"):
        go_on(how, seed=1)


def test_a_stream_that_stops_or_runs_wild_breaks_no_cap() -> None:
    """c stops for three batches; then b has a hundred times its rows in one. Both shards go on, and so do results."""
    how = spec(budget=sj.Budget(tuples=60), policy=sj.Prob())
    shards = Shards(job(how, 2))
    random = np.random.default_rng(6)
    sides: Sides = [(np.empty(0, np.int64), np.empty(0, np.int64)) for _ in range(3)]
    results = []
    for step in range(8):
        batch = []
        for stream, name in enumerate("abc"):
            count = 0 if name == "c" and step in (2, 3, 4) else 2000 if name == "b" and step == 6 else 20
            ts = np.sort(random.integers(80 * step, 80 * step + 80, count))
            key = (random.pareto(1.0, count) * 2).astype(np.int64) % 3
            batch.append([table(key.tolist(), ts.tolist(), sides[stream][0].size)])
            sides[stream] = tuple(map(np.concatenate, zip(sides[stream], (key, ts), strict=True)))  # type: ignore[assignment]
        given = shards.batch(*batch)
        assert sum(row["peak_tuples"] for row in given["metric"]) <= 60
        assert sum(row["rows_b"] for row in given["metric"]) == len(batch[1][0])
        results.append(numbers(given["result"], 3))
    found = [row for rows in results for row in rows]
    assert [len(rows) > 0 for rows in results[:2] + results[5:]] == [True] * 5
    assert len(set(found)) == len(found)
    assert set(found) < set(exact(sides))


def test_memory_goes_to_the_shards_that_use_it() -> None:
    """A few keys of one shard are hot in all streams; others are hot in two of them, and never complete a result."""
    random = np.random.default_rng(7)
    batches = []
    for step in range(6):
        ts = np.arange(100) + 100 * step
        hot = random.random((3, 100)) < 0.3
        cold = random.integers(100, 400, (3, 100)) + 1000 * np.arange(3)[:, None] * (np.arange(100) % 3 > 0)
        keys = np.where(hot, 7, cold)
        batches.append(tuple([table(key.tolist(), ts.tolist(), 100 * step)] for key in keys))
    windows = dict.fromkeys("abc", sj.TimeWindow(150))
    how = sj.MultiJoinSpec(windows=windows, on="key", budget=sj.Budget(tuples=60), policy=sj.Prob(sj.InWindow()))
    one, adaptive, equal = (
        len(run(Shards(job(how, shards, shares=shares)), batches))
        for shards, shares in ((1, "equal"), (4, "adaptive"), (4, "equal"))
    )
    assert equal < 0.8 * one
    assert adaptive > 1.2 * equal
