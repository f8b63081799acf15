"""`shedjoin refine`: bring the results that shedding cost, from the archive of a query."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from shedjoin.lab.java import check_java


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "refine",
        help="complete a query's results from its archive",
        description="Bring the results that were missed, those of late rows included. May run again while the query goes on.",
    )
    parser.add_argument("dir", metavar="DIR", help="the output directory of a query with an archive")
    parser.add_argument("--into", metavar="PATH", help="where the rows go (default: DIR/refined)")
    parser.add_argument("--upto", type=int, metavar="BATCH", help="the last batch to look at")
    parser.add_argument("--master", default="local[*]", help="of Spark (default: %(default)s)")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Refine, and say what came of it."""
    from shedjoin.spark import Refinement, refine, session
    from shedjoin.spark.output import check_archive
    from shedjoin.spark.session import alone

    check_archive(args.dir)
    check_java()
    console = Console()
    with console.status("starting Spark") as status:
        spark = session(settings=alone({"spark.master": args.master, "spark.app.name": "shedjoin refine"}), check=False)
        status.update(f"refining {args.dir}")
        done: Refinement = refine(args.dir, into=args.into, upto=args.upto, spark=spark)
    table = Table("", "", show_header=False)
    table.add_row("batches", "none yet" if done.batches is None else f"up to {done.batches}")
    table.add_row("rows added now", f"{done.new:,}")
    table.add_row("refined rows in all", f"{done.count:,}")
    table.add_row("rows that had missed a partner (ArM)", f"{done.arm:,}")
    table.add_row("where", args.into or f"{args.dir}/refined")
    console.print(table)
    spark.stop()
    return 0
