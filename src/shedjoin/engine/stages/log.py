"""The shed log: which rows left memory early or came late, when, and why."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import LATE, TIME
from shedjoin.engine.forms import in_pairs, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.protocol import BEGIN, TELL
from shedjoin.engine.records import NEVER
from shedjoin.engine.stages.clocks import is_late, is_own, number
from shedjoin.engine.stages.times import newest

#: Numbers of a record before those of each stream: see records.SHED_FIELDS.
FIELDS = 7


@inlined
def _length(cfg):
    """The numbers of a record."""
    return FIELDS + 2 * cfg["streams"]


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
def _tick(cfg, state, buffers):
    """Told clocks, rounds of expiry and the end of the input come between two instants."""
    between = buffers["turn"] == TELL or buffers["phase"] == BEGIN
    return state["tick"] - 1 if between else state["tick"]


@in_pairs(_tick)
@inlined
def _began_last(cfg, state, buffers):
    """The instant that began last; -1: none yet."""
    if cfg["waits"]:
        return state["tick"] - 1 if state["open"] == 0 else state["tick"]
    return _tick(cfg, state, buffers)


@inlined
def record(cfg, state, buffers, stream, seq, ts, key, why):
    """One record; there is room for it."""
    record_at(cfg, state, buffers, stream, seq, ts, key, why, newest(cfg, state))


@inlined
def record_at(cfg, state, buffers, stream, seq, ts, key, why, when):
    """The same, at another time than that of the newest row."""
    at = buffers["shed"] * _length(cfg)
    mem.set_out_shed(buffers, at, stream)
    mem.set_out_shed(buffers, at + 1, seq)
    mem.set_out_shed(buffers, at + 2, ts)
    mem.set_out_shed(buffers, at + 3, key)
    mem.set_out_shed(buffers, at + 4, when)
    mem.set_out_shed(buffers, at + 5, _began_last(cfg, state, buffers))
    mem.set_out_shed(buffers, at + 6, why)
    for other in range(cfg["streams"]):
        mem.set_out_shed(buffers, at + FIELDS + other, _seen(cfg, state, other))
        mem.set_out_shed(buffers, at + FIELDS + cfg["streams"] + other, NEVER)
    buffers["shed"] += 1


@inlined
def _came(cfg, state, buffers, stream):
    return buffers["old_seq"][stream]


@in_pairs(_came)
@inlined
def _came_before(cfg, state, buffers, stream):
    """The row number after the last row of another stream that came before the late rows at hand."""
    return state["taken"][stream] if cfg["waits"] else buffers["old_seq"][stream]


@kernel
def record_late(cfg, state, buffers, stream, seq, ts, key):
    """One record of a late row, and what it cannot meet: rows that came before it and that have expired. There is room for it."""
    at = buffers["shed"] * _length(cfg) + FIELDS
    record(cfg, state, buffers, stream, seq, ts, key, LATE)
    for other in range(cfg["streams"]):
        came = seq if other == stream else _came_before(cfg, state, buffers, other)
        mem.set_out_shed(buffers, at + other, came)
        limit = state["limit"][other] if mem.window_kind(cfg, other) == TIME else NEVER
        mem.set_out_shed(buffers, at + cfg["streams"] + other, limit)
    state["late"] += 1
    state["lag"] = max(state["lag"], state["clock"][stream] - ts)


@unless_plain
@kernel
def late(cfg, state, buffers, ts):
    """Note the late rows of an instant that has begun. (Before the first of them PLAIN gives way to PAIR.)"""
    for i in range(buffers["first"], buffers["end"]):
        stream = mem.row_stream(buffers, i)
        if is_late(state, stream, ts):
            seq = number(cfg, state, buffers, i, stream)
            if is_own(cfg, seq):
                record_late(cfg, state, buffers, stream, seq, ts, mem.row_key(buffers, i * cfg["width"]))
            buffers["seq"][stream] += 1
    for stream in range(cfg["streams"]):
        buffers["seq"][stream] = buffers["old_seq"][stream]
