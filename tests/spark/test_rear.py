"""Rear shedding: rows wait in an aux-window, and those with fewest partners are stored without a probe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from plans import large_plans
from streams import SECOND, exact, pairs, read_both, side, write, write_both

import shedjoin as sj
from shedjoin.spark import refine, shed_join, start
from shedjoin.spark.metrics import summarise

WINDOW = 2 * SECOND
TIME = {"on": "k", "time": "ts", "window": "2 seconds", "select": ["a", "b"]}


def tables() -> list[pa.Table]:
    return [side(31, 600, 40, "a", lag=SECOND), side(32, 600, 40, "b", lag=SECOND)]


def written(folder: Path, files: int = 4) -> list[tuple[int, int]]:
    return write_both(folder, tables(), files, WINDOW)


def joined(spark: Any, **given: Any) -> list[tuple[int, int]]:
    frames = [spark.createDataFrame(one) for one in tables()]
    return sorted(
        tuple(row) for row in shed_join(*frames, **{**TIME, "shards": 2, "lateness": None, **given}).collect()
    )


def test_of_a_batch_all_rows_have_their_turn(spark: Any) -> None:
    whole = exact(*tables(), WINDOW)
    assert joined(spark, rear=0) == whole
    assert joined(spark, rear=1) == []
    some = joined(spark, rear=0.4)
    assert set(some) < set(whole)
    # Those that do not probe are those with fewest partners: far fewer than 40 of 100 results are lost.
    assert len(some) > 0.75 * len(whole)
    assert some == joined(spark, rear=0.4)


CONDITIONS = {
    "a key": {},
    "a deadline": {"deadline": "1 hour"},
    "a front": {"front": 0.2},
    "row windows": {"window": "80 rows", "shards": 1},
    "row windows, a predicate": {
        "window": "80 rows",
        "on": None,
        "predicate": sj.Band("k", within=0.5),
        "shards": 1,
    },
    "a join graph": {"on": ["left.k = right.k", "left.a <= right.b"]},
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_refine_joins_what_did_not_probe(spark: Any, tmp_path: Path, condition: str) -> None:
    """While the query runs, and again at its end; all results but those of rows that wait."""
    written(tmp_path)
    out = tmp_path / "out"
    given: dict[str, Any] = {"rear": 0.4, "shards": 2, "lateness": None, "cache": False, "seed": 5}
    given = {**TIME, "budget": 160, **given, **CONDITIONS[condition]}
    whole: dict[str, Any] = {**given, "rear": None, "budget": None, "front": None, "deadline": None}
    left, right = read_both(spark, tmp_path)
    if "window" in CONDITIONS[condition]:  # rows are counted as they come
        start(left, right, output=tmp_path / "all", trigger={"availableNow": True}, **whole).awaitTermination()
        wanted = pairs(spark, tmp_path / "all" / "results")
    else:
        wanted = shed_join(*(spark.createDataFrame(one) for one in tables()), **whole).collect()
    query = start(left, right, output=out, archive=True, trigger={"availableNow": True}, **given)
    query.awaitTermination()
    results = pairs(spark, out / "results")
    rows = [row.asDict() for row in spark.read.parquet(str(out / "metrics")).collect()]
    told = summarise(rows)
    assert told is not None
    assert told.recall is not None
    unprobed = spark.read.parquet(str(out / "shed")).where("why = 'unprobed'").count()
    assert sum(row["unprobed"] for row in rows) == unprobed > 50
    last = max(row["batch"] for row in rows)
    assert sum(row["waiting"] for row in rows if row["batch"] == last) > 0
    with large_plans(spark):
        first = refine(str(out), upto=1, spark=spark)
        done = refine(str(out), spark=spark)
    assert first.batches is None or done.batches is None or first.batches <= done.batches
    found = [*results, *pairs(spark, out / "refined")]
    assert len(set(found)) == len(found) == len(results) + done.count
    assert set(found) <= {tuple(row) for row in wanted}
    # Rows of batches that are done have all their results.
    archived = [spark.read.parquet(str(out / "archive" / name)).collect() for name in ("left", "right")]
    assert done.batches is not None
    through = [
        {row[name] for row in rows if row["sj_batch"] <= done.batches}
        for name, rows in zip("ab", archived, strict=True)
    ]
    assert min(map(len, through)) > 50
    complete = {tuple(row) for row in wanted if row[0] in through[0] and row[1] in through[1]}
    assert complete <= set(found)
    assert complete - set(results)


def test_no_row_waits_for_another_of_its_shard(spark: Any, tmp_path: Path) -> None:
    """Clocks that others moved let rows go: of one shard no more rows come, and its results come all the same."""
    for name, table in {
        "l": pa.table({"k": [1, 2], "ts": pa.array([0, 10 * SECOND], pa.timestamp("us", tz="UTC")), "a": [0, 1]}),
        "r": pa.table({"k": [1, 3], "ts": pa.array([1, 10 * SECOND], pa.timestamp("us", tz="UTC")), "b": [0, 1]}),
    }.items():
        write(tmp_path / name, table, 1)
    out = tmp_path / "out"
    start(
        *read_both(spark, tmp_path), output=out, shards=8, rear=0, lateness=0, trigger={"availableNow": True}, **TIME
    ).awaitTermination()
    assert pairs(spark, out / "results") == [(0, 0)]


def test_a_query_goes_on_from_its_state(spark: Any, tmp_path: Path) -> None:
    """One query of two micro-batches, and one that is stopped between them."""
    for name, table in zip("lr", tables(), strict=True):
        write(tmp_path / "whole" / name, table, 2)
        write(tmp_path / "parts" / name, table.slice(0, 300), 1)
    given: dict[str, Any] = {**TIME, "lateness": None, "shards": 2, "budget": 160, "rear": 0.4, "cache": False}

    def join(folder: str, out: str) -> list[tuple[int, int]]:
        frames = read_both(spark, tmp_path / folder)
        start(*frames, output=tmp_path / out, trigger={"availableNow": True}, **given).awaitTermination()
        return pairs(spark, tmp_path / out / "results")

    whole = join("whole", "one")
    some = join("parts", "two")
    for name, table in zip("lr", tables(), strict=True):
        write(tmp_path / "parts" / name, table.slice(300), 1, first=1)
    assert join("parts", "two") == whole
    assert set(some) < set(whole)
    given["rear"] = 0.9
    assert join("parts", "two") == whole
    (change,) = json.loads((tmp_path / "two" / "job.json").read_text())["changes"]
    assert change["what"] == "rear: 0.4 -> 0.9"
    given["rear"] = None
    with pytest.raises(sj.SnapshotError, match="another rear: it has a share, this query none"):
        join("parts", "two")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rear": 1.5}, "rear must be a share from 0 to 1, not 1.5"),
        ({"rear": True}, "rear must be a share"),
        ({"rear": 0.1, "how": "left_outer"}, "rear: refine resolves rows without a partner by"),
        ({"rear": 0.1, "window": "5 rows", "shards": 2}, "rear: with row windows a row waits"),
        (
            {"rear": 0.1, "on": None, "predicate": sj.Band("k", within=1), "shards": 2},
            "rear: a row of a join on a predicate",
        ),
        ({"rear": 0.1, "evaluate_every": 5}, "evaluate_every: A CPU limit applies to each probe"),
    ],
)
def test_what_does_not_fit_is_said(spark: Any, given: dict[str, Any], message: str) -> None:
    frame = spark.createDataFrame([(1, 1)], "k int, ts int")
    with pytest.raises(sj.SpecError, match=message):
        shed_join(frame, frame, **{"on": "k", "time": "ts", "window": 5, "select": ["k"], **given})
