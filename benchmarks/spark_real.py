"""Real streams through `shed_join` on Spark: is every row of the exact join there, once, and how much memory does it take?

Ships, flights and network logs (docs/data.md), without a budget: for several trigger sizes and shard counts, with
rows shuffled within the lateness, and with one source read to its end before the other begins. Then keys that are far too hot: a
client that floods a network, and a stream in which one key has half of all rows; without a budget and with one.

Each run is a process of its own. What comes out is counted and summed up on Spark, and compared with sums over the exact join
that are worked out with sorted arrays: neither Spark nor the engine is in them.

    python benchmarks/spark_real.py                     # all runs, one after another; writes docs/real-streams.md
    python benchmarks/spark_real.py --only ships-6h     # some of them; prints their rows
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from process_tree import memory, tree
from real_streams import (
    MODULI,
    SETS,
    SOURCES,
    Sums,
    exact_of_many,
    exact_sums,
)

from shedjoin_lab.data.folder import data_set_folder

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
PAGE = Path(__file__).parent.parent / "docs" / "real-streams.md"


# ----------------------------------------------------------------------------------------------------------- the runs


@dataclass(frozen=True)
class Run:
    """One query over two or more streams.

    `order`: "by time"; "shuffled" within the lateness; "left first": the right stream begins when the left one is read.
    `through`: "shed_join", or "start", which writes results, metrics and what was shed to files.
    """

    name: str
    source: str
    window: int
    size: int | None  # as the README has it
    batches: int
    shards: int
    order: str = "by time"
    lateness: int = 0
    budget: int | None = None
    through: str = "shed_join"


def several(name: str, source: str, window: int, size: int, lateness: int) -> list[Run]:
    """The same join in four ways."""
    return [
        Run(name, source, window, size, 2, 2),
        Run(name, source, window, size, 20, 1),
        Run(name, source, window, size, 7, 4, "shuffled", lateness),
        Run(name, source, window, size, 4, 3, "left first"),
    ]


RUNS = [
    *several("ships-6h", "ships", 6 * HOUR, 3_389_786, 48 * HOUR),
    Run("ships-3-years-3h", "three years", 3 * HOUR, 21_618_394, 5, 2),
    Run("ships-4-years-1h", "four years", HOUR, 49_470_336, 5, 2),
    Run("hubs-3-30min", "three hubs", 30 * MINUTE, 17_499, 3, 2),
    Run("hubs-4-30min", "four hubs", 30 * MINUTE, 6_856, 3, 2),
    Run("hubs-4-60min", "four hubs", HOUR, 53_214, 3, 2, "shuffled", 3 * HOUR),
    Run("hubs-4-60min-capped", "four hubs", HOUR, None, 3, 2, budget=150, through="start"),
    Run("ships-24h", "ships", 24 * HOUR, 13_778_480, 5, 2),
    Run("ships-168h", "ships", 168 * HOUR, 99_683_038, 5, 2),
    *several("flights-15min", "flights", 15 * MINUTE, 13_250_899, 3 * HOUR),
    Run("flights-60min", "flights", HOUR, 54_369_124, 5, 2),
    Run("names-1s", "names", SECOND, 375_489, 5, 2),
    *several("names-10s", "names", 10 * SECOND, 2_558_130, 30 * SECOND),
    Run("clients-1s", "clients", SECOND, 220_341, 5, 2),
    Run("clients-10s", "clients", 10 * SECOND, 621_802, 5, 2),
    Run("flood-1s", "flood", SECOND, 52_836_515, 2, 2),
    Run("flood-1s", "flood", SECOND, 52_836_515, 10, 4, "shuffled", 2 * SECOND),
    Run("flood-1s", "flood", SECOND, 52_836_515, 2, 2, through="start"),
    Run("flood-1s-capped", "flood", SECOND, None, 2, 2, budget=1000, through="start"),
    Run("even-key", "even", SECOND // 2, None, 2, 2),
    Run("half-one-key", "half", SECOND // 2, None, 2, 2),
    Run("half-one-key", "half", SECOND // 2, None, 2, 2, through="start"),
    Run("half-one-key-capped", "half", SECOND // 2, None, 2, 2, budget=400, through="start"),
]


def write(folder: Path, table: pa.Table, files: int, first: int) -> None:
    """The table as files, in the order in which Spark will read them."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = np.linspace(0, table.num_rows, files + 1).astype(int)
    for number, (start, end) in enumerate(pairwise(edges.tolist())):
        path = folder / f"{first + number:05}.parquet"
        pq.write_table(table.slice(start, end - start), path)
        os.utime(path, (1_600_000_000 + first + number,) * 2)


def shuffled(table: pa.Table, within: int, seed: int) -> pa.Table:
    """Out of order, but no row lags behind its stream by more than `within`."""
    ts = table["ts"].cast(pa.int64()).to_numpy()
    lag = np.random.default_rng(seed).integers(0, within, len(ts))
    return table.take(pa.array(np.argsort(ts + lag, kind="stable")))


@dataclass
class Counted:
    """What came out, batch by batch; a batch that is repeated counts once."""

    sums: dict[int, Sums] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    streams: int = 2

    def take(self, rows: Any, number: int) -> None:
        first, second = MODULI
        if self.streams > 2:
            each = [f"coalesce(sum(n{stream} % {first}), 0)" for stream in range(self.streams)]
            self.sums[number] = tuple(int(one) for one in rows.selectExpr("count(*)", *each).first())
            return
        found = rows.selectExpr(
            "count(*)",
            f"coalesce(sum(ln % {first}), 0)",
            f"coalesce(sum(rn % {second}), 0)",
            f"coalesce(sum((ln % {first}) * (rn % {second})), 0)",
        ).first()
        self.sums[number] = tuple(int(one) for one in found)

    def total(self) -> Sums:
        return tuple(sum(column) for column in zip(*self.sums.values(), strict=True)) or (0, 0, 0, 0)


def perform(run: Run, folder: Path) -> dict[str, Any]:
    """One run, in this process."""
    import warnings

    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    from shedjoin.spark import session, shed_join, start

    builder = SparkSession.builder.master(f"local[{os.cpu_count()}]").config("spark.driver.memory", "2g")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(max(run.shards, 2)),
        "spark.sql.session.timeZone": "UTC",
    }
    spark = session(builder, settings=settings)
    spark.sparkContext.setLogLevel("OFF")
    streams = sorted(path.name for path in folder.iterdir() if path.name.startswith("stream"))
    counted = Counted(streams=len(streams))
    two = len(streams) == 2
    options: dict[str, Any] = {
        "on": "k",
        "time": "ts",
        "window": timedelta(microseconds=run.window),
        "lateness": timedelta(microseconds=run.lateness),
        "budget": run.budget,
        "shards": run.shards,
        "select": {"ln": "left.n", "rn": "right.n"}
        if two
        else {f"n{place}": f"s{place}.n" for place in range(len(streams))},
    }

    def go() -> None:
        sides = []
        for name in streams:
            schema = spark.read.parquet(str(folder / name)).schema
            sides.append(spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name)))
        if run.through == "start":
            query = start(*sides, output=folder / "out", trigger={"availableNow": True}, **options)
        else:
            writer = shed_join(*sides, **options).writeStream.foreachBatch(counted.take)
            query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        counted.seconds += [one["durationMs"]["triggerExecution"] / 1000 for one in query.recentProgress]

    begin = time.perf_counter()
    go()
    if run.order == "left first":
        for path in sorted((folder / "later").iterdir()):
            path.rename(folder / "stream1" / path.name)
        go()
    seconds = time.perf_counter() - begin
    found: dict[str, Any] = {"seconds": seconds, "slowest": max(counted.seconds), "batches": len(counted.seconds)}
    if run.through == "start":
        from shedjoin.spark.metrics import summarise

        counted.take(spark.read.parquet(str(folder / "out" / "results")), 0)
        whole = summarise(row.asDict() for row in spark.read.parquet(str(folder / "out" / "metrics")).collect())
        assert whole is not None
        found |= {"peak_tuples": whole.peak_tuples, "recall": whole.recall and whole.recall.recall}
    spark.stop()
    return {**found, "sums": counted.total()}


# ---------------------------------------------------------------------------------------------------------- the memory


def peaks_of(process: subprocess.Popen[bytes]) -> dict[str, int]:
    """The most memory that all processes, the JVM, and the largest Python worker held at once; seen five times a second."""
    most = {"tree": 0, "jvm": 0, "worker": 0}
    while process.poll() is None:
        now = {pid: (_name(pid), memory(pid)) for pid in tree(process.pid)}
        most["tree"] = max(most["tree"], sum(size for _, size in now.values()))
        most["jvm"] = max([most["jvm"], *(size for name, size in now.values() if name == "java")])
        workers = [size for pid, (name, size) in now.items() if name.startswith("python") and pid != process.pid]
        most["worker"] = max([most["worker"], *workers])
        time.sleep(0.2)
    return most


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


# ------------------------------------------------------------------------------------------------------------ the table


def measure(run: Run, sides: list[pa.Table], exact: Sums) -> dict[str, Any]:
    """A run in a process of its own, over files of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place, side in enumerate(sides):
            rows = shuffled(side, run.lateness, place + 1) if run.order == "shuffled" else side
            later = run.order == "left first" and place == 1
            if later:
                write(folder / "later", rows, run.batches, 1)
            write(folder / f"stream{place}", rows.slice(0, 0) if later else rows, 1 if later else run.batches, 0)
        command = [sys.executable, __file__, "--one", str(RUNS.index(run)), "--folder", name]
        process = subprocess.Popen(command)
        peaks = peaks_of(process)
        if process.returncode:
            raise SystemExit(f"{run.name} failed")
        found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    results = found["sums"][0]
    if run.budget is None:
        assert run.size in (None, exact[0]), f"{run.name}: the README says {run.size}, sorted arrays {exact[0]}"
        assert tuple(found["sums"]) == exact, f"{run.name}: {found['sums']} came out, the exact join is {exact}"
    else:
        assert found["peak_tuples"] <= run.budget, f"{run.name}: {found['peak_tuples']} tuples within {run.budget}"
        assert 0 < results < exact[0]
    return {**found, **peaks, "results": results, "exact": exact[0], "rows": sum(side.num_rows for side in sides)}


HEAD = (
    "run", "rows", "micro-batches", "shards", "order", "sink", "budget", "results", "of the exact", "seconds", "slowest batch",
    "all processes", "JVM", "largest worker",
)  # fmt: skip


def line(run: Run, found: dict[str, Any]) -> list[str]:
    share = "all" if run.budget is None else f"{found['results'] / found['exact']:.0%}"
    cap = "-" if run.budget is None else f"{found['peak_tuples']:,} of {run.budget:,}"
    sink = "files" if run.through == "start" else "counted"
    sizes = [f"{found[name] / 2**20:,.0f} MB" for name in ("tree", "jvm", "worker")]
    counts = [f"{found['rows']:,}", str(found["batches"]), str(run.shards), run.order, sink, cap]
    times = [f"{found['seconds']:.0f}", f"{found['slowest']:.1f}"]
    return [run.name, *counts, f"{found['results']:,}", share, *times, *sizes]


TEXT = """\
`python benchmarks/spark_real.py` writes this page. It fails unless every run without a budget has every result of the exact join
once, and every run with a budget keeps its cap. The sizes of the joins were counted in another way ([data.md](data.md)), and sums
over the rows agree with sorted arrays.

`left first`: the right source begins when the left one is read to its end. `shuffled`: rows are out of order by up to the
lateness. `flood` is a client that floods a server in one minute of the log. In `half` one key has half of all rows. `even` has
as many rows, and no such key. Memory is the most that was held at once; shared pages count once. The JVM may have 2 GB of heap,
and takes it when it can.
"""


def page(rows: list[list[str]]) -> str:
    text = [
        "# Real streams on Spark",
        "",
        TEXT,
        f"| {' | '.join(HEAD)} |",
        f"| {' | '.join('---' if name in ('run', 'order', 'sink') else '---:' for name in HEAD)} |",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
    return "\n".join(text)


def chosen(names: list[str] | None) -> Iterator[tuple[Run, list[pa.Table], Sums]]:
    """The runs with their streams; those of one source in a row, so that it is read once."""
    known: dict[str, list[pa.Table]] = {}
    sums: dict[tuple[str, int], Sums] = {}
    for run in RUNS:
        if names and run.name not in names:
            continue
        if run.source not in known:
            data_set = SETS.get(run.source, "network_wrccdc_2018")
            known = {run.source: SOURCES[run.source](data_set_folder(data_set) if data_set else Path())}
        sides = known[run.source]
        at = run.source, run.window
        sums[at] = sums.get(at) or (
            exact_sums(*sides, run.window) if len(sides) == 2 else exact_of_many(sides, run.window)
        )
        yield run, sides, sums[at]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="RUN", choices=sorted({run.name for run in RUNS}))
    parser.add_argument(
        "--store",
        type=Path,
        help="a file that keeps the rows of several calls, until there are all for the page; what it has is not run again",
    )
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        found = perform(RUNS[given.one], given.folder)
        (given.folder / "found.json").write_text(json.dumps(found))
        return
    rows: dict[str, list[str]] = json.loads(given.store.read_text()) if given.store and given.store.exists() else {}
    for run, sides, exact in chosen(given.only):
        place = str(RUNS.index(run))
        if place in rows:
            continue
        rows[place] = line(run, measure(run, sides, exact))
        print(" | ".join(rows[place]), flush=True)
        if given.store:
            given.store.write_text(json.dumps(rows))
    if len(rows) == len(RUNS):
        PAGE.write_text(page([rows[str(place)] for place in range(len(RUNS))]))
        print(f"written: {PAGE}")
    else:
        print(f"{len(rows)} of {len(RUNS)} runs: the page is written when there are all")


if __name__ == "__main__":
    main()
