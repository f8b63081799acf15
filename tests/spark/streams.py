"""Streams in files, read a few files at a time; and what an exact join gives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SECOND = 1_000_000


def side(seed: int, count: int, keys: int, name: str, *, lag: int = 0, step: int = 20_000) -> pa.Table:
    """A stream of skewed keys, one row every so many microseconds, shuffled within `lag`."""
    random = np.random.default_rng(seed)
    ts = np.arange(count, dtype=np.int64) * step
    if lag:
        ts = ts[np.argsort(ts + random.integers(0, lag, count), kind="stable")]
    key = (random.pareto(1.0, count) * 3).astype(np.int64) % keys
    return pa.table({"k": key, "ts": pa.array(ts, pa.timestamp("us", tz="UTC")), name: np.arange(count)})


def write(folder: Path, table: pa.Table, files: int, first: int = 0) -> None:
    """The table as files, in the order in which Spark will read them."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = np.linspace(0, table.num_rows, files + 1).astype(int)
    for number, (start, end) in enumerate(pairwise(edges.tolist())):
        path = folder / f"{first + number:05}.parquet"
        pq.write_table(table.slice(start, end - start), path)
        os.utime(path, (1_600_000_000 + first + number,) * 2)


def read(spark: Any, folder: Path, each: int = 1) -> Any:
    """A stream of these files, so many a micro-batch. Its columns are those of the first, as Spark would have it."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(pq.read_schema(min(folder.glob("*.parquet"))))
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", each).parquet(str(folder))


def exact(left: pa.Table, right: pa.Table, length: int) -> list[tuple[int, int]]:
    """(a, b) of all pairs, worked out with sorted arrays: neither Spark nor the engine is in it."""
    sides = []
    for table in (left, right):
        key, ts = table["k"].to_numpy(), table["ts"].cast(pa.int64()).to_numpy()
        name = table.column(2).to_numpy()
        order = np.lexsort((ts, key))
        sides.append((key[order], ts[order], name[order]))
    pairs = []
    for key in np.intersect1d(sides[0][0], sides[1][0]):
        (one, two) = ((ts[k == key], name[k == key]) for k, ts, name in sides)
        low = np.searchsorted(two[0], one[0] - length, side="right")
        high = np.searchsorted(two[0], one[0] + length, side="left")
        for name, a, b in zip(one[1].tolist(), low.tolist(), high.tolist(), strict=True):
            pairs += [(name, other) for other in two[1][a:b].tolist()]
    return sorted(pairs)


def write_both(folder: Path, tables: Sequence[pa.Table], files: int, length: int) -> list[tuple[int, int]]:
    """Two streams in so many files each; the pairs of their exact join."""
    for name, table in zip("lr", tables, strict=True):
        write(folder / name, table, files)
    return exact(tables[0], tables[1], length)


def read_both(spark: Any, folder: Path) -> list[Any]:
    return [read(spark, folder / name) for name in "lr"]


def run(joined: Any, checkpoint: Path, output: Path) -> Any:
    """Run a query over all there is; results go to files. Returns the query."""
    query = (
        joined.writeStream.format("parquet")
        .option("path", str(output))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def begin(spark: Any, folder: Path, place: Path, joins: dict[str, dict[str, Any]], **more: Any) -> list[Any]:
    """Start these joins of the streams in a folder, each with a directory of its own.

    `streams` says of which ones it is, and `watermark`, if it is there, how far their rows may lag.
    """
    from shedjoin.spark import start

    queries = []
    for name, join in joins.items():
        frames = [read(spark, folder / one) for one in join["streams"]]
        if "watermark" in join:
            frames = [frame.withWatermark("ts", join["watermark"]) for frame in frames]
        options = {key: value for key, value in join.items() if key not in ("streams", "watermark")}
        queries.append(start(*frames, output=place / name, **options, **more))
    return queries


def rows_of(frame: Any, names: Sequence[str] = ("a", "b", "c")) -> list[tuple[int, ...]]:
    found = frame.select(*names).toArrow()
    return sorted(zip(*(found[name].to_pylist() for name in names), strict=True))


def pairs(spark: Any, output: Path, names: Sequence[str] = ("a", "b")) -> list[tuple[int, ...]]:
    return rows_of(spark.read.parquet(str(output)), names)
