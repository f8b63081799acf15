"""Two drawn streams as Parquet files, one file a micro-batch."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

MILLISECOND = 1000
SIDES = ("left", "right")


def make(folder: Path, rows: int, keys: int, batches: int) -> None:
    """Two streams of one row a millisecond, keys by Zipf's law with exponent 1, each in as many files as micro-batches."""
    weights = 1.0 / np.arange(1, keys + 1)
    for number, name in enumerate(SIDES):
        random = np.random.default_rng(number)
        key = random.permutation(keys)[random.choice(keys, rows, p=weights / weights.sum())]
        edges = np.linspace(0, rows, batches + 1).astype(int).tolist()
        write_files(folder / name, stream_table(name, key.astype(np.int64)), edges)


def stream_table(name: str, key: np.ndarray) -> pa.Table:
    """A stream with these keys: one row a millisecond, numbered."""
    ts = pa.array(np.arange(len(key), dtype=np.int64) * MILLISECOND, pa.timestamp("us", tz="UTC"))
    return pa.table({"k": key, f"ts_{name}": ts, name: np.arange(len(key))})


def write_files(folder: Path, rows: pa.Table, edges: list[int]) -> None:
    """One file a micro-batch, in an order that Spark keeps."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, (start, end) in enumerate(pairwise(edges)):
        path = folder / f"{place:05}.parquet"
        pq.write_table(rows.slice(start, end - start), path)
        os.utime(path, (1_600_000_000 + place,) * 2)


def write_csv(folder: Path, home: Path, rows: int) -> None:
    """The first rows of both streams as CSV: key, milliseconds, row number."""
    for name in SIDES:
        whole = pa.concat_tables(pq.read_table(path) for path in sorted((folder / name).glob("*.parquet")))
        whole = whole.slice(0, rows)
        times = whole[f"ts_{name}"].cast(pa.int64()).to_numpy() // MILLISECOND
        (home / name).mkdir(parents=True)
        table = pa.table({"k": whole["k"], "ms": times, "row": whole[name]})
        pa_csv.write_csv(table, home / name / "rows.csv", pa_csv.WriteOptions(include_header=False))
