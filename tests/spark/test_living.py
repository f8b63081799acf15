"""Queries that change while they live, on the same checkpoint: budget, policy, estimator, shards, columns of the results."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from plans import large_plans
from streams import SECOND, begin, exact, pairs, rows_of, side, write
from test_recovery import driver, kill_all_of

import shedjoin as sj
from shedjoin.cli import main
from shedjoin.spark import refine, reshard, shed_join
from shedjoin.spark.inputs import PARTITIONS

WINDOW = 3 * SECOND
JOIN: dict[str, Any] = {
    "streams": "lr", "on": "k", "time": "ts", "window": "3 seconds", "select": {"k": "k", "a": "a", "b": "b", "at": "left.ts"},
    "watermark": "1 second", "archive": True,
}  # fmt: skip


@contextmanager
def partitions(spark: Any, number: int) -> Iterator[None]:
    """Spark has so many partitions from now on."""
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, number)
    try:
        yield
    finally:
        spark.conf.set(PARTITIONS, before)


class Living:
    """One query whose input comes file by file, and which is started again and again."""

    def __init__(self, spark: Any, folder: Path, cache: str, files: int) -> None:
        self.spark, self.folder, self.files, self.came = spark, folder, files, 0
        self.join = {**JOIN, "cache": cache}
        self.out = folder / "out" / "query"
        self.sides = [side(31, 1500, 40, "a", lag=SECOND // 2), side(32, 1500, 40, "b", lag=SECOND // 2)]

    def come(self, files: int) -> None:
        """More of the input is there."""
        for name, table in zip("lr", self.sides, strict=True):
            first, end = (table.num_rows * (self.came + place) // self.files for place in (0, files))
            write(self.folder / name, table.slice(first, end - first), files, first=self.came)
        self.came += files

    def start(self, **change: Any) -> Any:
        (query,) = begin(
            self.spark, self.folder, self.out.parent, {"query": {**self.join, **change}}, trigger={"availableNow": True}
        )
        return query

    def run(self, files: int = 1, **change: Any) -> None:
        self.come(files)
        self.start(**change).awaitTermination()

    def is_killed(self, batches: int, **change: Any) -> None:
        """A driver of its own runs the query, and is killed when so many batches of results are there."""
        process = driver(self.folder, {"query": {**self.join, **change}})
        try:
            while process.poll() is None and len(list((self.out / "results").glob("sj_batch=*"))) < batches:
                time.sleep(0.02)
            assert process.poll() is None, (self.folder / "driver.log").read_text()[-3000:]
        finally:
            kill_all_of(process)

    @property
    def results(self) -> list[tuple[int, ...]]:
        return pairs(self.spark, self.out / "results")

    @property
    def expected(self) -> list[tuple[int, int]]:
        tables = [table.slice(0, table.num_rows * self.came // self.files) for table in self.sides]
        return exact(tables[0], tables[1], WINDOW)

    def metrics(self) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = self.spark.read.parquet(str(self.out / "metrics")).toArrow().to_pylist()
        return told

    def changes(self) -> list[str]:
        return [one["what"] for one in json.loads((self.out / "job.json").read_text())["changes"]]

    def told(self) -> dict[str, set[int]]:
        """What metrics say has changed, and in which batches."""
        found: dict[str, set[int]] = {}
        for row in self.metrics():
            if row["changed"] is not None:
                found.setdefault(row["changed"], set()).add(row["batch"])
        return found


def windowed(frame: Any) -> Any:
    from pyspark.sql import functions as fn

    return frame.groupBy(fn.window("at", "2 seconds"), "k").count().select("window.start", "k", "count")


def counted(frame: Any) -> Counter[Any]:
    """The counts of a frame at rest."""
    return Counter({row[:2]: row[2] for row in windowed(frame).collect()})


def counts_behind(results: Any, folder: Path) -> Counter[Any]:
    """The counts of a query that reads the results as a stream."""
    spark, last = results.sparkSession, Counter[Any]()

    def keep(frame: Any, number: int) -> None:
        last.update({row[:2]: row[2] - last[row[:2]] for row in frame.collect()})

    stream = spark.readStream.schema(results.schema).parquet(str(folder / "out" / "query" / "results"))
    given = windowed(stream).writeStream.outputMode("complete").foreachBatch(keep)
    given.option("checkpointLocation", str(folder / "counts")).trigger(availableNow=True).start().awaitTermination()
    return last


def test_an_exact_query_is_adopted(spark: Any, tmp_path: Path, cache: str) -> None:
    """An exact join with watermarks and a windowed count behind it; killed, given a budget, killed, given twice the shards and
    another policy, and refined: every count is that of the batch job."""
    living = Living(spark, tmp_path, cache, files=8)
    living.come(8)
    budget = {"budget": "120 tuples", "policy": "prob"}
    living.is_killed(2, shards=2)
    assert not (living.out / "shed").exists()
    living.is_killed(4, **budget)
    with partitions(spark, 4):
        living.start(shards=4, **budget | {"policy": {"name": "life", "estimator": "in_window"}}).awaitTermination()
    shed = spark.read.parquet(str(living.out / "shed"))
    assert shed.where("why = 'late'").count() == 0
    assert shed.where("shard > 1").count() > 0
    with large_plans(spark):
        done = refine(living.out)
    assert done.count > 0
    results = spark.read.parquet(str(living.out / "results"))
    assert sorted(rows_of(results, "ab") + rows_of(done.rows, "ab")) == living.expected
    sides = [spark.read.parquet(str(tmp_path / name)) for name in "lr"]
    options = {name: value for name, value in JOIN.items() if name not in ("streams", "watermark", "archive")}

    with large_plans(spark):
        counts = counts_behind(results, tmp_path) + counted(done.rows)
        assert counts == counted(shed_join(*sides, **options))
    first, second = living.changes()
    assert first == "budget: none -> 120 tuples; policy: KeepAll() -> Prob(estimator=History())"
    assert second == "policy: Prob(estimator=History()) -> Life(estimator=InWindow()); shards: 2 -> 4"
    assert {what: len(batches) for what, batches in living.told().items()} == {first: 1, second: 1}
    last = max(row["batch"] for row in living.metrics())
    assert len([row for row in living.metrics() if row["batch"] == last]) == 4


def test_shards_change_back_and_forth(
    spark: Any, tmp_path: Path, cache: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also when the driver dies in the middle of it, whenever that is, and by `shedjoin reshard`; results stay exact, and columns
    come and go."""
    living = Living(spark, tmp_path, cache, files=4)
    living.run(shards=1)

    class Dies(Exception):
        pass

    def dies(*args: Any) -> None:
        raise Dies

    with monkeypatch.context() as before:  # the new checkpoint is not whole
        before.setattr(reshard, "_take_over", dies)
        with pytest.raises(Dies):
            living.start(shards=2)
    assert living.start().awaitTermination() is None
    assert living.results == living.expected
    with monkeypatch.context() as between:  # it is whole, and the old one has left its place
        between.setattr(reshard, "finish", dies)
        with pytest.raises(Dies):
            living.start(shards=2)
    assert not (living.out / "checkpoint").exists()
    living.run(select=["a", "b"])
    assert json.loads((living.out / "job.json").read_text())["shards"] == 2
    assert living.results == living.expected
    living.run(shards=1, budget="60 tuples", select=["a", "b", "k"])
    assert [main(["reshard", str(living.out), "--shards", number]) for number in ("0", "2")] == [2, 0]
    said = capsys.readouterr()
    assert "--shards must be a whole number from 1 to 1024, not 0" in said.err
    assert "1 -> 2 shards. Start the query again" in said.out
    living.run(budget=None)
    batches = (living.out / "results").glob("sj_batch=*")
    columns = [spark.read.parquet(str(batch)).columns for batch in sorted(batches)]
    assert [*JOIN["select"]] in columns
    assert ["a", "b"] in columns
    assert ["a", "b", "k"] in columns
    with large_plans(spark):
        done = refine(living.out, upto=1)
        assert done.count == 0
        done = refine(living.out)
    assert done.count > 0
    assert sorted([*living.results, *rows_of(done.rows, "ab")]) == living.expected
    assert refine(living.out).new == 0
    assert [what.partition(";")[0] for what in living.changes()[-3:]] == [
        "budget: none -> 60 tuples", "shards: 1 -> 2", "budget: 60 tuples -> none",
    ]  # fmt: skip
    with pytest.raises(
        sj.SpecError, match=r"select: the stored rows of right have no column 'ts'.*They have b; for others"
    ):
        living.start(select={"a": "a", "b": "b", "at": "right.ts"})
