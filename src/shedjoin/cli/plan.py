"""`shedjoin plan JOB`, or `shedjoin plan LEFT RIGHT`: how much memory a target needs, and with which policy."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console

from shedjoin.budget import ALLOCATIONS
from shedjoin.cli.file_job import FileJob
from shedjoin.cli.files import INTERRUPTED, add_files, job_of, number, stages
from shedjoin.cli.options import as_typed
from shedjoin.cli.sampled_job import read_any_job
from shedjoin.errors import SpecError
from shedjoin.offline.worth import OBJECTIVES
from shedjoin.parse import parse_window
from shedjoin.planner import Plan, plan
from shedjoin.spark.master import check_master
from shedjoin.spec import JoinSpec

PLOTS = (".png", ".svg")
ROWS = (".csv", ".parquet")
#: What the solver of one optimum tells.
SOLVING = ("blocks", "proof")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run a sample of two streams with every policy and several memories, find the optimum, and recommend "
        "policy, allocation and memory for a target. A job file (of `shedjoin simulate` or `shedjoin run`) gives the "
        "window, streams and importance. Ctrl-C ends the work early and shows what was found."
    )
    parser.epilog = (
        "example: shedjoin plan shown.parquet clicked.csv --key ad --ts at --window '10 minutes' --sample '2 hours' "
        "--target 0.95 --plot plan.png"
    )
    files = add_files(parser)
    files.add_argument("--warmup", type=int, metavar="TS", help="count results from this time on")
    parser.add_argument(
        "--target", type=float, default=0.95, metavar="SHARE", help="the share of the exact join (default: 0.95)"
    )
    parser.add_argument(
        "--sample", metavar="S", help="only the end of the streams: such as '1 hour', or '200k rows' of both together"
    )
    parser.add_argument(
        "--objective", choices=OBJECTIVES, help="what to count (default: importance where rows differ in it)"
    )
    parser.add_argument("--policies", metavar="NAMES", help="such as prob,life (default: all that make sense)")
    parser.add_argument("--allocation", choices=ALLOCATIONS, help="only this allocation (default: both)")
    parser.add_argument("--memory", metavar="M", help="memory sizes of the curve in tuples, such as 500,1000,2000")
    parser.add_argument(
        "--within", type=float, default=0.01, metavar="SHARE", help="the accuracy of the optimum (default: 0.01)"
    )
    parser.add_argument("--no-optimum", action="store_true", help="skip the optimum, which takes longest")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="start no run after this time")
    parser.add_argument("--spark", metavar="MASTER", help="run on Spark, such as 'local[*]' or spark://host:7077")
    parser.add_argument("--plot", type=Path, metavar="FILE", help=f"draw the curve: {' or '.join(PLOTS)}")
    parser.add_argument("--rows", type=Path, metavar="FILE", help=f"write the curve: {' or '.join(ROWS)}")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Make the plan, show it, draw it."""
    for name, endings in (("plot", PLOTS), ("rows", ROWS)):
        path = getattr(args, name)
        if path is not None and (path.suffix not in endings or not path.parent.is_dir()):
            raise SpecError(
                f"--{name} must be a file that ends in {' or '.join(endings)} in an existing directory, not {path}"
            )
    if args.time_limit is not None and not args.time_limit >= 0:
        raise SpecError(f"--time-limit must be a number of seconds, 0 or more, not {args.time_limit:g}")
    if args.spark is not None:
        check_master(args.spark, argument="--spark")
    job = _job(args)
    made = _plan(args, job)
    Console(soft_wrap=True, highlight=False, markup=False).print(f"{made}\n\n{made.recommendation.settings()}")
    if args.plot is not None:
        made.plot(args.plot)
        print(f"the curve is drawn in {args.plot}")
    if args.rows is not None:
        _write(made, args.rows)
        print(f"the curve is written to {args.rows}")
    return 0 if made.complete else INTERRUPTED


def _job(args: argparse.Namespace) -> FileJob:
    needed = {"key": "--key ad_id", "window": "--window 400"}
    return job_of(
        args,
        "plan",
        needed,
        ("warmup",),
        lambda: JoinSpec(parse_window(number(args.window), argument="--window")),
        read_any_job,
    )


def _plan(args: argparse.Namespace, job: FileJob) -> Plan:
    options: dict[str, Any] = {}
    if args.allocation is not None:
        options["allocations"] = (args.allocation,)
    if args.memory is not None:
        options["memory"] = [number(one.strip()) for one in args.memory.split(",")]
    typed = as_typed("target", "within", "memory", "sample", "policies")
    with typed, stages(inner=SOLVING) as progress, _session(args.spark) as spark:
        return plan(
            job.left,
            job.right,
            window=job.spec.window,
            between=job.spec.between,
            target=args.target,
            objective=args.objective,
            importance=job.spec.importance,
            how=job.spec.how,
            where=job.spec.where,
            matches=job.spec.matches,
            policies=None if args.policies is None else [one.strip() for one in args.policies.split(",")],
            sample=None if args.sample is None else number(args.sample),
            warmup=job.options.get("warmup"),
            seed=job.options.get("seed", 0),
            optimum=False if args.no_optimum else None,
            within=args.within,
            spark=spark,
            progress=progress,
            time_limit=args.time_limit,
            **options,
        )


def _session(master: str | None) -> AbstractContextManager[Any]:
    """A session while the work goes on; None without Spark."""
    if master is None:
        return nullcontext()
    from shedjoin.spark.sweep import sweep_session

    return sweep_session(master, "shedjoin plan")


def _write(made: Plan, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table = pa.Table.from_pylist(made.rows())
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
