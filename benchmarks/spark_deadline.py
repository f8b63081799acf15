"""A burst on Spark, with and without a deadline: how long micro-batches take, and how much is compared.

Two streams of weighted sets, a file a micro-batch. In the burst there are six times as many rows.

    python benchmarks/spark_deadline.py --deadline 4 --page docs/benchmarks-deadline.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spark_queries import spark_session

SECOND = 1_000_000
ITEMS, DISTINCT, AT_LEAST = 5, 20, 7.0
#: Event time of a micro-batch, and the window, in seconds.
SPAN, WINDOW = 2, 30
HEAD = """# A burst, with and without a deadline

Written by `benchmarks/spark_deadline.py`. Two streams of weighted sets (5 of 20 items), `InnerProduct`, window {window} s; a
micro-batch is {span} s of both streams. From batch {first} to {last} there are {times} times as many rows as otherwise. "time" is
what Spark says of the whole micro-batch (`triggerExecution`), r what `metrics` say at its end (the lower of two shards).
"""


def sizes(batches: int, rows: int, times: int) -> list[int]:
    """Rows of a stream in each micro-batch: the middle third is a burst."""
    first, last = burst(batches)
    return [rows * (times if first <= batch <= last else 1) for batch in range(batches)]


def burst(batches: int) -> tuple[int, int]:
    return batches // 4, batches // 2 - 1


def make(folder: Path, counts: list[int]) -> None:
    for side, name in enumerate(("left", "right")):
        (folder / name).mkdir(parents=True)
        rng = np.random.default_rng(side)
        for batch, count in enumerate(counts):
            items = np.argsort(rng.random((count, DISTINCT)), axis=1)[:, :ITEMS].astype(np.int64)
            offsets = pa.array(np.arange(count + 1) * ITEMS, pa.int32())
            weights = pa.array(rng.random(count * ITEMS) + 0.5)
            table = pa.table(
                {
                    f"{name}_at": pa.array(
                        SECOND * SPAN * batch + np.arange(count) * (SECOND * SPAN) // count,
                        pa.timestamp("us", tz="UTC"),
                    ),
                    "terms": pa.MapArray.from_arrays(offsets, pa.array(items.ravel()), weights),
                    name: np.arange(count) + batch * 1_000_000,
                }
            )
            path = folder / name / f"{batch:05}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_600_000_000 + batch,) * 2)


def work(folder: Path, out: Path, deadline: float | None) -> None:
    """One run, in a process of its own; prints a line of JSON for every micro-batch."""
    import shedjoin as sj
    from shedjoin.spark import start

    spark = spark_session("shedjoin")
    streams = []
    for name in ("left", "right"):
        schema = spark.read.parquet(str(folder / name)).schema
        streams.append(spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name)))
    query = start(
        *streams,
        predicate=sj.InnerProduct("terms", at_least=AT_LEAST),
        time=("left_at", "right_at"),
        window=f"{WINDOW} seconds",
        lateness=0,
        select=["left", "right"],
        shards=2,
        deadline=deadline,
        output=out,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    took = {one["batchId"]: one["durationMs"]["triggerExecution"] / 1000 for one in query.recentProgress}
    told = spark.read.parquet(str(out / "metrics")).collect()
    for batch in sorted({row.batch for row in told}):
        mine = [row for row in told if row.batch == batch]
        line = {
            "batch": batch,
            "rows": sum(row.rows_left + row.rows_right for row in mine),
            "results": sum(row.results for row in mine),
            "seconds": took.get(batch),
            "work": max(row.seconds for row in mine),
            "r": min(row.fraction for row in mine),
        }
        print(json.dumps(line), flush=True)
    spark.stop()


def run(folder: Path, deadline: float | None) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, __file__, "--work", str(folder), "--out", out]
        command += [] if deadline is None else ["--deadline", str(deadline)]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode:
        raise SystemExit(f"a run failed; run it alone to see why: {' '.join(command)}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def page(exact: list[dict[str, Any]], held: list[dict[str, Any]], asked: argparse.Namespace) -> str:
    first, last = burst(asked.batches)
    lines = [
        HEAD.format(window=WINDOW, span=SPAN, first=first, last=last, times=asked.times),
        f"| batch | rows | time, exact | time, deadline {asked.deadline:g} s | r | results kept |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for one, two in zip(exact, held, strict=True):
        kept = f"{two['results'] / one['results']:.0%}" if one["results"] else ""
        lines.append(
            f"| {one['batch']} | {one['rows']:,} | {one['seconds']:.1f} s | {two['seconds']:.1f} s | {two['r']:.3f} | {kept} |"
        )
    adapted = [row["seconds"] for row in held if first + 2 <= row["batch"]]
    over = max(adapted) / asked.deadline
    kept = sum(row["results"] for row in held) / max(1, sum(row["results"] for row in exact))
    lines += [
        "",
        f"From the third batch of the burst on, the longest micro-batch took {over:.2f} x the deadline; {kept:.0%} of all "
        f"results were found. r after the last batch: {held[-1]['r']:g}.",
        "",
    ]
    return "\n".join(lines)


def draw(exact: list[dict[str, Any]], held: list[dict[str, Any]], deadline: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 4.5), sharex=True, layout="constrained")
    for rows, label, style in ((exact, "exact", "0.6"), (held, f"deadline {deadline:g} s", "C0")):
        above.plot(
            [row["batch"] for row in rows], [row["seconds"] for row in rows], "o-", color=style, label=label, ms=3
        )
    above.axhline(deadline, color="C3", lw=1, ls="--")
    above.set(ylabel="seconds a micro-batch", ylim=(0, None))
    above.legend(frameon=False)
    below.plot([row["batch"] for row in held], [row["r"] for row in held], "o-", color="C0", ms=3)
    below.set(ylabel="r", xlabel="micro-batch", ylim=(0, 1.05))
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deadline", type=float)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000, help="of a stream in a micro-batch")
    parser.add_argument("--times", type=int, default=6, help="as many in the burst")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work is not None:
        work(asked.work, asked.out, asked.deadline)
        return
    asked.deadline = asked.deadline or 4.0
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), sizes(asked.batches, asked.rows, asked.times))
        held = run(Path(folder), asked.deadline)
        exact = run(Path(folder), None)
    text = page(exact, held, asked)
    print(text)
    if asked.page is not None:
        figure = asked.figure or asked.page.parent / "figures" / "spark-deadline.png"
        figure.parent.mkdir(parents=True, exist_ok=True)
        draw(exact, held, asked.deadline, figure)
        asked.page.write_text(f"{text}\n![micro-batches and r](figures/{figure.name})\n")


if __name__ == "__main__":
    main()
