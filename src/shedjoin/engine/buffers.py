"""The rows of a push and the buffers for what comes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.engine import waiting_rows
from shedjoin.engine.handle import Handle
from shedjoin.engine.layouts.keyed import AHEAD
from shedjoin.engine.records import (
    LEFT_OUT_FIELDS,
    LEFT_OUT_RECORD,
    MANY_BUFFERS,
    MANY_STATE,
    NEVER,
    NONE,
    NUMBER_ARRAYS,
    PAIR_BUFFERS,
    ROW_ARRAYS,
    ROW_VALUES,
    shed_record,
)

#: Results and shed records leave the kernel in pieces of about this many.
CHUNK = 1 << 17


def make(how: NDArray[Any], st: Handle, batch: Batch | None = None, *, results: int = 1, shed: int = 1) -> Handle:
    """Buffers for the rows of a batch, or for a turn without rows."""
    streams = int(how[0]["streams"])
    io = Handle(MANY_BUFFERS if st.record.dtype == MANY_STATE else PAIR_BUFFERS)
    batch = Batch.of() if batch is None else batch
    size = turns = len(batch)
    for name, column in zip(ROW_ARRAYS, batch.fields(), strict=True):
        io.hold(**{f"row_{name}": column.reshape(-1)})
    if batch.values is not None:
        for name in ROW_VALUES:
            io.hold(**{f"row_{name}": getattr(batch.values, name)})
    if st.record.dtype == MANY_STATE:
        kinds = int(how[0]["types"])
        io.hold(row_kind=np.zeros(len(batch) if kinds else 1, np.int64) if batch.kind is None else batch.kind)
    if batch.numbers is not None:
        for name in NUMBER_ARRAYS:
            io.hold(**{f"row_{name}": getattr(batch.numbers, name).reshape(-1)})
    if how[0]["waits"]:
        turns += waiting_rows.count(st) + 1
        _add_row_at_hand(io, int(how[0]["width"]))
        io.hold(row_kind=np.append(io.arrays["row_kind"], 0))
    every = int(how[0]["trace_every"])
    io.hold(
        out_trace=np.empty((turns // every + 2 if every else 1) * (streams + 1), np.int64),
        out_fresh=np.empty(size, np.int64),
        out_ahead=np.empty(AHEAD, np.int64),
    )
    io.resize(**{name: len(array) for name, array in io.arrays.items()})
    if how[0]["waits"]:
        io.resize(row_ts=size)
    hold_results(io, streams, results)
    hold_shed(io, streams, shed)
    if st.record.dtype == MANY_STATE:
        hold_left_out(io, min(CHUNK, 16 * (size + 1)) if how[0]["basic"] or how[0]["rear"] else 1)
    io["told"] = NEVER
    io["guest"] = NONE
    return io


def _add_row_at_hand(io: Handle, width: int) -> None:
    """Where rows have their turn one by one: a place for the row at hand, behind those of the push."""
    for name in ROW_ARRAYS:
        column = io.arrays[f"row_{name}"]
        io.hold(**{f"row_{name}": np.append(column, np.zeros(width if name == "key" else 1, column.dtype))})


def hold_results(io: Handle, streams: int, size: int) -> None:
    """Room for this many results."""
    io.hold(out_rows=np.empty(streams * size, np.int64), out_worth=np.empty(size))
    io.resize(out_rows=size, out_worth=size)


def hold_shed(io: Handle, streams: int, size: int) -> None:
    """Room for this many shed records; the full buffer may be part of the log by now."""
    io.hold(out_shed=np.empty(size * shed_record(streams).itemsize // 8, np.int64))
    io.resize(out_shed=size)


def hold_left_out(io: Handle, size: int) -> None:
    """Room for this many stretches that rows were not compared with."""
    io.hold(out_left_out=np.empty(size * len(LEFT_OUT_FIELDS), np.int64))
    io.resize(out_left_out=size)


def take_left_out(io: Handle) -> NDArray[Any]:
    """What rows were not compared with. The buffer is empty then."""
    count = int(io["left_out"])
    io["left_out"] = 0
    return io.arrays["out_left_out"].view(LEFT_OUT_RECORD)[:count].copy()


def take_results(io: Handle, streams: int) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.float64]]:
    """Results by row numbers, a column a stream, and their importance. The buffer is empty then."""
    count = int(io["results"])
    io["results"] = 0
    rows = io.arrays["out_rows"].reshape(streams, -1)
    return tuple(column[:count].copy() for column in rows), io.arrays["out_worth"][:count].copy()


def take_shed(io: Handle, streams: int) -> NDArray[Any]:
    """What was shed. A buffer that is half full becomes part of the log; of others a copy does, to keep no empty room."""
    buffer, count = io.arrays["out_shed"].view(shed_record(streams)), int(io["shed"])
    io["shed"] = 0
    return buffer[:count] if 2 * count > buffer.size else buffer[:count].copy()


def take_trace(io: Handle, streams: int) -> NDArray[np.int64]:
    """(time, what is stored of each stream), a line each."""
    lines: NDArray[np.int64] = io.arrays["out_trace"].reshape(-1, streams + 1)[: int(io["traces"])].copy()
    return lines
