"""Results have a watermark: what follows a join in append mode gives the rows of the batch job, whatever the micro-batches."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from streams import SECOND, read, side, write

import shedjoin as sj
from shedjoin.spark import shed_join
from shedjoin.spark.inputs import DELAY
from shedjoin.spark.watermarks import WHICH

JOIN: dict[str, Any] = {"on": "k", "time": ("ts", "at"), "select": ["k", "a", "b", "ts", "at"]}
#: Long against a micro-batch, so that results are far behind the newest row.
WINDOW, BETWEEN = {"window": "4 seconds"}, {"between": ("-1 second", "4 seconds")}
FILES, MANY = 4, 16
LAG = SECOND // 2


@pytest.fixture
def files() -> int:
    """How many micro-batches there are."""
    return FILES


@pytest.fixture
def streams(spark: Any, tmp_path: Path, files: int) -> list[Any]:
    tables = [side(1, 600, 30, "a", lag=LAG), side(2, 600, 30, "b", lag=LAG)]
    # Spark's first watermark is 1970, and a row of that very time would be behind it.
    tables = [one.set_column(1, "ts", pc.add(one["ts"], pa.scalar(timedelta(days=1)))) for one in tables]
    tables[1] = tables[1].rename_columns(["k", "at", "b"])
    for name, table in zip("lr", tables, strict=True):
        write(tmp_path / name, table, files)
    return [read(spark, tmp_path / name) for name in "lr"]


def past(spark: Any, tmp_path: Path, near: dict[str, Any] = WINDOW) -> Any:
    return shed_join(*(spark.read.parquet(str(tmp_path / name)) for name in "lr"), **JOIN, **near)


def watched(streams: list[Any]) -> list[Any]:
    return [stream.withWatermark(time, "1 second") for stream, time in zip(streams, ("ts", "at"), strict=True)]


def appended(frame: Any, folder: Path, files: int = FILES) -> list[tuple[Any, ...]]:
    """What a query gives in append mode, over all of its micro-batches."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.outputMode("append").trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination()
    assert len(query.recentProgress) >= files
    dropped = sum(op["numRowsDroppedByWatermark"] for one in query.recentProgress for op in one["stateOperators"])
    assert dropped == 0
    return rows(frame.sparkSession.read.parquet(str(folder / "out")))


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def counted(joined: Any) -> Any:
    from pyspark.sql import functions as fn

    by = fn.window("at", "1 second")
    return joined.groupBy(by, "k").count().select("window.start", "k", "count")


@pytest.mark.parametrize(
    ("marked", "near", "delay", "files"),
    [(True, WINDOW, 5000, FILES), (False, BETWEEN, 5001, MANY)],
    ids=["with watermarks, a window", "without, an interval, many micro-batches"],
)
def test_a_windowed_count_behind_the_join_is_that_of_the_batch_job(
    spark: Any,
    tmp_path: Path,
    streams: list[Any],
    cache: str,
    marked: bool,
    near: dict[str, Any],
    delay: int,
    files: int,
) -> None:
    if marked:  # on columns that are then renamed, and with an operation behind it
        left, right = streams
        left = left.withColumnRenamed("ts", "t").withWatermark("t", "1 second").withColumnRenamed("t", "ts")
        streams = [left.where("k >= 0"), right.withWatermark("at", "1 second")]
    lateness = {} if marked else {"lateness": "1 second"}
    joined = shed_join(*streams, cache=cache, **JOIN, **near, **lateness)
    assert [joined.schema[name].metadata.get(DELAY) for name in ("ts", "at", "a")] == [delay, delay, None]
    given = appended(counted(joined), tmp_path / "count", files)
    expected = rows(counted(past(spark, tmp_path, near)))
    assert 0 < len(given) < len(expected)  # windows that the watermark has not passed are not given yet
    last = max(row[0] for row in given)
    assert given == [row for row in expected if row[0] <= last]


def test_another_join_follows(spark: Any, tmp_path: Path, streams: list[Any], cache: str) -> None:
    left, right = watched(streams)
    third = right.selectExpr("k", "at AS then", "b AS c")
    pairs = shed_join(left, right, cache=cache, **JOIN, **WINDOW)
    again = {"on": "k", "time": ("at", "then"), "window": "1 second", "select": ["k", "a", "b", "c"]}
    given = appended(shed_join(pairs, third, cache=cache, **again), tmp_path / "join")
    frozen = spark.read.parquet(str(tmp_path / "r")).selectExpr("k", "at AS then", "b AS c")
    assert given == rows(shed_join(past(spark, tmp_path), frozen, **again))


def test_sparks_own_join_follows(spark: Any, tmp_path: Path, streams: list[Any], cache: str) -> None:
    left, right = watched(streams)
    near = "k = j AND then BETWEEN at - INTERVAL 1 SECOND AND at + INTERVAL 500 MILLISECONDS"

    def joined(pairs: Any, third: Any) -> Any:
        from pyspark.sql import functions as fn

        return pairs.join(third.selectExpr("k AS j", "at AS then", "b AS c"), fn.expr(near)).select("a", "b", "c")

    given = appended(joined(shed_join(left, right, cache=cache, **JOIN, **BETWEEN), right), tmp_path / "join")
    frozen = spark.read.parquet(str(tmp_path / "r"))
    assert given == rows(joined(past(spark, tmp_path, BETWEEN), frozen))


def test_duplicates_are_dropped_within_the_watermark(
    spark: Any, tmp_path: Path, streams: list[Any], cache: str
) -> None:
    """One time column is left: Spark must know by which one duplicates are forgotten."""
    joined = shed_join(*watched(streams), cache=cache, **JOIN, **WINDOW).select("a", "ts")
    given = appended(joined.dropDuplicatesWithinWatermark(["a"]), tmp_path / "once")
    assert given == rows(past(spark, tmp_path).select("a", "ts").distinct())


def test_the_watermark_must_be_the_lowest(spark: Any, streams: list[Any]) -> None:
    before = spark.conf.get(WHICH)
    spark.conf.set(WHICH, "max")
    try:
        with pytest.raises(sj.SpecError, match=r"multipleWatermarkPolicy must be min, not 'max'"):
            shed_join(*streams, lateness=0, **JOIN, **WINDOW)
    finally:
        spark.conf.set(WHICH, before)


def test_times_that_are_numbers_and_rows_that_never_expire_have_no_watermark(spark: Any, streams: list[Any]) -> None:
    forever = shed_join(*streams, lateness=None, **JOIN, **WINDOW)
    assert DELAY not in forever.schema["at"].metadata
    numbers = [
        frame.selectExpr("k", f"unix_micros({time}) AS {time}", name)
        for frame, time, name in zip(streams, ("ts", "at"), "ab", strict=True)
    ]
    plain = shed_join(*numbers, lateness=0, **{**JOIN, "window": 5})
    assert DELAY not in plain.schema["at"].metadata
