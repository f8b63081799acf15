"""shed_join of three streams against a cascade of two of Spark's own joins: the same files, the same output.

Each system runs in a process of its own (with its JVM and Python workers), as in spark_join.py; the cascade runs once with the
in-memory state store and once with RocksDB (and the newest format of Spark's join state), which is where ours keeps its state.

    python benchmarks/spark_nway.py --cases rare --rows 100000 --batches 4
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from spark_join import case_of
from spark_queries import spark_session, stream_of, times_of, warm_seconds, write_out
from system_process import check_equal, run_alone
from window_streams import MILLISECOND, write_files

NAMES = ("a", "b", "c")
#: When the streams begin, in microseconds. Not at 0, where watermarks begin: Spark's cascade drops a row of that time as late.
BEGIN = 1_600_000_000_000_000
HEAD = """# Benchmarks of three streams on Spark

Written by `make bench`; all systems on the same files, in one run, with the same sink. Ratios, not times: machines differ.
Memory is that of the whole process tree (JVM and Python workers), shared pages counted once. State is the most that the state
stores held at the end of a micro-batch, as Spark tells it: bytes in memory for the in-memory store, bytes of the database's files
for RocksDB. Rows stored are those of Spark's own count (the cascade keeps pairs as well as rows), for `shed_join` the tuples of
its windows. A cascade joins the streams in the order that is written; shed_join chooses its own.
With RocksDB, Spark's joins use their newest state format (`spark.sql.streaming.join.stateFormatVersion=4`).
"Once warm": the median micro-batch of the second half of them; in the first, workers start and the JVM compiles.
"""


@dataclass(frozen=True)
class Case:
    """A workload: how many keys each stream has, all of them 0, 1, 2, ..."""

    name: str
    title: str
    keys: tuple[int, int, int]
    rows: int  # a stream
    batches: int
    systems: tuple[str, ...]


#: A cascade is named by its state store and the order in which it joins the streams.
CASES = {
    "even": Case("even", "Streams alike", (20_000,) * 3, 2_800_000, 8, ("shedjoin", "spark-memory-abc")),
    # What takes longest has fewer rows.
    "rocksdb": Case(
        "rocksdb", "Streams alike, all with RocksDB", (20_000,) * 3, 1_000_000, 4, ("shedjoin", "spark-rocksdb-abc")
    ),
    "rare": Case(
        "rare",
        "A third stream that rarely meets the others",
        (2_000, 2_000, 200_000),
        1_000_000,
        4,
        ("shedjoin", "spark-memory-abc", "spark-memory-bca"),
    ),
}


def make(folder: Path, rows: int, keys: tuple[int, int, int], batches: int) -> None:
    """Three streams of one row a millisecond, the keys of a stream alike often, in as many files as micro-batches."""
    for number, (name, many) in enumerate(zip(NAMES, keys, strict=True)):
        random = np.random.default_rng(number)
        ts = pa.array(BEGIN + np.arange(rows, dtype=np.int64) * MILLISECOND, pa.timestamp("us", tz="UTC"))
        table = pa.table({f"k_{name}": random.integers(0, many, rows), f"ts_{name}": ts, name: np.arange(rows)})
        write_files(folder / name, table, np.linspace(0, rows, batches + 1).astype(int).tolist())


def cascade(streams: dict[str, Any], order: str, window: int) -> Any:
    """Pairs of the first two, then the third, near to both; Spark drops what no watermark needs any more."""
    from pyspark.sql import functions as fn

    length = fn.expr(f"interval {window / 1e6} seconds")

    def near(one: str, other: str) -> Any:
        first, second = fn.col(f"ts_{one}"), fn.col(f"ts_{other}")
        return (first > second - length) & (first < second + length)

    one, two, three = order
    a, b, c = (streams[name].withWatermark(f"ts_{name}", "0 seconds") for name in order)
    pairs = a.join(b, (fn.col(f"k_{one}") == fn.col(f"k_{two}")) & near(one, two))
    # Spark wants one event time a stream: that of the second goes on as a plain column.
    pairs = pairs.withColumn("plain", fn.timestamp_micros(fn.unix_micros(f"ts_{two}"))).drop(f"ts_{two}")
    pairs = pairs.withColumnRenamed("plain", f"ts_{two}")
    return pairs.join(c, (fn.col(f"k_{one}") == fn.col(f"k_{three}")) & near(one, three) & near(two, three))


def run(system: str, folder: Path, window: int) -> dict[str, Any]:
    """One system, in this process."""
    from shedjoin.spark import shed_join

    spark = spark_session(system.rpartition("-")[0] or system)
    streams = {name: stream_of(spark, folder / name) for name in NAMES}
    if system == "shedjoin":
        on, times = (tuple(f"{what}_{name}" for name in NAMES) for what in ("k", "ts"))
        joined = shed_join(*streams.values(), on=on, time=times, window=f"{window} microseconds", lateness=0)
    else:
        joined = cascade(streams, system.rpartition("-")[2], window)
    out = folder / f"out-{system}"
    told, seconds = write_out(joined, out, folder / f"checkpoint-{system}")
    total = (
        spark.read.parquet(str(out)).selectExpr("count(*) n", "sum(pmod(xxhash64(a, b, c), 1000003)) h").collect()[0]
    )
    state = [one["stateOperators"] for one in told]
    spark.stop()
    return {
        "system": system,
        "seconds": seconds,
        "results": total["n"],
        "hash": str(total["h"]),
        "warm": warm_seconds(times_of(told)),
        "state_bytes": max(sum(_bytes(one) for one in operators) for operators in state),
        "state_rows": max(sum(one["numRowsTotal"] for one in operators) for operators in state),
    }


def _bytes(operator: dict[str, Any]) -> int:
    files = operator.get("customMetrics", {}).get("rocksdbSstFileSize")
    return int(operator["memoryUsedBytes"] if files is None else files)


def measured(folder: Path, case: Case, window: int) -> list[dict[str, Any]]:
    """One row a system, all on the same files."""
    make(folder, case.rows, case.keys, case.batches)
    rows = []
    for system in case.systems:
        print(f"{case.name}: {system}", flush=True)
        rows.append(run_alone(__file__, system, folder, window, 3 * case.rows))
    check_equal(rows)
    return rows


def table(case: Case, window: int, rows: list[dict[str, Any]]) -> str:
    """As Markdown."""
    held = 3 * min(case.rows, window // MILLISECOND)
    keys = ", ".join(f"{many:,}" for many in case.keys)
    lines = [
        f"## {case.title}",
        "",
        f"{3 * case.rows:,} rows in {case.batches} micro-batches of {3 * case.rows // case.batches:,}, window {window / 1e6:g} s "
        f"({held:,} rows), keys of a, b and c: {keys} ({rows[0]['results']:,} results, the same of all systems).",
        "",
        "| system | rows/s, once warm | rows/s, start included | shed_join is | state | rows stored | peak memory |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        ours = row["system"] == "shedjoin"
        times = "" if ours else f"{rows[0]['steady'] / row['steady']:.1f} x as fast"
        name = "shed_join" if ours else _called(row["system"])
        stored = held if ours else row["state_rows"]
        sizes = f"{row['state_bytes'] / 1e6:,.1f} MB | {stored:,} | {row['peak'] / 1e9:.2f} GB"
        lines.append(f"| {name} | {row['steady']:,.0f} | {row['speed']:,.0f} | {times} | {sizes} |")
    return "\n".join(lines) + "\n"


def _called(system: str) -> str:
    _, store, order = system.split("-")
    one, two, three = order
    return f"Spark's joins ({one}, {two}), {three}; {store} state"


def warm_up() -> None:
    """Kernels are compiled once in the life of a version; that is not what is measured."""
    code = (
        "import shedjoin as sj; s = sj.MultiJoinSpec(windows=dict.fromkeys('abc', sj.TimeWindow(2)), on='key'); e = s.build();"
        "e.push(dict.fromkeys('abc', {'key': [1]}), clocks={'a': 5}); s.resume(e.snapshot())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--rows", type=int, help="rows a stream, in place of those of the case")
    parser.add_argument("--batches", type=int, help="micro-batches, in place of those of the case")
    parser.add_argument("--window", type=int, default=10_000_000, help="microseconds")
    parser.add_argument("--page", type=Path, help="where the page of results goes (default: it is only printed)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        found = run(given.one, given.folder, given.window)
        (given.folder / f"{given.one}.json").write_text(json.dumps(found))
        return
    warm_up()
    parts = []
    for name in given.cases:
        with tempfile.TemporaryDirectory() as temporary:
            case = case_of(CASES, name, given)
            parts.append(table(case, given.window, measured(Path(temporary), case, given.window)))
        print("\n" + parts[-1], flush=True)
    if given.page is not None:
        given.page.write_text("\n".join([HEAD, *parts]))
        print(f"written: {given.page}")


if __name__ == "__main__":
    main()
