"""`shedjoin demo`: a streaming join on Spark with a quarter of the memory it needs; or every policy, simulated."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from shedjoin.cli import demo_simulated, demo_streamed
from shedjoin.errors import SpecError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Join two streams with Zipf keys on Spark: PROB and RAND with a quarter of the memory that exact needs."
    )
    parser.add_argument("--simulate", action="store_true", help="every policy, without Spark")
    parser.add_argument("--rows", type=int, metavar="N", help="rows of each stream")
    parser.add_argument("--out", type=Path, default=Path("demo-results"), help="where plots go (default: %(default)s)")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run the one demo or the other."""
    console = Console()
    least = demo_simulated.WARMUP + 1 if args.simulate else 1
    if args.rows is not None and args.rows < least:
        why = ": results count once the windows are full" if args.simulate else ""
        raise SpecError(f"--rows must be at least {least}, not {args.rows}{why}")
    if args.simulate:
        demo_simulated.simulated(args.rows or demo_simulated.ROWS, console)
    else:
        demo_streamed.streamed(args.rows or demo_streamed.ROWS, args.out, console)
    return 0
