"""Stopped, killed, moved, changed: a query goes on from its checkpoint with not one row lost, doubled or different."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plans import large_plans
from process_tree import tree
from pyspark.sql.functions import expr
from streams import SECOND, begin, exact, pairs, read, run, side, write

import shedjoin as sj
from shedjoin.cli.run import reason_of
from shedjoin.spark import refine, shed_join, start
from shedjoin.spark.metrics import summarise

SHEDDING = {"window": "3 seconds", "budget": "150 tuples", "lateness": "500 ms", "shards": 2}
HERE = Path(__file__).parent


def join(spark: Any, folder: Path, cache: str | bool, key: str = "k", **more: Any) -> Any:
    streams = (read(spark, folder / name).withColumn("k", expr(key)) for name in ("l", "r"))
    options = {**SHEDDING, "on": "k", "time": "ts", "select": ["k", "a", "b"], "cache": cache, **more}
    return shed_join(*streams, **options)


def test_a_stopped_query_goes_on(spark: Any, tmp_path: Path, cache: str) -> None:
    """Files arrive between the runs; the uninterrupted run sees the same files in the same micro-batches.

    The second run finds the copies that the first has left, the third finds none.
    """
    left, right = side(11, 1200, 50, "a", lag=SECOND // 2), side(12, 1200, 50, "b", lag=SECOND // 2)
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / "whole" / name, table, 3)
        (tmp_path / "parts" / name).mkdir(parents=True)
    run(join(spark, tmp_path / "whole", False), tmp_path / "c1", tmp_path / "o1")
    for stop in range(3):
        for name in ("l", "r"):
            file = f"{stop:05}.parquet"
            shutil.copy2(tmp_path / "whole" / name / file, tmp_path / "parts" / name / file)
        if stop == 2:
            shutil.rmtree(cache)
        run(join(spark, tmp_path / "parts", cache), tmp_path / "c2", tmp_path / "o2")
    assert pairs(spark, tmp_path / "o2") == pairs(spark, tmp_path / "o1")


def additive(matches: float, half_life: str) -> dict[str, Any]:
    return {"name": "additive", "matches": matches, "estimator": {"name": "decayed", "half_life": half_life}}


def test_what_may_change_does_and_the_rest_is_refused(spark: Any, tmp_path: Path, cache: str) -> None:
    """Between two runs the join changes, and so does the source: it gets a column more, or a key of another type."""
    left, right = side(13, 800, 50, "a"), side(14, 800, 50, "b")
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / name, table.slice(0, 400), 1)
    policy = additive(1.0, "1 second")
    run(join(spark, tmp_path, cache, policy=policy), tmp_path / "c", tmp_path / "o")
    for name, table in (("l", left), ("r", right)):
        more = table.slice(400).append_column("new", pa.array(["x"] * 400))
        write(tmp_path / name, more, 1, first=1)

    def refused(what: str, **change: Any) -> None:
        words = rf"this checkpoint belongs to a join with another {what}: .*the budget may change"
        with pytest.raises(Exception, match=words):
            run(join(spark, tmp_path, cache, **{"policy": policy, **change}), tmp_path / "c", tmp_path / "o")

    refused("window", window="4 seconds")
    refused("shards", shards=1)
    refused("keys", key="string(k)")
    changed = {"budget": "60 tuples", "policy": {**additive(3.0, "100 ms"), "estimator": "history"}}
    run(join(spark, tmp_path, cache, **changed), tmp_path / "c", tmp_path / "o")
    found = pairs(spark, tmp_path / "o")
    assert len(set(found)) == len(found)
    assert set(found) < set(exact(left, right, 3 * SECOND))
    assert max(a for a, _ in found) > 700


#: A driver that is killed: it runs some joins at once, file after file, and waits for more.
DRIVER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from pyspark.sql import SparkSession
from processes import QUICK_JAVA
from shortcuts import CHECKPOINTS, without_processes
from shedjoin.spark import session
from shedjoin.spark.output_files import BatchFiles
from shedjoin.spark.session import LEAN
from streams import begin

commit = BatchFiles.commit

def held(batch, tables):
    "In their second batch, one join stops before its files are in place, and one before Spark knows that they are."
    name = batch.output.name
    if batch.batch == 1 and name == "two":
        commit(batch, tables)
    if batch.batch == 1 and name in ("two", "three"):
        Path(sys.argv[1], f"held-{name}").touch()
        time.sleep(600)
    commit(batch, tables)

BatchFiles.commit = held

folder = Path(sys.argv[1])
joins = json.loads(sys.argv[2])
builder = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.showConsoleProgress", "false").config("spark.sql.session.timeZone", "UTC")
    .config("spark.driver.extraJavaOptions", QUICK_JAVA).config(map=LEAN).config(map=CHECKPOINTS)
)
spark = session(builder, check=False)
without_processes(spark)
spark.sparkContext.setLogLevel("OFF")
for name, join in joins.items():
    (query,) = begin(spark, folder, folder / "out", {name: join})
    while query.isActive and not query.recentProgress:  # Spark waits ten seconds for a Python that starts, and no longer
        time.sleep(0.05)
spark.streams.awaitAnyTermination()
"""


def driver(folder: Path, joins: dict[str, dict[str, Any]]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(folder), json.dumps(joins)],
        cwd=HERE,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=(folder / "driver.log").open("wb"),
    )


def kill_all_of(process: subprocess.Popen[bytes]) -> None:
    """kill -9 of the driver and whatever it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_killed_driver_loses_nothing(spark: Any, tmp_path: Path, cache: str) -> None:
    """Two streams that shed, three streams, and a predicate, in one driver; after the kill comes a file more of each stream.

    The first join is killed when the files of its second batch are in place and Spark has not committed it, the second when
    its shards have written theirs. The first finds the copies that the driver has left, the others find none.
    """
    sides = {one: side(15 + place, 800, 50, "abc"[place], lag=SECOND // 2) for place, one in enumerate("lrm")}
    for name, table in sides.items():
        write(tmp_path / name, table.slice(0, 600), 2)
    gone, out = f"{cache}-gone", tmp_path / "out"
    two = {**SHEDDING, "on": "k", "time": "ts", "select": ["k", "a", "b"], "cache": cache}
    whole = {"time": "ts", "window": "1 second", "lateness": "500 ms", "shards": 1, "cache": gone}
    band = {"name": "band", "column": "k", "within": 1}
    joins: dict[str, dict[str, Any]] = {
        "two": {"streams": "lr", "archive": True, **two},
        "three": {"streams": "lrm", "on": "k", "select": ["a", "b", "c"], **whole},
        "near": {"streams": "lr", "predicate": band, "select": ["a", "b"], **whole},
    }
    process = driver(tmp_path, joins)
    try:
        marks = [tmp_path / "held-two", tmp_path / "held-three", out / "near" / "results" / "sj_batch=1"]
        while process.poll() is None and not all(mark.exists() for mark in marks):
            time.sleep(0.05)
        assert process.poll() is None, (tmp_path / "driver.log").read_text()[-3000:]
    finally:
        kill_all_of(process)
    for name, place in (("two", out / "two" / "results" / "sj_batch=1"), ("three", out / "three" / "_writing")):
        assert list(place.rglob("*.parquet"))
        assert not (out / name / "checkpoint" / "commits" / "1").exists()
    shutil.rmtree(gone)
    for name, table in sides.items():
        write(tmp_path / name, table.slice(600), 1, first=2)
    for name, join in joins.items():  # one after the other: this machine may be small
        begin(spark, tmp_path, out, {name: join}, trigger={"availableNow": True})[0].awaitTermination()
        told = spark.read.parquet(str(out / name / "metrics")).collect()
        assert name == "two" or any(row["restored"] for row in told)
    run(shed_join(*(read(spark, tmp_path / name) for name in "lr"), **two), tmp_path / "c", tmp_path / "o")
    assert pairs(spark, out / "two" / "results") == pairs(spark, tmp_path / "o")
    assert pairs(spark, out / "three" / "results", "abc") == together(*sides.values(), apart=0)
    assert pairs(spark, out / "near" / "results") == together(sides["l"], sides["r"], apart=1)
    for name, column in (("left", "a"), ("right", "b")):
        archived = pq.read_table(out / "two" / "archive" / name)  # no reader passes over its directories
        assert set(archived["sj_batch"].to_pylist()) == set(range(3))
        assert sorted(archived[column].to_pylist()) == list(range(800))
        places = set(zip(archived["_sj_shard"].to_pylist(), archived["_sj_seq"].to_pylist(), strict=True))
        assert len(places) == 800


def together(*tables: pa.Table, apart: int) -> list[tuple[int, ...]]:
    """Rows of these tables within a second of one another, of keys that are this far apart at most: all against all."""
    found = np.arange(tables[0].num_rows).reshape(-1, 1)
    ts, key = ([table[name].cast("int64").to_numpy() for table in tables] for name in ("ts", "k"))
    for place in range(1, len(tables)):
        fits = np.ones((len(found), tables[place].num_rows), np.bool_)
        for other in range(place):
            mine = found[:, other]
            fits &= np.abs(ts[other][mine][:, None] - ts[place]) < SECOND
            fits &= np.abs(key[other][mine][:, None] - key[place]) <= apart
        left, right = np.nonzero(fits)
        found = np.column_stack([found[left], right])
    return sorted(map(tuple, found.tolist()))


def test_start_keeps_account_of_every_row(spark: Any, tmp_path: Path, cache: str) -> None:
    """Results and shed log together determine the exact join, also when shards change their policies; metrics add up."""
    left, right = side(17, 1500, 50, "a"), side(18, 1500, 50, "b")
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / name, table, 3)
    streams = (read(spark, tmp_path / name) for name in ("l", "r"))
    query = start(
        *streams,
        output=tmp_path / "out",
        archive=True,
        trigger={"availableNow": True},
        on="k",
        time="ts",
        window="3 seconds",
        lateness=0,
        budget="100 tuples",
        allocation="fixed",
        policy={"name": "auto", "memory": 16.0, "every": 60, "gain": 0.0, "stretches": 1},
        shards=4,
        suffixes=("_l", "_r"),
        cache=cache,
    )
    query.awaitTermination()
    out = {name: spark.read.parquet(str(tmp_path / "out" / name)).toArrow() for name in ("results", "shed", "metrics")}
    assert out["results"].column_names == ["k", "ts_l", "a", "ts_r", "b", "sj_batch"]
    found = set(zip(out["results"]["a"].to_pylist(), out["results"]["b"].to_pylist(), strict=True))
    assert len(found) == out["results"].num_rows
    metrics = out["metrics"]
    assert sorted(zip(metrics["batch"].to_pylist(), metrics["shard"].to_pylist(), strict=True)) == [
        (batch, shard) for batch in range(3) for shard in range(4)
    ]
    for name, total in (("rows_left", 1500), ("rows_right", 1500), ("results", len(found))):
        assert sum(metrics[name].to_pylist()) == total
    assert sum(metrics["evicted"].to_pylist()) == out["shed"].num_rows
    assert sum(metrics["policy_changes"].to_pylist()) > 0
    assert set(metrics["policy"].to_pylist()) != {None}
    for batch in range(3):  # the shards, two in each task, share what each stream has
        rows = [row for row in metrics.to_pylist() if row["batch"] == batch]
        assert sum(row["resident_left"] for row in rows) <= 50
        assert sum(row["peak_tuples"] for row in rows) <= 100
    whole = summarise(metrics.to_pylist())
    assert whole is not None
    assert whole.peak_tuples == 100
    wait_until(lambda: not list(Path(cache).iterdir()))  # the query has ended: nobody will ask for the copies
    names: list[dict[tuple[int, int], int]] = []
    for place, column in (("left", "a"), ("right", "b")):
        rows = spark.read.parquet(str(tmp_path / "out" / "archive" / place)).toArrow()
        keys = zip(rows["_sj_shard"].to_pylist(), rows["_sj_seq"].to_pylist(), strict=True)
        names.append(dict(zip(keys, rows[column].to_pylist(), strict=True)))
    seqs = [{name: place for place, name in side.items()} for side in names]
    log = {(row["shard"], row["stream"], row["seq"]): row for row in out["shed"].to_pylist()}
    times = [table["ts"].cast("int64").to_pylist() for table in (left, right)]
    for a, b in exact(left, right, 3 * SECOND):
        shard, one = seqs[0][a]
        other = seqs[1][b][1]
        gone = log.get((shard, 0, one)), log.get((shard, 1, other))
        first_left = times[0][a] <= times[1][b]
        record = gone[0] if first_left else gone[1]
        missed = record is not None and (
            (other >= record["seen_right"]) if first_left else (one >= record["seen_left"])
        )
        assert missed == ((a, b) not in found)


def wait_until(true: Callable[[], bool]) -> None:
    """Spark tells of the end of a query a little later."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def test_an_idle_stream_stops_nothing(spark: Any, tmp_path: Path, cache: str) -> None:
    """The right stream stops after its first file and comes back, where it was, with its last."""
    left, right = side(41, 1200, 20, "a"), side(42, 400, 20, "b")
    write(tmp_path / "l", left, 4)
    write(tmp_path / "r", right.slice(0, 200), 1)
    write(tmp_path / "r", right.slice(0, 0), 2, first=1)
    write(tmp_path / "r", right.slice(200), 1, first=3)
    streams = (read(spark, tmp_path / name) for name in ("l", "r"))
    options: dict[str, Any] = {"on": "k", "time": "ts", "window": "3 seconds", "lateness": 0, "select": ["k", "a", "b"]}
    given = {"output": tmp_path / "out", "trigger": {"availableNow": True}, "budget": "300 tuples", "cache": cache}
    start(*streams, recall=False, **given, **options).awaitTermination()
    told = [by for _, by in sorted(rows_by_batch(spark, tmp_path / "out").items())]
    assert [sum(row["rows_right"] for row in by) for by in told] == [200, 0, 0, 200]
    assert all(sum(row["peak_tuples"] for row in by) <= 300 for by in told)
    results = [sum(row["results"] for row in by) for by in told]
    assert {row["recall"] for by in told for row in by} == {None}
    assert results[1] > 0  # of what was there when it stopped
    assert results[3] > 0  # of what was kept until it came back
    found = pairs(spark, tmp_path / "out" / "results")
    assert len(set(found)) == len(found) == sum(results)
    assert set(found) < set(exact(left, right, 3 * SECOND))


def rows_by_batch(spark: Any, output: Path) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for row in spark.read.parquet(str(output / "metrics")).toArrow().to_pylist():
        found.setdefault(row["batch"], []).append(row)
    return found


@contextmanager
def files_up_to(size: int, spark: Any) -> Iterator[None]:
    """Spark's workers cannot write larger files: a disk that is full for some."""
    spark.range(1).mapInArrow(
        lambda batches: batches, "id long"
    ).collect()  # now there are workers, and what they are made by
    pids = tree(spark.sparkContext._gateway.proc.pid)[1:]  # only the test looks there
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids}
    for pid, limits in before.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        for pid in tree(spark.sparkContext._gateway.proc.pid)[1:]:
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, before.get(pid, before[pids[0]]))


def test_a_full_disk_stops_the_query_and_loses_nothing(spark: Any, tmp_path: Path, cache: str) -> None:
    """Four files of each stream are one micro-batch: what a task passes on is a quarter of what the archive writes."""
    left, right = side(43, 400, 20, "a"), side(44, 400, 20, "b")
    bulk = np.random.default_rng(1).bytes(400 * 6000)
    left = left.append_column("bulk", pa.array([bulk[6000 * row : 6000 * row + 6000] for row in range(400)]))
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / name, table, 4)
    options = {
        "on": "k",
        "time": "ts",
        "window": "3 seconds",
        "lateness": 0,
        "select": ["k", "a", "b"],
        "budget": "40 tuples",
        "shards": 1,
    }

    def query() -> Any:
        streams = (read(spark, tmp_path / name, each=4) for name in ("l", "r"))
        given = {"output": tmp_path / "out", "archive": True, "trigger": {"availableNow": True}, "cache": cache}
        return start(*streams, **given, **options)

    with files_up_to(1_500_000, spark), pytest.raises(Exception, match="Nothing is lost") as caught:
        query().awaitTermination()
    (said,) = set(re.findall(r"batch 0 cannot be written to .*archive/left: File too large\. .*", str(caught.value)))
    assert reason_of(caught.value) == said
    assert refine(tmp_path / "out").batches is None  # nothing is complete yet
    query().awaitTermination()
    with large_plans(spark):
        outcome = refine(tmp_path / "out")
        assert outcome.count > 0
        found = [(row["a"], row["b"]) for row in outcome.rows.collect()]
    assert sorted(found + pairs(spark, tmp_path / "out" / "results")) == exact(left, right, 3 * SECOND)


def test_start_says_what_it_does_not_do(spark: Any, tmp_path: Path) -> None:
    for match, wrong in {
        r"start has no argument 'budgt' \(perhaps budget\?\): it takes output, archive,": {"budgt": 3},
        r"trigger must be a dict with one setting of Spark, such as .*, not '10 seconds'": {"trigger": "10 seconds"},
        r"trigger must be .*, not \{'processTime': '1 s'\}": {"trigger": {"processTime": "1 s"}},
    }.items():
        given: dict[str, Any] = {"on": "k", "time": "ts", "window": "1 second", **wrong}
        with pytest.raises(sj.SpecError, match=match):
            start(None, None, output=tmp_path, **given)
    with pytest.raises(sj.SpecError, match="window is missing"):
        start(None, None, output=tmp_path, on="k", time="ts")
    frame = spark.range(3).selectExpr("id as k", "timestamp_micros(id) as ts", "id as a")
    with pytest.raises(sj.SpecError, match="start takes streaming DataFrames"):
        start(frame, frame, output=tmp_path, on="k", time="ts", window="1 second", suffixes=("_l", "_r"))
    stream = spark.readStream.format("rate").load().selectExpr("value as k", "timestamp as ts", "value as sj_batch")
    with pytest.raises(sj.SpecError, match=r"the column 'sj_batch' of the result needs another name"):
        start(
            stream,
            stream.drop("sj_batch"),
            output=tmp_path,
            on="k",
            time="ts",
            window="1 second",
            lateness=0,
            suffixes=("", "_r"),
        )
    job = {"format": 4, "shards": 1, "archive": False, "checkpoint": None, "stored": [["k"], ["k"]]}
    (tmp_path / "job.json").write_text(json.dumps(job))
    other = {"on": "k", "time": "ts", "window": "1 second", "lateness": 0, "select": ["k"], "output": tmp_path}
    with pytest.raises(sj.SpecError, match=r"checkpoint was .*/checkpoint when .* was begun and is .*elsewhere now"):
        start(stream, stream, checkpoint="elsewhere", **other)
    (tmp_path / "metrics" / "batch=0").mkdir(parents=True)
    with pytest.raises(sj.SpecError, match=r"its checkpoint .* is gone"):
        start(stream, stream, **other)
    (tmp_path / "job.json").write_text("[]")
    with pytest.raises(sj.SpecError, match="not the job file"):
        start(frame, frame, output=tmp_path, on="k", time="ts", window="1 second")
