"""The joins that benchmarks/spark_join.py compares: one function a system, all on the same files.

Each returns the seconds of a whole run with its start (`seconds`), those of all rows once warm (`warm`), and its version.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from spark_queries import (
    CORES,
    HEAP,
    JOIN_FORMAT,
    LEANLY,
    MEMORY,
    ROCKSDB,
    spark_session,
    stream_of,
    times_of,
    warm_seconds,
    write_out,
)
from window_streams import SIDES, write_csv

STREAMING, BATCH, FLINK, DUCKDB = "shedjoin", "shedjoin-batch", "flink", "duckdb"
#: How often Flink saves its state; the micro-batches of the others, which save theirs each, take about as long.
CHECKPOINTS = "3 s"
FLINK_SCRIPT = Path(__file__).with_name("flink_join.py")
PAIRS = ["left", "right"]
#: DuckDB has no join on equal keys and near times: it would compare all rows of a key. So times are cut into cells as long as
#: the window, and each right row meets its own cell and both neighbours. Of the forms tried (a union of three joins, unnested
#: ranges, longer cells), this one was the fastest.
DUCKDB_JOIN = """
COPY (
  SELECT l.k, ts_left, "left", ts_right, "right"
  FROM (SELECT *, epoch_us(ts_left) // {window} AS cell FROM read_parquet('{folder}/left/*.parquet')) AS l
  JOIN (SELECT r.*, epoch_us(ts_right) // {window} + step AS cell
        FROM read_parquet('{folder}/right/*.parquet') AS r, (VALUES (-1), (0), (1)) AS steps(step)) AS r
  ON l.k = r.k AND l.cell = r.cell
  AND ts_left > ts_right - to_microseconds({window}) AND ts_left < ts_right + to_microseconds({window})
) TO '{out}' (FORMAT parquet, PER_THREAD_OUTPUT true)
"""


@dataclass(frozen=True)
class Task:
    """One run: the folder of the streams, the window in microseconds, a folder for the results, a Python that has PyFlink."""

    folder: Path
    window: int
    out: Path
    flink: Path | None = None


@dataclass(frozen=True)
class System:
    """A join, as the page calls it; `run` does a task."""

    title: str
    settings: str
    run: Callable[[Task], dict[str, Any]]


def shed_streaming(task: Task) -> dict[str, Any]:
    from shedjoin.spark import shed_join

    spark = spark_session(STREAMING)
    sides = [stream_of(spark, task.folder / name) for name in SIDES]
    joined = shed_join(
        *sides, on="k", time=("ts_left", "ts_right"), window=f"{task.window} microseconds", lateness=0, cache=None
    )
    return streamed(spark, joined, task) | {"version": shed_version(spark)}


def shed_batch(task: Task) -> dict[str, Any]:
    from shedjoin.spark import shed_join

    spark = spark_session(STREAMING)
    sides = [spark.read.parquet(str(task.folder / name)) for name in SIDES]
    joined = shed_join(*sides, on="k", time=("ts_left", "ts_right"), window=f"{task.window} microseconds")
    found = twice(lambda: joined.write.mode("overwrite").parquet(str(task.out)))
    version = shed_version(spark)
    spark.stop()
    return found | {"version": version}


def spark_join(store: str, task: Task) -> dict[str, Any]:
    from pyspark.sql import functions as fn

    spark = spark_session(store)
    left, right = (stream_of(spark, task.folder / name).withWatermark(f"ts_{name}", "0 seconds") for name in SIDES)
    right = right.withColumnRenamed("k", "k2")
    length = fn.expr(f"interval {task.window / 1e6} seconds")
    near = (fn.col("ts_left") > fn.col("ts_right") - length) & (fn.col("ts_left") < fn.col("ts_right") + length)
    joined = left.join(right, (fn.col("k") == fn.col("k2")) & near).drop("k2")
    return streamed(spark, joined, task) | {"version": spark_version(spark)}


def flink_join(task: Task) -> dict[str, Any]:
    """Flink has no micro-batches: what a start takes is known from a tenth of the rows."""
    short, (whole, version) = flink_run(task, "tenth")[0], flink_run(task, "whole")
    # With few rows nearly all is start, and the shorter run may take longer.
    warm = (whole - short) / 0.9 if whole > short else whole
    return {"seconds": whole, "warm": warm, "version": f"Flink {version}"}


def flink_run(task: Task, part: str) -> tuple[float, str]:
    """Seconds, and Flink's version."""
    home = task.out.with_name(f"{task.out.name}-{part}")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    out = task.out if part == "whole" else home / "out"
    command = [str(task.flink), str(FLINK_SCRIPT), "--sources", str(task.folder / f"csv-{part}"), "--out", str(out)]
    command += ["--window", str(task.window), "--checkpoints", CHECKPOINTS, "--report", str(home / "report.json")]
    subprocess.run(command, check=True, env={**os.environ, "JAVA_TOOL_OPTIONS": f"-Xmx{HEAP}"})
    report = json.loads((home / "report.json").read_text())
    return report["seconds"], report["version"]


def duckdb_join(task: Task) -> dict[str, Any]:
    import duckdb

    query = DUCKDB_JOIN.format(window=task.window, folder=task.folder, out=task.out)
    config = {"threads": CORES, "preserve_insertion_order": False}

    def join() -> None:
        shutil.rmtree(task.out, ignore_errors=True)
        connection.execute(query)

    with duckdb.connect(config=config) as connection:
        return twice(join) | {"version": f"DuckDB {duckdb.__version__}"}


def streamed(spark: Any, joined: Any, task: Task) -> dict[str, Any]:
    """Write a streaming join to Parquet, and stop Spark."""
    progress, seconds = write_out(joined, task.out, task.out.with_name(f"{task.out.name}-checkpoint"))
    spark.stop()
    return {"seconds": seconds, "warm": warm_seconds(times_of(progress))}


def twice(join: Callable[[], None]) -> dict[str, Any]:
    """A batch join, run twice in one process: the first run has the start, the second is warm."""
    took = []
    for _ in range(2):
        begin = time.perf_counter()
        join()
        took.append(time.perf_counter() - begin)
    return {"seconds": took[0], "warm": took[1]}


def spark_version(spark: Any) -> str:
    return f"Spark {spark.version}"


def shed_version(spark: Any) -> str:
    import shedjoin

    return f"shedjoin {shedjoin.__version__}, {spark_version(spark)}"


LEAN = "the settings of `shedjoin.spark.lean()`, checkpoints written as on local disks"
FORMAT = f"RocksDB, changelog checkpoints, `spark.sql.streaming.join.stateFormatVersion={JOIN_FORMAT}`"
SPARK = f"{CORES} cores and shuffle partitions, heap up to {HEAP}"
SYSTEMS = {
    STREAMING: System(
        "shed_join, streaming", f"{SPARK}; RocksDB, changelog checkpoints, `lateness=0`; {LEAN}", shed_streaming
    ),
    MEMORY: System(
        "Spark's join, state in memory",
        f"{SPARK}; HDFS-backed state store; watermarks of 0 s",
        partial(spark_join, MEMORY),
    ),
    ROCKSDB: System(
        f"Spark's join, RocksDB, state format {JOIN_FORMAT}",
        f"{SPARK}; {FORMAT}; watermarks of 0 s",
        partial(spark_join, ROCKSDB),
    ),
    MEMORY + LEANLY: System(
        "Spark's join, state in memory, lean",
        f"{SPARK}; HDFS-backed state store; watermarks of 0 s; {LEAN}",
        partial(spark_join, MEMORY + LEANLY),
    ),
    ROCKSDB + LEANLY: System(
        f"Spark's join, RocksDB, state format {JOIN_FORMAT}, lean",
        f"{SPARK}; {FORMAT}; watermarks of 0 s; {LEAN}",
        partial(spark_join, ROCKSDB + LEANLY),
    ),
    FLINK: System(
        "Flink's interval join",
        f"parallelism {CORES}, heap up to {HEAP}; state on the heap (`hashmap`), a checkpoint every {CHECKPOINTS}, object reuse; "
        "CSV in and out",
        flink_join,
    ),
    BATCH: System("shed_join, batch", f"{SPARK}; {LEAN}", shed_batch),
    DUCKDB: System("DuckDB's batch join", f"{CORES} threads, no order of rows, a file a thread", duckdb_join),
}


def run(system: str, folder: Path, window: int, flink: Path | None) -> dict[str, Any]:
    """One system, in this process: what its function reports, and how many results it wrote and which."""
    out = folder / f"out-{system}"
    for path in folder.glob(f"{out.name}*"):
        shutil.rmtree(path)
    found = SYSTEMS[system].run(Task(folder, window, out, flink))
    pairs = read_csv(out) if system == FLINK else pq.read_table(out, columns=PAIRS)
    return {
        **found,
        "system": system,
        "results": pairs.num_rows,
        "hash": pairs_hash(*(pairs[name].to_numpy() for name in PAIRS)),
    }


def prepare_flink(folder: Path, rows: int) -> None:
    """Flink's sources: all rows of both streams, and a tenth of them."""
    write_csv(folder, folder / "csv-whole", rows)
    write_csv(folder, folder / "csv-tenth", rows // 10)


def read_csv(out: Path) -> pa.Table:
    options = pa_csv.ReadOptions(column_names=["k", "l", "r", *PAIRS])
    files = [path for path in sorted(out.rglob("*")) if path.is_file() and path.stat().st_size]
    return pa.concat_tables(pa_csv.read_csv(path, read_options=options) for path in files).select(PAIRS)


def pairs_hash(left: Any, right: Any) -> str:
    """The same for the same results in any order."""
    mixed = (left.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ (
        right.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    )
    return str(int((mixed >> np.uint64(20)).sum() % np.uint64(2**61)))
