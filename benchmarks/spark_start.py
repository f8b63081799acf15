"""What `start` costs beside `shed_join` into a Parquet sink, and many shards beside few: ratios of micro-batches once warm.

Each run is a process of its own; the systems run in turn, for several rounds. CPU time is that of the process tree while the
query runs: on a shared machine it tells more than wall time.

    python benchmarks/spark_start.py --cases small --rounds 3
    python benchmarks/spark_start.py --cases large small --systems sink sink-64
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
from page_sections import check_sections, write_section
from peers import PAIRS, pairs_hash
from process_tree import tree
from rounds import Row, Store, in_turn, middle, of_system
from spark_queries import CORES, spark_session, stream_of, times_of, warm_seconds, with_rows, write_out
from system_process import run_alone
from window_streams import SIDES, make

SINK, START, ARCHIVE = "sink", "start", "archive"
TITLES = {SINK: "`shed_join` into a Parquet sink", START: "`start`", ARCHIVE: "`start(archive=True)`"}
#: The same with this many shards, in as many tasks as there are cores.
MANY = 64


@dataclass(frozen=True)
class Case:
    """A workload."""

    name: str
    rows: int  # a stream
    batches: int
    keys: int = 20_000
    window: int = 10_000_000  # microseconds


CASES = {"start-large": Case("start-large", 3_000_000, 6), "start-small": Case("start-small", 240_000, 24)}


def systems() -> list[str]:
    return [*TITLES, *(f"{name}-{MANY}" for name in TITLES)]


def title(system: str) -> str:
    name, _, shards = system.partition("-")
    return TITLES[name] + (f", {shards} shards" if shards else "")


def run(system: str, folder: Path, window: int) -> dict[str, Any]:
    """One system, in this process."""
    from shedjoin.spark import shed_join, start

    name, _, shards = system.partition("-")
    spark = spark_session("shedjoin")
    out = folder / f"out-{system}"
    shutil.rmtree(out, ignore_errors=True)
    sides = [stream_of(spark, folder / side) for side in SIDES]
    asked: dict[str, Any] = {
        "on": "k",
        "time": ("ts_left", "ts_right"),
        "window": f"{window} microseconds",
        "lateness": 0,
        "shards": int(shards) if shards else None,
    }
    began, cpu = time.perf_counter(), cpu_seconds()
    if name == SINK:
        progress, _ = write_out(shed_join(*sides, **asked), out / "results", out / "checkpoint")
    else:
        query = start(*sides, output=out, archive=name == ARCHIVE, trigger={"availableNow": True}, **asked)
        query.awaitTermination()
        progress = with_rows(query)
    found = {"seconds": time.perf_counter() - began, "cpu": cpu_seconds() - cpu}
    spark.stop()
    pairs = pq.read_table(out / "results", columns=PAIRS)
    return {
        **found,
        "warm": warm_seconds(times_of(progress)),
        "batch": median(times_of(progress)[len(progress) // 2 :]),
        "system": system,
        "results": pairs.num_rows,
        "hash": pairs_hash(*(pairs[name].to_numpy() for name in PAIRS)),
    }


def cpu_seconds() -> float:
    """What this process and all below it have used, those that have ended included."""
    ticks = 0
    for pid in tree(os.getpid()):
        with suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def section(case: Case, rows: list[Row], rounds: int) -> str:
    """As Markdown."""
    lines = [
        f"{2 * case.rows:,} rows in {case.batches} micro-batches of {2 * case.rows // case.batches:,}, window "
        f"{case.window / 1e6:g} s, {case.keys:,} keys. Medians of {rounds} round{'s' * (rounds > 1)}; {CORES} cores.",
        "",
        "| | a micro-batch, once warm | times the first | CPU of the whole query | times the first | peak memory |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    chosen = list(dict.fromkeys(row["system"] for row in rows))
    first = chosen[0]
    for system in chosen:
        both = [
            median(a / b for a, b in zip(of_system(rows, system, what), of_system(rows, first, what), strict=True))
            for what in ("batch", "cpu")
        ]
        peak = max(of_system(rows, system, "peak")) / 1e9
        lines.append(
            f"| {title(system)} | {middle(rows, system, 'batch'):.2f} s | {both[0]:.2f} | "
            f"{middle(rows, system, 'cpu'):.0f} s | {both[1]:.2f} | {peak:.2f} GB |"
        )
    return "\n".join(lines) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=[*CASES], choices=[*CASES])
    parser.add_argument("--rows", type=int, help="rows a stream, in place of those of the case")
    parser.add_argument("--batches", type=int, help="micro-batches, in place of those of the case")
    parser.add_argument("--rounds", type=int, default=3, help="how often each system runs (default 3)")
    parser.add_argument("--systems", nargs="+", default=systems(), choices=systems())
    parser.add_argument("--store", type=Path, help="a file that keeps finished runs; those are not run again")
    parser.add_argument("--page", type=Path, help="a page whose sections are replaced (default: they are only printed)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--window", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = arguments()
    if given.one:
        (given.folder / f"{given.one}.json").write_text(json.dumps(run(given.one, given.folder, given.window)))
        return
    if given.page is not None:
        check_sections(given.page, given.cases)
    store = Store(given.store)
    for name in given.cases:
        case = replace(CASES[name], **{key: getattr(given, key) for key in ("rows", "batches") if getattr(given, key)})
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            make(folder, case.rows, case.keys, case.batches)

            def measure(system: str, folder: Path = folder, case: Case = case) -> Row:
                return run_alone(__file__, system, folder, case.window, 2 * case.rows)

            workload = {"case": case.name, "rows": case.rows, "batches": case.batches, "cores": CORES}
            made = section(case, in_turn(workload, given.systems, given.rounds, measure, store), given.rounds)
        print("\n" + made, flush=True)
        if given.page is not None:
            write_section(given.page, name, made)


if __name__ == "__main__":
    main()
