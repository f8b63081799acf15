"""`shedjoin demo`: a streaming join on Spark with a quarter of the memory it needs; or every policy, simulated."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from shedjoin.cli import demo_simulated, demo_streamed
from shedjoin.errors import SpecError


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="a streaming join of two made-up streams with a quarter of the memory it needs",
        description="Join two streams with Zipf keys on Spark: PROB and RAND with a quarter of the memory that exact needs.",
    )
    parser.add_argument("--simulate", action="store_true", help="every policy, without Spark")
    parser.add_argument("--rows", type=int, metavar="N", help="rows of each stream")
    parser.add_argument("--out", type=Path, default=Path("demo-results"), help="where plots go (default: %(default)s)")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run the one demo or the other."""
    console = Console()
    if args.rows is not None and args.rows < 1:
        raise SpecError(f"--rows must be at least 1, not {args.rows}")
    if args.simulate:
        demo_simulated.simulated(args.rows or demo_simulated.ROWS, console)
    else:
        demo_streamed.streamed(args.rows or demo_streamed.ROWS, args.out, console)
    return 0
