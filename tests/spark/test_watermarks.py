"""Results have a watermark: what follows a join in append mode gives the rows of the batch job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streams import SECOND, read, side, write

import shedjoin as sj
from shedjoin.spark import shed_join
from shedjoin.spark.inputs import DELAY
from shedjoin.spark.watermarks import WHICH

#: Long against a micro-batch, so that results are far behind the newest row.
JOIN: dict[str, Any] = {"on": "k", "time": ("ts", "at"), "window": "4 seconds", "select": ["k", "a", "b", "ts", "at"]}
FILES = 10
LAG = SECOND // 2


@pytest.fixture
def streams(spark: Any, tmp_path: Path) -> list[Any]:
    tables = [side(1, 600, 30, "a", lag=LAG), side(2, 600, 30, "b", lag=LAG)]
    tables[1] = tables[1].rename_columns(["k", "at", "b"])
    for name, table in zip("lr", tables, strict=True):
        write(tmp_path / name, table, FILES)
    return [read(spark, tmp_path / name) for name in "lr"]


def past(spark: Any, tmp_path: Path) -> Any:
    return shed_join(*(spark.read.parquet(str(tmp_path / name)) for name in "lr"), **JOIN)


def appended(frame: Any, folder: Path) -> list[tuple[Any, ...]]:
    """What a query gives in append mode, over all of its micro-batches."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.outputMode("append").trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination()
    assert len(query.recentProgress) >= FILES
    dropped = sum(op["numRowsDroppedByWatermark"] for one in query.recentProgress for op in one["stateOperators"])
    assert dropped == 0
    return rows(frame.sparkSession.read.parquet(str(folder / "out")))


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def counted(joined: Any) -> Any:
    from pyspark.sql import functions as fn

    by = fn.window("at", "1 second")
    return joined.groupBy(by, "k").count().select("window.start", "k", "count")


@pytest.mark.parametrize("marked", [True, False], ids=["with watermarks", "without"])
def test_a_windowed_count_behind_the_join_is_that_of_the_batch_job(
    spark: Any, tmp_path: Path, streams: list[Any], cache: str, marked: bool
) -> None:
    if marked:  # on columns that are then renamed, and with an operation behind it
        left, right = streams
        left = left.withColumnRenamed("ts", "t").withWatermark("t", "1 second").withColumnRenamed("t", "ts")
        streams = [left.where("k >= 0"), right.withWatermark("at", "1 second")]
    lateness = {} if marked else {"lateness": "1 second"}
    joined = shed_join(*streams, cache=cache, **JOIN, **lateness)
    assert [joined.schema[name].metadata.get(DELAY) for name in ("ts", "at", "a")] == [5000, 5000, None]
    given = appended(counted(joined), tmp_path / "count")
    expected = rows(counted(past(spark, tmp_path)))
    assert 0 < len(given) < len(expected)  # windows that the watermark has not passed are not given yet
    last = max(row[0] for row in given)
    assert given == [row for row in expected if row[0] <= last]


def test_another_join_follows(spark: Any, tmp_path: Path, streams: list[Any], cache: str) -> None:
    left, right = streams[0].withWatermark("ts", "1 second"), streams[1].withWatermark("at", "1 second")
    third = right.selectExpr("k", "at AS then", "b AS c")
    pairs = shed_join(left, right, cache=cache, **JOIN)
    again = {"on": "k", "time": ("at", "then"), "window": "1 second", "select": ["k", "a", "b", "c"]}
    given = appended(shed_join(pairs, third, cache=cache, **again), tmp_path / "join")
    frozen = spark.read.parquet(str(tmp_path / "r")).selectExpr("k", "at AS then", "b AS c")
    assert given == rows(shed_join(past(spark, tmp_path), frozen, **again))


def test_the_watermark_must_be_the_lowest(spark: Any, streams: list[Any]) -> None:
    before = spark.conf.get(WHICH)
    spark.conf.set(WHICH, "max")
    try:
        with pytest.raises(sj.SpecError, match=r"multipleWatermarkPolicy must be min, not 'max'"):
            shed_join(*streams, lateness=0, **JOIN)
    finally:
        spark.conf.set(WHICH, before)


def test_times_that_are_numbers_and_rows_that_never_expire_have_no_watermark(spark: Any, streams: list[Any]) -> None:
    forever = shed_join(*streams, lateness=None, **JOIN)
    assert DELAY not in forever.schema["at"].metadata
    numbers = [
        frame.selectExpr("k", f"unix_micros({time}) AS {time}", name)
        for frame, time, name in zip(streams, ("ts", "at"), "ab", strict=True)
    ]
    plain = shed_join(*numbers, lateness=0, **{**JOIN, "window": 5})
    assert DELAY not in plain.schema["at"].metadata
