"""shed_join beside its strongest peers: the same files, the same results, rows/s and peak memory.

The peers are Spark's own stream-stream join (state in memory; RocksDB with the newest state format), Flink's interval join,
and DuckDB's batch join as a reference (benchmarks/peers.py has them and their settings). Each run is a process of its own,
with its JVM and Python workers. The systems run in turn, for several rounds. A different result stops the benchmark.

    python benchmarks/spark_join.py --cases large --rows 100000 --batches 2 --rounds 1    # a try of a few minutes
    python benchmarks/spark_join.py --store bench-results/spark-join.jsonl                # can be interrupted and called again
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from page_sections import check_sections, write_section
from peers import BATCH, DUCKDB, FLINK, STREAMING, SYSTEMS, prepare_flink, run
from rounds import Row, Store, in_turn, middle, of_system, ratios
from spark_growth import growth, run_growth
from spark_queries import CORES, LEANLY, MEMORY, ROCKSDB
from system_process import run_alone
from window_streams import make

OURS = (STREAMING, BATCH)


@dataclass(frozen=True)
class Case:
    """A workload."""

    name: str
    rows: int  # a stream
    batches: int
    systems: tuple[str, ...]
    keys: int = 20_000
    window: int = 10_000_000  # microseconds


CASES = {
    "large": Case("large", 4_000_000, 8, (STREAMING, MEMORY, ROCKSDB, FLINK, BATCH, DUCKDB)),
    "small": Case("small", 120_000, 12, (STREAMING, MEMORY, ROCKSDB)),
}


def case_of(cases: dict[str, Any], name: str, given: argparse.Namespace) -> Any:
    """A case, with as many rows and micro-batches as were asked for."""
    return replace(cases[name], **{key: getattr(given, key) for key in ("rows", "batches") if getattr(given, key)})


def systems_of(case: Case, given: argparse.Namespace) -> list[str]:
    """The systems of a case that were asked for and are there."""
    chosen = [system for system in case.systems if system in given.systems]
    if given.lean:
        chosen += [system + LEANLY for system in chosen if system + LEANLY in SYSTEMS]
    if FLINK in chosen and given.flink is None:
        print(f"{case.name}: without Flink; give a Python that has PyFlink with --flink", flush=True)
        chosen.remove(FLINK)
    return chosen


def measured(folder: Path, case: Case, given: argparse.Namespace, store: Store) -> list[Row]:
    """One row a system and round, all on the same files."""
    systems = systems_of(case, given)
    make(folder, case.rows, case.keys, case.batches)
    more = []
    if FLINK in systems:
        prepare_flink(folder, case.rows)
        more = ["--flink", str(given.flink)]

    def measure(system: str) -> Row:
        return run_alone(__file__, system, folder, case.window, 2 * case.rows, *more)

    workload = {"case": case.name, "rows": case.rows, "batches": case.batches, "cores": CORES}
    return in_turn(workload, systems, given.rounds, measure, store)


def section(case: Case, rows: list[Row], rounds: int) -> str:
    """As Markdown: the workload, rows/s of all systems, the worst round against each peer, versions and settings."""
    systems = list(dict.fromkeys(row["system"] for row in rows))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = [
        f"{2 * case.rows:,} rows in {case.batches} micro-batches of {2 * case.rows // case.batches:,}, window "
        f"{case.window / 1e6:g} s, {case.keys:,} keys ({rows[0]['results']:,} results, the same of all systems). "
        f"Medians of {rounds} round{'s' * (rounds > 1)}; {CORES} cores, {memory:.0f} GB of memory.",
        speeds(systems, rows),
        least_favourable(systems, rows),
        "\n".join(
            [
                "| system | version | settings |",
                "| --- | --- | --- |",
                *(
                    f"| {SYSTEMS[system].title} | {of_system(rows, system, 'version')[-1]} | {SYSTEMS[system].settings} |"
                    for system in systems
                ),
            ]
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def speeds(systems: list[str], rows: list[Row]) -> str:
    """Medians of all rounds; of memory, the most."""
    lines = [
        "| system | rows/s, once warm | rows/s, start included | shed_join, streaming, is | peak memory |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for system in systems:
        steady, speed = (middle(rows, system, column) for column in ("steady", "speed"))
        times = ""
        if STREAMING in systems and system != STREAMING:
            times = in_words(middle(rows, STREAMING, "steady") / steady)
        peak = max(of_system(rows, system, "peak")) / 1e9
        lines.append(f"| {SYSTEMS[system].title} | {steady:,.0f} | {speed:,.0f} | {times} | {peak:.2f} GB |")
    return "\n".join(lines)


def least_favourable(systems: list[str], rows: list[Row]) -> str:
    """The worst round against each peer; batch joins beside our batch join as well."""
    pairs = [(STREAMING, peer) for peer in systems if peer not in OURS] + [(BATCH, DUCKDB)]
    lines = [
        f"- {SYSTEMS[ours].title}, against {SYSTEMS[peer].title}: {in_words(min(ratios(rows, ours, peer)))}"
        for ours, peer in pairs
        if ours in systems and peer in systems
    ]
    return "\n".join(["Least favourable ratio in any round (once warm):", "", *lines]) if lines else ""


def in_words(ratio: float) -> str:
    return f"{ratio:.1f} x as fast" if ratio >= 10 else f"{ratio:.2g} x as fast"


def warm_up() -> None:
    """Kernels are compiled once in the life of a version; that is not what is measured."""
    code = (
        "import shedjoin as sj; s = sj.JoinSpec(window=sj.TimeWindow(2)); e = s.build(); r = {'key': [1]};"
        "e.push(left=r, right=r, clocks=(5, 5)); s.resume(e.snapshot())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=[*CASES, "growth"], choices=[*CASES, "growth"])
    parser.add_argument("--rows", type=int, help="rows a stream, in place of those of the case")
    parser.add_argument("--batches", type=int, help="micro-batches, in place of those of the case")
    parser.add_argument("--rounds", type=int, default=3, help="how often each system runs (default 3)")
    named = [system for system in SYSTEMS if not system.endswith(LEANLY)]
    parser.add_argument("--systems", nargs="+", default=named, choices=named)
    parser.add_argument("--lean", action="store_true", help="Spark's join with the settings of shed_join as well")
    parser.add_argument("--flink", type=Path, metavar="PYTHON", help="a Python that has PyFlink; without it, no Flink")
    parser.add_argument(
        "--store", type=Path, help="a file that keeps finished runs; those are not run again (a new build: a new file)"
    )
    parser.add_argument("--page", type=Path, help="a page whose sections are replaced (default: they are only printed)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--window", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = arguments()
    if given.one:
        one = given.one == "growth"
        found = (
            run_growth(given.folder, given.window) if one else run(given.one, given.folder, given.window, given.flink)
        )
        (given.folder / f"{given.one}.json").write_text(json.dumps(found))
        return
    if given.page is not None:
        check_sections(given.page, given.cases)
    store = Store(given.store)
    warm_up()
    for name in given.cases:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            if name == "growth":
                made = growth(__file__, folder)
            else:
                case = case_of(CASES, name, given)
                made = section(case, measured(folder, case, given, store), given.rounds)
        print("\n" + made, flush=True)
        if given.page is not None:
            write_section(given.page, name, made)
            print(f"written: {given.page}, section {name}", flush=True)


if __name__ == "__main__":
    main()
