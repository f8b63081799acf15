"""us_flights_2001q1: connections (destination = origin), and one stream a hub for joins of several streams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shedjoin.errors import DataError
from shedjoin.workloads.workload import Workload, columns
from shedjoin_lab.data.columns import numbered, times, worth
from shedjoin_lab.data.folder import read

DATA_SET = "us_flights_2001q1"
FIRST = np.datetime64("2001-01-01", "m").astype(np.int64)


def flight_connections(folder: Path, *, distance: bool = False) -> Workload:
    """All flights keyed on destination (left) and on origin (right); `ts` in minutes of local time at the origin.

    With `distance`, importance is 1 + miles flown.
    """
    table = _flights(folder)
    destination, origin = numbered(table["destination"], table["origin"])
    ts = times(table["ts"], "m") - FIRST
    importance = worth(table["distance_mi"]) if distance else None
    return Workload(tuple(columns(np.asarray(key), ts, importance) for key in (destination, origin)))


def flights_from_hubs(folder: Path, hubs: tuple[str, ...] = ("ORD", "DFW", "ATL", "LAX")) -> Workload:
    """One stream a hub: its departures keyed on destination, numbered alike in all streams. For golab2003's joins."""
    table = _flights(folder)
    (destination,) = numbered(table["destination"])
    ts = times(table["ts"], "m") - FIRST
    streams = []
    for hub in hubs:
        from_hub = np.asarray(pc.equal(table["origin"].cast(pa.string()), hub))
        if not from_hub.any():
            raise DataError(f"no flight leaves from {hub!r} in {DATA_SET}: hubs are IATA codes such as ORD")
        streams.append(columns(np.asarray(destination)[from_hub], ts[from_hub]))
    return Workload(tuple(streams))


def _flights(folder: Path) -> pa.Table:
    return read(folder, DATA_SET, "flights.parquet", ["ts", "origin", "destination", "distance_mi"])
