"""`shedjoin simulate JOB`: run a job file and print its results."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from shedjoin.cli.file_job import read_file_job
from shedjoin.cli.files import windows_in_words
from shedjoin.cli.options import check_file
from shedjoin.engine.codes import WHY
from shedjoin.quality import Comparison, from_run
from shedjoin.simulation import Run, simulate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run the join of a job file and print its results, the shed rows, and the quality of the result."
    )
    parser.add_argument(
        "job", type=Path, metavar="JOB", help="a TOML file with [join] and [left], [right] or [workload]"
    )
    parser.add_argument(
        "--pairs", type=Path, metavar="FILE", help="write the results' row numbers to this Parquet file"
    )
    parser.add_argument("--shed", type=Path, metavar="FILE", help="write the shed log to this Parquet file")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run the job and show it."""
    check_file(args.pairs, "--pairs")
    check_file(args.shed, "--shed")
    job = read_file_job(args.job)
    run = simulate(job.spec, job.left, job.right, **job.options)
    Console().print(summary(run, from_run(run)))
    _write(run, args.pairs, args.shed)
    return 0


def summary(run: Run, quality: Comparison) -> Table:
    """A run in a few lines."""
    table = Table("", "", title=headline(run), show_header=False, title_justify="left")
    counters = run.counters
    rows = counters["rows"]
    reasons = {word: int((run.shed.why == code).sum()) for code, word in enumerate(WHY)}
    shed = ", ".join(f"{count:,} {word}" for word, count in reasons.items() if count) or "nothing"
    lines = {
        "rows": f"{rows:,} ({counters['null']:,} with a null key)",
        "results": f"{run.matches:,} of {quality.exact:,} ({quality.recall:.1%})",
        "importance of results": f"{run.importance:,.6g}",
        "shed": shed,
        "incomplete rows (ArM)": f"{quality.arm:,}",
        "most stored": memory(run),
        "speed": f"{rows / max(run.seconds, 1e-9):,.0f} rows/s, kernels' compilation included if there was one",
    }
    for name, value in lines.items():
        table.add_row(name, value)
    return table


def headline(run: Run) -> str:
    """The policy and what it had to work with."""
    budget = run.spec.budget
    within = "no budget" if budget is None else f"{budget.total:,} {budget.unit}, {budget.allocation}"
    return f"{run.spec.policy} over {windows_in_words(run.spec)}, {within}"


def memory(run: Run) -> str:
    """What was stored at most, against the cap."""
    budget = run.spec.budget
    if budget is None:
        return f"{run.peak_tuples:,} tuples, no cap"
    peak = run.counters["peak_bytes"] if budget.unit == "bytes" else run.peak_tuples
    return f"{peak:,} of {budget.total:,} {budget.unit}"


def _write(run: Run, pairs: Path | None, shed: Path | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if pairs is not None:
        left, right = run.pairs()
        pq.write_table(pa.table({"left": left, "right": right}), pairs)
    if shed is not None:
        pq.write_table(run.shed.to_arrow(), shed)
