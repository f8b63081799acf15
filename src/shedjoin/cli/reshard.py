"""`shedjoin reshard`: change the number of shards of a stopped query."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from shedjoin.cli.options import as_typed
from shedjoin.cli.progress import progress
from shedjoin.cli.run import LOG, open_session
from shedjoin.spark.java import check_java
from shedjoin.spark.master import check_master
from shedjoin.spark.session import PARTITIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Change the number of shards of a stopped query. All stored rows are kept; the next start continues there."
    )
    parser.add_argument("dir", metavar="DIR", help="the output directory of a stopped query")
    parser.add_argument("--shards", type=int, required=True, metavar="N", help="the new number of shards")
    parser.add_argument("--master", default="local[*]", help="Spark's master (default: %(default)s)")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Change the shards, and say so."""
    from shedjoin.spark.change_shards import change_shards, job_with, partitions_for

    check_master(args.master, argument="--master")
    with as_typed("shards"):
        job_with(args.dir, args.shards)  # before Spark starts
    check_java()
    console = Console()
    settings = {
        "spark.master": args.master,
        "spark.app.name": "shedjoin reshard",
        PARTITIONS: str(partitions_for(args.dir, args.shards)),
    }
    with ExitStack() as stack:
        say = stack.enter_context(progress(console, "starting Spark"))
        spark = stack.enter_context(open_session(settings, Path(args.dir, LOG), check=False))
        say(f"moving what is stored in {args.dir}")
        before = change_shards(spark, args.dir, args.shards)
    said = f"{args.dir}: {before} -> {args.shards} shards. Start the query again without naming shards."
    console.print(said, highlight=False, soft_wrap=True)
    return 0
