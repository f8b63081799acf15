"""The static join of Spark DataFrames: Spark counts the keys, and the answer is that of plain tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import shedjoin as sj
from shedjoin.spark import static_join


def test_histograms_by_spark_give_the_same_join(spark: SparkSession) -> None:
    rng = np.random.default_rng(1)
    sides = [[None if key == 9 else int(key) for key in np.minimum(rng.zipf(1.5, 200), 9)] for _ in range(3)]
    frames = [spark.createDataFrame([(key,) for key in side], "id int") for side in sides]
    tables = [{"id": side} for side in sides]
    for keep in (40, (20, 10)):
        plain = sj.truncated_join(*tables[:2], keep=keep, key="id")
        counted = sj.truncated_join(*frames[:2], keep=keep, key="id")
        assert (counted.size, counted.exact) == (plain.size, plain.exact)
        assert counted.kept.tolist() == plain.kept.tolist()
        kept = [np.array([key or 0 for key in side])[counted.rows(place, side)] for place, side in enumerate(sides[:2])]
        assert sum(int((kept[1] == key).sum()) for key in kept[0]) == plain.size
    mixed = sj.truncated_joins([frames[0], tables[1], frames[2]], keep=[9, 9, 9], key="id")
    assert mixed.size == sj.truncated_joins(tables, keep=[9, 9, 9], key="id").size


ROWS = 120
#: A key of each type, from its number.
TYPES = {
    "whole number": (["k"], lambda k: k),
    "text": (["concat('key ', lpad(k, 2, '0'))"], lambda k: f"key {k:02}"),
    "date": (["date_add(date'2024-02-27', cast(k as int))"], lambda k: k),
    "two columns": (["k div 3", "concat('x', k % 3)"], lambda k: k),
}


def relations(count: int) -> list[list[tuple[int | None, int]]]:
    """(key, place): in order of places, some without a key."""
    rng = np.random.default_rng(4)
    drawn = [np.minimum(rng.zipf(1.4, ROWS), 11).tolist() for _ in range(count)]
    return [[(None if key == 11 else key, place) for place, key in enumerate(one)] for one in drawn]


def keyed(spark: SparkSession, count: int, columns: list[str]) -> list[Any]:
    frames = [spark.createDataFrame(rows, "k int, at int") for rows in relations(count)]
    chosen = [f"{made} AS k{place}" for place, made in enumerate(columns)]
    return [frame.selectExpr(*chosen, f"at AS at{place}") for place, frame in enumerate(frames)]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("keep", [0, 40, (20, 10), 10_000, [25, 9, 30]])
def test_dataframes_are_kept_as_the_library_chooses(spark: SparkSession, name: str, keep: Any) -> None:
    columns, called = TYPES[name]
    count = 3 if isinstance(keep, list) else 2
    rows = relations(count)
    keys = [[None if key is None else called(key) for key, _ in one] for one in rows]
    tables = [{"key": one} for one in keys]
    best = sj.truncated_joins(tables, keep=keep) if count == 3 else sj.truncated_join(*tables, keep=keep)
    places = [f"at{place}" for place in range(count)]
    on = [f"k{place}" for place in range(len(columns))]
    found = static_join(*keyed(spark, count, columns), on=on, keep=keep, order=places, select=places)
    assert (found.choice.size, found.choice.exact, found.choice.bound) == (best.size, best.exact, best.bound)
    expected = [
        {place for (_, place), stays in zip(one, best.rows(relation, keys[relation]), strict=True) if stays}
        for relation, one in enumerate(rows)
    ]
    assert [{row[f"at{place}"] for row in kept.collect()} for place, kept in enumerate(found.kept)] == expected
    assert found.kept[0].columns == [*on, "at0"]
    results = {tuple(row) for row in found.joined.collect()}
    assert len(results) == best.size
    assert all(
        len({{at: key for key, at in one}[at] for one, at in zip(rows, line, strict=True)}) == 1 for line in results
    )


def test_names_types_and_rows_without_an_order(spark: SparkSession) -> None:
    left = spark.createDataFrame(
        [(1, {"a": 1}, 7), (1, {"a": 2}, 7), (None, None, 7)], "id int, m map<string,int>, `x.y` int"
    )
    right = spark.createDataFrame([(1, 5), (1, 6), (2, 5)], "key long, x int")
    found = static_join(left, right, on=("id", "key"), keep=(1, 2))
    assert found.choice.size == found.joined.count() == 2
    assert found.joined.columns == ["id", "m", "x.y", "key", "x"]
    assert [frame.count() for frame in found.kept] == [1, 2]
    assert found.kept[0].columns == left.columns
    assert found.choice.keys.to_pylist() == [1]


def test_what_does_not_fit_is_said(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2)], "k int, x int")

    def fails(message: str, *frames: Any, **given: Any) -> None:
        with pytest.raises(sj.SpecError, match=message):
            static_join(*frames, **{"on": "k", "keep": 3, "suffixes": ("_l", "_r"), **given})

    fails("keep must be a whole number of at least 0, not -1", frame, frame, keep=-1)
    fails("keep must be 2 whole numbers of at least 0", frame, frame, keep=(1, 2, 3))
    fails("keep must be one number for each of more than two", frame, frame, frame, suffixes=("a", "b", "c"))
    fails("on: left has no column 'z'", frame, frame, on="z")
    fails("order: right has no column 'z'", frame, frame, order=("x", "z"))
    fails("both sides have a column 'x'", frame, frame, suffixes=None)
    fails("left must be a Spark DataFrame, not dict", {}, frame)
    stream = spark.readStream.format("rate").load().selectExpr("value AS k")
    fails("static_join takes batch DataFrames", stream, stream)
