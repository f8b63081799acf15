"""`shedjoin top`: a running query in the terminal."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from shedjoin.cli.view import FRONT, Share, View, of_rows, of_samples
from shedjoin.errors import InputError, SpecError
from shedjoin.parse import format_age
from shedjoin.spark.advice import better_policies
from shedjoin.spark.metric_files import MetricFiles
from shedjoin.spark.metrics import curve_of_rows, latest
from shedjoin.spark.prometheus import Samples, read_endpoint
from shedjoin.spark.start import read_job

#: What a plot may be.
PLOTS = (".png", ".svg")
#: Rates and shares are over this many batches.
BATCHES = 20
#: With --once, an endpoint is asked twice, this many seconds apart, to see rates.
BETWEEN = 1.0
BAR = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show a running query in the terminal until Ctrl-C. If redirected, it prints once and ends."
    parser.add_argument("query", metavar="DIR_OR_URL", help="the query's output directory, or its metrics endpoint")
    parser.add_argument("--once", action="store_true", help="print once and end")
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="between frames (default: 1)")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help=f"draw the curve of a query with what_if, and end: {' or '.join(PLOTS)}",
    )
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Show frames until the user has seen enough."""
    if not 0.1 <= args.every <= 3600:
        raise SpecError(f"--every must be from 0.1 to 3600 seconds, not {args.every}")
    if args.plot is not None:
        draw(args.query, args.plot)
        print(f"the curve is drawn in {args.plot}")
        return 0
    console = Console()
    look = reader(args.query)
    if args.once or not console.is_terminal:
        view = look()
        if view is not None and view.rates is None and "://" in args.query:
            time.sleep(BETWEEN)
            view = look()
        console.print(frame(view, args.query))
        return 0
    try:
        with Live(frame(look(), args.query), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(args.every)
                live.update(frame(look(), args.query), refresh=True)
    except KeyboardInterrupt:
        return 0


def draw(query: str, path: Path) -> None:
    """Draw what other memories would deliver."""
    if path.suffix not in PLOTS or not path.parent.is_dir():
        raise SpecError(f"--plot must be a file that ends in {' or '.join(PLOTS)} in an existing directory, not {path}")
    if "://" in query or read_job(query) is None:
        raise InputError(f"--plot needs the output directory of a query, not {query}")
    curve = curve_of_rows(latest(MetricFiles(query).last(BATCHES)))
    if curve is None:
        raise InputError(f"{query} has no curve: it needs what_if = true, and a window must have passed")
    from shedjoin.plots.what_if import draw_curve  # with matplotlib

    draw_curve(curve, [path])


def reader(query: str) -> Callable[[], View | None]:
    """A function that gives what can be seen now."""
    if "://" in query:
        return _Scraper(query)
    job = read_job(query)
    if job is None:
        if not Path(query).is_dir():
            raise InputError(f"the directory {Path(query)} does not exist")
        raise InputError(f"{Path(query)} is not the output directory of a query: it has no job.json")
    watch, budget = MetricFiles(query), job["spec"].get("budget")
    return lambda: of_rows(watch.last(BATCHES), budget)


class _Scraper:
    """Asks an endpoint; remembers the last answer, for rates."""

    def __init__(self, url: str) -> None:
        self._url = url if url.rstrip("/").endswith("/metrics") else f"{url.rstrip('/')}/metrics"
        self._before: Samples | None = None
        self._at = 0.0

    def __call__(self) -> View | None:
        now, at = read_endpoint(self._url), time.monotonic()
        view = of_samples(now, self._before, at - self._at)
        self._before, self._at = now, at
        return view


def frame(view: View | None, query: str) -> RenderableType:
    """One picture of a query."""
    if view is None:
        return Text(f"{query}: no batch yet")
    title = Text.assemble(
        (query, "bold"), f"   batch {view.batch}, {view.shards} shard{'s' * (view.shards != 1)}, {format_age(view.age)}"
    )
    return Group(title, _numbers(view), _memory(view))


def _numbers(view: View) -> Table:
    grid = Table.grid(padding=(0, 2))
    none = ["-"] * (len(view.names) + 1)
    *rates, results = none if view.rates is None else [f"{rate:,.0f}/s" for rate in view.rates]
    each = ", ".join(f"{name} {rate}" for name, rate in zip(view.names, rates, strict=True))
    grid.add_row("rows", each, f"{view.all_rows:,} {view.over}")
    grid.add_row("results", results, f"{view.results:,} {view.over}")
    rows = max(view.all_rows, 1)
    for why, count in view.shed.items():
        if count or why == "evicted":
            grid.add_row(why if why == "late" else f"shed: {why}", f"{count / rows:.1%} of rows", f"{count:,}")
    if view.nulls:
        grid.add_row("null keys", f"{view.nulls / rows:.1%} of rows", f"{view.nulls:,}")
    if view.unmatched is not None:
        certain, unknown = view.unmatched
        grid.add_row("unmatched rows", f"{certain:,} certain", f"{unknown:,} unknown: they may have a partner")
    if view.fractions is not None:
        r, *parts = view.fractions
        sides = ", ".join(f"{name} {part:.1%}" for name, part in zip(view.names, parts, strict=True))
        grid.add_row("compared with", f"{r:.1%} of the windows", f"{sides}; {view.partial:,} probes of a part")
    if view.ranking is not None:
        ages = "; ".join(f"{name} {', '.join(map(str, of))}" for name, of in zip(view.names, view.ranking, strict=True))
        grid.add_row("looks first at", ages, "ages of basic windows")
    if view.policies is not None:
        shards = Counter(view.policies).most_common()
        words = ", ".join(f"{policy} in {count} shard{'s' * (count != 1)}" for policy, count in shards)
        grid.add_row("policy", words, f"{view.policy_changes:,} changes since the beginning, after trials")
        for why, count in Counter(view.policy_why).most_common(2):
            grid.add_row("", f"{count} shard{'s' * (count != 1)}", why)
    if view.sure is not None:
        grid.add_row(
            "of rows given alone", f"at least {view.sure:.1%} delivered", "of semi and anti joins; unmatched rows"
        )
    if view.recall is None:
        exact = view.budget is None and not view.partial and not view.shed[FRONT]
        late = ", but for late rows" if view.shed.get("late") else ""
        if exact or view.sure is None:
            grid.add_row("recall", f"exact: no budget{late}" if exact else "not known", "")
    else:
        grid.add_row("recall", share(view.recall), since(view.recall_from) if view.recent else "")
        if view.recent is not None:
            grid.add_row("", share(view.recent), "recent batches")
        if view.importance is not None and view.importance != view.recall:
            grid.add_row("of importance", share(view.importance), "")
    for factor, recall in view.what_if:
        if factor != 1.0:
            grid.add_row("what if", f"{factor:g} x the memory: {share(recall)}", "")
    for policy, recall in view.by_policy[1:]:
        grid.add_row("", f"policy {policy}: {share(recall)}", "with the current memory")
    for sentence in told(view):
        grid.add_row("", sentence, "")
    return grid


def told(view: View) -> list[str]:
    """What to set, from what other policies would deliver."""
    if not view.by_policy:
        return []
    (policy, now), *others = view.by_policy
    return better_policies(policy, now, dict(others))


def share(value: Share) -> str:
    """A share with its limits.

    Examples
    --------
    >>> share((0.912, 0.9, 0.923))
    '91.2% (90.0% to 92.3%)'
    """
    return f"{value[0]:.1%} ({value[1]:.1%} to {value[2]:.1%})"


def _memory(view: View) -> Table:
    grid = Table.grid(padding=(0, 2))
    unit, cap = view.budget or ("tuples", 0)
    amounts = view.tuples if unit == "tuples" else view.bytes
    stored = sum(amounts)
    for side, amount, tuples in zip(view.names, amounts, view.tuples, strict=True):
        whole = cap or max(stored, 1)
        what = f"{amount / whole:.1%} of {'the budget' if cap else 'what is stored'}, {tuples:,} tuples"
        grid.add_row(f"memory {side}", ProgressBar(total=whole, completed=min(amount, whole), width=BAR), what)
    most = "" if view.peak is None else f", {view.peak:,} at most {view.over}"
    grid.add_row("", "", (f"{stored:,} of {cap:,} {unit} now" if cap else f"{stored:,} tuples now, no budget") + most)
    if view.allowed is not None:
        what = (
            f"allowed now; the budget keeps {'recall below' if view.error is None else 'errors above'} the target"
            if view.limited
            else "allowed now, to hold the target"
        )
        grid.add_row("", "", f"{view.allowed:,} {unit} {what}")
    if view.error is not None:
        grid.add_row("", "", f"sums are known within {view.error:.1%}, as far as is known")
    if view.idle is not None:
        grid.add_row("", "", view.idle)
    return grid


def since(batch: int | None) -> str:
    """Which results recall is of."""
    if batch is None:
        return "since the beginning, or since a change of shards"
    return "since the beginning" if batch == 0 else f"of rows that came since micro-batch {batch}"
