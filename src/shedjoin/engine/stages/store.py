"""The memory: tuples are stored, expire, and go."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import INDEXED, KEY, LIFE
from shedjoin.engine.forms import in_pairs, in_plain, only_many, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import indexed, layout, storage
from shedjoin.engine.protocol import DONE, END
from shedjoin.engine.records import GONE, NONE
from shedjoin.engine.stages import clocks, estimate, priority, remember, unmatched
from shedjoin.engine.stages.times import number_of, stamp_of
from shedjoin.engine.structures import expiry_ring, timeline

#: The end of all windows.
FOREVER = 2**62


@only_many
@inlined
def _enter_timeline(cfg, state, x, stream, ts, seq):
    if cfg["basic"] > 0:
        timeline.enter(cfg, state, x, stream, ts, number_of(cfg, state, x, seq))


@only_many
@inlined
def _leave_timeline(cfg, state, x, stream):
    if cfg["basic"] > 0:
        card = storage.card(cfg, state, x)
        timeline.leave(cfg, state, stream, card["ts"], number_of(cfg, state, x, card["seq"]))


@only_many
@inlined
def _note_number(cfg, state, buffers, x):
    """Dual windows: what row windows count the tuple by."""
    if cfg["let_in"]:
        mem.window_number(state)[x] = mem.waiting(state, buffers["row"])["number"]


@only_many
@inlined
def _stocked(cfg, state, x, stream, change):
    """A queue, and what is learned, may ask how many tuples of a value are stored."""
    if state["stock_room"] <= 1:
        return
    if cfg["layout"] == INDEXED and cfg["alone"]:
        indexed.restock(cfg, state, stream, x, change)
    else:
        for number in range(storage.values_of(cfg, state, x)):
            v = storage.value_of(cfg, state, x, number)
            if v != NONE:
                mem.stock(state)[v * cfg["streams"] + stream] += change


@inlined
def _free(cfg, state, stream, x):
    layout.give_place(cfg, state, stream, x)


@in_pairs(_free)
@inlined
def _give_back(cfg, state, stream, x):
    """The place of a tuple is free. While an instant is open others know the tuple by its place: that waits until it closes."""
    if cfg["waits"] and state["open"]:
        mem.pool(state, x)["queued"] = GONE
        mem.gone(state)[state["gone_count"]] = x
        state["gone_count"] += 1
    else:
        layout.give_place(cfg, state, stream, x)


@kernel
def free_gone(cfg, state):
    """The instant is closed: nothing knows the tuples that left in it any more."""
    for i in range(state["gone_count"]):
        x = int(mem.gone(state)[i])
        layout.give_place(cfg, state, int(mem.pool(state, x)["stream"]), x)
    state["gone_count"] = 0


@inlined
def _key_bytes(cfg, state, g, left):
    """What a key counts on a stream where its first row was stored, or its last one left: only this many are there."""
    return cfg["key_bytes"] if mem.buckets(state, g)["count"] == left else 0


@inlined
def add(cfg, state, buffers, i, v, stream, ts, seq, met):
    """Store a row; returns its place in the pool."""
    x = layout.take_place(cfg, state, buffers, stream)
    importance, size = mem.row_importance(buffers, i), mem.row_bytes(buffers, i)
    t = mem.pool(state, x)
    t["arrival"] = state["arrival"]
    t["stream"] = stream
    t["bytes"] = size
    t["met"] = met
    _note_number(cfg, state, buffers, x)
    g = layout.put(cfg, state, buffers, i, v, stream, ts, seq, importance, x)
    t["group"] = g
    expiry_ring.enter(state, x, stream, g, stamp_of(cfg, stream, ts, number_of(cfg, state, x, seq)))
    state["resident"][stream] += 1
    state["stored_bytes"][stream] += size + cfg["row_bytes"]
    if cfg["key_bytes"] > 0:
        state["stored_bytes"][stream] += _key_bytes(cfg, state, g, 1)
    priority.enter(cfg, state, x, stream, g, ts, seq, importance)
    estimate.stored(cfg, state, x, stream, 1.0)
    _enter_timeline(cfg, state, x, stream, ts, seq)
    _stocked(cfg, state, x, stream, 1)
    unmatched.enter(cfg, state, buffers, stream, x)
    return x


@inlined
def _discard(cfg, state, x, stream):
    t = mem.pool(state, x)
    g = int(t["group"])
    _leave_timeline(cfg, state, x, stream)
    priority.leave(cfg, state, x, stream, g)
    layout.take_out(cfg, state, stream, g, x)
    state["resident"][stream] -= 1
    expiry_ring.leave(state, x, stream)
    state["stored_bytes"][stream] -= t["bytes"] + cfg["row_bytes"]
    if cfg["key_bytes"] > 0:
        state["stored_bytes"][stream] -= _key_bytes(cfg, state, g, 0)
    remember.note_removal(cfg, state, x)
    if cfg["organisation"] == KEY or cfg["organisation"] == LIFE:
        priority.reweigh(cfg, state, stream, g)
    estimate.stored(cfg, state, x, stream, -1.0)
    _stocked(cfg, state, x, stream, -1)
    layout.drop_empty(cfg, state, g)
    _give_back(cfg, state, stream, x)


@in_plain(_discard)
@kernel
def discard(cfg, state, x, stream):
    """Take a tuple out of memory and out of everything that follows it."""
    _discard(cfg, state, x, stream)


@inlined
def is_over(state, stream, stamp):
    """Whether a tuple can meet nothing any more."""
    return stamp <= state["limit"][stream]


@only_many
@inlined
def _note_gone(state, stream):
    """Lists let go of what expires now, and of nothing that is stored later."""
    state["gone_to"][stream] = state["stored_to"][stream]


@inlined
def _expire(cfg, state, buffers):
    for stream in range(cfg["streams"]):
        clocks.set_limit(cfg, state, stream)
        if buffers["turn"] == END:
            state["limit"][stream] = FOREVER
        _note_gone(state, stream)
        while True:
            x, stamp = expiry_ring.following(state, stream)
            if x == NONE or not is_over(state, stream, stamp):
                break
            expiry_ring.look_ahead(state, stream)
            if cfg["counts"] and mem.judged(cfg, stream):
                need = unmatched.expire(cfg, state, buffers, stream, x)
                if need != DONE:
                    return need
            discard(cfg, state, x, stream)
            state["expired"] += 1
    state["expirations"] += 1
    return DONE


@in_plain(_expire)
@kernel
def expire(cfg, state, buffers):
    """Tuples that can meet nothing any more go. Returns DONE, or what it needs to go on."""
    return _expire(cfg, state, buffers)


@kernel
def _sort_leaving(state):
    """By arrival, so that nothing depends on the order in which a probe finds partners. Most often there are few."""
    leaving, count = mem.leaving(state), state["leaving_count"]
    gap = count // 2
    while gap > 0:
        for i in range(gap, count):
            x, at = leaving[i], i
            arrival = mem.pool(state, x)["arrival"]
            while at >= gap and mem.pool(state, leaving[at - gap])["arrival"] > arrival:
                leaving[at] = leaving[at - gap]
                at -= gap
            leaving[at] = x
        gap //= 2


@unless_plain
@inlined
def let_satisfied_go(cfg, state):
    """Tuples leave that have found as many partners as they may; of rows that have their turn one by one, some have left."""
    if state["leaving_count"] > 1:
        _sort_leaving(state)
    for i in range(state["leaving_count"]):
        x = int(mem.leaving(state)[i])
        if mem.pool(state, x)["queued"] != GONE:
            discard(cfg, state, x, int(mem.pool(state, x)["stream"]))
            state["satisfied"] += 1
    state["leaving_count"] = 0
