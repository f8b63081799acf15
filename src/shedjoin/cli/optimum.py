"""`shedjoin optimum JOB`, or `shedjoin optimum LEFT RIGHT`: the best result of any policy with knowledge of the future."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from shedjoin.batch import STREAMS
from shedjoin.budget import ALLOCATIONS
from shedjoin.cli.file_job import FileJob
from shedjoin.cli.files import INTERRUPTED, add_files, job_of, number, stages, windows_in_words
from shedjoin.cli.options import as_typed, check_file
from shedjoin.offline import Optimum, optimum
from shedjoin.offline.worth import OBJECTIVES
from shedjoin.parse import parse_budget, parse_policy, parse_window
from shedjoin.quality import Comparison, from_run
from shedjoin.simulation import Run, simulate
from shedjoin.spec import JoinSpec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Find the best possible schedule of two whole streams, prove it, replay it, and compare the policy with it. "
        "Ctrl-C ends the work early and shows what was found, with its bound."
    )
    parser.epilog = "example: shedjoin optimum shown.parquet clicked.csv --key ad --ts at --window 400 --budget 400"
    files = add_files(parser)
    files.add_argument("--budget", metavar="M", help="such as 400 (tuples), '20k tuples' or '512 MB'")
    files.add_argument("--allocation", choices=ALLOCATIONS, help="fixed shares, or one memory for both (default)")
    files.add_argument("--policy", metavar="NAME", help="the policy to compare with the optimum (default: prospect)")
    files.add_argument("--warmup", type=int, metavar="TS", help="count results from this time on")
    parser.add_argument(
        "--objective",
        choices=OBJECTIVES,
        default="matches",
        help="what to maximize (default: matches)",
    )
    parser.add_argument(
        "--within",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="the gap at which to stop, such as 0.005 (default: 0, proved)",
    )
    parser.add_argument(
        "--schedule", type=Path, metavar="FILE", help="write the time until which each row is kept to this Parquet file"
    )
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Find the optimum, run the policy, show both."""
    check_file(args.schedule, "--schedule")
    job = _job(args)
    warmup = job.options.get("warmup")
    with as_typed("within"), stages() as progress:
        best = optimum(
            job.spec,
            job.left,
            job.right,
            warmup=warmup,
            objective=args.objective,
            within=args.within,
            progress=progress,
        )
    policy = simulate(job.spec, job.left, job.right, **job.options)
    Console().print(summary(best, policy, from_run(best)))
    if args.schedule is not None:
        _write(best, args.schedule)
    return 0 if best.complete else INTERRUPTED


def _job(args: argparse.Namespace) -> FileJob:
    needed = {"key": "--key ad_id", "window": "--window 400", "budget": "--budget 400"}

    def spec() -> JoinSpec:
        return JoinSpec(
            parse_window(number(args.window), argument="--window"),
            parse_budget(number(args.budget), allocation=args.allocation, argument="--budget"),
            parse_policy(args.policy, argument="--policy"),
        )

    return job_of(args, "optimum", needed, ("budget", "allocation", "policy", "warmup"), spec)


def summary(best: Optimum, policy: Run, quality: Comparison) -> Table:
    """The optimum and the policy beside it."""
    budget = best.spec.budget
    assert budget is not None
    what = "results" if best.objective == "matches" else "importance"
    reached = policy.matches if best.objective == "matches" else policy.importance
    title = f"the most {what} over {windows_in_words(best.spec)}, {budget.total:,} {budget.unit}, {budget.allocation}"
    table = Table("", "", title=title, show_header=False, title_justify="left")
    state = "" if best.complete else " (interrupted: the schedule holds nothing after the last finished block)"
    lines = {
        f"most {what}": f"{best.value:,.10g}{state}",
        "no schedule exceeds": f"{best.bound:,.10g} ({'proved optimal' if best.gap < 1e-9 else f'gap {best.gap:.2%}'})",
        "results": f"{best.matches:,} of {quality.exact:,} ({quality.recall:.1%})",
        f"{policy.spec.policy}": f"{reached:,.10g} ({reached / best.value if best.value else 1.0:.1%} of the optimum)",
        "time": f"{best.solving:.1f} s for the schedule",
    }
    for name, value in lines.items():
        table.add_row(name, value)
    return table


def _write(best: Optimum, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = [
        pa.table({"stream": pa.repeat(name, until.size), "row": np.arange(until.size), "until": until})
        for name, until in zip(STREAMS, best.schedule.schedule(), strict=True)
    ]
    pq.write_table(pa.concat_tables(parts), path)
