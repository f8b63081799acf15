"""The memory: tuples are stored, expire, and go."""

from __future__ import annotations

from shedjoin.engine import expiry, mem, order, shelf, weigh
from shedjoin.engine.codes import KEY, LIFE, ROW
from shedjoin.engine.jit import inlined
from shedjoin.engine.state import NEVER, NONE


@inlined
def effective_clock(how, st, stream):
    """The stream's clock, or, when it lags too far to be waited for, what is left of the other's."""
    newest = max(st["clock"][0], st["clock"][1])
    if how["max_skew"] < 0 or newest == NEVER:
        return st["clock"][stream]
    return max(st["clock"][stream], newest - how["max_skew"])


@inlined
def set_bases(how, st):
    """Where remaining life is counted from, for each stream."""
    for stream in range(2):
        old = st["base"][stream]
        if order.window_kind(how, stream) == ROW:
            st["base"][stream] = st["arrived"][stream]
        else:
            other = effective_clock(how, st, 1 - stream)
            # A stream that has not begun sets no horizon; until it does, life is counted by the own clock.
            st["base"][stream] = st["clock"][stream] if other == NEVER else other - how["lateness"]
        order.rebase(how, st, stream, old)


@inlined
def stamp_of(how, stream, ts, seq):
    """What a tuple expires by."""
    return seq if order.window_kind(how, stream) == ROW else ts


@inlined
def add(how, st, stream, slot, ts, seq, importance, size, met):
    """Store a tuple; returns its place in the pool."""
    st["free_count"] -= 1
    x = int(mem.free(st, st["free_count"]))
    t = mem.pool(st, x)
    t["arrival"] = st["arrival"]
    t["slot"] = slot
    t["stream"] = stream
    t["bytes"] = size
    t["met"] = met
    shelf.append(how, st, slot, stream, ts, seq, importance, x)
    expiry.enter(st, x, stream, stamp_of(how, stream, ts, seq))
    st["resident"][stream] += 1
    st["stored_bytes"][stream] += size
    order.enter(how, st, x, stream, slot, ts, seq, importance)
    weigh.stored(how, st, stream, slot, 1.0)
    return x


@inlined
def discard(how, st, x, stream):
    """Take a tuple out of memory and out of everything that follows it."""
    t = mem.pool(st, x)
    slot = int(t["slot"])
    order.leave(how, st, x, stream)
    shelf.remove(how, st, x, slot, stream)
    st["resident"][stream] -= 1
    expiry.leave(st, x, stream)
    st["stored_bytes"][stream] -= t["bytes"]
    if how["organisation"] == KEY or how["organisation"] == LIFE:
        order.reweigh(how, st, stream, slot)
    weigh.stored(how, st, stream, slot, -1.0)
    mem.set_free(st, st["free_count"], x)
    st["free_count"] += 1


@inlined
def is_over(st, stream, stamp):
    """Whether a tuple can meet nothing any more."""
    return stamp <= st["limit"][stream]


@inlined
def _set_limit(how, st, stream):
    if order.window_kind(how, stream) == ROW:
        st["limit"][stream] = st["arrived"][stream] - order.window_size(how, stream) - 1
        return
    other = effective_clock(how, st, 1 - stream)
    # A stream that has not begun ends no window.
    st["limit"][stream] = NEVER if other == NEVER else other - how["lateness"] - order.window_size(how, stream)


@inlined
def expire(how, st):
    """Tuples that can meet nothing any more go."""
    for stream in range(2):
        _set_limit(how, st, stream)
        while True:
            x, stamp = expiry.following(st, stream)
            if x == NONE or not is_over(st, stream, stamp):
                break
            expiry.look_ahead(st, stream)
            discard(how, st, x, stream)
            st["expired"] += 1
