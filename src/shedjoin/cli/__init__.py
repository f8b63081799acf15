"""`shedjoin`: the command line. Thin: each command parses its arguments and calls the library."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from shedjoin import __version__
from shedjoin.errors import EnvironmentProblem, ShedjoinError

#: Packages that come with an extra, and which.
EXTRAS = {
    "pyspark": "spark", "pandas": "spark", "prometheus_client": "spark", "matplotlib": "plot", "scipy": "quality",
    "pylmcf": "offline",
}  # fmt: skip
#: The commands: where each is, and what it does.
COMMANDS = {
    "demo": ("shedjoin.cli.demo", "a streaming join of two generated streams with a quarter of the memory it needs"),
    "run": ("shedjoin.cli.run", "run a streaming join on Spark from a TOML job file"),
    "explain": ("shedjoin.cli.explain", "show the plan, memory and shards of a job file; starts nothing"),
    "top": ("shedjoin.cli.top", "watch a running query: rates, shed rows by reason, recall, memory"),
    "dashboard": ("shedjoin.cli.dashboard", "a page in the browser that shows running queries"),
    "refine": ("shedjoin.cli.refine", "complete a query's results from its archive"),
    "reshard": ("shedjoin.cli.reshard", "change the number of shards of a stopped query"),
    "simulate": ("shedjoin.cli.simulate", "run a join over files, or over generated streams, from a TOML job file"),
    "optimum": (
        "shedjoin.cli.optimum",
        "the best possible result for two streams, and the share of it that a policy reaches",
    ),
    "plan": (
        "shedjoin.cli.plan",
        "recall against memory for every policy and for the optimum, and a recommendation for a target",
    ),
    "static": ("shedjoin.cli.static", "the largest join of a given number of tuples of whole relations"),
    "check": ("shedjoin.cli.check", "print versions, and what to do if Java is missing or too old"),
    "warm": ("shedjoin.cli.warm", "compile all kernels now, for images and init scripts"),
}
#: Other distributions add commands by entry points of this group: the name of the command, and its module.
GROUP = "shedjoin.commands"
#: Commands of this project that are distributions of their own.
ADD_ONS = {"lab": "shedjoin-lab"}
BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, or 2 with one sentence on standard error."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        parsed = _parser(given).parse_args(given)
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


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """A parser with the line of every command, but the arguments of the called one only: other modules are not imported."""
    parser = argparse.ArgumentParser(
        prog="shedjoin",
        description="Sliding-window joins over streams within a memory budget.",
        # With the usual two, long names of commands stand on lines of their own.
        formatter_class=partial(argparse.HelpFormatter, indent_increment=1),
    )
    parser.add_argument("--version", action="version", version=f"shedjoin {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    asked = next((word for word in arguments if not word.startswith("-")), None)
    known = COMMANDS if asked in COMMANDS else COMMANDS | _added_commands()
    if asked in ADD_ONS and asked not in known:
        raise EnvironmentProblem(f"`shedjoin {asked}` is in a separate package: pip install {ADD_ONS[asked]}")
    for name, (module, line) in known.items():
        command = commands.add_parser(name, help=line)
        if name == asked:
            import_module(module).add_arguments(command)
    return parser


def _added_commands() -> dict[str, tuple[str, str]]:
    """Commands of other distributions: where each is, and the distribution's summary. Nothing of them is imported."""
    from importlib.metadata import entry_points  # as slow to import as all the rest

    found: dict[str, tuple[str, str]] = {}
    for entry in entry_points(group=GROUP):
        summary = "" if entry.dist is None else str(entry.dist.metadata.json.get("summary", ""))
        if entry.name not in COMMANDS:
            found[entry.name] = (entry.module, summary.replace("%", "%%"))  # argparse formats it
    return found
