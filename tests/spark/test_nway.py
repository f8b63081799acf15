"""`shed_join` of three and more DataFrames on Spark: exact, within budgets, stopped, killed, completed later."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from accounts import fail_in_the_second_batch, metrics_that_add_up
from plans import large_plans
from streams import SECOND, read, rows_of, run, side, write

import shedjoin as sj
from shedjoin.spark import refine, shed_join, start
from shedjoin.spark.prometheus import QueryCollector, samples_of

NAMES = ("a", "b", "c")
LENGTH = 2 * SECOND


def streams(seed: int, count: int, *, lag: int = 0) -> list[pa.Table]:
    """Three streams; their rows are named by their numbers, in the columns a, b and c."""
    return [side(seed + place, count, 40, name, lag=lag) for place, name in enumerate(NAMES)]


def exact(tables: list[pa.Table], length: int = LENGTH) -> list[tuple[int, ...]]:
    """All combinations with a key, by pandas: neither Spark nor the engine is in it."""
    frames = [table.to_pandas().rename(columns={"ts": f"ts{place}"}) for place, table in enumerate(tables)]
    found = frames[0].dropna(subset=["k"])
    for frame in frames[1:]:
        found = found.merge(frame, on="k")
    times = found[[name for name in found.columns if name.startswith("ts")]]
    near = (times.max(axis=1) - times.min(axis=1)).dt.total_seconds() * SECOND < length
    names = [table.column_names[2] for table in tables]
    return sorted(found[near][names].itertuples(index=False, name=None))


def test_streams_are_joined_exactly_and_go_on_after_a_stop(spark: Any, tmp_path: Path, cache: str) -> None:
    """Shuffled rows; keys of other names and types, some null; one column in all streams. Copies are lost between two runs."""
    tables = streams(1, 300, lag=SECOND)
    for name, table in zip(NAMES, tables, strict=True):
        write(tmp_path / name, table, 3)

    def go_on(folder: Path) -> None:
        frames = [read(spark, folder / name) for name in NAMES]
        frames[1] = frames[1].selectExpr("cast(nullif(k, 0) as int) as key", "ts", "b", "'text' as note")
        joined = shed_join(
            *frames,
            on=("k", "key", "k"),
            time="ts",
            window="2 seconds",
            lateness="1 second",
            shards=2,
            suffixes=("_a", "_b", "_c"),
            cache=cache,
        )
        assert joined.isStreaming
        assert joined.columns == ["k", "ts_a", "a", "key", "ts_b", "b", "note", "ts_c", "c"]
        run(joined, tmp_path / "checkpoint", tmp_path / "out")

    for files in ((0,), (1, 2)):
        for name in NAMES:
            (tmp_path / "parts" / name).mkdir(parents=True, exist_ok=True)
            for file in files:
                shutil.copy2(tmp_path / name / f"{file:05}.parquet", tmp_path / "parts" / name)
        go_on(tmp_path / "parts")
        shutil.rmtree(cache)
    found = spark.read.parquet(str(tmp_path / "out"))
    assert {row["note"] for row in found.select("note").distinct().collect()} == {"text"}
    tables[1] = tables[1].filter(pa.compute.not_equal(tables[1]["k"], 0))
    assert rows_of(found) == exact(tables)


def test_batch_dataframes_are_joined_by_the_same_call(spark: Any) -> None:
    tables = [*streams(4, 120, lag=SECOND), side(9, 120, 40, "d")]
    frames = [spark.createDataFrame(table).repartition(2).selectExpr("*", "k % 2 as odd") for table in tables]
    joined = shed_join(
        *frames,
        on=["k", "odd"],
        time="ts",
        window="2 seconds",
        shards=2,
        names=("one", "two", "three", "four"),
        select={"a": "a", "b": "two.b", "c": "c", "d": "four.d", "k": "k"},
    )
    assert not joined.isStreaming
    assert rows_of(joined, (*NAMES, "d")) == exact(tables)


def test_start_keeps_account_and_refine_completes(spark: Any, tmp_path: Path, cache: str) -> None:
    """c has nothing in the second of its four files, and b almost all of its rows in the third."""
    tables = streams(11, 240)
    for name, table in zip(NAMES, tables, strict=True):
        cuts = {"a": (0, 60, 120, 180), "b": (0, 5, 10, 230), "c": (0, 60, 60, 180)}[name]
        for number, (first, last) in enumerate(zip(cuts, (*cuts[1:], 240), strict=True)):
            write(tmp_path / name, table.slice(first, last - first), 1, first=number)
    options = {
        "on": "k",
        "time": "ts",
        "window": "2 seconds",
        "lateness": 0,
        "budget": "60 tuples",
        "policy": "prob",
        "shards": 2,
        "select": ["k", *NAMES],
        "names": ("orders", "payments", "parcels"),
        "cache": cache,
    }

    def query(**more: Any) -> Any:
        frames = [read(spark, tmp_path / name) for name in NAMES]
        given = {"output": tmp_path / "out", "archive": True, "trigger": {"availableNow": True}}
        return start(*frames, **{**given, **options, **more})

    fail_in_the_second_batch(spark, query, tmp_path / "out")
    query().awaitTermination()
    with large_plans(spark):
        late = refine(tmp_path / "out")
    assert late.batches == 3
    assert late.new > 0
    found = rows_of(spark.read.parquet(str(tmp_path / "out" / "results")))
    assert len(set(found)) == len(found) > 0
    assert sorted(found + rows_of(late.rows)) == exact(tables)
    assert set(late.incomplete) == set(options["names"])
    told = metrics_that_add_up(spark, tmp_path / "out", found, late, dict.fromkeys(options["names"], 240), 60)
    collector = QueryCollector()
    for batch in range(4):
        collector.add(row for row in told if row["batch"] == batch)
    counted = {
        (labels["side"], value)
        for labels, value in samples_of(collector.collect())["rows_total"]
        if labels["shard"] == "0"
    }
    assert {name for name, _ in counted} == set(options["names"])
    with pytest.raises(sj.SpecError, match="began with an archive, which cannot change"):
        query(archive=False)


WRONG = {
    "predicate": ({"on": ["a.k = b.k", "b.k = c.k"]}, "on speaks of a stream 'a' .*; the streams are s0, s1, s2"),
    "key form": (
        {"on": ("k", "k")},
        r"on must be a column name, a tuple of one name a stream \(s0 name, s1 name, s2 name\)",
    ),
    "no such key": ({"on": ("k", "z", "k")}, "on: s1 has no column 'z'"),
    "time": ({"time": ("ts", "ts")}, r"time must be one for all streams, or one each \(s0, s1, s2\)"),
    "window": ({"window": ("1 s", "1 s")}, "window must be one window or one for each of 3 streams"),
    "clash": (
        {"suffixes": None},
        "s0 and s1 and s2 have a column 'ts': choose with select=.*'s0.ts', 's1.ts', 's2.ts'",
    ),
    "suffixes": ({"suffixes": ("_l", "_r")}, "suffixes must be a tuple of one text a stream"),
    "which": ({"suffixes": None, "select": ["ts"]}, "say 's0.ts' or 's1.ts' or 's2.ts'"),
    "names": ({"names": ("x", "y")}, "names must be one text for each of 3 streams"),
    "words": ({"names": ("x", "y", "Y")}, "names must be simple words that differ"),
    "budget": ({"budget": 5, "shards": 2}, "5 tuples are too few for 2 shards"),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said(spark: Any, change: dict[str, Any], words: str) -> None:
    frames = [spark.range(1).selectExpr("id as k", "timestamp_micros(id) as ts", f"id as {name}") for name in NAMES]
    given = {"on": "k", "time": "ts", "window": "1 second", "suffixes": ("_a", "_b", "_c")}
    with pytest.raises(sj.SpecError, match=words):
        shed_join(*frames, **{**given, **change})


def test_two_streams_have_no_other_names(spark: Any) -> None:
    frame = spark.range(1).selectExpr("id as k", "timestamp_micros(id) as ts")
    with pytest.raises(sj.SpecError, match="two are left and right"):
        shed_join(frame, frame, on="k", time="ts", window="1 second", suffixes=("", "_r"), names=("x", "y"))
    with pytest.raises(sj.SpecError, match="2 to 16 DataFrames, not 17"):
        shed_join(*[frame] * 17, on="k", time="ts", window="1 second")
