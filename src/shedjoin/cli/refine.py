"""`shedjoin refine`: deliver the missing results from the archive of a query."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from shedjoin.cli.options import as_typed
from shedjoin.cli.progress import progress
from shedjoin.cli.run import LOG, open_session
from shedjoin.spark.java import check_java
from shedjoin.spark.master import check_master


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Deliver the missed results, those of late rows included. You may run it again while the query runs."
    )
    parser.add_argument("dir", metavar="DIR", help="the output directory of a query with an archive")
    parser.add_argument("--into", metavar="PATH", help="where the rows go (default: DIR/refined)")
    parser.add_argument("--upto", type=int, metavar="BATCH", help="the last batch to refine")
    parser.add_argument("--master", default="local[*]", help="Spark's master (default: %(default)s)")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Refine, and say what came of it."""
    from shedjoin.spark import refine
    from shedjoin.spark.output import check_archive
    from shedjoin.spark.refine import check_wishes

    check_master(args.master, argument="--master")
    with as_typed("into", "upto"):
        check_wishes(args.into, args.upto)
    check_archive(args.dir)
    check_java()
    console = Console()
    settings = {"spark.master": args.master, "spark.app.name": "shedjoin refine"}
    with ExitStack() as stack:
        say = stack.enter_context(progress(console, "starting Spark"))
        spark = stack.enter_context(open_session(settings, Path(args.dir, LOG), check=False))
        say(f"refining {args.dir}")
        done = refine(args.dir, into=args.into, upto=args.upto, spark=spark)
    table = Table("", "", show_header=False)
    table.add_row("batches", "none yet" if done.batches is None else f"up to {done.batches}")
    table.add_row("rows added now", f"{done.new:,}")
    table.add_row("refined rows in all", f"{done.count:,}")
    table.add_row("rows that had missed a partner (ArM)", f"{done.arm:,}")
    table.add_row("where", args.into or f"{args.dir}/refined")
    console.print(table)
    return 0
