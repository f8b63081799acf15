"""How long does the offline optimum take, and how does that grow?

Each case runs in a process of its own, one after the other; what is measured is kept in bench-results/optimum.json, so that
a run that was stopped goes on where it was. The page is written from there. Ctrl-C ends a case early and shows its bounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import shedjoin as sj
from shedjoin.errors import DataError
from shedjoin.workloads import Workload, zipf
from shedjoin.workloads.workload import columns
from shedjoin_lab import data

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks-optimum.md"
STORE = ROOT / "bench-results" / "optimum.json"
YEARS = (1938, 1939, 1941, 1942, 1943, 1944, 1945)
Row = dict[str, Any]
Case = Callable[[Path | None], tuple[Workload, sj.JoinSpec, dict[str, Any]]]


def made(
    rows: int,
    window: int,
    memory: int,
    keys: int,
    *,
    allocation: str = "fixed",
    objective: str = "matches",
    ranks: str = "uncorrelated",
) -> Case:
    """Zipf 1 streams, one tuple a stream and instant; counting everything."""

    def case(folder: Path | None) -> tuple[Workload, sj.JoinSpec, dict[str, Any]]:
        workload = zipf(rows, seed=0, domain=keys, ranks=ranks, importance="rare_high")
        spec = sj.JoinSpec(sj.TimeWindow(window), sj.Budget(tuples=memory, allocation=allocation))
        return workload, spec, {"objective": objective}

    return case


def weather(rows: int | None, memory: int) -> Case:
    """Ship reports, window 5000: 1942 beside 1943; or, with `rows`, seven years beside the same years, each one later."""

    def case(folder: Path | None) -> tuple[Workload, sj.JoinSpec, dict[str, Any]]:
        spec = sj.JoinSpec(sj.TimeWindow(5000), sj.Budget(tuples=memory, allocation="fixed"))
        if rows is None:
            return data.ships(data.data_folder(folder)), spec, {}
        years = [side["key"] for side in data.ships(data.data_folder(folder), YEARS, steps=False).streams]
        ts = np.arange(rows)
        sides = [np.concatenate(order)[:rows] for order in (years, [*years[1:], years[0]])]
        return Workload(tuple(columns(side, ts, None) for side in sides)), spec, {"within": 0.005}

    return case


#: What the papers stopped at, and beyond.
GOALS: dict[str, Case] = {
    "das2003's largest: Zipf 1, 50 keys": made(5_600, 400, 400, 50),
    "Zipf 1, 650 keys, 100,000 a stream": made(100_000, 5_000, 5_000, 650),
    "Zipf 1, 650 keys, 1,000,000 a stream": made(1_000_000, 5_000, 5_000, 650),
    "weather, 1942 and 1943": weather(None, 5_000),
    "weather, 1,000,000 a stream": weather(1_000_000, 5_000),
}
#: What is doubled, and the rows, window and memory then.
DOUBLED = {
    "N 20,000, w 800, M 400": (20_000, 800, 400),
    "N doubled": (40_000, 800, 400),
    "w doubled": (20_000, 1_600, 400),
    "M doubled": (20_000, 800, 800),
}
KINDS: dict[str, dict[str, str]] = {
    "OPT": {},
    "OPTV": {"allocation": "variable"},
    "ESJA": {"objective": "importance"},
}
GROWTH: dict[str, Case] = {
    f"{kind}: {change}": made(*sizes, 100, **options)
    for kind, options in KINDS.items()
    for change, sizes in DOUBLED.items()
}
CASES = GOALS | GROWTH


def run_case(name: str, folder: Path | None) -> Row:
    """One optimum, with CPU time and the most memory of this process."""
    workload, spec, options = CASES[name](folder)
    small = zipf(50, seed=0)
    sj.optimum(spec, small.left, small.right)  # loads the solver and what was compiled
    begin = time.process_time()
    with progress(name) as tell:
        best = sj.optimum(spec, workload.left, workload.right, progress=tell, **options)
    seconds = time.process_time() - begin
    window = spec.windows[0].length
    return {
        "case": name,
        "rows": len(workload.left["key"]),
        "window": window,
        "memory": spec.budget.total,
        "value": best.value,
        "bound": best.bound,
        "exact": sj.simulate(sj.JoinSpec(spec.window), workload.left, workload.right).matches,
        "matches": best.matches,
        "prob": sj.simulate(spec, workload.left, workload.right).matches,
        "complete": best.complete,
        "cpu_seconds": seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


@contextmanager
def progress(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each stage of each memory."""
    console = Console(stderr=True)
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*parts, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name)

        def tell(stage: str, done: int, total: int) -> None:
            bar.update(task, description=f"{name}: {stage}", completed=done, total=total)

        yield tell


def apart(name: str, folder: Path | None) -> Row:
    """A case in a process of its own."""
    command = [sys.executable, __file__, "--case", name, *(["--data", str(folder)] if folder else [])]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        printed, _ = child.communicate()
    except KeyboardInterrupt:  # the child had it too, and tells what it has
        printed, _ = child.communicate()
    if child.returncode:
        raise SystemExit(f"{name} failed")
    row: Row = json.loads(printed)
    return row


def line(row: Row) -> list[str]:
    gap = (row["bound"] - row["value"]) / row["bound"] if row["bound"] else 0.0
    return [
        row["case"],
        f"{row['rows']:,}",
        f"{row['window']:,}",
        f"{row['memory']:,}",
        f"{row['matches']:,}",
        f"{row['matches'] / row['exact']:.1%}",
        f"{row['prob'] / row['matches']:.1%}",
        "0" if gap < 1e-9 else f"{100 * gap:.2g}%",
        f"{row['cpu_seconds']:.1f}" if row["cpu_seconds"] >= 1 else f"{row['cpu_seconds']:.2f}",
        f"{row['megabytes']:,.0f}",
    ]


def growth_line(row: Row, base: Row) -> list[str]:
    return [row["case"], f"{row['cpu_seconds']:.2f}", f"{row['cpu_seconds'] / base['cpu_seconds']:.1f}"]


def page(rows: dict[str, Row]) -> str:
    """docs/benchmarks-optimum.md."""
    header = ["case", "N", "w", "M", "results", "of EXACT", "PROB/OPT", "gap", "CPU s", "MB"]
    text = [
        "# Running times of the offline optimum",
        "",
        "Written by `python benchmarks/optimum.py`. Each case in a process of its own: CPU time on one core, from streams in "
        "memory to the replayed schedule; the most memory of the process, Python and its libraries included (about 250 MB).",
        "",
        f"Machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, shared with other "
        "work: repeated runs differ by up to a half.",
        "",
        "| " + " | ".join(header) + " |",
        "| --- |" + " ---: |" * (len(header) - 1),
        *("| " + " | ".join(line(rows[name])) + " |" for name in GOALS if name in rows),
        "",
        "das2003 stopped at 5,600 tuples a stream and could not solve its weather join; a gap of 0 is a proved optimum. "
        "Weather: ship reports, 10-degree cells; 1,000,000 a stream are seven years beside the same years, each one later, "
        "and a gap of 0.5% was allowed. "
        "PROB learns from history.",
        "",
        "## Growth",
        "",
        "Zipf 1, 100 keys, popularity of the two streams unrelated. OPT: fixed shares; OPTV: one memory; ESJA: importance, "
        "one path a tuple.",
        "",
        "| case | CPU s | times the first |",
        "| --- | ---: | ---: |",
    ]
    for kind in KINDS:
        found = [row for name, row in rows.items() if name.startswith(f"{kind}:")]
        found.sort(key=lambda row: list(GROWTH).index(row["case"]))
        text += ["| " + " | ".join(growth_line(row, found[0])) + " |" for row in found]
    return "\n".join([*text, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only cases with this in their name")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--data", type=Path, default=None, help="folder of the real data sets")
    parser.add_argument("--case", default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case is not None:
        print(json.dumps(run_case(args.case, args.data)))
        return
    console = Console()
    rows: dict[str, Row] = json.loads(STORE.read_text()) if STORE.exists() and not args.fresh else {}
    STORE.parent.mkdir(exist_ok=True)
    for name in CASES:
        if name in rows or args.only not in name:
            continue
        try:
            row = apart(name, data.data_folder(args.data) if "weather" in name else None)
        except DataError as reason:
            console.print(f"without {name}: {reason}")
            continue
        console.print(" ".join(line(row)))
        if not row["complete"]:
            console.print(f"interrupted: between {row['value']:,} and {row['bound']:,}; not kept")
            return
        rows[name] = row
        STORE.write_text(json.dumps(rows, indent=1))
    PAGE.write_text(page({name: rows[name] for name in CASES if name in rows}))
    console.print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
