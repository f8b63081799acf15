"""Row windows over several shards, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from plans import large_plans, set_for
from streams import pairs, read, side, write

import shedjoin as sj
from shedjoin.spark import refine, start

FILES, SHARDS = 3, 3
#: So that there are as many shards.
PARTITIONS = {"spark.sql.shuffle.partitions": str(SHARDS)}
STREAMS = {"a": (1, 200), "b": (2, 150), "c": (3, 120)}
#: A time window beside row windows; and three streams.
JOINS: dict[str, dict[str, Any]] = {
    "rows": {"streams": "ab", "window": "40 rows"},
    "mixed": {"streams": "ba", "window": ("1 second", "30 rows")},
    "three": {"streams": "abc", "window": ("30 rows", "1 second", "20 rows")},
}
WINDOWS = {
    "rows": (sj.RowWindow(40),) * 2,
    "mixed": (sj.TimeWindow(10**6), sj.RowWindow(30)),
    "three": (sj.RowWindow(30), sj.TimeWindow(10**6), sj.RowWindow(20)),
}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, pa.Table]:
    made = {name: side(seed, count, 12, name, lag=200_000) for name, (seed, count) in STREAMS.items()}
    for name, rows in made.items():
        write(tmp_path / name, rows, FILES)
    return made


def one_engine(tables: dict[str, pa.Table], name: str) -> list[tuple[int, ...]]:
    """What one engine gives that gets the files of all streams, one each at a time, sorted by time."""
    streams = JOINS[name]["streams"]
    engine = sj.JoinSpec(dict(zip(streams, WINDOWS[name], strict=True)), lateness=20_000).build()
    found: list[tuple[int, ...]] = []
    rows: dict[str, list[int]] = {stream: [] for stream in streams}
    for place in range(FILES):
        given = {}
        for stream in streams:
            table = tables[stream]
            edges = np.linspace(0, table.num_rows, FILES + 1).astype(int)
            part = table.slice(edges[place], edges[place + 1] - edges[place])
            part = part.take(np.argsort(part["ts"].cast(pa.int64()).to_numpy(), kind="stable"))
            given[stream] = {"key": part["k"], "ts": part["ts"]}
            rows[stream] += part[stream].to_pylist()
        found += [
            tuple(rows[s][n] for s, n in zip(streams, row, strict=True)) for row in engine.push(given).rows.tolist()
        ]
    assert engine.counters["late"] > 0
    return sorted(found)


def go_on(spark: Any, folder: Path, name: str, output: Path, **more: Any) -> None:
    """Run the query over all files that are there."""
    streams = JOINS[name]["streams"]
    options: dict[str, Any] = {
        "on": "k",
        "time": "ts",
        "window": JOINS[name]["window"],
        "lateness": "20 milliseconds",
        "shards": SHARDS,
        "select": list(streams),
        "output": output,
        "trigger": {"availableNow": True},
    }
    with set_for(spark, PARTITIONS):
        query = start(*(read(spark, folder / one) for one in streams), **{**options, **more})
        query.awaitTermination()


@pytest.mark.parametrize("name", ["mixed", "three"])
def test_shards_give_the_results_of_one_engine(spark: Any, tmp_path: Path, tables: Any, name: str) -> None:
    go_on(spark, tmp_path, name, tmp_path / "out")
    expected = one_engine(tables, name)
    assert pairs(spark, tmp_path / "out/results", JOINS[name]["streams"]) == expected
    assert len(expected) > 100
    assert spark.read.parquet(str(tmp_path / "out/metrics")).select("shard").distinct().count() == SHARDS


def test_results_and_refined_rows_are_exact_also_when_the_query_was_stopped(
    spark: Any, tmp_path: Path, tables: Any, cache: str
) -> None:
    name = "rows"
    streams, given = JOINS[name]["streams"], {"budget": "30 tuples", "archive": True}
    go_on(spark, tmp_path, name, tmp_path / "whole", **given, cache=cache)
    for stream in streams:  # the first half of the files, then all
        for file in sorted((tmp_path / stream).glob("*.parquet"))[: FILES // 2]:
            (tmp_path / "half" / stream).mkdir(parents=True, exist_ok=True)
            file.rename(tmp_path / "half" / stream / file.name)
    rest = {stream: sorted((tmp_path / stream).glob("*.parquet")) for stream in streams}
    go_on(spark, tmp_path / "half", name, tmp_path / "stopped", **given, cache=False)
    with large_plans(spark):
        refine(tmp_path / "stopped")
    for stream, files in rest.items():
        for file in files:
            file.rename(tmp_path / "half" / stream / file.name)
    go_on(spark, tmp_path / "half", name, tmp_path / "stopped", **given, cache=False)

    found = pairs(spark, tmp_path / "stopped/results", streams)
    assert found == pairs(spark, tmp_path / "whole/results", streams)
    logs = [spark.read.parquet(str(tmp_path / one / "shed")).toArrow() for one in ("whole", "stopped")]
    names = ["shard", "stream", "seq", "why", "left_at"]
    one, other = (sorted(zip(*(log[column].to_pylist() for column in names), strict=True)) for log in logs)
    assert one == other
    with large_plans(spark):
        refined = refine(tmp_path / "stopped")
        rows = sorted(tuple(row) for row in refined.rows.select(*streams).collect())
    late = exact_with_late(tables, name)
    assert sorted(found + rows) == late
    assert len(rows) > 0
    told = spark.read.parquet(str(tmp_path / "stopped/metrics")).toArrow().to_pylist()
    for batch in {row["batch"] for row in told}:
        now = [row for row in told if row["batch"] == batch]
        assert sum(row[key] for row in now for key in row if key.startswith("resident_")) <= 30


def exact_with_late(tables: dict[str, pa.Table], name: str) -> list[tuple[int, ...]]:
    """The exact join of all rows, late ones included, by the rule of docs/nway.md: "What a result is"."""
    streams, windows = JOINS[name]["streams"], WINDOWS[name]
    columns = []
    for stream in streams:
        table = tables[stream]
        edges = np.linspace(0, table.num_rows, FILES + 1).astype(int)
        batch = np.searchsorted(edges, np.arange(table.num_rows), side="right") - 1
        ts = table["ts"].cast(pa.int64()).to_numpy()
        order = np.lexsort((ts, batch))
        seq = np.empty(len(order), np.int64)
        seq[order] = np.arange(len(order))
        columns.append((table["k"].to_numpy(), batch * 10**12 + ts, ts, seq, np.sort(batch * 10**12 + ts)))
    found: list[tuple[int, ...]] = []
    for key in set(columns[0][0].tolist()):
        grid = np.meshgrid(*(np.flatnonzero(column[0] == key) for column in columns), indexing="ij")
        instants = [column[1][places] for column, places in zip(columns, grid, strict=True)]
        times = [column[2][places] for column, places in zip(columns, grid, strict=True)]
        last, newest = np.maximum.reduce(instants), np.maximum.reduce(times)
        fits = np.ones(last.shape, bool)
        for number, window in enumerate(windows):
            if isinstance(window, sj.TimeWindow):
                fits &= newest - times[number] < window.length
            else:
                arrived = np.searchsorted(columns[number][4], last, side="right")
                in_window = columns[number][3][grid[number]] >= arrived - window.rows
                fits &= (instants[number] == last) | in_window
        found += list(zip(*(places[fits].tolist() for places in grid), strict=True))
    return sorted(found)
