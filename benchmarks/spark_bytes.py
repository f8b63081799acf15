"""A budget in bytes beside the memory of the workers: a query that stores all it may, of few keys, and of keys that come once.

Each run is a process of its own. Measured is the memory of Spark's Python workers that no file is behind, and the copies of the
shards on this host: the most of a query, less the most of a query with as many micro-batches over 1,000 rows of each stream. The
state stores of Spark, in its JVM or on disk, are not part of the budget.

    python benchmarks/spark_bytes.py --page docs/benchmarks-spark.md  # writes a section of the page
    python benchmarks/spark_bytes.py --rows 100000 --budgets "32 MB"  # prints it
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
from page_sections import check_sections, write_section
from process_tree import tree
from spark_queries import spark_session, stream_of
from window_streams import SIDES, stream_table, write_files

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-spark.md"
MARK = "bytes"
#: Rows of the first query, micro-batches of each query, shards, and how many keys few are.
FIRST, COUNT, SHARDS, FEW = 1000, 8, 2, 50_000
KEYS = ("few", "once")
#: Seconds between two looks at the memory.
EVERY = 0.2


def worker_memory(root: int) -> int:
    """Bytes of all Python processes below one that no file is behind."""
    total = 0
    for pid in tree(root)[1:]:
        with suppress(OSError):
            if b"python" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:"))
    return total


def copies(folder: Path) -> int:
    """Bytes of the copies on this host."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_blocks * 512 if path.is_file() else 0
    return total


class Watch:
    """Looks at the memory until it is told to stop: the most that it was."""

    def __init__(self, cache: Path) -> None:
        self._cache, self._over = cache, threading.Event()
        self.most = 0
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            self.most = max(self.most, worker_memory(os.getpid()) + copies(self._cache))

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


def run(folder: Path, keys: str, budget: str, rows: int) -> dict[str, float]:
    """One query, first over a few rows and then over all."""
    from pyspark.sql import functions as fn

    from shedjoin.spark import start

    cache = folder / "cache"
    spark = spark_session("shedjoin")
    edges = [*np.linspace(0, FIRST, COUNT + 1).astype(int), *np.linspace(FIRST, rows, COUNT + 1).astype(int)[1:]]
    random = np.random.default_rng(0)

    def write(last: int) -> None:
        for name in SIDES:
            drawn = random.integers(0, FEW, rows) if keys == "few" else random.permutation(rows) * 2 + (name == "left")
            write_files(folder / name, stream_table(name, drawn.astype(np.int64)), edges[: last + 1])

    watch, known = Watch(cache), []
    for last in (COUNT, 2 * COUNT):
        write(last)
        query = start(
            *(stream_of(spark, folder / name) for name in SIDES),
            output=str(folder / "out"),
            trigger={"availableNow": True},
            on="k",
            time=tuple(f"ts_{name}" for name in SIDES),
            window="1 day",
            lateness=0,
            budget=budget,
            shards=SHARDS,
            cache=str(cache),
        )
        query.awaitTermination()
        known.append(watch.most)
    watch.stop()
    metrics = spark.read.parquet(str(folder / "out" / "metrics"))
    last_batch = metrics.where(fn.col("batch") == metrics.agg(fn.max("batch")).first()[0])
    total = last_batch.agg(fn.sum("resident_left") + fn.sum("resident_right")).first()[0]
    spark.stop()
    return {"stored": float(total), "grown": float(known[1] - known[0]), "first": float(known[0])}


def section(found: list[tuple[str, str, dict[str, float]]], rows: int) -> str:
    """Markdown."""
    lines = [
        f"Two streams of {rows:,} rows, {SHARDS} shards, a window of a day, `Prospect`; written by `benchmarks/spark_bytes.py`.",
        "",
        "| budget | keys | rows stored at the end | growth of the workers' memory, at most | of the budget |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    for budget, keys, one in found:
        share = one["grown"] / bytes_of(budget)
        words = f"{FEW:,}" if keys == "few" else "each comes once"
        lines.append(f"| {budget} | {words} | {one['stored']:,.0f} | {one['grown'] / 1e6:,.0f} MB | {share:.0%} |")
    return "\n".join(lines)


def bytes_of(budget: str) -> int:
    from shedjoin.parse import parse_budget

    made = parse_budget(budget)
    assert made is not None
    return made.total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300_000, help="rows of each stream")
    parser.add_argument("--budgets", nargs="*", default=["64 MB", "128 MB"])
    parser.add_argument("--keys", nargs="*", choices=KEYS, default=KEYS)
    parser.add_argument("--page", type=Path, help="write the section into this page")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        made = run(options.one, options.keys[0], options.budgets[0], options.rows)
        (options.one / "found.json").write_text(json.dumps(made))
        return
    if options.page is not None:
        check_sections(options.page, [MARK])
    found = []
    for budget in options.budgets:
        for keys in options.keys:
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, __file__, "--one", folder, "--budgets", budget, "--keys", keys]
                subprocess.run([*command, "--rows", str(options.rows)], check=True)
                found.append((budget, keys, json.loads((Path(folder) / "found.json").read_text())))
                print(found[-1], flush=True)
    text = section(found, options.rows)
    print(text)
    if options.page is not None:
        write_section(options.page, MARK, text)


if __name__ == "__main__":
    main()
