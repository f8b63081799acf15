"""The order of expiry: a ring of the tuples of a stream in order of arrival, and a heap of those that came out of order.

A tuple that is evicted leaves a gap; when more than half of the ring are gaps, the rest moves up. A ring rather than links, so
that it can be read ahead.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.forms import in_plain, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.structures import heap, pairing_heap

# How many are looked at ahead.
AHEAD = 8


@inlined
def _at(st, stream, counter):
    """What stands in a stream's ring where a counter points."""
    return mem.expiry(st, stream * st["expiry_room"] + (counter & (st["expiry_room"] - 1)))


@inlined
def _append(st, x, stream, group, stamp):
    t = mem.pool(st, x)
    to = st["ring_to"][stream]
    place = to & (st["expiry_room"] - 1)
    there = _at(st, stream, to)
    there["item"] = x
    there["group"] = group
    there["stamp"] = stamp
    t["queued"] = place
    st["ring_to"][stream] = to + 1
    st["ring_newest"][stream] = stamp


@in_plain(_append)
@inlined
def enter(st, x, stream, group, stamp):
    """To the end of the ring; a tuple out of order waits in a heap by time."""
    if stamp >= st["ring_newest"][stream] or st["ring_to"][stream] == st["ring_from"][stream]:
        _append(st, x, stream, group, stamp)
        return
    t = mem.pool(st, x)
    t["queued"] = NONE
    heap.push(mem.stray(st)[stream], mem.stray_place(st), st["stray_size"][stream], float(stamp), 0.0, t["arrival"], x)
    st["stray_size"][stream] += 1


@inlined
def _leave_first(st, x, stream):
    st["ring_from"][stream] += 1


@in_plain(_leave_first)
@inlined
def leave(st, x, stream):
    """A tuple expires or is evicted (it is no longer counted as resident)."""
    place = int(mem.pool(st, x)["queued"])
    if place == NONE:
        heap.remove(mem.stray(st)[stream], mem.stray_place(st), st["stray_size"][stream], x)
        st["stray_size"][stream] -= 1
        return
    _at(st, stream, place)["item"] = NONE
    first, to = st["ring_from"][stream], st["ring_to"][stream]
    if place == first & (st["expiry_room"] - 1):
        # The front is never a gap.
        while first < to and _at(st, stream, first)["item"] == NONE:
            first += 1
        st["ring_from"][stream] = first
    elif to - first > 2 * (st["resident"][stream] - st["stray_size"][stream]) + 64:
        _close_gaps(st, stream)


@kernel
def _close_gaps(st, stream):
    to = st["ring_from"][stream]
    for at in range(st["ring_from"][stream], st["ring_to"][stream]):
        there = _at(st, stream, at)
        item = there["item"]
        if item != NONE:
            here = _at(st, stream, to)
            here["item"] = item
            here["group"] = there["group"]
            here["stamp"] = there["stamp"]
            mem.pool(st, item)["queued"] = to & (st["expiry_room"] - 1)
            to += 1
    st["ring_to"][stream] = to
    st["ring_ready"][stream] = 0


@inlined
def _first(st, stream):
    if st["ring_from"][stream] == st["ring_to"][stream]:
        return NONE, 0
    first = _at(st, stream, st["ring_from"][stream])
    return int(first["item"]), int(first["stamp"])


@in_plain(_first)
@inlined
def following(st, stream):
    """(tuple, stamp) that expires next; tuple -1 when there is none."""
    head, stamp = _first(st, stream)
    if st["stray_size"][stream] > 0:
        top = mem.stray(st)[stream, heap.TOP]
        ts = int(top["prio"])
        if head == NONE or ts < stamp or (ts == stamp and top["arrival"] < mem.pool(st, head)["arrival"]):
            return int(top["item"]), ts
    return head, stamp


@unless_plain
@inlined
def _fetch_entries(st, stream, first, end):
    """Prefetch the entries that move when tuples go."""
    for at in range(first, end):
        soon = _at(st, stream, at)
        if soon["item"] != NONE:
            bucket = mem.buckets(st, soon["group"])
            mem.fetch_entry(st, bucket["base"] + bucket["first"])
            mem.fetch_entry(st, bucket["base"] + bucket["first"] + 1)  # the next oldest
            pairing_heap.fetch_linked(st, soon["item"])


@kernel
def _look_ahead(st, stream):
    first = st["ring_from"][stream]
    end = min(first + AHEAD, st["ring_to"][stream])
    for at in range(first, end):
        soon = _at(st, stream, at)
        if soon["item"] != NONE:
            mem.fetch_tuple(st, soon["item"])
            mem.fetch_bucket(st, soon["group"])
            pairing_heap.fetch(st, soon["item"])
    _fetch_entries(st, stream, first, end)
    st["ring_ready"][stream] = end


@inlined
def look_ahead(st, stream):
    """Ask for what those that expire soon will need, when all that was asked for is used up."""
    if st["ring_from"][stream] >= st["ring_ready"][stream]:
        _look_ahead(st, stream)
