"""From Arrow columns to the arrays of a workload."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shedjoin.workloads.workload import Columns, Workload, columns


def times(column: pa.ChunkedArray, unit: str) -> NDArray[np.int64]:
    """Times as whole numbers of `unit`: a numpy unit such as "h", "m", "s", "ms" or "us"."""
    return np.asarray(column.to_numpy()).astype(f"datetime64[{unit}]").astype(np.int64)


def whole(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """A column of whole numbers without nulls."""
    return np.asarray(column.to_numpy()).astype(np.int64)


def worth(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Importance from a measured quantity: 1 + its size, 1 where it was not measured or is negative."""
    values = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy())
    return np.asarray(1.0 + np.maximum(np.nan_to_num(values), 0.0), dtype=np.float64)


def numbered(*texts: pa.ChunkedArray) -> list[pa.Array]:
    """Number the different texts of several columns from 0, in alphabetical order; nulls stay null."""
    flat = [text.cast(pa.string()).combine_chunks() for text in texts]
    known = pc.unique(pa.concat_arrays([part.drop_null() for part in flat]))
    known = known.take(pc.sort_indices(known))
    return [pc.index_in(part, known).cast(pa.int64()) for part in flat]


def in_step(streams: list[Columns]) -> Workload:
    """The i-th row of one stream beside the i-th of the others, one each per time unit, with frequency tables.

    Streams are cut to the length of the shortest. das2003, section 4.5, joins its weather data this way and takes the
    frequency table of the data as the true one.
    """
    rows = min(len(stream["ts"]) for stream in streams)
    ts = np.arange(rows, dtype=np.int64)
    cut = tuple(columns(stream["key"][:rows], ts, stream["importance"][:rows]) for stream in streams)
    domain = 1 + max(int(stream["key"].max(initial=0)) for stream in cut)
    tables = tuple(np.bincount(stream["key"], minlength=domain) / max(rows, 1) for stream in cut)
    return Workload(cut, probabilities=tables)
