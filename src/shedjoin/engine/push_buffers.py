"""The rows of a push and the buffers for what comes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.engine import waiting_rows
from shedjoin.engine.codes import SAMPLE
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
from shedjoin.engine.weights import Weights

#: Results and shed records leave the kernel in pieces of about this many.
CHUNK = 1 << 17


def make(cfg: NDArray[Any], state: Handle, batch: Batch | None = None, *, results: int = 1, shed: int = 1) -> Handle:
    """Buffers for the rows of a batch, or for a turn without rows."""
    streams = int(cfg[0]["streams"])
    buffers = Handle(MANY_BUFFERS if state.record.dtype == MANY_STATE else PAIR_BUFFERS)
    batch = Batch.of() if batch is None else batch
    size = turns = len(batch)
    for name, column in zip(ROW_ARRAYS, batch.fields(), strict=True):
        buffers.hold(**{f"row_{name}": column.reshape(-1)})
    # A row that is not null is 0, a null NULL_ROW, one that was dropped DROPPED_ROW.
    null = batch.null.view(np.uint8)
    buffers.hold(row_null=null if batch.dropped is None else null + batch.dropped)
    if batch.values is not None:
        for name in ROW_VALUES:
            buffers.hold(**{f"row_{name}": getattr(batch.values, name)})
    if state.record.dtype == MANY_STATE:
        kinds = int(cfg[0]["types"])
        buffers.hold(row_kind=np.zeros(len(batch) if kinds else 1, np.int64) if batch.kind is None else batch.kind)
    if batch.numbers is not None:
        for name in NUMBER_ARRAYS:
            buffers.hold(**{f"row_{name}": getattr(batch.numbers, name).reshape(-1)})
    if cfg[0]["waits"]:
        turns += waiting_rows.count(state) + 1
        _add_row_at_hand(buffers, int(cfg[0]["width"]))
        buffers.hold(row_kind=np.append(buffers.arrays["row_kind"], 0))
    every = int(cfg[0]["trace_every"])
    buffers.hold(
        out_trace=np.empty((turns // every + 2 if every else 1) * (streams + 1), np.int64),
        out_fresh=np.empty(size, np.int64),
        out_ahead=np.empty(AHEAD, np.int64),
    )
    if cfg[0]["waits"]:
        buffers.resize(row_ts=size)
    hold_results(buffers, streams, results, weighted=has_weights(cfg))
    hold_shed(buffers, streams, shed)
    if state.record.dtype == MANY_STATE:
        hold_left_out(buffers, min(CHUNK, 16 * (size + 1)) if cfg[0]["basic"] or cfg[0]["rear"] else 1)
    buffers["told"] = NEVER
    buffers["guest"] = NONE
    return buffers


def _add_row_at_hand(buffers: Handle, width: int) -> None:
    """Where rows have their turn one by one: a place for the row at hand, behind those of the push."""
    for name in ROW_ARRAYS:
        column = buffers.arrays[f"row_{name}"]
        buffers.hold(**{f"row_{name}": np.append(column, np.zeros(width if name == "key" else 1, column.dtype))})


def hold_results(buffers: Handle, streams: int, size: int, *, weighted: bool) -> None:
    """Room for this many results, with weights or without."""
    buffers.hold(out_rows=np.empty(streams * size, np.int64), out_worth=np.empty(size))
    buffers.resize(out_rows=size, out_worth=size)
    buffers.hold(out_weight=np.empty(size if weighted else 1), out_newest=np.empty(size if weighted else 1, np.int8))
    if buffers.record.dtype == MANY_BUFFERS:
        buffers.hold(out_inverse=np.empty(streams * size if weighted and streams > 2 else 1))


def hold_shed(buffers: Handle, streams: int, size: int) -> None:
    """Room for this many shed records; the full buffer may be part of the log by now."""
    buffers.hold(out_shed=np.empty(size * shed_record(streams).itemsize // 8, np.int64))
    buffers.resize(out_shed=size)


def hold_left_out(buffers: Handle, size: int) -> None:
    """Room for this many stretches that rows were not compared with."""
    buffers.hold(out_left_out=np.empty(size * len(LEFT_OUT_FIELDS), np.int64))
    buffers.resize(out_left_out=size)


def take_left_out(buffers: Handle) -> NDArray[Any]:
    """What rows were not compared with. The buffer is empty then."""
    count = int(buffers["left_out"])
    buffers["left_out"] = 0
    return buffers.arrays["out_left_out"].view(LEFT_OUT_RECORD)[:count].copy()


def has_weights(cfg: NDArray[Any]) -> bool:
    """Whether results have weights."""
    return bool(cfg[0]["organisation"] == SAMPLE)


def take_results(
    buffers: Handle, streams: int, *, weighted: bool
) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.float64], Weights | None]:
    """Results by row numbers, a column a stream; their importance and their weights. The buffer is empty then."""
    count = int(buffers["results"])
    buffers["results"] = 0
    rows = tuple(column[:count].copy() for column in buffers.arrays["out_rows"].reshape(streams, -1))
    worth = buffers.arrays["out_worth"][:count].copy()
    return rows, worth, _weights(buffers, streams, count) if weighted else None


def _weights(buffers: Handle, streams: int, count: int) -> Weights:
    each = np.empty((count, 0))
    if streams > 2:
        each = buffers.arrays["out_inverse"].reshape(streams, -1)[:, :count].T.copy()
    weight, newest = (buffers.arrays[f"out_{name}"][:count].copy() for name in ("weight", "newest"))
    return Weights(weight, newest, each)


def take_shed(buffers: Handle, streams: int) -> NDArray[Any]:
    """What was shed. A buffer that is half full becomes part of the log; of others a copy does, to keep no empty room."""
    buffer, count = buffers.arrays["out_shed"].view(shed_record(streams)), int(buffers["shed"])
    buffers["shed"] = 0
    return buffer[:count] if 2 * count > buffer.size else buffer[:count].copy()


def take_trace(buffers: Handle, streams: int) -> NDArray[np.int64]:
    """(time, what is stored of each stream), a line each."""
    lines: NDArray[np.int64] = buffers.arrays["out_trace"].reshape(-1, streams + 1)[: int(buffers["traces"])].copy()
    return lines
