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
def is_full(io):
    return io["shed"] == io["out_shed_room"]


@inlined
def _arrived(how, st, stream):
    return st["arrived"][stream]


@in_pairs(_arrived)
@inlined
def _seen(how, st, stream):
    """The row number after the last row of a stream that had its turn."""
    return st["taken"][stream] if how["waits"] else st["arrived"][stream]


@inlined
def _tick(how, st):
    return st["tick"]


@in_pairs(_tick)
@inlined
def _began_last(how, st):
    """The instant that began last; -1: none yet."""
    return st["tick"] - 1 if how["waits"] and st["open"] == 0 else st["tick"]


@inlined
def record(how, st, io, stream, seq, ts, key, why):
    """One record; there is room for it."""
    record_at(how, st, io, stream, seq, ts, key, why, newest(how, st))


@inlined
def record_at(how, st, io, stream, seq, ts, key, why, when):
    """The same, at another time than that of the newest row."""
    at = io["shed"] * (FIELDS + how["streams"])
    mem.set_out_shed(io, at, stream)
    mem.set_out_shed(io, at + 1, seq)
    mem.set_out_shed(io, at + 2, ts)
    mem.set_out_shed(io, at + 3, key)
    mem.set_out_shed(io, at + 4, when)
    mem.set_out_shed(io, at + 5, _began_last(how, st))
    mem.set_out_shed(io, at + 6, why)
    for other in range(how["streams"]):
        mem.set_out_shed(io, at + FIELDS + other, _seen(how, st, other))
    io["shed"] += 1


@kernel
def late(how, st, io, ts):
    """Note the late rows of an instant that has begun."""
    for i in range(io["first"], io["end"]):
        stream = mem.row_stream(io, i)
        if is_late(st, stream, ts):
            seq = number(how, st, io, i, stream)
            if is_own(how, seq):
                record(how, st, io, stream, seq, ts, mem.row_key(io, i * how["width"]), LATE)
                st["late"] += 1
            io["seq"][stream] += 1
