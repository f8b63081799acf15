"""Joins of two files, described by options instead of a job file; shared by the commands that take both."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from shedjoin.batch import STREAMS
from shedjoin.cli.file_job import FileJob, read_file_job, read_streams
from shedjoin.errors import SpecError
from shedjoin.spec import JoinSpec

#: Columns of two files.
COLUMNS = ("key", "ts", "importance")
INTERRUPTED = 130
_HELP = {
    "key": ("COLUMN", "the column to join on"),
    "ts": ("COLUMN", "the column of times; default: 0, 1, 2, ..."),
    "importance": ("COLUMN", "the column of importances; default: 1"),
    "window": ("W", "such as 400 (in the unit of ts), '10 minutes' or '1000 rows'"),
}


def add_files(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The inputs, and a group with the options that describe a join of two files."""
    parser.add_argument(
        "inputs",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a TOML job file as for simulate; or two .csv or .parquet files",
    )
    files = parser.add_argument_group("for two files")
    for name, (metavar, text) in _HELP.items():
        files.add_argument(f"--{name}", metavar=metavar, help=text)
    return files


def windows_in_words(spec: JoinSpec) -> str:
    """The windows of two streams, or the interval between them, in the unit of ts."""
    if spec.between is not None:
        return "an interval from {} to {}".format(*spec.between)
    left, right = spec.windows
    return str(left) if left == right else f"{left} and {right}"


def job_of(
    args: argparse.Namespace,
    command: str,
    needed: dict[str, str],
    others: tuple[str, ...],
    spec: Callable[[], JoinSpec],
    read: Callable[[Path], FileJob] = read_file_job,
) -> FileJob:
    """The job of a job file, or of two files and options.

    Parameters
    ----------
    needed
        Options that two files need, each with an example.
    others
        More options that a job file already has.
    spec
        The join, from the options.
    read
        Reads the job file.
    """
    options = (*_HELP, *others)
    given = [name for name in options if getattr(args, name) is not None]
    if len(args.inputs) == 1:
        if given:
            raise SpecError(f"--{given[0]} is for two files: the job file {args.inputs[0]} already sets it")
        return read(args.inputs[0])
    if len(args.inputs) != 2:
        raise SpecError(f"{command} needs one job file or two data files, not {len(args.inputs)}")
    for name, such_as in needed.items():
        if name not in given:
            raise SpecError(f"--{name} is missing: two files need it, such as {such_as}")
    made = spec()
    columns = {name: getattr(args, name) for name in COLUMNS if name in given}
    sides = zip(STREAMS, args.inputs, strict=True)
    left, right = read_streams(Path(), {side: {"path": str(path), **columns} for side, path in sides})
    return FileJob(made, left, right, {} if args.warmup is None else {"warmup": args.warmup})


def number(text: str) -> Any:
    """A bare number as one, so that it means instants or tuples."""
    return int(text) if text.replace("_", "").isdecimal() else text


@contextmanager
def stages(inner: tuple[str, ...] = ()) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each stage, on a terminal only; `inner` stages are told beside the bar of the one they belong to."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        last: list[tuple[str, Any]] = []

        def tell(stage: str, done: int, total: int) -> None:
            if stage in inner and last:
                bars.update(last[-1][1], description=f"{last[-1][0]} ({stage} {done}/{total})")
                return
            if done == 0 or not last or last[-1][0] != stage:
                if last:
                    bars.update(last[-1][1], completed=bars.tasks[len(last) - 1].total)
                last.append((stage, bars.add_task(stage, total=total)))
            bars.update(last[-1][1], completed=done, total=total)

        yield tell
