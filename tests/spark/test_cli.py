"""`shedjoin run`, `refine`, `top` and `demo`, from end to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import streams
from plans import large_plans
from processes import QUICK_JAVA

from shedjoin.cli import demo_streamed, main
from shedjoin.cli.run import reason_of, run_query, stopped_by_signals
from shedjoin.cli.stream_job import read_stream_job
from shedjoin.errors import InputError
from shedjoin.spark.prometheus import QueryCollector, samples_of

JOB = """
[left]
path = "l"
options.maxFilesPerTrigger = 1
[right]
format = "json"
path = "r"
schema = "k bigint, ts timestamp, b bigint"
options.maxFilesPerTrigger = 1
[join]
on = "k"
time = "ts"
window = "4 seconds"
lateness = 0
budget = 80
where = "left.a < right.b OR left.a % 3 = 0"
select = ["k", "a", "b"]
[output]
path = "out"
archive = true
[sink]
format = "csv"
path = "joined"
options.header = true
[run]
name = "test"
"""


@pytest.fixture
def folder(tmp_path: Path, spark: Any) -> Path:
    left, right = streams.side(1, 1500, 60, "a"), streams.side(2, 1500, 60, "b")
    streams.write(tmp_path / "l", left, 2)
    (tmp_path / "r").mkdir()
    for part in range(2):
        rows = right.slice(750 * part, 750).to_pandas()
        rows["ts"] = rows["ts"].dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        path = tmp_path / "r" / f"{part}.json"
        rows.to_json(path, orient="records", lines=True)
        os.utime(path, (1_600_000_000 + part,) * 2)
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def test_a_job_is_run_refined_and_watched(
    folder: Path, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    job, out = str(folder / "job.toml"), str(folder / "out")
    assert main(["run", job, "--available-now", "--metrics-port", "0"]) == 0
    said = capsys.readouterr().out
    assert "metrics at http://127.0.0.1:" in said
    assert "batch 0: 1,500 rows," in said
    assert "batch 1: 1,500 rows," in said
    assert "of 80 tuples stored" in said
    assert "done. 3,000 rows," in said

    assert main(["run", job, "--available-now"]) == 0  # goes on, and finds nothing new
    assert "done. No new batch." in capsys.readouterr().out

    with large_plans(spark):
        assert main(["refine", out]) == 0
    said = capsys.readouterr().out
    assert "starting Spark\n" in said
    assert f"refining {out}\n" in said
    assert "up to 1" in said
    results = spark.read.option("header", True).csv(str(folder / "joined")).selectExpr("int(a) a", "int(b) b")
    refined = spark.read.parquet(f"{out}/refined").selectExpr("int(a) a", "int(b) b")
    found = sorted((row["a"], row["b"]) for row in results.unionAll(refined).collect())
    left, right = streams.side(1, 1500, 60, "a"), streams.side(2, 1500, 60, "b")
    whole = streams.exact(left, right, 4 * streams.SECOND)
    assert found == [(a, b) for a, b in whole if a < b or a % 3 == 0]
    assert 0 < refined.count() < len(found)

    assert main(["top", out, "--once"]) == 0
    said = capsys.readouterr().out
    assert "batch 1, 2 shards" in said
    assert "of 80 tuples" in said
    assert main(["explain", job]) == 0
    assert "2 shards (as the checkpoint has it)" in capsys.readouterr().out


def test_what_fails_while_running_gets_one_sentence(folder: Path, spark: Any) -> None:
    streams.write(folder / "l", streams.side(1, 20, 60, "a").set_column(0, "k", [["x"] * 20]), 1)
    job = read_stream_job(folder / "job.toml")
    collector = QueryCollector(budget={"tuples": 80})
    said: list[str] = []
    with pytest.raises(InputError, match=r"on: left\.k is string and right\.k is bigint") as caught:
        run_with_columns(spark, job, collector, said)
    assert "\n" not in str(caught.value)
    assert samples_of(collector.collect())["budget_tuples"] == [({}, 80.0)]
    words = "Traceback ...\nshedjoin.errors.InputError: left.ts is absurd: 3\n\tat org.apache.spark\n"
    assert reason_of(RuntimeError(words)) == "left.ts is absurd: 3"
    assert reason_of(RuntimeError("the disk is full\nat java")) == "the disk is full"


def test_a_source_that_moved_is_told_in_a_sentence() -> None:
    words = "[STREAM_FAILED] Query [id = 1] terminated: Wrong basePath file:/new/l for the root path: file:/old/l/1.parquet\n..."
    assert reason_of(RuntimeError(words)).startswith(
        "the checkpoint has still to read file:/old/l/1.parquet, which is not in the source's current directory,  file:/new/l: "
    )


def run_with_columns(spark: Any, job: Any, collector: QueryCollector, said: list[str]) -> None:
    try:
        run_query(spark, job, {"availableNow": True}, threading.Event(), collector, said.append)
    except ValueError as reason:
        raise InputError(str(reason)) from None


ENDLESS = """
[left]
format = "rate"
options = {rowsPerSecond = 50}
select = ["value % 7 AS k", "timestamp AS ts", "value AS a"]
[right]
format = "rate"
options = {rowsPerSecond = 50}
select = ["value % 7 AS k", "timestamp AS ts", "value AS b"]
[join]
on = "k"
time = "ts"
window = "1 second"
lateness = 0
select = ["k", "a", "b"]
[output]
path = "out"
[spark]
master = "local[1]"
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_for_a_stop_and_a_second_one_for_a_stop_at_once(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stopped_by_signals() as stop:
        os.kill(os.getpid(), number)
        assert stop.wait(10)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


@pytest.mark.own_spark
def test_a_signal_stops_an_endless_query_cleanly(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(ENDLESS)
    command = [sys.executable, "-m", "shedjoin.cli", "run", str(tmp_path / "job.toml")]
    environment = {**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1", "SPARK_SUBMIT_OPTS": QUICK_JAVA}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        guard = threading.Timer(300, os.killpg, (process.pid, signal.SIGKILL))
        guard.start()
        told = []
        for line in process.stdout:
            told.append(line)
            if line.startswith("batch ") and not any(one.startswith("batch ") for one in told[:-1]):
                os.killpg(
                    process.pid, signal.SIGTERM
                )  # as a terminal does with SIGINT: to Spark and its workers as well
        complaints = process.stderr.read()
        guard.cancel()
    assert process.returncode == 0, complaints
    assert complaints == "shedjoin: stopping the query\n"  # what Spark has to say is in a file
    assert told[-1].startswith("stopped; the same command goes on from here. ")
    assert (tmp_path / "out" / "spark.log").stat().st_size > 0
    assert any((tmp_path / "out" / "metrics").glob("batch=*/_SUCCESS"))


def test_the_demo_shows_both_queries_and_draws_them(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setattr(demo_streamed, "BATCHES", 2)
    assert main(["demo", "--rows", "2000", "--out", str(tmp_path / "plots")]) == 0
    said = capsys.readouterr().out
    assert "both windows, 500; the queries may store 125." in " ".join(said.split())
    assert "prospect" in said
    assert "rand" in said
    assert ": the same rows" in said
    assert (tmp_path / "plots" / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_would_notice_a_wrong_row(tmp_path: Path) -> None:
    exact = demo_streamed.make_streams(tmp_path, 400, 50)
    rows = [len(pq.read_table(path)) for path in sorted((tmp_path / "left").iterdir())]
    assert rows == [50] * 8
    assert demo_streamed.in_order(exact[::-1, 0], exact[::-1, 1]).tolist() == exact.tolist()
