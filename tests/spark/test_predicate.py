"""Joins on predicates, and with deadlines, through Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.functions import expr
from streams import pairs, read, run, write

import shedjoin as sj
from predicate_strategies import exact_pairs
from shedjoin.spark import shed_join, start
from shedjoin.spark.archive import LEFT_OUT_COLUMNS

WORDS = ["oil", "opec", "tin", "corn", "price", "gold", "wheat"]


def side(seed: int, count: int, name: str) -> pa.Table:
    """A stream with a number, a set of words and a weighted set in every row; some are null, some empty."""
    rng = np.random.default_rng(seed)
    words, terms = [], []
    for _ in range(count):
        some = sorted({WORDS[place] for place in rng.integers(0, len(WORDS), rng.integers(0, 5))})
        words.append(None if rng.random() < 0.1 else some)
        terms.append([(len(word) + word.count("o"), 0.5) for word in some[:1]])
    return pa.table(
        {
            "at": pa.array(np.arange(count) * 7 % 11 + np.arange(count) * 3),
            "words": pa.array(words, pa.list_(pa.string())),
            "terms": pa.array(terms, pa.map_(pa.int64(), pa.float64())),
            "size": pa.array(rng.integers(0, 30, count).astype(np.int32)),
            name: pa.array(np.arange(count)),
        }
    )


def rows(table: pa.Table, column: str) -> list[tuple[int, Any]]:
    values = [dict(x) if column == "terms" and x is not None else x for x in table[column].to_pylist()]
    return list(zip(table["at"].to_pylist(), values, strict=True))


def found(joined: Any) -> list[tuple[int, int]]:
    got = joined.select("a", "b").toArrow()
    return sorted(zip(got["a"].to_pylist(), got["b"].to_pylist(), strict=True))


def test_batches_of_every_kind(spark: Any) -> None:
    left, right = side(1, 60, "a"), side(2, 60, "b")
    frames = [spark.createDataFrame(table).repartition(2) for table in (left, right)]
    for predicate in (
        sj.Overlap("words", at_least=2),
        sj.Band("size", within=3.0),
        sj.InnerProduct("terms", at_least=0.2),
    ):
        joined = shed_join(*frames, predicate=predicate, time="at", window=25, select=["a", "b"])
        column = predicate.columns[0]
        assert found(joined) == exact_pairs(predicate, (25, 25), rows(left, column), rows(right, column)), predicate


def test_a_stream_that_is_stopped_goes_on(spark: Any, tmp_path: Path, cache: str) -> None:
    """Two files, then two more after a restart: every pair is there once."""
    tables = (
        side(3, 80, "a").sort_by("at"),
        side(4, 80, "b").sort_by("at").rename_columns(["at", "tags", "terms", "size", "b"]),
    )
    for part in range(2):
        for name, table in zip(("left", "right"), tables, strict=True):
            write(tmp_path / name, table.slice(40 * part, 40), 2, 2 * part)
        left, right = (read(spark, tmp_path / name) for name in ("left", "right"))
        joined = shed_join(
            left,
            right.withColumnRenamed("at", "seen"),
            predicate={"name": "overlap", "column": ["words", "tags"], "at_least": 2},
            time=("at", "seen"),
            window=30,
            lateness=0,
            select=["a", "b"],
            cache=cache,
        )
        run(joined, tmp_path / "checkpoint", tmp_path / "out")
    names = [table[column].to_pylist() for table, column in zip(tables, "ab", strict=True)]
    expected = exact_pairs(sj.Overlap("x", 2), (30, 30), rows(tables[0], "words"), rows(tables[1], "tags"))
    assert pairs(spark, tmp_path / "out") == sorted((names[0][i], names[1][j]) for i, j in expected)


def test_a_query_with_a_deadline(spark: Any, tmp_path: Path, cache: str) -> None:
    """By key, with time to spare: exact; and the metrics say that all was compared. What an earlier attempt wrote is gone."""
    stale = tmp_path / "out" / "left_out" / "batch=0"
    stale.mkdir(parents=True)
    pq.write_table(pa.table({name: [0] for name in LEFT_OUT_COLUMNS if name != "batch"}), stale / "0.parquet")
    tables = side(5, 60, "a").sort_by("at"), side(6, 60, "b").sort_by("at")
    for name, table in zip(("left", "right"), tables, strict=True):
        write(tmp_path / name, table, 2)
    left, right = (read(spark, tmp_path / name) for name in ("left", "right"))
    query = start(
        left,
        right,
        on="size",
        time="at",
        window=40,
        lateness=0,
        budget="1k tuples",
        deadline="10 minutes",
        select=["a", "b"],
        output=tmp_path / "out",
        cache=cache,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    names = [table[column].to_pylist() for table, column in zip(tables, "ab", strict=True)]
    expected = exact_pairs(sj.Equal("x"), (40, 40), rows(tables[0], "size"), rows(tables[1], "size"))
    assert pairs(spark, tmp_path / "out" / "results") == sorted((names[0][i], names[1][j]) for i, j in expected)
    assert spark.read.parquet(str(tmp_path / "out" / "left_out")).count() == 0
    told = spark.read.parquet(str(tmp_path / "out" / "metrics")).collect()
    assert {(row.fraction, row.fraction_left, row.fraction_right, row.partial) for row in told} == {(1.0, 1.0, 1.0, 0)}
    assert {len(row.ranking_left) for row in told} == {41}
    assert sum(row.rows_left for row in told) == 60
    assert json.loads((tmp_path / "out" / "job.json").read_text())["spec"]["policy"]["name"] == "prospect"


def test_what_does_not_fit_is_said(spark: Any) -> None:
    frames = [spark.createDataFrame(side(seed, 5, name)) for seed, name in ((1, "a"), (2, "b"))]

    def fails(match: str, **given: Any) -> None:
        arguments = {"time": "at", "window": 5, "select": ["a", "b"], **given}
        with pytest.raises(sj.ShedjoinError, match=match):
            shed_join(*frames, **arguments).collect()

    fails("on is missing: name the key columns, or give a predicate", on=None)
    fails("on and predicate cannot both be given", on="size", predicate=sj.Overlap("words"))
    fails("predicate must be a predicate such as", predicate="overlap")
    fails("predicate overlap does not take these settings", predicate={"name": "overlap", "colunm": "words"})
    fails("left.size is of type int, but Overlap takes sets: an array of items", predicate=sj.Overlap("size"))
    fails("left.words is of type array<string>, but Band takes a number", predicate=sj.Band("words", 1.0))
    fails("InnerProduct takes weighted sets: a map", predicate=sj.InnerProduct("words", 1.0))
    fails("shares must be 'equal' for a join on a predicate", predicate=sj.Overlap("words"), shares="adaptive")
    named = [frame.withColumn("terms", expr("map(1, 'much')")) for frame in frames]
    with pytest.raises(sj.SpecError, match=r"left.terms is of type map<int,string>, but InnerProduct takes weighted"):
        shed_join(*named, predicate=sj.InnerProduct("terms", 1.0), time="at", window=5, select=["a", "b"])
    fails("left has no column 'tags'", predicate=sj.Overlap("tags"))
    fails("deadline must be a duration", on="size", deadline=[2])
    fails("deadline must be above 0", on="size", deadline=0)
    with pytest.raises(sj.SpecError, match="A predicate compares two streams"):
        shed_join(*frames, frames[0], predicate=sj.Overlap("words"), time="at", window=5)
    whole = frames[1].selectExpr("at", "array(size) words", "b")
    with pytest.raises(sj.SpecError, match=r"the items of left.words are string and those of right.words int"):
        shed_join(frames[0], whole, predicate=sj.Overlap("words"), time="at", window=5, select=["a", "b"])
