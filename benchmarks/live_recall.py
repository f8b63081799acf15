"""Measure how often the interval of live recall covers the truth, how wide it is, and what it costs.

Coverage: many seeded runs of each workload and policy, with a sample that is much smaller than the windows. Synthetic
workloads have other data in each run; real streams have the same data and another sample. The truth is counted with
a sample of all rows, which the tests compare with the shed log.

Cost: CPU time of `LiveRecall.follow` and of `Engine.push`, in the same process, with the default sample.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from page_sections import write_section
from rich.console import Console
from rich.progress import track
from rich.table import Table

import shedjoin as sj
from shedjoin.errors import DataError
from shedjoin.recall import LiveRecall, pairs
from shedjoin.workloads import Workload, zipf
from shedjoin_lab import data, workloads

PAGE = Path(__file__).resolve().parent.parent / "docs" / "live-recall.md"
POLICIES = (sj.Rand(), sj.Prob(), sj.Life())
Make = Callable[[int], Workload]


def drawn(rows: int, window: int) -> dict[str, tuple[Make, int]]:
    """Workloads by seed, each with its window."""
    keys = dict(domain=2000, importance="rare_high")
    cases: dict[str, tuple[Make, int]] = {}
    for skew in (0.5, 1.0, 1.5):
        for ranks in ("correlated", "uncorrelated"):
            cases[f"Zipf {skew}, {ranks}"] = (
                lambda seed, skew=skew, ranks=ranks: zipf(rows, seed=seed, skew=skew, ranks=ranks, **keys),
                window,
            )
    burst = workloads.Burst(rows // 3, rows // 3 + rows // 30, factor=10)
    cases["bursts"] = (lambda seed: workloads.bursty(rows, seed=seed, bursts=[burst], **keys), window)
    cases["drifting keys"] = (lambda seed: workloads.drifting(rows, seed=seed, every=20, swaps=5, **keys), window)
    return cases


def real(folder: Path, rows: int) -> dict[str, tuple[Make, int]]:
    """Real streams, cut to so many rows each (network logs by time, so that they stay in step)."""
    ships = data.ships(folder, wind=True)
    short = Workload(tuple({name: column[:rows] for name, column in side.items()} for side in ships.streams))
    network = {"network names": (data.network_names(folder), 60), "network clients": (data.network_logs(folder), 10)}
    cases: dict[str, tuple[Make, int]] = {"ships": (lambda _: short, rows // 10)}
    for name, (workload, seconds) in network.items():
        cases[name] = (lambda _, workload=workload: workload, seconds * 1_000_000)
    return cases


def budget(batch: sj.Batch, window: int) -> sj.Budget:
    """A quarter of what the windows hold on average."""
    span = int(batch.ts.max() - batch.ts.min()) + 1
    return sj.Budget(tuples=max(4, int(len(batch) * min(1.0, window / span) / 4)), allocation="fixed")


def truth(spec: sj.JoinSpec, batch: sj.Batch, out: sj.Output) -> tuple[float, float]:
    """Recall and importance recall, from a sample that holds every row."""
    saved, pairs.START_CREDIT = pairs.START_CREDIT, 2**40
    try:
        whole = LiveRecall(spec, rows=1 << max(8, (2 * len(batch)).bit_length()))
        whole.follow(batch, out)
    finally:
        pairs.START_CREDIT = saved
    now = whole.estimate()
    assert now.low == now.high, "the truth is not exact"
    return now.recall, now.importance


def covered(make: Make, window: int, policy: sj.Policy, runs: int, sample: int, fixed: bool) -> dict[str, float]:
    """How often the intervals cover, and how wide they are."""
    hits, importance_hits, widths, importance_widths, recalls = 0, 0, [], [], []
    made: tuple[sj.JoinSpec, sj.Batch, sj.Output, tuple[float, float]] | None = None
    for seed in range(runs):
        if made is None or not fixed:
            workload = make(seed)
            batch = sj.Batch.of(workload.left, workload.right)
            spec = sj.JoinSpec(sj.TimeWindow(window), budget(batch, window), policy)
            out = spec.build(seed=seed).push(batch)
            made = (spec, batch, out, truth(spec, batch, out))
        spec, batch, out, (recall, importance) = made
        live = LiveRecall(spec, seed=seed, rows=sample)
        live.follow(batch, out)
        now = live.estimate()
        hits += now.low <= recall <= now.high
        importance_hits += now.importance_low <= importance <= now.importance_high
        widths.append(now.high - now.low)
        importance_widths.append(now.importance_high - now.importance_low)
        recalls.append(recall)
    return {
        "recall": float(np.mean(recalls)),
        "covered": 100 * hits / runs,
        "width": float(np.mean(widths)),
        "importance covered": 100 * importance_hits / runs,
        "importance width": float(np.mean(importance_widths)),
    }


def costs(rows: int, rounds: int) -> Iterator[list[str]]:
    """CPU nanoseconds a row of push and follow; the best of some rounds each, as other work disturbs both."""
    for ranks in ("uncorrelated", "correlated"):
        workload = zipf(rows, seed=1, domain=20_000, ranks=ranks)
        batch = sj.Batch.of(workload.left, workload.right)
        parts = [batch.take(slice(at, at + 50_000)) for at in range(0, len(batch), 50_000)]
        for memory in (1_000, 10_000, 100_000) if ranks == "uncorrelated" else (1_000, 5_000):
            for policy in POLICIES:
                spec = sj.JoinSpec(sj.TimeWindow(memory), sj.Budget(tuples=memory, allocation="fixed"), policy)
                best = [float("inf"), float("inf")]
                for _ in range(rounds):
                    engine, live = spec.build(), LiveRecall(spec)
                    spent = [0.0, 0.0]
                    for part in parts:
                        begin = time.process_time()
                        out = engine.push(part)
                        middle = time.process_time()
                        live.follow(part, out)
                        spent[0] += middle - begin
                        spent[1] += time.process_time() - middle
                    best = [min(old, new) for old, new in zip(best, spent, strict=True)]
                push, follow = (seconds / len(batch) * 1e9 for seconds in best)
                now = live.estimate()
                yield [
                    f"Zipf 1, {ranks}, M = {memory:,}",
                    type(policy).__name__.upper(),
                    f"{push:.0f}",
                    f"{follow:.1f}",
                    f"{100 * follow / push:.1f}%",
                    f"{now.recall:.3f}",
                    f"{now.high - now.low:.4f}",
                ]


def lines(header: list[str], body: list[list[str]]) -> str:
    rows = ["| " + " | ".join(header) + " |", "| --- | --- |" + " ---: |" * (len(header) - 2)]
    return "\n".join(rows + ["| " + " | ".join(line) + " |" for line in body])


def show(console: Console, header: list[str], body: list[list[str]]) -> None:
    table = Table(*header)
    for line in body:
        table.add_row(*line)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="seeded runs of each case (default 100)")
    parser.add_argument("--rows", type=int, default=10_000, help="rows a stream of drawn workloads (default 10,000)")
    parser.add_argument("--sample", type=int, default=512, help="rows in the sample of the coverage runs (default 512)")
    parser.add_argument("--cost-rows", type=int, default=200_000, help="rows a stream where cost is measured")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many rounds counts for cost (default 3)")
    parser.add_argument("--only", default="", help="only workloads with this in their name (none has it: cost alone)")
    parser.add_argument("--data", default=None, help="folder of the real data sets")
    parser.add_argument("--write", action="store_true", help=f"write the tables into {PAGE.name}")
    args = parser.parse_args()
    console = Console()
    cases = {name: (*case, False) for name, case in drawn(args.rows, args.rows // 10).items()}
    try:
        cases |= {name: (*case, True) for name, case in real(data.data_folder(args.data), args.rows).items()}
    except DataError as reason:
        console.print(f"without real streams: {reason}")
    work = [(name, policy) for name in cases for policy in POLICIES if args.only in name]
    header = ["workload", "policy", "recall", "covered", "width", "importance covered", "importance width"]
    body = []
    for name, policy in track(work, "covering", console=console):
        make, window, fixed = cases[name]
        found = covered(make, window, policy, args.runs, args.sample, fixed)
        shown = [f"{found[key]:.0f}%" if "covered" in key else f"{found[key]:.3f}" for key in header[2:]]
        body.append([name, type(policy).__name__.upper(), *shown])
    show(console, header, body)
    cost_header = ["join", "policy", "push, ns a row", "follow, ns a row", "share", "recall", "width"]
    cost_body = list(costs(args.cost_rows, args.rounds)) if args.cost_rows else []
    show(console, cost_header, cost_body)
    if args.write:
        for mark, head, rows in (("coverage", header, body), ("cost", cost_header, cost_body)):
            if rows:
                write_section(PAGE, mark, lines(head, rows))
        console.print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
