"""The real streams that joins on Spark are run over, with the exact sizes of their joins.

Sizes and sums over the results are worked out with sorted arrays: neither Spark nor the engine is in them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shedjoin_lab.data.folder import read

#: Rows have numbers; sums of their remainders tell whether pairs are missing, doubled or wrong.
MODULI = (1009, 1013)
Sums = tuple[int, ...]
HUBS = ("ORD", "DFW", "ATL", "LAX")
YEARS = (1941, 1942, 1943, 1945)


def stream(key: Any, ts: Any) -> pa.Table:
    """Key, time in microseconds, and the number of each row; in order of time."""
    ts = np.asarray(ts, np.int64)
    order = np.argsort(ts, kind="stable")
    keys = (
        key.take(pa.array(order)) if isinstance(key, pa.Array | pa.ChunkedArray) else pa.array(np.asarray(key)[order])
    )
    at = pa.array(ts[order], pa.timestamp("us", tz="UTC"))
    return pa.table({"k": keys, "ts": at, "n": np.arange(len(order))})


def microseconds(column: pa.ChunkedArray) -> Any:
    return column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()


def ships(data: Path, years: tuple[int, ...] = (1942, 1943)) -> list[pa.Table]:
    """Reports of some years by the time of the year, on cells of ten degrees."""
    made = []
    for year in years:
        rows = read(data, "ship_weather_ww2", f"ships_{year}.parquet", ["ts", "cell10"])
        first = np.datetime64(f"{year}-01-01", "us").astype(np.int64)
        made.append(stream(rows["cell10"].combine_chunks(), microseconds(rows["ts"]) - first))
    return made


def flights(data: Path) -> list[pa.Table]:
    """Connections: where a flight goes to, and where the next one starts."""
    rows = read(data, "us_flights_2001q1", "flights.parquet", ["ts", "origin", "destination"])
    return [stream(rows[name].combine_chunks(), microseconds(rows["ts"])) for name in ("destination", "origin")]


def hubs(data: Path, chosen: tuple[str, ...]) -> list[pa.Table]:
    """Flights from each of some hubs, by where they go."""
    rows = read(data, "us_flights_2001q1", "flights.parquet", ["ts", "origin", "destination"])
    parts = [rows.filter(pc.equal(rows["origin"], hub)) for hub in chosen]
    return [stream(part["destination"].combine_chunks(), microseconds(part["ts"])) for part in parts]


def logs(data: Path, *sides: tuple[str, str]) -> list[pa.Table]:
    made = []
    for file, column in sides:
        rows = read(data, "network_wrccdc_2018", f"{file}.parquet", ["ts", column])
        key = rows[column].combine_chunks()
        made.append(stream(key if column == "orig_h" else pc.utf8_lower(key), microseconds(rows["ts"])))
    return made


def half_in_one(rows: int, hot: float) -> list[pa.Table]:
    """A row a millisecond; a share of the rows has one key, the rest one of ten thousand."""
    made = []
    for seed in (1, 2):
        draw = np.random.default_rng(seed)
        key = np.where(draw.random(rows) < hot, 0, draw.integers(1, 10_001, rows))
        made.append(stream(key, np.arange(rows) * 1000))
    return made


SOURCES: dict[str, Callable[[Path], list[pa.Table]]] = {
    "ships": ships,
    "three years": lambda data: ships(data, YEARS[:3]),
    "four years": lambda data: ships(data, YEARS),
    "flights": flights,
    "three hubs": lambda data: hubs(data, HUBS[:3]),
    "four hubs": lambda data: hubs(data, HUBS),
    "names": lambda data: logs(data, ("dns", "query"), ("ssl", "server_name")),
    "clients": lambda data: logs(data, ("dns", "orig_h"), ("ssl", "orig_h")),
    "flood": lambda data: logs(data, ("ssl", "orig_h"), ("weird", "orig_h")),
    "half": lambda _: half_in_one(200_000, 0.5),
    "even": lambda _: half_in_one(200_000, 0.0),
}
#: Data set of each source; None: generated.
SETS = {
    "ships": "ship_weather_ww2",
    "three years": "ship_weather_ww2",
    "four years": "ship_weather_ww2",
    "flights": "us_flights_2001q1",
    "three hubs": "us_flights_2001q1",
    "four hubs": "us_flights_2001q1",
    "half": None,
    "even": None,
}


def lines(tables: list[pa.Table], length: int) -> list[tuple[Any, Any]]:
    """Places and numbers of the rows of each stream, on one line: times of different keys are further apart than any window."""
    codes = pa.concat_tables([table.select(["k"]) for table in tables])["k"].combine_chunks().dictionary_encode()
    numbers = np.split(codes.indices.fill_null(-1).to_numpy(), np.cumsum([table.num_rows for table in tables])[:-1])
    times = [table["ts"].cast(pa.int64()).to_numpy() for table in tables]
    start = min(ts.min() for ts in times)
    apart = int(max(ts.max() for ts in times) - start) + 4 * length
    made = []
    for table, key, ts in zip(tables, numbers, times, strict=True):
        there = key >= 0
        order = np.lexsort((ts[there], key[there]))
        line = key[there][order].astype(np.int64) * apart + (ts[there][order] - start)
        made.append((line, table["n"].to_numpy()[there][order]))
    return made


def exact_of_many(tables: list[pa.Table], length: int) -> Sums:
    """How many results there are, and a sum over them for each stream, from sorted arrays: with the newest row of a result, of
    equal times that of the last stream, the others are ranges of its key."""
    sides = lines(tables, length)
    sums = [(line, np.concatenate(([0], np.cumsum(n % MODULI[0])))) for line, n in sides]
    total = [0] * (1 + len(sides))
    for newest, (line, n) in enumerate(sides):
        counts, ranges = [], []
        for other, (theirs, before) in enumerate(sums):
            if other == newest:
                counts.append(np.ones(line.size, np.int64))
                ranges.append(n % MODULI[0])
                continue
            low = np.searchsorted(theirs, line - length, "right")
            high = np.searchsorted(theirs, line, "right" if other < newest else "left")
            counts.append(np.maximum(high - low, 0))
            ranges.append(before[np.maximum(high, low)] - before[low])
        total[0] += int(np.prod(counts, axis=0).sum())
        for stream in range(len(sides)):
            others = [count for other, count in enumerate(counts) if other != stream]
            total[1 + stream] += int((ranges[stream] * np.prod(others, axis=0)).sum())
    return tuple(total)


def exact_sums(left: pa.Table, right: pa.Table, length: int) -> Sums:
    """How many pairs there are, and sums over them, from sorted arrays: partners of a row are a range of its key."""
    (line1, n1), (line2, n2) = lines([left, right], length)
    low, high = np.searchsorted(line2, line1 - length, "right"), np.searchsorted(line2, line1 + length, "left")
    a, b = n1 % MODULI[0], n2 % MODULI[1]
    before = np.concatenate(([0], np.cumsum(b)))
    of_right = before[high] - before[low]
    return int((high - low).sum()), int((a * (high - low)).sum()), int(of_right.sum()), int((a * of_right).sum())
