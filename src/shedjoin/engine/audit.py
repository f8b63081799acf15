"""The audit of a state that comes from outside: what kernels rely on, and do not check, is checked once.

Kernels use numbers out of their arrays as places in other arrays, and follow links until they end. In a state that they made
themselves this is safe. A snapshot has a checksum against damage, but anyone can work out a checksum: after the audit it is
safe to run whatever passes. It takes time in proportion to the state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST
from shedjoin.engine import audit_memory, audit_order, audit_weigh, memory
from shedjoin.engine.codes import CUMULATIVE, ROW, WHY
from shedjoin.engine.consistent import require, within
from shedjoin.engine.forms import is_plain
from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.engine.plan import Plan
from shedjoin.engine.state import COUNTERS, NEVER, SHED_RECORD
from shedjoin.errors import SnapshotError

#: No join has counted so far: sums of two such numbers do not overflow.
ENDLESS = 2**62


def audit(plan: Plan, how: NDArray[Any], st: Handle) -> None:
    """Make sure that kernels can run on this state; raises SnapshotError, with what is wrong, where they cannot.

    Parameters
    ----------
    plan, how
        The join that the state is to be of, and its settings.
    st
        Arrays of the right dtypes, of any shape and contents. How long they are is measured anew; LIFE's tournaments are
        played again. Nothing else is changed.
    """
    _check_shapes(plan, how, st)
    memory.measure(st)
    _check_numbers(how[0], st)
    _check_clocks(how[0], st)
    _check_schedule(plan, st)
    stock = audit_memory.check(how[0], st)
    if is_plain(how):
        audit_memory.check_plain(st, stock)
    audit_order.check(how[0], st, stock)
    audit_weigh.check(how[0], st, stock)


def checked_log(rows: Any) -> NDArray[Any]:
    """Shed records that were saved as plain data, to be told with the next push."""
    try:
        log = np.array([tuple(row) for row in rows], SHED_RECORD)
    except (TypeError, ValueError, OverflowError) as reason:
        raise SnapshotError(f"the shed records in the snapshot's header make no sense: {reason}") from None
    require(log.ndim == 1, "its shed records are not a list")
    require(within(log["stream"], 0, STREAMS), f"a shed record is of a stream other than 0 to {STREAMS - 1}")
    require(within(log["why"], 0, len(WHY)), f"a shed record has a reason other than 0 to {len(WHY) - 1}")
    return log


def _check_shapes(plan: Plan, how: NDArray[Any], st: Handle) -> None:
    shape = {name: array.shape for name, array in st.arrays.items()}
    room = {name: shape[name][-1] if shape[name] else 0 for name in ("pool", "keys", "expiry", "seen")}
    remembers = memory.remembers_arrivals(how)
    for name, size in room.items():
        if name != "seen" or remembers:
            fits = size >= memory.LEAST and size & (size - 1) == 0
            require(fits, f"{name} has {size} places, not a power of two from {memory.LEAST} on")
    until = plan.schedule or (np.zeros(1, np.int64), np.zeros(1, np.int64))
    expected: dict[str, tuple[int, ...]] = {
        **memory.shapes(how, room["pool"], room["keys"], plan.lateness > 0),
        "shelf": (st.arrays["shelf"].size,),
        "expiry": (STREAMS, room["expiry"]),
        "seen": (STREAMS, room["seen"] if remembers else 1),
        "sketch": (STREAMS * plan.weigher.depth * plan.weigher.width,),
        "model": memory.model_shape(how),
        "until0": until[0].shape,
        "until1": until[1].shape,
    }
    for name, right in expected.items():
        require(shape[name] == right, f"{name} has the shape {shape[name]} where {right} belongs")


def _check_numbers(how: Any, st: Handle) -> None:
    """The counters that belong to no array."""
    for name in (*COUNTERS, "tick", "arrival", "peak_tuples", "peak_bytes"):
        require(0 <= st[name] <= ENDLESS, f"{name} is {int(st[name])}")
    arrived = [int(count) for count in st["arrived"]]
    require(min(arrived) >= 0 and max(arrived) <= LATEST, f"{arrived[0]} and {arrived[1]} rows have arrived")
    require(sum(arrived) == st["rows"], f"of {int(st['rows'])} rows, {arrived[0]} and {arrived[1]} have arrived")
    require(st["arrival"] == st["rows"], f"{int(st['rows'])} rows have arrived, but {int(st['arrival'])} were numbered")
    require(st["tick"] <= st["rows"], f"{int(st['rows'])} rows took {int(st['tick'])} instants")
    require(st["touched_count"] == 0, "keys are touched between two instants")
    require(st["random"] != 0, "the random state is 0, which it never becomes")
    require(not np.isnan(st["importance"]), "the summed importance is not a number")
    last_tick = int(st["tick"]) if how["organisation"] == CUMULATIVE else 0
    require(0 <= st["lift_tick"] <= last_tick, f"priorities are lifted from the instant {int(st['lift_tick'])} on")


def _check_clocks(how: Any, st: Handle) -> None:
    """Clocks, and what remaining life is counted from, which follows from them."""
    clocks = [int(clock) for clock in st["clock"]]
    for clock in clocks:
        require(clock == NEVER or -LATEST <= clock <= LATEST, f"a clock shows {clock}")
    newest = max(clocks)
    lagging = NEVER if how["max_skew"] < 0 or newest == NEVER else newest - int(how["max_skew"])
    for stream in range(STREAMS):
        base = int(st["base"][stream])
        if base == NEVER and st["rows"] == 0:
            continue
        other = max(clocks[1 - stream], lagging)
        by_time = clocks[stream] if other == NEVER else other - int(how["lateness"])
        right = int(st["arrived"][stream]) if how[f"kind{stream}"] == ROW else by_time
        require(base == right, f"life on stream {stream} is counted from {base}, where {right} follows from the clocks")


def _check_schedule(plan: Plan, st: Handle) -> None:
    if plan.schedule is None:
        return
    for stream, until in enumerate(plan.schedule):
        require(np.array_equal(st.arrays[f"until{stream}"], until), f"the schedule of stream {stream} is not Replay's")
        require(st["arrived"][stream] <= until.size, f"more rows of stream {stream} have arrived than Replay knows")
