"""The memory: tuples are stored, expire, and go."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import KEY, LIFE
from shedjoin.engine.forms import in_plain, only_many
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import layout, storage
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import clocks, estimate, priority
from shedjoin.engine.stages.times import stamp_of
from shedjoin.engine.structures import expiry_ring, timeline


@only_many
@inlined
def _enter_timeline(how, st, x, stream, ts, seq):
    if how["basic"] > 0:
        timeline.enter(how, st, x, stream, ts, seq)


@only_many
@inlined
def _leave_timeline(how, st, x, stream):
    if how["basic"] > 0:
        card = storage.card(how, st, x)
        timeline.leave(how, st, stream, card["ts"], card["seq"])


@inlined
def add(how, st, io, i, v, stream, ts, seq, met):
    """Store a row; returns its place in the pool."""
    x = layout.take_place(how, st, stream)
    importance, size = mem.row_importance(io, i), mem.row_bytes(io, i)
    t = mem.pool(st, x)
    t["arrival"] = st["arrival"]
    t["stream"] = stream
    t["bytes"] = size
    t["met"] = met
    g = layout.put(how, st, io, i, v, stream, ts, seq, importance, x)
    t["group"] = g
    expiry_ring.enter(st, x, stream, g, stamp_of(how, stream, ts, seq))
    st["resident"][stream] += 1
    st["stored_bytes"][stream] += size
    priority.enter(how, st, x, stream, g, ts, seq, importance)
    estimate.stored(how, st, x, stream, 1.0)
    _enter_timeline(how, st, x, stream, ts, seq)
    return x


@inlined
def _discard(how, st, x, stream):
    t = mem.pool(st, x)
    g = int(t["group"])
    _leave_timeline(how, st, x, stream)
    priority.leave(how, st, x, stream, g)
    layout.take_out(how, st, stream, g, x)
    st["resident"][stream] -= 1
    expiry_ring.leave(st, x, stream)
    st["stored_bytes"][stream] -= t["bytes"]
    if how["organisation"] == KEY or how["organisation"] == LIFE:
        priority.reweigh(how, st, stream, g)
    estimate.stored(how, st, x, stream, -1.0)
    layout.drop_empty(how, st, g)
    layout.give_place(how, st, stream, x)


@in_plain(_discard)
@kernel
def discard(how, st, x, stream):
    """Take a tuple out of memory and out of everything that follows it."""
    _discard(how, st, x, stream)


@inlined
def is_over(st, stream, stamp):
    """Whether a tuple can meet nothing any more."""
    return stamp <= st["limit"][stream]


@only_many
@inlined
def _note_gone(st, stream):
    """Lists let go of what expires now, and of nothing that is stored later."""
    st["gone_to"][stream] = st["stored_to"][stream]


@inlined
def _expire(how, st):
    st["expirations"] += 1
    for stream in range(how["streams"]):
        clocks.set_limit(how, st, stream)
        _note_gone(st, stream)
        while True:
            x, stamp = expiry_ring.following(st, stream)
            if x == NONE or not is_over(st, stream, stamp):
                break
            expiry_ring.look_ahead(st, stream)
            discard(how, st, x, stream)
            st["expired"] += 1


@in_plain(_expire)
@kernel
def expire(how, st):
    """Tuples that can meet nothing any more go."""
    _expire(how, st)
