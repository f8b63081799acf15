"""Join graphs and theta joins on Spark: any number of shards gives the same results, within budgets and after a stop too."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from accounts import fail_in_the_second_batch, metrics_that_add_up
from plans import large_plans, set_for
from streams import SECOND, read, rows_of, run, write

import shedjoin as sj
from shedjoin.spark import refine, shed_join, start
from shedjoin.spark.start import read_job

NAMES = ("a", "b", "c")
GRAPH = ["a.x = b.x", "b.y = c.y", "a.price < c.price"]
LENGTH = 2 * SECOND


@pytest.fixture
def four(spark: Any) -> Iterator[Any]:
    """The session with room for four shards."""
    with set_for(spark, {"spark.sql.shuffle.partitions": "4"}):
        yield spark


def table(seed: int, count: int, name: str) -> pa.Table:
    """A row every 20 ms; x is text, y a number, some of both are null."""
    draw = np.random.default_rng(seed)
    x, y = draw.integers(0, 9, count), draw.integers(0, 9, count)
    return pa.table(
        {
            "x": pa.array([None if one == 8 else f"x{one}" for one in x]),
            "y": pa.array(y, mask=y == 8),
            "price": pa.array(draw.integers(0, 50, count), pa.int32()),
            "ts": pa.array(np.arange(count) * 20_000, pa.timestamp("us", tz="UTC")),
            name: np.arange(count),
        }
    )


def tables(seed: int, count: int) -> list[pa.Table]:
    return [table(seed + place, count, name) for place, name in enumerate(NAMES)]


def exact(given: list[pa.Table], condition: str, joins: list[list[str]], length: int = LENGTH) -> list[tuple[int, ...]]:
    """By pandas: joined on equal columns (none: all with all), then filtered."""
    found: pd.DataFrame | None = None
    for place, one in enumerate(given):
        name = one.column_names[-1]
        frame = one.to_pandas().rename(columns={column: f"{column}_{name}" for column in one.column_names[:-1]})
        if found is None:
            found = frame
            continue
        left, right = joins[place - 1] or (None, None)
        if left is None:
            found = found.merge(frame, how="cross")
        else:
            found = found.dropna(subset=[left]).merge(frame.dropna(subset=[right]), left_on=left, right_on=right)
    assert found is not None
    times = found[[name for name in found.columns if name.startswith("ts_")]]
    near = (times.max(axis=1) - times.min(axis=1)).dt.total_seconds() * SECOND < length
    rows = found[near].query(condition)
    return sorted(rows[[one.column_names[-1] for one in given]].itertuples(index=False, name=None))


def graph_exact(given: list[pa.Table]) -> list[tuple[int, ...]]:
    return exact(given, "price_a < price_c", [["x_a", "x_b"], ["y_b", "y_c"]])


def test_a_stream_goes_on_after_a_stop(four: Any, tmp_path: Path, cache: str) -> None:
    given = tables(1, 200)
    for name, one in zip(NAMES, given, strict=True):
        write(tmp_path / name, one, 3)

    def go_on(shards: int) -> None:
        frames = [read(four, tmp_path / "parts" / name) for name in NAMES]
        options = {"time": "ts", "window": "2 seconds", "lateness": 0, "names": NAMES, "select": [*NAMES, "a.x", "c.y"]}
        joined = shed_join(*frames, on=GRAPH, shards=shards, cache=cache, **options)
        run(joined, tmp_path / "checkpoint", tmp_path / "out")

    for files in ((0,), (1, 2)):
        for name in NAMES:
            (tmp_path / "parts" / name).mkdir(parents=True, exist_ok=True)
            for file in files:
                shutil.copy2(tmp_path / name / f"{file:05}.parquet", tmp_path / "parts" / name)
        go_on(4)
        shutil.rmtree(cache)
    assert rows_of(four.read.parquet(str(tmp_path / "out"))) == graph_exact(given)
    for name, one in zip(NAMES, given, strict=True):
        write(tmp_path / "parts" / name, one.slice(0, 5), 1, first=9)
    with pytest.raises(Exception, match="another shards"):
        go_on(3)


def test_row_windows_over_several_shards(four: Any, tmp_path: Path) -> None:
    """Four shards give what one gives in batch; within a budget, `refine` brings the rest."""
    given = tables(3, 120)
    for name, one in zip(NAMES, given, strict=True):
        write(tmp_path / name, one, 3)
    join: dict[str, Any] = {"on": GRAPH, "time": "ts", "window": "40 rows", "names": NAMES, "select": [*NAMES]}
    past = [four.read.parquet(str(tmp_path / name)) for name in NAMES]
    whole, split = (rows_of(shed_join(*past, shards=shards, **join)) for shards in (1, 4))
    assert whole == split
    assert len(whole) > 100
    frames, out = [read(four, tmp_path / name) for name in NAMES], tmp_path / "out"
    more: dict[str, Any] = {"lateness": 0, "cache": False, "trigger": {"availableNow": True}, "archive": True}
    start(*frames, output=out, shards=4, budget=60, **join, **more).awaitTermination()
    found = rows_of(four.read.parquet(str(out / "results")))
    assert set(found) < set(whole)
    with large_plans(four):
        refine(out, spark=four, upto=1)
        refine(out, spark=four)
    assert sorted([*found, *rows_of(four.read.parquet(str(out / "refined")))]) == whole


def test_theta_joins_of_batches(four: Any) -> None:
    """Of two streams, and of three without any equality: 1 shard, a matrix of 2 x 2, a cube of 2 x 2 x 1."""
    given = tables(7, 50)
    frames = [four.createDataFrame(one).repartition(2) for one in given]
    near = exact(given[:2], "price_a < price_b", [[]])
    three = exact(given, "price_a < price_b and abs(price_b - price_c) <= 3", [[], []])
    assert min(len(near), len(three)) > 500
    options: dict[str, Any] = {"time": "ts", "window": "2 seconds"}
    for shards in (1, 4):
        two = shed_join(*frames[:2], on="left.price < right.price", shards=shards, select=["a", "b"], **options)
        assert rows_of(two, ("a", "b")) == near
        on = ["a.price < b.price", "|b.price - c.price| <= 3"]
        assert rows_of(shed_join(*frames, on=on, names=NAMES, shards=shards, select=[*NAMES], **options)) == three


@pytest.mark.parametrize("on", [GRAPH, ["left.price < right.price"]], ids=["graph", "theta of two"])
def test_start_keeps_account_and_refine_completes(four: Any, tmp_path: Path, cache: str, on: list[str]) -> None:
    """A sink fails in the second batch; refine runs in between and at the end."""
    given = tables(11, 120)
    names = NAMES if on == GRAPH else ("left", "right")
    given = given[: len(names)]
    for one in given:
        write(tmp_path / one.column_names[-1], one, 3)
    asked = NAMES[: len(names)]
    whole = graph_exact(given) if on == GRAPH else exact(given, "price_a < price_b", [[]])
    options: dict[str, Any] = {
        "on": on, "time": "ts", "window": "2 seconds", "lateness": 0, "budget": "60 tuples", "policy": "rand",
        "names": NAMES if on == GRAPH else None, "select": [*asked], "shards": 4, "cache": cache,
    }  # fmt: skip

    def query(**more: Any) -> Any:
        frames = [read(four, tmp_path / name) for name in asked]
        fixed = {"output": tmp_path / "out", "archive": True, "trigger": {"availableNow": True}}
        return start(*frames, **{**fixed, **options, **more})

    fail_in_the_second_batch(four, query, tmp_path / "out")
    query(rates=dict(zip(names, (1, 50, 1), strict=False))).awaitTermination()  # a cube stays as it began
    job = read_job(tmp_path / "out")
    assert job is not None
    assert job["cube"] == [2, 2]
    with large_plans(four):
        late = refine(tmp_path / "out")
    found = rows_of(four.read.parquet(str(tmp_path / "out" / "results")), asked)
    refined = rows_of(late.rows, asked)
    assert len(set(found)) == len(found) > 0
    assert late.count > 0
    assert sorted(found + refined) == whole
    assert late.incomplete == {name: len({row[place] for row in refined}) for place, name in enumerate(names)}
    metrics_that_add_up(four, tmp_path / "out", found, late, dict.fromkeys(names, 120), 60)


WRONG = {
    "column": ({"on": ["a.x = b.z", "b.y = c.y"]}, "on: b has no column 'z'"),
    "stream": ({"on": ["a.x = d.x"]}, "on speaks of a stream 'd'"),
    "link": ({"on": ["a.x < b.x"]}, "no predicate leads to 'c'"),
    "form": ({"on": "a.x + 1 = b.x"}, r"'a.x \+ 1 = b.x' is neither a column nor a predicate between two of a, b, c"),
    "one of them": ({"on": [*GRAPH, "a.x like b.x"]}, "on cannot read the predicate 'a.x like b.x'"),
    "text": ({"on": ["a.x < b.x", "b.y = c.y"]}, "on: a.x is compared as string, but <, <=, .* take whole numbers"),
    "types": ({"on": ["a.x = b.y", "b.y = c.y", "a.y < c.y"]}, "on: a.x is string and b.y is bigint"),
    "budget": ({"budget": 10}, "10 tuples are too few for 4 shards"),
    "rates": ({"rates": (1, 2)}, "rates must be one for all streams, or one each"),
    "rates of keys": ({"on": "y", "rates": (1, 2, 3)}, "rates is for join graphs"),
    "policy": ({"budget": 60, "policy": "prospect"}, r"Prospect\(\) learns from a key that all streams share"),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said(four: Any, change: dict[str, Any], words: str) -> None:
    frames = [
        four.range(1).selectExpr("'t' as x", "id as y", "id as price", "timestamp_micros(id) as ts", f"id as {name}")
        for name in NAMES
    ]
    given = {"on": GRAPH, "time": "ts", "window": "1 second", "shards": 4, "names": NAMES, "select": [*NAMES]}
    with pytest.raises(sj.SpecError, match=words):
        shed_join(*frames, **{**given, **change})


def test_equalities_of_all_streams_are_a_key(four: Any) -> None:
    """Predicates may say what a key says, and mean the same."""
    given = tables(3, 60)
    frames = [four.createDataFrame(one) for one in given]
    options: dict[str, Any] = {"time": "ts", "window": "2 seconds", "names": NAMES, "select": [*NAMES], "shards": 4}
    graph = shed_join(*frames, on=["a.y = b.y", "b.y = c.y"], **options)
    assert rows_of(graph) == rows_of(shed_join(*frames, on="y", **options)) != []
