"""The rows of a push on their way through the kernel, and what comes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.handle import Handle
from shedjoin.engine.memory import grow_seen
from shedjoin.engine.nway import growth, loop
from shedjoin.engine.nway.batch import MultiBatch
from shedjoin.engine.nway.plan import NPlan
from shedjoin.engine.nway.state import IO_RECORD, NSHED_RECORD, ROW_ARRAYS

#: Results and shed records leave the kernel in pieces of about this many.
CHUNK = 1 << 16
#: Rows and importance of results, and shed records.
Piece = tuple[NDArray[Any], NDArray[Any], list[NDArray[Any]]]


def traffic(plan: NPlan, batch: MultiBatch, results: int, shed: int = 1024) -> Handle:
    """The rows of a push and the buffers for what comes of them."""
    size = len(batch)
    io = Handle(IO_RECORD)
    columns = (*batch.fields(), np.empty(size, np.int64), np.empty(size, np.int64))
    for name, column in zip(ROW_ARRAYS, columns, strict=True):
        io.hold(**{f"row_{name}": column.reshape(-1)})
    io.hold(
        out_rows=np.empty(results * plan.streams, np.int64),
        out_worth=np.empty(results),
        out_shed=np.empty(shed, NSHED_RECORD),
        out_fresh=np.empty(size, np.int64),
    )
    io.resize(**{name: len(array) for name, array in io.arrays.items()})
    return io


def drive(
    plan: NPlan, how: NDArray[Any], st: Handle, io: Handle, told: NDArray[np.int64] | None = None
) -> Iterator[Piece]:
    """Run the rows, or tell the clocks: results and shed records as they come. The last piece may be empty."""
    shed: list[NDArray[Any]] = []
    while True:
        if told is None:
            need = loop.advance(how, st.for_kernel(), io.for_kernel())
        else:
            need = loop.advance_clocks(how, st.for_kernel(), io.for_kernel(), told)
        if need in (loop.DONE, loop.NEED_SHED):
            shed.append(io.arrays["out_shed"][: int(io["shed"])].copy())
            io["shed"] = 0
        if need in (loop.DONE, loop.NEED_RESULTS):
            count = int(io["results"])
            io["results"] = 0
            rows = io.arrays["out_rows"][: count * plan.streams].reshape(-1, plan.streams).copy()
            yield rows, io.arrays["out_worth"][:count].copy(), shed
            shed = []
        if need == loop.DONE:
            return
        _make_room(plan, how, st, io, need)


def _make_room(plan: NPlan, how: NDArray[Any], st: Handle, io: Handle, need: int) -> None:
    """Give the kernel what it needs."""
    wanted = int(io["wanted"])
    if need == loop.NEED_SHED:
        size = max(wanted, CHUNK)
        if io.arrays["out_shed"].size < size:
            io.hold(out_shed=np.empty(size, NSHED_RECORD))
            io.resize(out_shed=size)
    elif need == loop.NEED_POOL or need == loop.NEED_CELLS:
        growth.grow_pool(plan, how, st, wanted)
    elif need == loop.NEED_SLOTS:
        growth.make_room_for_slots(how, st, wanted)
    elif need == loop.NEED_SEEN:
        grow_seen(st, wanted)
    elif need == loop.NEED_RINGS:
        growth.grow_rings(how, st, wanted)
    elif need == loop.NEED_EXPIRY:
        growth.grow_expiry(st, wanted)
    elif need == loop.NEED_MARKS:
        growth.grow_marks(st)
    elif need == loop.NEED_BUCKETS:
        growth.grow_buckets(plan, how, st, wanted)


def compete(plan: NPlan, how: NDArray[Any], st: Handle, nothing: MultiBatch) -> NDArray[Any]:
    """Evict down to the caps as they are now; returns the log, which has room for all: nothing needs emptying midway."""
    io = traffic(plan, nothing, 1, shed=int(st["resident"].sum()) + 1)
    io["phase"] = loop.SHRINK
    loop.advance(how, st.for_kernel(), io.for_kernel())
    return io.arrays["out_shed"][: int(io["shed"])].copy()
