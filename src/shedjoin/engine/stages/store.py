"""The memory: tuples are stored, expire, and go."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import KEY, LIFE
from shedjoin.engine.forms import in_pairs, in_plain, only_many
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import layout, storage
from shedjoin.engine.records import GONE, NONE
from shedjoin.engine.stages import clocks, estimate, priority
from shedjoin.engine.stages.times import number_of, stamp_of
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


@only_many
@inlined
def _note_number(how, st, io, x):
    """Dual windows: what row windows count the tuple by."""
    if how["let_in"]:
        mem.window_number(st)[x] = mem.waiting(st, io["row"])["number"]


@only_many
@inlined
def _stocked(how, st, x, stream, change):
    """A queue, and what is learned, may ask how many tuples of a value are stored."""
    if st["stock_room"] > 1:
        for number in range(storage.values_of(how, st, x)):
            v = storage.value_of(how, st, x, number)
            if v != NONE:
                mem.stock(st)[v * how["streams"] + stream] += change


@inlined
def _free(how, st, stream, x):
    layout.give_place(how, st, stream, x)


@in_pairs(_free)
@inlined
def _give_back(how, st, stream, x):
    """The place of a tuple is free. While an instant is open others know the tuple by its place: that waits until it closes."""
    if how["waits"] and st["open"]:
        mem.pool(st, x)["queued"] = GONE
        mem.gone(st)[st["gone_count"]] = x
        st["gone_count"] += 1
    else:
        layout.give_place(how, st, stream, x)


@kernel
def free_gone(how, st):
    """The instant is closed: nothing knows the tuples that left in it any more."""
    for i in range(st["gone_count"]):
        x = int(mem.gone(st)[i])
        layout.give_place(how, st, int(mem.pool(st, x)["stream"]), x)
    st["gone_count"] = 0


@inlined
def add(how, st, io, i, v, stream, ts, seq, met):
    """Store a row; returns its place in the pool."""
    x = layout.take_place(how, st, io, stream)
    importance, size = mem.row_importance(io, i), mem.row_bytes(io, i)
    t = mem.pool(st, x)
    t["arrival"] = st["arrival"]
    t["stream"] = stream
    t["bytes"] = size
    t["met"] = met
    _note_number(how, st, io, x)
    g = layout.put(how, st, io, i, v, stream, ts, seq, importance, x)
    t["group"] = g
    expiry_ring.enter(st, x, stream, g, stamp_of(how, stream, ts, number_of(how, st, x, seq)))
    st["resident"][stream] += 1
    st["stored_bytes"][stream] += size
    priority.enter(how, st, x, stream, g, ts, seq, importance)
    estimate.stored(how, st, x, stream, 1.0)
    _enter_timeline(how, st, x, stream, ts, seq)
    _stocked(how, st, x, stream, 1)
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
    _stocked(how, st, x, stream, -1)
    layout.drop_empty(how, st, g)
    _give_back(how, st, stream, x)


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
