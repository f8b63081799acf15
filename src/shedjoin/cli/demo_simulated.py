"""`shedjoin demo --simulate`: every policy on one generated join, with a quarter of the memory of the exact join."""

from __future__ import annotations

import time

from rich.console import Console
from rich.table import Table as Grid

from shedjoin.batch import Batch
from shedjoin.budget import Budget
from shedjoin.policies import Dgl, DimpProb, Life, Policy, Prob, Prospect, Rand, Simp, SimpProb
from shedjoin.recall import LiveRecall
from shedjoin.simulation import Run, simulate
from shedjoin.spec import JoinSpec
from shedjoin.window import TimeWindow
from shedjoin.workloads import Workload, zipf

SEED = 7
DOMAIN = 2_000
WINDOW = 4_000
WARMUP = 2 * WINDOW
ROWS = 400_000
POLICIES: tuple[Policy, ...] = (Rand(), Life(), Prob(), Prospect(), Simp(), SimpProb(), DimpProb(), Dgl())
#: A first call that takes longer than this compiled the kernels.
LOADED = 8.0


def simulated(rows: int, console: Console) -> None:
    """Run everything and print one table."""
    load_kernels(console)
    streams = zipf(rows, seed=SEED, domain=DOMAIN, skew=1.0, ranks="uncorrelated", importance="rare_high")
    budget = Budget(tuples=2 * WINDOW // 4)
    console.print(
        f"Two streams of {rows:,} rows, {DOMAIN:,} keys (Zipf 1, different keys are popular in each), window "
        f"{WINDOW:,}. Exact needs {2 * WINDOW:,} tuples; the policies get {budget.total:,}."
    )
    exact = run_one(streams, JoinSpec(window=TimeWindow(WINDOW)))
    grid = Grid("policy", "results", "share", "importance", "rows/s", "most stored", "cap")
    for column in grid.columns[1:]:
        column.justify = "right"
    grid.add_row(*cells("exact", exact, exact))
    with console.status("") as status:
        for policy in POLICIES:
            status.update(f"running {policy.name}")
            run = run_one(streams, JoinSpec(window=TimeWindow(WINDOW), budget=budget, policy=policy))
            grid.add_row(*cells(policy.name, run, exact))
    console.print(grid)
    console.print(
        "share and importance are parts of exact's. rand keeps anything; prob, prospect and life keep what is likely to join; "
        "simp keeps what is important; simp_prob, dimp_prob and dgl look at both."
    )


def load_kernels(console: Console) -> None:
    """The first call in a process loads the kernels; the first on a machine compiles them."""
    begin = time.perf_counter()
    doing = "loading kernels (the first time they are compiled, which takes a minute or more)"
    if not console.is_terminal:  # where a status is not shown
        console.print(doing)
    with console.status(doing):
        few = zipf(10, seed=SEED)
        run_one(few, JoinSpec(window=TimeWindow(3)))
        for policy in POLICIES:
            run_one(few, JoinSpec(window=TimeWindow(3), budget=Budget(tuples=4), policy=policy))
        watch_one(few)
    seconds = time.perf_counter() - begin
    if seconds > LOADED:
        console.print(f"Compiled the kernels in {seconds:.0f} s; they are kept on disk, so this was the only time.")


def run_one(streams: Workload, spec: JoinSpec) -> Run:
    return simulate(spec, streams.left, streams.right, seed=SEED, warmup=WARMUP)


def watch_one(streams: Workload) -> None:
    """Recall while a join runs has kernels of its own."""
    spec = JoinSpec(window=TimeWindow(3), budget=Budget(tuples=4))
    engine, live, batch = spec.build(), LiveRecall(spec), Batch.of(streams.left, streams.right)
    live.follow(batch, engine.push(batch))


def cells(name: str, run: Run, exact: Run) -> tuple[str, ...]:
    """One line of the table."""
    return (
        name,
        f"{run.matches:,}",
        f"{run.matches / max(exact.matches, 1):.1%}",
        f"{run.importance / exact.importance if exact.importance else 1.0:.1%}",
        f"{run.counters['rows'] / max(run.seconds, 1e-9):,.0f}",
        f"{run.peak_tuples:,}",
        "none" if run.spec.budget is None else f"{run.spec.budget.total:,}",
    )
