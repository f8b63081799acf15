"""The memory: tuples are stored, expire, and go."""

from __future__ import annotations

from shedjoin.engine import heap, kinetic, mem, order, weigh
from shedjoin.engine.codes import CUMULATIVE, KEY, LIFE, ROW
from shedjoin.engine.jit import inlined, kernel
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
        if how["organisation"] == LIFE and st["base"][stream] < old:
            kinetic.replay_all(st, stream)


@inlined
def add(how, st, stream, slot, ts, seq, importance, size, mark):
    """Store a tuple; returns its place in the pool."""
    st["free_count"] -= 1
    x = int(mem.free(st)[st["free_count"]])
    t = mem.pool(st, x)
    t["ts"] = ts
    t["seq"] = seq
    t["importance"] = importance
    t["slot"] = slot
    t["stream"] = stream
    t["arrival"] = st["arrival"]
    if how["organisation"] == CUMULATIVE:
        mem.more(st, x)["mark"] = mark
    t["bytes"] = size
    _chain(st, x, slot, stream)
    _queue(how, st, x, stream)
    st["resident"][stream] += 1
    st["stored_bytes"][stream] += size
    order.enter(how, st, x)
    weigh.stored(how, st, stream, slot, 1.0)
    return x


@inlined
def _chain(st, x, slot, stream):
    """To the end of its key's chain."""
    entry = mem.keys(st, slot)
    last = entry["tail"][stream]
    mem.pool(st, x)["prev"] = last
    mem.pool(st, x)["next"] = NONE
    if last == NONE:
        entry["head"][stream] = x
    else:
        mem.pool(st, last)["next"] = x
    entry["tail"][stream] = x
    entry["count"][stream] += 1


@inlined
def _queue(how, st, x, stream):
    """To the end of the queue for expiry; a tuple out of order waits in a heap by time."""
    t = mem.pool(st, x)
    last = st["tail"][stream]
    strays = last != NONE and t["ts"] < mem.pool(st, last)["ts"] and order.window_kind(how, stream) != ROW
    t["strayed"] = 1 if strays else 0
    if strays:
        heap.push(
            mem.stray(st)[stream], mem.stray_place(st), st["stray_size"][stream], float(t["ts"]), 0.0, t["arrival"], x
        )
        st["stray_size"][stream] += 1
        return
    t["earlier"] = last
    t["later"] = NONE
    if last == NONE:
        st["head"][stream] = x
    else:
        mem.pool(st, last)["later"] = x
    st["tail"][stream] = x


@inlined
def _unqueue(st, x, stream):
    t = mem.pool(st, x)
    if t["strayed"]:
        heap.remove(mem.stray(st)[stream], mem.stray_place(st), st["stray_size"][stream], x)
        st["stray_size"][stream] -= 1
        return
    # The first's `earlier` is never looked at, so the usual case leaves its neighbour's cache line alone.
    if st["head"][stream] == x:
        st["head"][stream] = t["later"]
        if st["tail"][stream] == x:
            st["tail"][stream] = NONE
        return
    mem.pool(st, t["earlier"])["later"] = t["later"]
    if st["tail"][stream] == x:
        st["tail"][stream] = t["earlier"]
    else:
        mem.pool(st, t["later"])["earlier"] = t["earlier"]


@inlined
def _unchain(st, x, slot, stream):
    entry = mem.keys(st, slot)
    t = mem.pool(st, x)
    entry["count"][stream] -= 1
    if entry["head"][stream] == x:
        entry["head"][stream] = t["next"]
        if entry["tail"][stream] == x:
            entry["tail"][stream] = NONE
        return
    mem.pool(st, t["prev"])["next"] = t["next"]
    if entry["tail"][stream] == x:
        entry["tail"][stream] = t["prev"]
    else:
        mem.pool(st, t["next"])["prev"] = t["prev"]


@kernel
def discard(how, st, x):
    """Take a tuple out of memory and out of everything that follows it."""
    t = mem.pool(st, x)
    stream, slot = int(t["stream"]), int(t["slot"])
    order.leave(how, st, x)
    _unchain(st, x, slot, stream)
    _unqueue(st, x, stream)
    st["resident"][stream] -= 1
    st["stored_bytes"][stream] -= t["bytes"]
    if how["organisation"] == KEY or how["organisation"] == LIFE:
        order.reweigh(how, st, stream, slot)
    weigh.stored(how, st, stream, slot, -1.0)
    mem.free(st)[st["free_count"]] = x
    st["free_count"] += 1


@inlined
def _next_to_expire(st, stream):
    head = st["head"][stream]
    if st["stray_size"][stream] == 0:
        return head
    top = mem.stray(st)[stream, 0]
    if head == NONE:
        return top["item"]
    t = mem.pool(st, head)
    if top["prio"] < t["ts"] or (top["prio"] == t["ts"] and top["arrival"] < t["arrival"]):
        return top["item"]
    return head


@inlined
def expire(how, st):
    """Tuples that can meet nothing any more go."""
    for stream in range(2):
        rows = order.window_kind(how, stream) == ROW
        if rows:
            limit = st["arrived"][stream] - order.window_size(how, stream)
        else:
            other = effective_clock(how, st, 1 - stream)
            if other == NEVER:
                continue
            limit = other - how["lateness"] - order.window_size(how, stream)
        while True:
            x = _next_to_expire(st, stream)
            if x == NONE:
                break
            if rows:
                if mem.pool(st, x)["seq"] >= limit:
                    break
            elif mem.pool(st, x)["ts"] > limit:
                break
            discard(how, st, x)
            st["expired"] += 1
        if x != NONE:
            mem.fetch_key(st, mem.pool(st, x)["slot"])  # the next to expire
