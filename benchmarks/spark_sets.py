"""Joins on sets, on Spark: `shed_join` against the same join in Spark SQL, on the same batch DataFrames.

Spark SQL has no index for "at least three items in common". The usual way round is measured: explode the sets, join on the
item and the window of time, group by pair and count.

    python benchmarks/spark_sets.py --rows 20000 --window 2000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spark_queries import spark_session

ITEMS, DISTINCT, AT_LEAST = 5, 100, 3


def make(path: Path, rows: int, seed: int, name: str) -> None:
    """Sets of ITEMS different words, one every unit of time."""
    rng = np.random.default_rng(seed)
    items = np.argsort(rng.random((rows, DISTINCT)), axis=1)[:, :ITEMS]
    words = pa.DictionaryArray.from_arrays(
        pa.array(items.ravel(), pa.int32()), pa.array([f"word {word}" for word in range(DISTINCT)])
    ).cast(pa.string())
    sets = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1) * ITEMS, pa.int32()), words)
    pq.write_table(pa.table({name: np.arange(rows), f"{name}_at": np.arange(rows), "words": sets}), path)


def ours(left: Any, right: Any, window: int) -> int:
    import shedjoin as sj
    from shedjoin.spark import shed_join

    joined = shed_join(
        left,
        right,
        predicate=sj.Overlap("words", at_least=AT_LEAST),
        time=("a_at", "b_at"),
        window=window,
        select=["a", "b"],
    )
    return int(joined.count())


def exploded(left: Any, right: Any, window: int) -> int:
    """In Spark SQL. Times are cut into cells as long as the window, so that the join is one on equal values first."""
    from pyspark.sql import functions as fn

    one = left.select("a", "a_at", fn.explode("words").alias("word"), fn.expr(f"a_at div {window}").alias("cell"))
    two = right.select("b", "b_at", fn.explode("words").alias("word"), fn.expr(f"b_at div {window}").alias("cell"))
    near = two.withColumn("cell", fn.explode(fn.array(fn.col("cell") - 1, fn.col("cell"), fn.col("cell") + 1)))
    pairs = one.join(near, ["word", "cell"]).where(fn.abs(fn.col("a_at") - fn.col("b_at")) < window)
    return int(pairs.groupBy("a", "b").count().where(fn.col("count") >= AT_LEAST).count())


def timed(work: Callable[[Any, Any, int], int], *arguments: Any) -> tuple[float, int]:
    """The second of two runs: the first starts workers and compiles."""
    work(*arguments)
    began = time.perf_counter()
    found = work(*arguments)
    return time.perf_counter() - began, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="of each stream")
    parser.add_argument("--window", type=int, default=2_000)
    asked = parser.parse_args()
    spark = spark_session("shedjoin")
    with tempfile.TemporaryDirectory() as folder:
        frames = []
        for seed, name in enumerate("ab"):
            make(Path(folder, f"{name}.parquet"), asked.rows, seed, name)
            frames.append(spark.read.parquet(f"{folder}/{name}.parquet"))
        mine, found = timed(ours, *frames, asked.window)
        theirs, same = timed(exploded, *frames, asked.window)
    spark.stop()
    if found != same:
        raise SystemExit(f"shed_join gives {found} pairs, Spark SQL {same}")
    print(
        f"overlap >= {AT_LEAST}, {ITEMS} words a set of {DISTINCT}, {asked.rows:,} rows a stream, window {asked.window:,}"
    )
    print(f"  shed_join                    {2 * asked.rows / mine:12,.0f} rows/s   ({found:,} pairs)")
    print(
        f"  Spark SQL, exploded          {2 * asked.rows / theirs:12,.0f} rows/s   shed_join is {theirs / mine:.1f} x as fast"
    )


if __name__ == "__main__":
    main()
