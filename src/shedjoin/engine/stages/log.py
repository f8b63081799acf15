"""The shed log: which rows left memory early or came late, when, and why."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import LATE
from shedjoin.engine.forms import in_pairs
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.stages.clocks import is_late, is_own, number
from shedjoin.engine.stages.times import newest

#: Numbers of a record before those of each stream: see records.SHED_FIELDS.
FIELDS = 7


@inlined
def is_full(buffers):
    return buffers["shed"] == buffers["out_shed_room"]


@inlined
def _arrived(cfg, state, stream):
    return state["arrived"][stream]


@in_pairs(_arrived)
@inlined
def _seen(cfg, state, stream):
    """The row number after the last row of a stream that had its turn."""
    return state["taken"][stream] if cfg["waits"] else state["arrived"][stream]


@inlined
def _tick(cfg, state):
    return state["tick"]


@in_pairs(_tick)
@inlined
def _began_last(cfg, state):
    """The instant that began last; -1: none yet."""
    return state["tick"] - 1 if cfg["waits"] and state["open"] == 0 else state["tick"]


@inlined
def record(cfg, state, buffers, stream, seq, ts, key, why):
    """One record; there is room for it."""
    record_at(cfg, state, buffers, stream, seq, ts, key, why, newest(cfg, state))


@inlined
def record_at(cfg, state, buffers, stream, seq, ts, key, why, when):
    """The same, at another time than that of the newest row."""
    at = buffers["shed"] * (FIELDS + cfg["streams"])
    mem.set_out_shed(buffers, at, stream)
    mem.set_out_shed(buffers, at + 1, seq)
    mem.set_out_shed(buffers, at + 2, ts)
    mem.set_out_shed(buffers, at + 3, key)
    mem.set_out_shed(buffers, at + 4, when)
    mem.set_out_shed(buffers, at + 5, _began_last(cfg, state))
    mem.set_out_shed(buffers, at + 6, why)
    for other in range(cfg["streams"]):
        mem.set_out_shed(buffers, at + FIELDS + other, _seen(cfg, state, other))
    buffers["shed"] += 1


@kernel
def late(cfg, state, buffers, ts):
    """Note the late rows of an instant that has begun."""
    for i in range(buffers["first"], buffers["end"]):
        stream = mem.row_stream(buffers, i)
        if is_late(state, stream, ts):
            seq = number(cfg, state, buffers, i, stream)
            if is_own(cfg, seq):
                record(cfg, state, buffers, stream, seq, ts, mem.row_key(buffers, i * cfg["width"]), LATE)
                state["late"] += 1
            buffers["seq"][stream] += 1
