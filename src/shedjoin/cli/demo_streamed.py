"""`shedjoin demo`: the default policy and RAND, streaming on Spark with a quarter of the memory of the exact join."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from shedjoin.cli.demo_simulated import load_kernels
from shedjoin.cli.run import LOG, follow, open_session
from shedjoin.cli.top import share
from shedjoin.plots.draw import draw_rows
from shedjoin.plots.plot import Panel, Plot
from shedjoin.simulation import simulate
from shedjoin.spark.java import check_java
from shedjoin.spark.metric_files import MetricFiles
from shedjoin.spark.metrics import Summary, by_batch, summarise
from shedjoin.spec import JoinSpec
from shedjoin.window import TimeWindow
from shedjoin.workloads import zipf

SEED = 7
DOMAIN = 2_000
#: One row of each stream a millisecond.
STEP = 1_000
WINDOW = 4_000
ROWS = 96_000
#: Micro-batches: files of each stream.
BATCHES = 8
#: The default, and a baseline.
POLICIES = ("prospect", "rand")
SIDES = ("left", "right")
SETTINGS = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.app.name": "shedjoin demo"}
Pairs = NDArray[np.int64]

PLOT = Plot(
    x="batch",
    x_label="micro-batch",
    panels=(
        Panel(
            "Recall",
            "recall",
            "% of the exact join's results",
            {"panel": "recall"},
            band=("low", "high"),
        ),
        Panel("Memory", "tuples", "stored tuples", {"panel": "memory"}),
    ),
    caption="Recall as the running query estimates it, with 95% limits (shaded). Dashed: true recall, known afterwards.",
)


@dataclass(frozen=True, slots=True)
class DemoQuery:
    """One query of the demo."""

    policy: str
    batches: list[Summary]
    whole: Summary
    pairs: Pairs


def streamed(rows: int, out: Path, console: Console) -> None:
    """Make the streams, run both queries, refine one, and show how they did."""
    check_java()
    load_kernels(console)
    window = min(WINDOW, max(rows // 8, 4))
    cap = 2 * window // 4
    console.print(
        f"Two streams of {rows:,} rows, one a millisecond, with {DOMAIN:,} keys: some are frequent, others in each stream. Rows "
        f"with the same key join if they are less than {window:,} ms apart. The exact join stores the rows of both windows, "
        f"{2 * window:,}; the queries may store {cap:,}. One keeps rows by the default policy (PROSPECT), one at random (RAND)."
    )
    with tempfile.TemporaryDirectory(prefix="shedjoin-demo-") as name:
        folder = Path(name)
        exact = make_streams(folder, rows, window)
        with ExitStack() as stack:
            with console.status("starting Spark"):
                spark = stack.enter_context(open_session(SETTINGS, folder / LOG))
            outcomes = [run(spark, folder, policy, window, cap, console) for policy in POLICIES]
            with console.status(f"refine: bringing what {POLICIES[0]} missed, from the archive"):
                refined = refine_one(spark, folder / POLICIES[0])
    console.print(summary(outcomes, exact, refined, cap))
    points = [point for outcome in outcomes for point in points_of(outcome, exact, rows)]
    points.append({"panel": "recall", "method": "EXACT", "batch": None, "recall": 100})
    points.append({"panel": "memory", "method": "EXACT", "batch": None, "tuples": 2 * window})
    title = f"Streaming join with a quarter of its memory: {cap:,} of {2 * window:,} tuples"
    paths = draw_rows(PLOT, points, title, [out / "demo.png", out / "demo.svg"])
    console.print(f"Plots: {paths[0]} and {paths[1].name}: recall over time against the truth, and memory.")
    console.print("Next: docs/start.md joins your own files.")


def make_streams(folder: Path, rows: int, window: int) -> Pairs:
    """Write both streams as files; returns the exact join, as pairs of row numbers in order."""
    streams = zipf(rows, seed=SEED, domain=DOMAIN, skew=1.0, ranks="uncorrelated")
    edges = np.linspace(0, rows, BATCHES + 1).astype(int)
    for side, stream in zip(SIDES, streams.streams, strict=True):
        (folder / side).mkdir()
        at = pa.array(stream["ts"] * STEP, pa.timestamp("us", tz="UTC"))
        table = pa.table({"key": stream["key"], "at": at, f"{side}_row": np.arange(rows)})
        for number in range(BATCHES):
            path = folder / side / f"{number:03}.parquet"
            pq.write_table(table.slice(edges[number], edges[number + 1] - edges[number]), path)
            os.utime(path, (1_600_000_000 + number,) * 2)  # Spark takes the oldest first
    exact = simulate(JoinSpec(window=TimeWindow(window)), streams.left, streams.right)
    return in_order(*exact.pairs())


def in_order(left: Any, right: Any) -> Pairs:
    """Pairs as rows of one array, sorted, so that equal sets are equal arrays."""
    order = np.lexsort((right, left))
    return np.stack([np.asarray(left)[order], np.asarray(right)[order]], axis=1)


def run(spark: Any, folder: Path, policy: str, window: int, cap: int, console: Console) -> DemoQuery:
    """One streaming query over both streams, followed to its end."""
    from shedjoin.spark import start

    output = folder / policy
    schema = {side: spark.read.parquet(str(folder / side)).schema for side in SIDES}
    left, right = (
        spark.readStream.schema(schema[side]).option("maxFilesPerTrigger", 1).parquet(str(folder / side))
        for side in SIDES
    )
    query = start(
        left,
        right,
        output=output,
        archive=policy == POLICIES[0],
        trigger={"availableNow": True},
        on="key",
        time="at",
        window=timedelta(microseconds=window * STEP),
        lateness=0,
        budget=cap,
        policy=policy,
        select=["left_row", "right_row"],
    )
    rows: list[dict[str, Any]] = []
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    ) as bar:
        task = bar.add_task(f"{policy}: starting", total=BATCHES)

        def tell(batch: list[dict[str, Any]]) -> None:
            rows.extend(batch)
            now = summarise(batch)
            if now is not None and now.recall is not None:
                limits = share((now.recall.recall, now.recall.low, now.recall.high))
                bar.update(task, advance=1, description=f"{policy}: recall {limits}")

        follow(query, MetricFiles(output), threading.Event(), tell)
    whole = summarise(rows)
    assert whole is not None  # a query over files has batches
    return DemoQuery(policy, by_batch(rows), whole, read_pairs(output / "results"))


def refine_one(spark: Any, output: Path) -> Pairs:
    """The pairs that a query missed."""
    from shedjoin.spark import refine

    refine(output, spark=spark)
    return read_pairs(output / "refined")


def read_pairs(folder: Path) -> Pairs:
    """The pairs in the files of a directory and those below it; Spark's own notes begin with an underscore."""
    parts = [
        pq.ParquetFile(path).read(["left_row", "right_row"]) for path in sorted(folder.glob("sj_batch=*/*.parquet"))
    ]
    table = pa.concat_tables(parts) if parts else pa.table({"left_row": pa.array([], pa.int64()), "right_row": []})
    return in_order(table["left_row"].to_numpy(), table["right_row"].to_numpy())


def summary(outcomes: list[DemoQuery], exact: Pairs, refined: Pairs, cap: int) -> Grid:
    """Both queries side by side."""
    grid = Grid("", *(outcome.policy.upper() for outcome in outcomes))
    for column in grid.columns[1:]:
        column.justify = "right"
    first = outcomes[0]
    both = in_order(*np.concatenate([first.pairs, refined]).T)
    same = "the same rows" if np.array_equal(both, exact) else "NOT the same rows"
    lines: dict[str, list[str]] = {
        "results": [f"{len(outcome.pairs):,} of {len(exact):,}" for outcome in outcomes],
        "true recall": [f"{len(outcome.pairs) / max(len(exact), 1):.1%}" for outcome in outcomes],
        "recall told while running": [recall_words(outcome.whole) for outcome in outcomes],
        "most stored at once": [f"{outcome.whole.peak_tuples:,} tuples" for outcome in outcomes],
        "cap": [f"{cap:,} tuples"] * len(outcomes),
        "rows evicted (some had met all partners)": [f"{outcome.whole.shed_share:.1%}" for outcome in outcomes],
        "missed results, delivered by refine": [f"{len(refined):,}", ""],
        "results and refined": [f"{len(both):,}", ""],
        "exact join": [f"{len(exact):,}: {same}", ""],
    }
    for name, cells in lines.items():
        grid.add_row(name, *cells)
    return grid


def recall_words(whole: Summary) -> str:
    estimate = whole.recall
    return "not known" if estimate is None else share((estimate.recall, estimate.low, estimate.high))


def points_of(outcome: DemoQuery, exact: Pairs, rows: int) -> list[dict[str, Any]]:
    """What is drawn of a query: a pair is due in the batch that brings the later of its rows."""
    edges = np.linspace(0, rows, BATCHES + 1).astype(int)[1:]
    due = np.searchsorted(np.sort(exact.max(axis=1)), edges)
    points: list[dict[str, Any]] = []
    delivered, method = 0, outcome.policy.upper()
    for place, batch in enumerate(outcome.batches):
        delivered += batch.results
        number = place + 1
        if batch.recall is not None:
            limits = {"low": 100 * batch.recall.low, "high": 100 * batch.recall.high}
            points.append(
                {"panel": "recall", "method": method, "batch": number, "recall": 100 * batch.recall.recall, **limits}
            )
        if place < len(due) and due[place]:
            truth = 100 * delivered / int(due[place])
            points.append({"panel": "recall", "method": f"{method}, true", "batch": number, "recall": truth})
        if outcome.policy == POLICIES[0]:  # the other one fills its memory too: the lines would hide one another
            points.append({"panel": "memory", "method": method, "batch": number, "tuples": batch.resident})
    return points
