"""Front shedding: rows that are dropped by lot before the shuffle are logged, counted, and joined by `refine`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from plans import large_plans, set_for
from streams import SECOND, exact, pairs, read, read_both, run, side, write, write_both

import shedjoin as sj
from shedjoin.cli import main
from shedjoin.spark import refine, shed_join, start
from shedjoin.spark.front import Front
from shedjoin.spark.metrics import summarise

WINDOW = 2 * SECOND
TIME = {"on": "k", "time": "ts", "window": "2 seconds", "select": ["a", "b"]}


def tables() -> list[pa.Table]:
    return [side(21, 600, 40, "a", lag=SECOND), side(22, 600, 40, "b", lag=SECOND)]


def written(folder: Path, files: int = 3) -> list[tuple[int, int]]:
    return write_both(folder, tables(), files, WINDOW)


def test_lots_are_those_of_the_row() -> None:
    drawn = [
        Front(0.25, *who).dropped(4000)
        for who in ((0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))
    ]
    assert all(900 < one.sum() < 1100 for one in drawn)
    for place, one in enumerate(drawn):
        for other in drawn[place + 1 :]:
            assert 0.55 < (one == other).mean() < 0.7  # 0.625 for lots that do not know of one another
    assert not Front(0.0, 1).dropped(100).any()
    assert Front(1.0, 1).dropped(100).all()
    # One follows from the place alone, and no two neighbours go together.
    assert abs(np.corrcoef(drawn[0][:-1], drawn[0][1:])[0, 1]) < 0.05


def test_a_dropped_row_has_no_results_and_others_have_all(spark: Any) -> None:
    left, right = tables()
    whole = exact(left, right, WINDOW)
    frames = [spark.createDataFrame(one) for one in (left, right)]

    def joined(**more: Any) -> list[tuple[int, int]]:
        return sorted(tuple(row) for row in shed_join(*frames, **TIME, shards=2, **more).collect())

    found = joined(front={"left": 0.3})
    there = {a for a, _ in found}
    assert found == [pair for pair in whole if pair[0] in there]
    assert 0.55 < len(there) / len({a for a, _ in whole}) < 0.85
    assert found == joined(front=(0.3, 0))
    assert found != joined(front=(0.3, 0), seed=1)
    assert joined(front=1) == []
    assert joined(front=0) == whole


@pytest.mark.parametrize("key", ["k", "concat('key ', k)"])
def test_refine_joins_what_was_dropped(
    spark: Any, tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a budget and late rows; some of those are dropped too. A key that is no number is logged as it is."""
    whole = written(tmp_path)
    sides = [frame.selectExpr(f"CASE WHEN {name} % 50 = 0 THEN NULL ELSE {key} END AS k", "ts", name)
             for frame, name in zip(read_both(spark, tmp_path), "ab", strict=True)]  # fmt: skip
    out = tmp_path / "out"
    given: dict[str, Any] = {**TIME, "front": 0.2, "shards": 2, "lateness": "200 ms", "cache": False, "seed": 5}
    start(*sides, output=out, archive=True, budget=120, trigger={"availableNow": True}, **given).awaitTermination()
    whole = [pair for pair in whole if pair[0] % 50 and pair[1] % 50]
    results = pairs(spark, out / "results")
    shed = spark.read.parquet(str(out / "shed"))
    told = summarise(row.asDict() for row in spark.read.parquet(str(out / "metrics")).collect())
    assert told is not None
    counted = {(row.stream, row.why): row["count"] for row in shed.groupBy("stream", "why").count().collect()}
    assert told.dropped_of == {name: counted[place, "dropped"] for place, name in enumerate(("left", "right"))}
    assert all(70 < dropped < 150 for dropped in told.dropped_of.values())
    assert told.late == sum(count for (_, why), count in counted.items() if why == "late") > 0
    assert (told.nulls, told.rows) == (24, 1200)
    assert told.recall is not None
    assert told.recall.results == len(results)
    assert told.recall.recall < 0.75  # 0.64 of the pairs are of two rows that were not dropped
    assert told.shed == told.dropped + told.evicted
    assert shed.where("why != 'late'").groupBy("shard", "stream", "seq").count().where("count > 1").count() == 0
    assert shed.where("why = 'dropped' and key_k is null").count() == 0
    assert set(results) < set(whole)
    with large_plans(spark):
        done = refine(str(out), spark=spark)
    assert sorted([*results, *pairs(spark, out / "refined")]) == whole
    assert done.count == len(whole) - len(results)
    assert main(["top", str(out), "--once"]) == 0
    said = capsys.readouterr().out
    assert "shed: dropped" in said
    assert json.loads((out / "job.json").read_text())["front"] == [0.2, 0.2]


def test_a_query_that_is_stopped_drops_the_same_rows(spark: Any, tmp_path: Path) -> None:
    """One query of two micro-batches, and one that is stopped between them; its front may change then."""
    made = tables()
    for name, table in zip("lr", made, strict=True):
        write(tmp_path / "whole" / name, table, 2)
        write(tmp_path / "parts" / name, table.slice(0, 300), 1)
    given: dict[str, Any] = {**TIME, "lateness": None, "shards": 2, "cache": False}

    def join(folder: str, front: float) -> Any:
        return shed_join(*read_both(spark, tmp_path / folder), **given, front=front)

    run(join("whole", 0.3), tmp_path / "c1", tmp_path / "o1")
    run(join("parts", 0.3), tmp_path / "c2", tmp_path / "o2")
    first = pairs(spark, tmp_path / "o2")
    for name, table in zip("lr", made, strict=True):
        write(tmp_path / "parts" / name, table.slice(300), 1, first=1)
    run(join("parts", 0.3), tmp_path / "c2", tmp_path / "o2")
    assert first
    assert pairs(spark, tmp_path / "o2") == pairs(spark, tmp_path / "o1")
    for name, table in zip("lr", made, strict=True):
        write(tmp_path / "parts" / name, table.slice(0, 10), 1, first=2)
    run(join("parts", 1.0), tmp_path / "c2", tmp_path / "o2")
    assert pairs(spark, tmp_path / "o2") == pairs(spark, tmp_path / "o1")


@pytest.mark.parametrize(
    "condition",
    [{"on": ["left.k = right.k", "left.a < right.b"]}, {"predicate": sj.Band("k", within=0.0)}],
    ids=["graph", "predicate"],
)
def test_joins_that_send_rows_to_several_shards_drop_them_too(
    spark: Any, tmp_path: Path, condition: dict[str, Any]
) -> None:
    whole = written(tmp_path)
    if "on" in condition:
        whole = [(a, b) for a, b in whole if a < b]
    given: dict[str, Any] = {**TIME, "on": None, **condition, "front": (0.2, 0.1), "shards": 4, "cache": False}
    out = tmp_path / "out"
    with set_for(spark, {"spark.sql.shuffle.partitions": "4"}):
        start(
            *read_both(spark, tmp_path),
            output=out,
            archive=True,
            lateness=None,
            trigger={"availableNow": True},
            **given,
        ).awaitTermination()
    results = pairs(spark, out / "results")
    assert 0.5 < len(results) / len(whole) < 0.95
    told = summarise(row.asDict() for row in spark.read.parquet(str(out / "metrics")).collect())
    assert told is not None
    assert told.recall is not None
    assert (told.recall.results, told.recall.results + told.recall.missing) == (len(results), len(whole))
    assert 60 < told.dropped_of["left"] < 180
    with large_plans(spark):
        refine(str(out), spark=spark)
    assert sorted([*results, *pairs(spark, out / "refined")]) == whole


def test_three_streams_and_windows_of_rows(spark: Any, tmp_path: Path) -> None:
    """Windows count the rows that were dropped: refined, the join is the exact one."""
    names = ("x", "y", "z")
    tables = [side(30 + seed, 150, 12, column) for seed, column in enumerate("abc")]
    for name, one in zip(names, tables, strict=True):
        write(tmp_path / name, one, 2)
    engine, whole = sj.JoinSpec(dict.fromkeys(names, sj.RowWindow(20))).build(), []
    for first in (0, 75):  # rows are numbered as they come, and so named
        parts = [one.slice(first, 75).rename_columns(["key", "ts", "row"]) for one in tables]
        whole += map(tuple, engine.push(dict(zip(names, parts, strict=True))).rows.tolist())
    frames = [read(spark, tmp_path / name) for name in names]
    given: dict[str, Any] = {
        "on": "k",
        "time": "ts",
        "window": "20 rows",
        "lateness": 0,
        "names": names,
        "cache": False,
    }
    given |= {"select": ["a", "b", "c"], "shards": 2, "trigger": {"availableNow": True}, "archive": True}
    out = tmp_path / "out"
    start(*frames, output=out, front={"x": 0.3, "z": 0.2}, **given).awaitTermination()
    some = pairs(spark, out / "results", ("a", "b", "c"))
    assert set(some) < set(whole)
    with large_plans(spark):
        refine(str(out), spark=spark)
    assert sorted([*some, *pairs(spark, out / "refined", ("a", "b", "c"))]) == sorted(whole)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"front": 1.5}, r"front must be a share from 0 to 1, or a pair of them \(left, right\), not 1.5"),
        ({"front": (0.1, True)}, "front must be a share"),
        ({"front": (0.1, 0.1, 0.1)}, "front must be one for both sides, or a pair"),
        ({"front": {"up": 0.1, "left": 0.2}}, "front: there is no stream 'up'"),
        ({"counted_elsewhere": True}, "counted_elsewhere: Whether rows are counted over all shards follows from"),
        ({"cpu": 3}, "cpu: A virtual CPU works in virtual time"),
        ({"queue": 3}, "queue: A queue holds the rows that a virtual CPU has not reached"),
        ({"dual": 3}, "dual: The two parts of dual windows are separate arguments"),
    ],
)
def test_what_does_not_fit_is_said(spark: Any, given: dict[str, Any], message: str) -> None:
    frame = spark.createDataFrame([(1, 1)], "k int, ts int")
    with pytest.raises(sj.SpecError, match=message):
        shed_join(frame, frame, **{"on": "k", "time": "ts", "window": 5, "select": ["k"], **given})
