"""shed_join against Spark's own stream-stream join: the same files, the same output, rows/s and peak memory.

Each system runs in a process of its own (with its JVM and Python workers); ours keeps its state in RocksDB, Spark's own
join runs once with the in-memory state store and once with RocksDB. shed_join has the settings of its commands (`lean()`);
Spark's join runs as Spark comes, in a process that does not even import shedjoin, or with the same settings (`--lean`).

    python benchmarks/spark_join.py --cases large --rows 1000000 --batches 2
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from process_tree import memory, tree

MILLISECOND = 1000
MEMORY, ROCKSDB = "spark-memory", "spark-rocksdb"
SYSTEMS = ("shedjoin", MEMORY, ROCKSDB)
#: Spark's join with the settings that shed_join has.
LEANLY = "-lean"
HEAP = "6g"
STORES = "spark.sql.streaming.stateStore"
#: How often Flink saves its state; the micro-batches of the others, which save theirs each, take about as long.
CHECKPOINTS = "3 s"
FLINK = Path(__file__).with_name("flink_join.py")
#: Rows in the window (of both streams) with which the cost of a micro-batch is measured.
GROWTH = [10_000, 100_000, 1_000_000]
HEAD = """# Benchmarks on Spark

Written by `make bench`; every table is from one run, all systems on the same files and with the same sink. Ratios, not times:
machines differ. Memory is that of the whole process tree (JVM and Python workers), shared pages counted once.
"Once warm": the median micro-batch of the second half of them; in the first, workers start and the JVM compiles.
"""


@dataclass(frozen=True)
class Case:
    """A workload."""

    name: str
    title: str
    rows: int  # a stream
    batches: int
    keys: int = 20_000
    window: int = 10_000_000  # microseconds
    systems: tuple[str, ...] = SYSTEMS


CASES = {
    "large": Case("large", "Large micro-batches", 4_000_000, 8, systems=("shedjoin", MEMORY)),
    # Fewer of them: it would take a quarter of an hour otherwise.
    "rocksdb": Case("rocksdb", "Large micro-batches, all with RocksDB", 1_500_000, 3, systems=("shedjoin", ROCKSDB)),
    "small": Case("small", "Small micro-batches", 120_000, 12),
}


def make(folder: Path, rows: int, keys: int, batches: int) -> None:
    """Two streams of one row a millisecond, keys by Zipf's law with exponent 1, each in as many files as micro-batches."""
    weights = 1.0 / np.arange(1, keys + 1)
    for number, name in enumerate(("left", "right")):
        random = np.random.default_rng(number)
        key = random.permutation(keys)[random.choice(keys, rows, p=weights / weights.sum())]
        ts = pa.array(np.arange(rows, dtype=np.int64) * MILLISECOND, pa.timestamp("us", tz="UTC"))
        table = pa.table({"k": key.astype(np.int64), f"ts_{name}": ts, name: np.arange(rows)})
        (folder / name).mkdir(parents=True)
        write_files(folder / name, table, np.linspace(0, rows, batches + 1).astype(int).tolist())


def write_files(folder: Path, rows: pa.Table, edges: list[int]) -> None:
    """One file a micro-batch, in an order that Spark keeps."""
    for place, (start, end) in enumerate(pairwise(edges)):
        path = folder / f"{place:05}.parquet"
        pq.write_table(rows.slice(start, end - start), path)
        os.utime(path, (1_600_000_000 + place,) * 2)


def spark_session(system: str) -> Any:
    """All systems have the same settings but for their state stores, and for those of `lean()`."""
    import warnings

    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    cores = os.cpu_count() or 1
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", HEAP)
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.sql.session.timeZone", "UTC")
    )
    if system == "shedjoin" or system.endswith(LEANLY):
        from shedjoin.spark import lean

        builder = builder.config(map=lean())
    if system == "shedjoin":
        from shedjoin.spark import session

        return session(builder)
    store = "HDFSBackedStateStoreProvider" if system.startswith(MEMORY) else "RocksDBStateStoreProvider"
    builder = builder.config(f"{STORES}.providerClass", f"org.apache.spark.sql.execution.streaming.state.{store}")
    return builder.config(f"{STORES}.rocksdb.changelogCheckpointing.enabled", "true").getOrCreate()


def stream_of(spark: Any, folder: Path) -> Any:
    """The files of a folder, one a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(system: str, folder: Path, window: int) -> dict[str, Any]:
    """One system, in this process."""
    from pyspark.sql import functions as fn

    spark = spark_session(system)
    sides = [stream_of(spark, folder / name) for name in ("left", "right")]
    if system == "shedjoin":
        from shedjoin.spark import shed_join

        joined = shed_join(*sides, on="k", time=("ts_left", "ts_right"), window=window, cache=None)
    else:
        left = sides[0].withWatermark("ts_left", "0 seconds")
        right = sides[1].withWatermark("ts_right", "0 seconds").withColumnRenamed("k", "k2")
        length = fn.expr(f"interval {window / 1e6} seconds")
        near = (fn.col("ts_left") > fn.col("ts_right") - length) & (fn.col("ts_left") < fn.col("ts_right") + length)
        joined = left.join(right, (fn.col("k") == fn.col("k2")) & near).drop("k2")
    out = folder / f"out-{system}"
    told, seconds = write_out(joined, out, folder / f"checkpoint-{system}")
    spark.stop()
    pairs = pq.read_table(out, columns=["left", "right"])
    found = pairs_hash(pairs["left"].to_numpy(), pairs["right"].to_numpy())
    return {"system": system, "seconds": seconds, "results": pairs.num_rows, "hash": found, "batches": times_of(told)}


def write_out(joined: Any, out: Path, checkpoint: Path) -> tuple[list[Any], float]:
    """All that a stream gives, as Parquet: what Spark told of the micro-batches with rows, and seconds in all."""
    begin = time.perf_counter()
    query = (
        joined.writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [one for one in query.recentProgress if one["numInputRows"]], time.perf_counter() - begin


def times_of(told: list[Any]) -> list[float]:
    """How long each micro-batch took, in seconds."""
    return [one["durationMs"]["triggerExecution"] / 1000 for one in told]


def peak_of(process: subprocess.Popen[bytes]) -> int:
    """The most memory that a process and all below it held at once, in bytes, as seen five times a second."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(memory(pid) for pid in tree(process.pid)))
        time.sleep(0.2)
    return peak


def case_of(cases: dict[str, Any], name: str, given: argparse.Namespace) -> Any:
    """A case, with as many rows and micro-batches as were asked for."""
    return replace(cases[name], **{key: getattr(given, key) for key in ("rows", "batches") if getattr(given, key)})


def measured(folder: Path, case: Case, systems: list[str], flink: Path | None) -> list[dict[str, Any]]:
    """One row a system, all on the same files."""
    make(folder, case.rows, case.keys, case.batches)
    rows = []
    for system in systems:
        print(f"{case.name}: {system}", flush=True)
        rows.append(run_alone(__file__, system, folder, case.window, 2 * case.rows))
    if flink is not None and MEMORY in case.systems:
        rows.append(measured_flink(folder, case, flink))
    check_equal(rows)
    return rows


def run_alone(script: str, system: str, folder: Path, window: int, rows: int) -> dict[str, Any]:
    """One system in a process of its own: what it reports, its peak of memory, its rows/s in all and once warm."""
    command = [sys.executable, script, "--one", system, "--folder", str(folder), "--window", str(window)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    peak = peak_of(process)
    if process.returncode:
        raise SystemExit(f"{system} failed; run it alone to see why: {' '.join(command)}")
    found = json.loads((folder / f"{system}.json").read_text())
    batches = found["batches"]
    # The first micro-batches start workers and warm the JVM up.
    warm = batches[len(batches) // 2 :]
    steady = rows / len(batches) / float(np.median(warm))
    return {**found, "peak": peak, "speed": rows / found["seconds"], "steady": steady}


def check_equal(rows: list[dict[str, Any]]) -> None:
    """All systems must have given the same results."""
    if len({(row["results"], row["hash"]) for row in rows}) > 1:
        found = {row["system"]: (row["results"], row["hash"]) for row in rows}
        raise SystemExit(f"the outputs differ: {found}")


def measured_flink(folder: Path, case: Case, python: Path) -> dict[str, Any]:
    """Flink's interval join on the same rows. It has no micro-batches: what a start takes is known from a tenth of the rows."""
    seconds, peaks = [], []
    for place, rows in enumerate((case.rows // 10, case.rows)):
        print(f"{case.name}: flink, {rows:,} rows a stream", flush=True)
        home = folder / f"flink-{place}"
        write_csv(folder, home, rows)
        command = [str(python), str(FLINK), "--sources", str(home), "--out", str(home / "out")]
        command += ["--window", str(case.window), "--heap", HEAP, "--report", str(home / "report.json")]
        command += ["--checkpoints", CHECKPOINTS]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        peaks.append(peak_of(process))
        if process.returncode:
            raise SystemExit(f"flink failed; run it alone to see why: {' '.join(command)}")
        seconds.append(json.loads((home / "report.json").read_text())["seconds"])
    pairs = pa.concat_tables(
        pa_csv.read_csv(path, read_options=pa_csv.ReadOptions(column_names=["k", "l", "r", "left", "right"]))
        for path in sorted((folder / "flink-1" / "out").rglob("*"))
        if path.is_file() and path.stat().st_size
    )
    return {
        "system": "flink",
        "peak": peaks[-1],
        "seconds": seconds[-1],
        "results": pairs.num_rows,
        "hash": pairs_hash(pairs["left"].to_numpy(), pairs["right"].to_numpy()),
        "batches": [],
        "speed": 2 * case.rows / seconds[-1],
        "steady": 2 * (case.rows - case.rows // 10) / (seconds[-1] - seconds[0]),
    }


def write_csv(folder: Path, home: Path, rows: int) -> None:
    """The first rows of both streams: key, milliseconds, row number."""
    for name in ("left", "right"):
        whole = pa.concat_tables(pq.read_table(path) for path in sorted((folder / name).glob("*.parquet"))).slice(
            0, rows
        )
        times = whole[f"ts_{name}"].cast(pa.int64()).to_numpy() // MILLISECOND
        (home / name).mkdir(parents=True)
        table = pa.table({"k": whole["k"], "ms": times, "row": whole[name]})
        pa_csv.write_csv(table, home / name / "rows.csv", pa_csv.WriteOptions(include_header=False))


def pairs_hash(left: Any, right: Any) -> str:
    """The same for the same results in any order."""
    mixed = (left.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ (
        right.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    )
    return str(int((mixed >> np.uint64(20)).sum() % np.uint64(2**61)))


def table(case: Case, rows: list[dict[str, Any]]) -> str:
    """As Markdown."""
    each = 2 * case.rows // case.batches
    lines = [
        f"## {case.title}",
        "",
        f"{2 * case.rows:,} rows in {case.batches} micro-batches of {each:,}, window {case.window / 1e6:g} s, {case.keys:,} keys "
        f"({rows[0]['results']:,} results, the same of all systems).",
        "",
        "| system | rows/s, once warm | rows/s, start included | shedjoin is | peak memory |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        times = "" if row is rows[0] else f"{rows[0]['steady'] / row['steady']:.1f} x as fast"
        named = {
            "shedjoin": "shed_join",
            "flink": f"Flink's interval join (CSV in and out, a checkpoint every {CHECKPOINTS})",
        }
        state = row["system"].removesuffix(LEANLY).partition("-")[2]
        settings = ", settings as shed_join" if row["system"].endswith(LEANLY) else ""
        name = named.get(row["system"], f"Spark's join, {state} state{settings}")
        lines.append(f"| {name} | {row['steady']:,.0f} | {row['speed']:,.0f} | {times} | {row['peak'] / 1e9:.2f} GB |")
    return "\n".join(lines) + "\n"


def growth(folder: Path, windows: list[int]) -> str:
    """What a micro-batch costs and writes when the window is longer, as Markdown."""
    lines = [
        "## A longer window",
        "",
        "shed_join alone, 10,000 new rows a micro-batch (all with keys of their own among 200,000), once the window is full: the",
        "median micro-batch, how long its shards worked, and what they wrote to the state store.",
        "",
        "| rows in the window | micro-batch | work of the shards | written to the state store |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for window in windows:
        print(f"window of {window:,} rows", flush=True)
        command = [sys.executable, __file__, "--one", "growth", "--folder", str(folder), "--window", str(window)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        found = json.loads((folder / f"growth-{window}.json").read_text())
        lines.append(
            f"| {window:,} | {found['batch']:.2f} s | {found['seconds']:.3f} s | {found['written'] / 1e6:.2f} MB |"
        )
    return "\n".join(lines) + "\n"


def run_growth(folder: Path, window: int) -> dict[str, float]:
    """Fill a window, then push small micro-batches."""
    from shedjoin.spark import start

    spark = spark_session("shedjoin")
    small, count = 5_000, 14
    home = folder / f"growth-{window}"
    fill = window // 2
    frames = []
    for number, name in enumerate(("left", "right")):
        random = np.random.default_rng(number)
        (home / name).mkdir(parents=True)
        edges = [0, *(fill + small * np.arange(count + 1)).tolist()]
        key = random.integers(0, 200_000, edges[-1])
        ts = pa.array(np.arange(edges[-1], dtype=np.int64) * MILLISECOND, pa.timestamp("us", tz="UTC"))
        rows = pa.table({"k": key, f"ts_{name}": ts, name: np.arange(edges[-1])})
        write_files(home / name, rows, edges)
        frames.append(stream_of(spark, home / name))
    query = start(
        *frames,
        output=home / "out",
        trigger={"availableNow": True},
        on="k",
        time=("ts_left", "ts_right"),
        window=fill * MILLISECOND,
    )
    query.awaitTermination()
    took = [one["durationMs"]["triggerExecution"] / 1000 for one in query.recentProgress if one["numInputRows"]]
    metrics = spark.read.parquet(str(home / "out" / "metrics")).where("batch >= 4").groupBy("batch")
    shards = metrics.agg({"seconds": "max", "state_bytes": "sum"}).toArrow().to_pydict()
    spark.stop()
    return {
        "batch": float(np.median(took[4:])),
        "seconds": float(np.median(shards["max(seconds)"])),
        "written": float(np.mean(shards["sum(state_bytes)"])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=[*CASES, "growth"], choices=[*CASES, "growth"])
    parser.add_argument("--rows", type=int, help="rows a stream, in place of those of the case")
    parser.add_argument("--batches", type=int, help="micro-batches, in place of those of the case")
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--lean", action="store_true", help="Spark's join with the settings of shed_join as well")
    parser.add_argument("--flink", type=Path, metavar="PYTHON", help="also Flink's join, by a Python that has PyFlink")
    parser.add_argument("--page", type=Path, help="where the page of results goes (default: it is only printed)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--window", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one == "growth":
        (given.folder / f"growth-{given.window}.json").write_text(json.dumps(run_growth(given.folder, given.window)))
        return
    if given.one:
        found = run(given.one, given.folder, given.window)
        (given.folder / f"{given.one}.json").write_text(json.dumps(found))
        return
    warm_up()
    parts = []
    for name in given.cases:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            if name == "growth":
                parts.append(growth(folder, GROWTH))
            else:
                case = case_of(CASES, name, given)
                systems = [system for system in case.systems if system in given.systems]
                if given.lean:
                    systems += [system + LEANLY for system in systems if system != "shedjoin"]
                parts.append(table(case, measured(folder, case, systems, given.flink)))
        print("\n" + parts[-1], flush=True)
    if given.page is not None:
        given.page.write_text("\n".join([HEAD, *parts]))
        print(f"written: {given.page}")


def warm_up() -> None:
    """Kernels are compiled once in the life of a version; that is not what is measured."""
    code = (
        "import shedjoin as sj; s = sj.JoinSpec(window=sj.TimeWindow(2)); e = s.build(); r = {'key': [1]};"
        "e.push(left=r, right=r, clocks=(5, 5)); s.resume(e.snapshot())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    main()
