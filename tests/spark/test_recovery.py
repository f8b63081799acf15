"""Stopped, killed, moved, changed: a query goes on from its checkpoint with not one row lost, doubled or different."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from streams import SECOND, exact, pairs, read, run, side, write

import shedjoin as sj
from shedjoin.spark import shed_join, start

SHEDDING = {"window": "3 seconds", "budget": "150 tuples", "lateness": "500 ms", "shards": 2}
HERE = Path(__file__).parent


def join(spark: Any, folder: Path, cache: str | bool, **more: Any) -> Any:
    streams = (read(spark, folder / name) for name in ("l", "r"))
    options = {**SHEDDING, "on": "k", "time": "ts", "select": ["k", "a", "b"], "cache": cache, **more}
    return shed_join(*streams, **options)


@pytest.mark.parametrize("copies", [True, False])
def test_a_stopped_query_goes_on(spark: Any, tmp_path: Path, cache: str, copies: bool) -> None:
    """Files arrive between the runs; the uninterrupted run sees the same files in the same micro-batches."""
    left, right = side(11, 1600, 50, "a", lag=SECOND // 2), side(12, 1600, 50, "b", lag=SECOND // 2)
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / "whole" / name, table, 4)
        (tmp_path / "parts" / name).mkdir(parents=True)
    run(join(spark, tmp_path / "whole", False), tmp_path / "c1", tmp_path / "o1")
    for stop in (2, 4):
        for name in ("l", "r"):
            for file in sorted((tmp_path / "whole" / name).iterdir())[:stop]:
                shutil.copy2(file, tmp_path / "parts" / name / file.name)
        if not copies:
            shutil.rmtree(cache, ignore_errors=True)
        run(join(spark, tmp_path / "parts", cache), tmp_path / "c2", tmp_path / "o2")
    assert pairs(spark, tmp_path / "o2") == pairs(spark, tmp_path / "o1")


def test_a_changed_join_is_refused_and_a_changed_budget_taken(spark: Any, tmp_path: Path, cache: str) -> None:
    left, right = side(13, 800, 50, "a"), side(14, 800, 50, "b")
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / name, table.slice(0, 400), 1)
    run(join(spark, tmp_path, cache), tmp_path / "c", tmp_path / "o")
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / name, table.slice(400), 1, first=1)
    for change in ({"window": "4 seconds"}, {"shards": 1}, {"policy": "life"}):
        with pytest.raises(
            Exception, match=r"this checkpoint belongs to a join with another \w+.*the budget may change"
        ):
            run(join(spark, tmp_path, cache, **change), tmp_path / "c", tmp_path / "o")
    run(join(spark, tmp_path, cache, budget="60 tuples"), tmp_path / "c", tmp_path / "o")
    found = pairs(spark, tmp_path / "o")
    assert len(set(found)) == len(found)
    assert set(found) < set(exact(left, right, 3 * SECOND))
    assert max(a for a, _ in found) > 700


#: A driver that is killed: it joins file after file into `output`.
DRIVER = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from pyspark.sql import SparkSession
from shedjoin.spark import session, start
from streams import read

folder = Path(sys.argv[1])
options = json.loads(sys.argv[2])
builder = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.showConsoleProgress", "false").config("spark.sql.session.timeZone", "UTC")
)
spark = session(builder, check=False)
spark.sparkContext.setLogLevel("OFF")
streams = (read(spark, folder / name) for name in ("l", "r"))
query = start(*streams, output=folder / "out", trigger={"availableNow": True}, **options)
query.awaitTermination()
"""


def driver(folder: Path, options: dict[str, Any]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(folder), json.dumps(options)],
        cwd=HERE,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_all_of(process: subprocess.Popen[bytes]) -> None:
    """kill -9 of the driver and whatever it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_killed_driver_loses_nothing(spark: Any, tmp_path: Path, cache: str) -> None:
    left, right = side(15, 3000, 50, "a", lag=SECOND // 2), side(16, 3000, 50, "b", lag=SECOND // 2)
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / name, table, 10)
    options = {**SHEDDING, "on": "k", "time": "ts", "select": ["k", "a", "b"], "cache": cache, "archive": True}
    results = tmp_path / "out" / "results"
    process = driver(tmp_path, options)
    try:
        while process.poll() is None and len(list(results.glob("*"))) < 3:
            time.sleep(0.05)
        assert process.poll() is None, "the driver ended before it could be killed"
    finally:
        kill_all_of(process)
    done = len(list((tmp_path / "out" / "checkpoint" / "commits").glob("[0-9]*")))
    assert done < 10
    streams = (read(spark, tmp_path / name) for name in ("l", "r"))
    start(*streams, output=tmp_path / "out", trigger={"availableNow": True}, **options).awaitTermination()
    del options["archive"]
    run(shed_join(*(read(spark, tmp_path / name) for name in ("l", "r")), **options), tmp_path / "c", tmp_path / "o")
    assert pairs(spark, results) == pairs(spark, tmp_path / "o")
    for name, table in (("left", left), ("right", right)):
        archived = spark.read.parquet(str(tmp_path / "out" / "archive" / name)).toArrow()
        column = "a" if name == "left" else "b"
        assert sorted(archived[column].to_pylist()) == table[column].to_pylist()
        places = set(zip(archived["_sj_shard"].to_pylist(), archived["_sj_seq"].to_pylist(), strict=True))
        assert len(places) == table.num_rows


def test_start_keeps_account_of_every_row(spark: Any, tmp_path: Path, cache: str) -> None:
    """Results and shed log together determine the exact join; metrics add up."""
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
        budget="100 tuples",
        shards=2,
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
        (batch, shard) for batch in range(3) for shard in range(2)
    ]
    for name, total in (("rows_left", 1500), ("rows_right", 1500), ("results", len(found))):
        assert sum(metrics[name].to_pylist()) == total
    assert sum(metrics["evicted"].to_pylist()) == out["shed"].num_rows
    assert max(metrics["resident_left"].to_pylist()) <= 25
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


def test_start_says_what_it_does_not_do(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(3).selectExpr("id as k", "timestamp_micros(id) as ts", "id as a")
    with pytest.raises(sj.SpecError, match="start takes streaming DataFrames"):
        start(frame, frame, output=tmp_path, on="k", time="ts", window="1 second", suffixes=("_l", "_r"))
    (tmp_path / "job.json").write_text("[]")
    with pytest.raises(sj.SpecError, match="not the job file"):
        start(frame, frame, output=tmp_path, on="k", time="ts", window="1 second")
