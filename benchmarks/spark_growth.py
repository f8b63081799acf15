"""What a micro-batch of shed_join costs and writes when the window is longer; a part of benchmarks/spark_join.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from spark_queries import spark_session, stream_of, times_of, with_rows
from window_streams import SIDES, stream_table, write_files

#: Rows in the window (of both streams) with which the cost of a micro-batch is measured.
WINDOWS = [10_000, 100_000, 1_000_000]
#: New rows of a stream in a micro-batch, and micro-batches once the window is full.
SMALL, COUNT = 5_000, 14


def growth(script: str, folder: Path) -> str:
    """Each window in a process of its own, as Markdown."""
    lines = [
        "| rows in the window | micro-batch | work of the shards | written to the state store |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for window in WINDOWS:
        print(f"growth: window of {window:,} rows", flush=True)
        command = [sys.executable, script, "--one", "growth", "--folder", str(folder), "--window", str(window)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        found = json.loads((folder / "growth.json").read_text())
        lines.append(
            f"| {window:,} | {found['batch']:.2f} s | {found['seconds']:.3f} s | {found['written'] / 1e6:.2f} MB |"
        )
    return "\n".join(lines) + "\n"


def run_growth(folder: Path, window: int) -> dict[str, float]:
    """Fill a window, then push small micro-batches."""
    from shedjoin.spark import start

    spark = spark_session("shedjoin")
    home = folder / f"growth-{window}"
    fill = window // 2
    frames = []
    for number, name in enumerate(SIDES):
        edges = [0, *(fill + SMALL * np.arange(COUNT + 1)).tolist()]
        key = np.random.default_rng(number).integers(0, 200_000, edges[-1])
        write_files(home / name, stream_table(name, key), edges)
        frames.append(stream_of(spark, home / name))
    query = start(
        *frames,
        output=home / "out",
        trigger={"availableNow": True},
        on="k",
        time=("ts_left", "ts_right"),
        window=f"{fill} milliseconds",
        lateness=0,
    )
    query.awaitTermination()
    took = times_of(with_rows(query))
    metrics = spark.read.parquet(str(home / "out" / "metrics")).where("batch >= 4").groupBy("batch")
    shards = metrics.agg({"seconds": "max", "state_bytes": "sum"}).toArrow().to_pydict()
    spark.stop()
    return {
        "batch": float(np.median(took[4:])),
        "seconds": float(np.median(shards["max(seconds)"])),
        "written": float(np.mean(shards["sum(state_bytes)"])),
    }
