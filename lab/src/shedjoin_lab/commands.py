"""`shedjoin lab`: list, run, plot, claims, report."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from shedjoin.atomic_file import write_atomic
from shedjoin.errors import DataError, EnvironmentProblem, SpecError
from shedjoin_lab import catalogue
from shedjoin_lab.build import builds_in_words
from shedjoin_lab.claims import as_markdown, evaluate, show
from shedjoin_lab.experiment import Figure, Scale
from shedjoin_lab.run import Runner, in_process, run
from shedjoin_lab.store import Store

_FIGURE_HELP = "a figure as `shedjoin lab list` names it, such as fig03, or all"
_OUT_HELP = "folder of stored rows and pictures (default: lab-results)"
_QUICK_HELP = "a small version of each sweep, stored apart under OUT/quick"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `lab` takes. Parsed arguments carry `handler`: call it with them, it returns the exit code."""
    parser.description = (
        "The papers' experiments: simulate (on Spark), store values, draw them, check the papers' claims."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_list(actions)
    _add_run(actions)
    _add_plot(actions)
    _add_claims(actions)
    _add_report(actions)


def _add_list(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "list",
        help="every figure: what it draws, what is stored, how long it takes",
        description="Every figure of every paper: its name for `run` and `plot`, what it draws, whether its values are stored, "
        "and about how long a full run takes.",
    )
    _add_places(parser)
    parser.set_defaults(handler=list_figures)


def _add_run(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "run",
        help="simulate and store",
        description="Simulate what a figure needs and store the values. What is stored already is not run again.",
        epilog="example: shedjoin lab run das2003 fig03 --seeds 10",
    )
    _add_figure(parser)
    _add_places(parser)
    parser.add_argument("--seeds", type=_positive, metavar="N", help="seeds 0 .. N-1 (default: 5, quick: 2)")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of the real streams (default: $SHEDJOIN_DATA, ../shared/data)"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="forget stored rows of these figures and run everything again"
    )
    parser.add_argument(
        "--no-spark", action="store_true", help="simulate in this process, one after the other; needs no Java"
    )
    parser.add_argument(
        "--master",
        default="local[*]",
        metavar="URL",
        help="Spark master (default: local[*], all cores of this machine)",
    )
    parser.set_defaults(handler=run_figures)


def _add_plot(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "plot",
        help="draw stored rows as PNG and SVG",
        description="Draw what `run` stored as PNG and SVG, beside the stored rows. Nothing is simulated.",
        epilog="example: shedjoin lab plot das2003 fig03",
    )
    _add_figure(parser)
    _add_places(parser)
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="also write a Markdown page: each figure, what the paper shows, what ours shows; pictures beside it",
    )
    parser.set_defaults(handler=plot_figures)


def _add_claims(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "claims",
        help="check the papers' claims against stored rows",
        description="One line a claim: the paper's value, ours with its spread, whether it holds. From stored rows.",
    )
    parser.add_argument(
        "paper", nargs="?", choices=[*catalogue.PAPERS, "all"], default="all", help="only this paper's claims"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the table to this Markdown file")
    _add_places(parser)
    parser.set_defaults(handler=show_claims)


def _add_report(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "report",
        help="claims, figures and settings as one HTML file",
        description="One HTML file that needs nothing else: claims by paper with filters, figures beside what the paper says, "
        "settings and seeds. From stored rows.",
    )
    parser.add_argument(
        "paper", nargs="?", choices=[*catalogue.PAPERS, "all"], default="all", help="only this paper's claims"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="the file (default: OUT/report.html)")
    _add_places(parser)
    parser.set_defaults(handler=write_report)


def _add_figure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paper", choices=[*catalogue.PAPERS, "all"], help="a paper, or all")
    parser.add_argument("figure", nargs="?", default="all", help=_FIGURE_HELP)


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("lab-results"), metavar="DIR", help=_OUT_HELP)
    parser.add_argument("--quick", action="store_true", help=_QUICK_HELP)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def _say(text: str, to: TextIO | None = None) -> None:
    (to or sys.stdout).write(f"{text}\n")


def chosen(paper: str, figure: str) -> list[Figure]:
    """The figures that the command line means."""
    if paper == "all":
        if figure != "all":
            raise SpecError(f"figure {figure!r} of which paper? Papers are {', '.join(catalogue.PAPERS)}")
        return [one for figures in catalogue.PAPERS.values() for one in figures]
    return list(catalogue.figures(paper)) if figure == "all" else [catalogue.find(paper, figure)]


def list_figures(args: argparse.Namespace) -> int:
    """Show every figure, whether its rows are stored, and about how long it takes."""
    store = Store(args.out, quick=args.quick)
    for paper, figures in catalogue.PAPERS.items():
        _say(paper)
        for figure in figures:
            _say(f"  {figure.name:<18} {_state(figure, store, args.quick):<22} {_duration(figure):<12} {figure.title}")
    return 0


def _state(figure: Figure, store: Store, quick: bool) -> str:
    rows = store.read(figure)
    if not rows:
        return "not run"
    seeds = 1 + max(int(str(row["seed"])) for row in rows)
    missing = len(store.missing(figure))
    return f"{missing} runs missing" if missing else f"stored, {seeds} seed{'s' * (seeds > 1)}"


def _duration(figure: Figure) -> str:
    about = f"~{60 * figure.minutes:.0f} s" if figure.minutes < 1 else f"~{figure.minutes:.0f} min"
    return f"{about}, data" if figure.data else about


def run_figures(args: argparse.Namespace) -> int:
    """Simulate the chosen figures; of several, those whose data is not there are named at the end."""
    figures = chosen(args.paper, args.figure)
    store = Store(args.out, quick=args.quick)
    scale = Scale(args.seeds or (2 if args.quick else 5), args.quick)
    undone: list[str] = []
    with ExitStack() as stack:
        runner = in_process if args.no_spark else _spark(args.master, stack)
        for place, figure in enumerate(figures, 1):
            try:
                count = run(figure, scale, store, runner, data=args.data, fresh=args.fresh)
            except DataError as reason:
                if len(figures) == 1:
                    raise
                undone.append(f"{figure.paper} {figure.name}: {reason}")
                continue
            done = f"{count} simulations" if count else "nothing left to run"
            _say(f"{place} of {len(figures)}: {figure.paper} {figure.name}: {done}; {store.path(figure)}")
    for line in undone:
        _say(f"not run: {line}", sys.stderr)
    return 0


def _spark(master: str, stack: ExitStack) -> Runner:
    from shedjoin.spark.java import check_java
    from shedjoin.spark.master import check_master
    from shedjoin_lab.sweep import SparkSweep

    check_master(master, argument="--master")
    try:
        check_java()
    except EnvironmentProblem as reason:
        raise EnvironmentProblem(f"{reason} The lab also runs without Spark: add --no-spark.") from None
    return stack.enter_context(SparkSweep(master))


def plot_figures(args: argparse.Namespace) -> int:
    """Draw the chosen figures; of several, those with nothing stored are named."""
    from shedjoin_lab.figures_page import write_page
    from shedjoin_lab.report import draw

    figures = chosen(args.paper, args.figure)
    store = Store(args.out, quick=args.quick)
    for figure in figures:
        try:
            paths = draw(figure, store)
        except DataError as reason:
            if len(figures) == 1:
                raise
            _say(f"not drawn: {reason}", sys.stderr)
            continue
        _say(" ".join(str(path) for path in paths))
    if args.page is not None:
        write_page(figures, store, args.page)
    return 0


def write_report(args: argparse.Namespace) -> int:
    """Write the HTML report."""
    from shedjoin_lab.web_report import page

    papers = list(catalogue.PAPERS) if args.paper == "all" else [args.paper]
    store = Store(args.out, quick=args.quick)
    path: Path = args.write or args.out / "report.html"
    text = page(papers, store, lambda problem: _say(problem, sys.stderr))
    write_atomic(path, lambda file: file.write(text.encode()))
    _say(str(path))
    return 0


_CLAIMS_HEAD = """# What the papers claim, and what is found here

Written by `shedjoin lab claims --write` from the rows that `shedjoin lab run` stored; [papers.md](papers.md) says how far to
trust a verdict, and one rule (decisions/034) says when ours agrees. A claim "holds in part" where it holds at some of its
places: the last column says where not, and the reason as far as it is known. "Not testable here": our data or program is not
what the claim is about. "Ours" is the mean of the seeds and its standard deviation. "Seeds that agree": how many seeds, each
taken alone, come to the same verdict as all of them together; few of them: the verdict is close.
"""


def show_claims(args: argparse.Namespace) -> int:
    """Print, and write where asked, the claims of the papers with what the stored rows say."""
    papers = list(catalogue.PAPERS) if args.paper == "all" else [args.paper]
    store = Store(args.out, quick=args.quick)
    lines = evaluate(papers, store)
    text = as_markdown(lines)
    builds = builds_in_words(
        row for paper in papers for figure in catalogue.figures(paper) for row in store.read(figure)
    )
    if sys.stdout.isatty():
        show(lines)
    else:
        _say(text)
    _say(builds)
    if args.write is not None:
        write_atomic(args.write, lambda file: file.write(f"{_CLAIMS_HEAD}\n{builds}\n\n{text}".encode()))
    return 0
