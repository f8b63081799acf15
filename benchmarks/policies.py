"""How fast each policy is, and how its cost grows with the memory: `make bench`.

One process, one core, all figures of a table from one run, so that their ratios mean something on a noisy machine. Each
figure is CPU time, the best of several rounds; the rounds go through all policies in turn, so that a slow moment of the machine
does not hit one policy alone.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from page_sections import check_sections, write_section
from rich.console import Console
from rich.progress import track
from rich.table import Table

import shedjoin as sj
from shedjoin.batch import Batch
from shedjoin.engine.engine import Engine

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
#: The section of the page.
MARK = "policies"
KEYS = 20_000
EXACT_WINDOW = 10_000


def workload(rows: int) -> tuple[Batch, sj.Table]:
    """Two streams of Zipf 1 keys with unrelated popularity, and their true table."""
    rng = np.random.default_rng(7)
    popularity = 1.0 / np.arange(1, KEYS + 1)
    popularity /= popularity.sum()
    columns, tables = [], []
    for _ in range(2):
        order = rng.permutation(KEYS)
        ranks = np.minimum(np.searchsorted(np.cumsum(popularity), rng.random(rows)), KEYS - 1)
        columns.append({"key": order[ranks].astype(np.int64), "importance": rng.lognormal(size=rows)})
        table = np.empty(KEYS)
        table[order] = popularity
        tables.append(table)
    return Batch.of(*columns), sj.Table(*tables)


def policies(table: sj.Table, memory: int, rows: int) -> dict[str, sj.Policy]:
    """What is measured, under the names of the tables."""
    leaves = np.arange(rows) + memory // 2  # a schedule that keeps every row for half its window
    return {
        "RAND": sj.Rand(),
        "PROB (true table)": sj.Prob(table),
        "PROB (History)": sj.Prob(sj.History()),
        "PROB (InWindow)": sj.Prob(sj.InWindow()),
        "PROB (InMemory)": sj.Prob(sj.InMemory()),
        "PROB (Decayed)": sj.Prob(sj.Decayed(float(memory))),
        "PROB (CountMin)": sj.Prob(sj.CountMin()),
        "LIFE": sj.Life(),
        "PROSPECT": sj.Prospect(),
        "SIMP": sj.Simp(),
        "SIMPPROB": sj.SimpProb(),
        "DIMPPROB": sj.DimpProb(),
        "DGL": sj.Dgl(),
        "additive": sj.Additive(life=1.0),
        "additive (on arrival)": sj.Additive(life=1.0, update="arrival"),
        "multiplicative": sj.Multiplicative(life=1.0),
        "multiplicative (on arrival)": sj.Multiplicative(life=1.0, update="arrival"),
        "cumulative": sj.Cumulative(),
        "replay": sj.Replay(leaves, leaves),
    }


def seconds(spec: sj.JoinSpec, batch: Batch, *, emit: bool) -> tuple[float, int]:
    """CPU time of one run, and its results."""
    engine = Engine(spec.plan(), 0, emit=emit)
    begin = time.process_time()
    engine.push(batch)
    return time.process_time() - begin, engine.counters["results"]


def measure(rows: int, memories: list[int], rounds: int, console: Console) -> list[dict[str, object]]:
    """One row a policy and memory size: the best time of all rounds."""
    batch, table = workload(rows)
    exact = sj.JoinSpec(window=sj.TimeWindow(EXACT_WINDOW))
    cases: list[tuple[str, int, sj.JoinSpec, bool]] = [("exact", 0, exact, False), ("exact, pairs out", 0, exact, True)]
    for memory in memories:
        # Both windows together hold 2 M tuples and the memory M: half must be shed.
        window, budget = sj.TimeWindow(memory), sj.Budget(tuples=memory, allocation="fixed")
        for name, policy in policies(table, memory, rows).items():
            cases.append((name, memory, sj.JoinSpec(window=window, budget=budget, policy=policy), False))
    best: dict[tuple[str, int], tuple[float, int]] = {}
    # The exact join is the quickest, and so the one that a moment of noise can hide: it is run oftener.
    work = [case for _ in range(rounds) for case in (*cases[:2], *cases[:2], *cases)]
    for name, memory, spec, emit in track(work, "measuring", console=console):
        took, results = seconds(spec, batch, emit=emit)
        before = best.get((name, memory), (float("inf"), 0))[0]
        best[name, memory] = (min(before, took), results)
    return [
        {
            "policy": name,
            "M": memory,
            "tuples_per_s": len(batch) / took,
            "ns_per_tuple": took / len(batch) * 1e9,
            "results_per_tuple": results / len(batch),
        }
        for (name, memory), (took, results) in best.items()
    ]


def load_seconds() -> float:
    """Time until a new process has its kernels from the on-disk cache (imports not counted)."""
    code = (
        "import shedjoin as sj, time; s = sj.JoinSpec(window=sj.TimeWindow(2), budget=sj.Budget(tuples=2));"
        "b = time.perf_counter(); s.build().push(left={'key': [1]}, right={'key': [1]}); print(time.perf_counter() - b)"
    )
    return min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )


def tables(rows: list[dict[str, object]], memories: list[int]) -> tuple[list[str], list[list[str]]]:
    """Million tuples a second by policy and memory, with the growth of the cost."""
    by = {(str(row["policy"]), int(str(row["M"]))): row for row in rows}
    names = list(dict.fromkeys(str(row["policy"]) for row in rows if row["M"]))
    header = ["policy", *(f"M = {memory:,}" for memory in memories)]
    small, large = memories[0], 100_000 if 100_000 in memories else memories[-1]
    header += [f"cost at {large:,} / {small:,}", "same, per tuple or result"]
    body = []
    for name in names:
        speeds = [float(str(by[name, memory]["tuples_per_s"])) / 1e6 for memory in memories]
        costs = [by[name, memory] for memory in (small, large)]
        growth = [float(str(c["ns_per_tuple"])) for c in costs]
        each = [float(str(c["ns_per_tuple"])) / (1 + float(str(c["results_per_tuple"]))) for c in costs]
        body.append(
            [name, *(f"{speed:.2f}" for speed in speeds), f"{growth[1] / growth[0]:.2f}", f"{each[1] / each[0]:.2f}"]
        )
    return header, body


def section(rows: list[dict[str, object]], memories: list[int], loading: float, size: int) -> str:
    """What docs/benchmarks.md has of it."""
    header, body = tables(rows, memories)
    exact = {str(row["policy"]): float(str(row["tuples_per_s"])) / 1e6 for row in rows if not row["M"]}
    lines = [
        "Written by `make bench`; every figure of this section is from that one run.",
        "",
        f"Machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, one core used; "
        "CPU time, the best of several rounds. "
        "Workload: "
        f"{size:,} tuples a stream, {KEYS:,} keys, Zipf 1, popularity of the two streams unrelated, "
        "one tuple a stream and instant.",
        "",
        f"- Exact join, window {EXACT_WINDOW:,}: **{exact['exact']:.1f} M tuples/s** counting, "
        f"{exact['exact, pairs out']:.1f} M tuples/s with all pairs written out.",
        f"- Kernels load from the on-disk cache in a new process in {loading:.2f} s.",
        "",
        "Million tuples per second under a budget of M tuples (windows hold 2 M: half must be shed):",
        "",
        "| " + " | ".join(header) + " |",
        "| --- |" + " ---: |" * (len(header) - 1),
        *("| " + " | ".join(line) + " |" for line in body),
        "",
        "With the memory the results per tuple grow too (each probe finds more partners): the last column counts "
        "the cost per tuple or result handled.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="tuples a stream (default 1,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many rounds counts (default 3)")
    parser.add_argument("--memories", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page of results goes")
    args = parser.parse_args()
    check_sections(args.page, [MARK])
    console = Console()
    console.print("loading (the first run of a version compiles its kernels: about half a minute)")
    loading = load_seconds()
    rows = measure(args.rows, args.memories, args.rounds, console)
    header, body = tables(rows, args.memories)
    table = Table(*header, title="million tuples per second")
    for line in body:
        table.add_row(*line)
    console.print(table)
    for row in rows[:2]:
        console.print(f"{row['policy']}: {float(str(row['tuples_per_s'])) / 1e6:.1f} M tuples/s")
    console.print(f"kernels loaded in a new process: {loading:.2f} s")
    write_section(args.page, MARK, section(rows, args.memories, loading, args.rows))
    results = ROOT / "bench-results"
    results.mkdir(exist_ok=True)
    with (results / "policies.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    console.print(f"written: {args.page} and {results / 'policies.csv'}")


if __name__ == "__main__":
    main()
