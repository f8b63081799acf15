"""`shed_join` on Spark: the exact join, in streams and in batch, however the input is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streams import SECOND, exact, pairs, read, run, side, write

import shedjoin as sj
from shedjoin.spark import shed_join

COLUMNS = ["k", "a", "b"]


@pytest.mark.parametrize(("files", "each", "shards"), [(4, 1, 2), (4, 4, 1), (6, 2, 2)])
def test_streams_are_joined_exactly(spark: Any, tmp_path: Path, cache: str, files: int, each: int, shards: int) -> None:
    left, right = side(1, 2000, 40, "a", lag=SECOND), side(2, 1500, 40, "b", lag=SECOND)
    write(tmp_path / "l", left, files)
    write(tmp_path / "r", right, files)
    joined = shed_join(
        read(spark, tmp_path / "l", each),
        read(spark, tmp_path / "r", each),
        on="k",
        time="ts",
        window="2 seconds",
        lateness="1 second",
        shards=shards,
        select=COLUMNS,
        cache=cache,
    )
    assert joined.isStreaming
    assert joined.columns == COLUMNS
    run(joined, tmp_path / "c", tmp_path / "o")
    assert pairs(spark, tmp_path / "o") == exact(left, right, 2 * SECOND)


def test_one_stream_is_read_to_its_end_before_the_other_begins(spark: Any, tmp_path: Path, cache: str) -> None:
    left, right = side(3, 1200, 30, "a"), side(4, 1200, 30, "b")
    write(tmp_path / "l", left, 3)
    write(tmp_path / "r", right.slice(0, 0), 1)

    def go_on() -> None:
        streams = (read(spark, tmp_path / name, 2) for name in ("l", "r"))
        joined = shed_join(*streams, on="k", time="ts", window="2 seconds", select=COLUMNS, cache=cache)
        run(joined, tmp_path / "c", tmp_path / "o")

    go_on()
    write(tmp_path / "r", right, 3, first=1)
    go_on()
    assert pairs(spark, tmp_path / "o") == exact(left, right, 2 * SECOND)


def test_batch_dataframes_are_joined_by_the_same_call(spark: Any) -> None:
    left, right = side(5, 2000, 40, "a", lag=SECOND), side(6, 1500, 40, "b", lag=SECOND)
    frames = (spark.createDataFrame(table).repartition(3) for table in (left, right))
    joined = shed_join(*frames, on="k", time="ts", window="2 seconds", shards=2, select=COLUMNS)
    assert not joined.isStreaming
    found = joined.toArrow()
    assert sorted(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True)) == exact(left, right, 2 * SECOND)


def test_with_a_budget_the_output_is_the_engines(spark: Any, tmp_path: Path, cache: str) -> None:
    left, right = side(7, 1500, 60, "a"), side(8, 1500, 60, "b")
    write(tmp_path / "l", left, 3)
    write(tmp_path / "r", right, 3)
    joined = shed_join(
        read(spark, tmp_path / "l"),
        read(spark, tmp_path / "r"),
        on="k",
        time="ts",
        window="4 seconds",
        budget="100 tuples",
        policy={"name": "life"},
        shards=1,
        select=COLUMNS,
        cache=cache,
    )
    run(joined, tmp_path / "c", tmp_path / "o")
    found = pairs(spark, tmp_path / "o")
    spec = sj.JoinSpec(sj.TimeWindow(4 * SECOND), sj.Budget(tuples=100), sj.Life())
    # The engine is given Spark's hashes of the keys, in order of time.
    engine = spec.build()
    hashes = {row["k"]: row["h"] for row in spark.range(60).selectExpr("id as k", "xxhash64(id) as h").collect()}
    sides = [{"key": [hashes[k] for k in t["k"].to_pylist()], "ts": t["ts"].cast("int64")} for t in (left, right)]
    out = engine.push(left=sides[0], right=sides[1])
    assert found == sorted(zip(out.left.tolist(), out.right.tolist(), strict=True))
    assert 0 < len(found) < len(exact(left, right, 4 * SECOND))
