"""`shedjoin`: the command line. Thin: each command parses its arguments and calls the library."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from shedjoin import __version__
from shedjoin.cli import check, demo, explain, optimum, plan, refine, run, simulate, static, top
from shedjoin.errors import ShedjoinError

#: Packages that come with an extra, and which.
EXTRAS = {"pyspark": "spark", "pandas": "spark", "matplotlib": "lab", "scipy": "quality", "pylmcf": "offline"}
BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, or 2 with one sentence on standard error."""
    try:
        parsed = _parser().parse_args(arguments)
        return int(parsed.handler(parsed))
    except ShedjoinError as problem:
        print(f"shedjoin: {problem}", file=sys.stderr)
    except ModuleNotFoundError as problem:
        package = (problem.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        print(f"shedjoin: this needs {package}: pip install 'shedjoin[{EXTRAS[package]}]'", file=sys.stderr)
    except BrokenPipeError:  # as in `shedjoin lab list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it ends
        return 0
    except (OSError, MemoryError) as problem:  # a path that cannot be written, a job that is too large
        print(f"shedjoin: {problem or 'not enough memory'}", file=sys.stderr)
    except KeyboardInterrupt:
        print("shedjoin: interrupted", file=sys.stderr)
        return 130
    return BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="shedjoin", description="Sliding-window joins over streams within a memory budget."
    )
    parser.add_argument("--version", action="version", version=f"shedjoin {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo.add_parser(commands)
    run.add_parser(commands)
    explain.add_parser(commands)
    top.add_parser(commands)
    refine.add_parser(commands)
    simulate.add_parser(commands)
    optimum.add_parser(commands)
    plan.add_parser(commands)
    static.add_parser(commands)
    check.add_parser(commands)
    from shedjoin.lab.commands import add_parser as add_lab

    add_lab(commands)
    return parser
