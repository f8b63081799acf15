"""shed_join against Spark's own stream-stream join: the same files, the same output, rows/s and peak memory.

Each system runs in a process of its own (with its JVM and Python workers); ours keeps its state in RocksDB, Spark's own
join runs once with the in-memory state store and once with RocksDB.

    python benchmarks/spark_join.py --rows 1000000 --batches 2
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MILLISECOND = 1000
SYSTEMS = ("shedjoin", "spark-memory", "spark-rocksdb")


def make(folder: Path, rows: int, keys: int, batches: int) -> None:
    """Two streams of one row a millisecond, keys by Zipf's law with exponent 1, each in as many files as micro-batches."""
    weights = 1.0 / np.arange(1, keys + 1)
    for number, name in enumerate(("left", "right")):
        random = np.random.default_rng(number)
        key = random.permutation(keys)[random.choice(keys, rows, p=weights / weights.sum())]
        ts = pa.array(np.arange(rows, dtype=np.int64) * MILLISECOND, pa.timestamp("us", tz="UTC"))
        table = pa.table({"k": key.astype(np.int64), f"ts_{name}": ts, name: np.arange(rows)})
        (folder / name).mkdir(parents=True)
        edges = np.linspace(0, rows, batches + 1).astype(int).tolist()
        for place in range(batches):
            path = folder / name / f"{place:05}.parquet"
            pq.write_table(table.slice(edges[place], edges[place + 1] - edges[place]), path)
            os.utime(path, (1_600_000_000 + place,) * 2)


def run(system: str, folder: Path, window: int) -> dict[str, Any]:
    """One system, in this process."""
    import warnings

    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as fn

    from shedjoin.spark import session, shed_join

    cores = os.cpu_count() or 1
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "8g")
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.sql.session.timeZone", "UTC")
    )
    if system == "spark-memory":
        hdfs = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
        builder = builder.config("spark.sql.streaming.stateStore.providerClass", hdfs)
    spark = session(builder)
    spark.sparkContext.setLogLevel("OFF")
    sides = []
    for name in ("left", "right"):
        schema = spark.read.parquet(str(folder / name)).schema
        sides.append(spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name)))
    if system == "shedjoin":
        joined = shed_join(*sides, on="k", time=("ts_left", "ts_right"), window=window, cache=None)
    else:
        left = sides[0].withWatermark("ts_left", "0 seconds")
        right = sides[1].withWatermark("ts_right", "0 seconds").withColumnRenamed("k", "k2")
        length = fn.expr(f"interval {window / 1e6} seconds")
        near = (fn.col("ts_left") > fn.col("ts_right") - length) & (fn.col("ts_left") < fn.col("ts_right") + length)
        joined = left.join(right, (fn.col("k") == fn.col("k2")) & near).drop("k2")
    out = folder / f"out-{system}"
    begin = time.perf_counter()
    query = (
        joined.writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(folder / f"checkpoint-{system}"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seconds = time.perf_counter() - begin
    rows = spark.read.parquet(str(out))
    total = rows.selectExpr("count(*) n", "sum(pmod(xxhash64(left, right), 1000003)) h").collect()[0]
    batches = [one["durationMs"]["triggerExecution"] / 1000 for one in query.recentProgress]
    spark.stop()
    return {"system": system, "seconds": seconds, "results": total["n"], "hash": str(total["h"]), "batches": batches}


def peak_of(process: subprocess.Popen[bytes]) -> int:
    """The most memory that a process and all below it held at once, in bytes, as seen five times a second."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(_memory(pid) for pid in _tree(process.pid)))
        time.sleep(0.2)
    return peak


def _tree(root: int) -> list[int]:
    found = [root]
    for pid in found:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return found


def _memory(pid: int) -> int:
    """Proportional, so that shared pages count once."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows a stream")
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--window", type=int, default=10_000_000, help="microseconds")
    parser.add_argument("--batches", type=int, default=2)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        found = run(given.one, given.folder, given.window)
        (given.folder / f"{given.one}.json").write_text(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, given.rows, given.keys, given.batches)
        rows = []
        for system in given.systems:
            command = [sys.executable, __file__, "--one", system, "--folder", name, "--window", str(given.window)]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            peak = peak_of(process)
            if process.returncode:
                raise SystemExit(f"{system} failed; run it alone to see why: {' '.join(command)}")
            rows.append({**json.loads((folder / f"{system}.json").read_text()), "peak": peak})
    print(f"{2 * given.rows:,} rows, {given.batches} micro-batches, window {given.window / 1e6:g} s")
    print(f"{'system':<14} {'rows/s':>10} {'seconds':>8} {'peak GB':>8} {'results':>12}  last batches (s)")
    for row in rows:
        last = " ".join(f"{one:.1f}" for one in row["batches"][-3:])
        speed = 2 * given.rows / row["seconds"]
        print(
            f"{row['system']:<14} {speed:>10,.0f} {row['seconds']:>8.1f} {row['peak'] / 1e9:>8.2f} {row['results']:>12,}  {last}"
        )
    if len({(row["results"], row["hash"]) for row in rows}) > 1:
        raise SystemExit("the outputs differ")
    for row in rows[1:]:
        print(f"shedjoin is {row['seconds'] / rows[0]['seconds']:.1f} x as fast as {row['system']}")


if __name__ == "__main__":
    main()
