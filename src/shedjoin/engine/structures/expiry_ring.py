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
def _at(state, stream, counter):
    """What stands in a stream's ring where a counter points."""
    return mem.expiry(state, stream * state["expiry_room"] + (counter & (state["expiry_room"] - 1)))


@inlined
def _append(state, x, stream, group, stamp):
    t = mem.pool(state, x)
    to = state["ring_to"][stream]
    place = to & (state["expiry_room"] - 1)
    there = _at(state, stream, to)
    there["item"] = x
    there["group"] = group
    there["stamp"] = stamp
    t["queued"] = place
    state["ring_to"][stream] = to + 1
    state["ring_newest"][stream] = stamp


@in_plain(_append)
@inlined
def enter(state, x, stream, group, stamp):
    """To the end of the ring; a tuple out of order waits in a heap by time."""
    if stamp >= state["ring_newest"][stream] or state["ring_to"][stream] == state["ring_from"][stream]:
        _append(state, x, stream, group, stamp)
        return
    t = mem.pool(state, x)
    t["queued"] = NONE
    heap.push(
        mem.stray(state)[stream],
        mem.stray_place(state),
        state["stray_size"][stream],
        float(stamp),
        0.0,
        t["arrival"],
        x,
    )
    state["stray_size"][stream] += 1


@inlined
def _leave_first(state, x, stream):
    state["ring_from"][stream] += 1


@in_plain(_leave_first)
@inlined
def leave(state, x, stream):
    """A tuple expires or is evicted (it is no longer counted as resident)."""
    place = int(mem.pool(state, x)["queued"])
    if place == NONE:
        heap.remove(mem.stray(state)[stream], mem.stray_place(state), state["stray_size"][stream], x)
        state["stray_size"][stream] -= 1
        return
    _at(state, stream, place)["item"] = NONE
    first, to = state["ring_from"][stream], state["ring_to"][stream]
    if place == first & (state["expiry_room"] - 1):
        # The front is never a gap.
        while first < to and _at(state, stream, first)["item"] == NONE:
            first += 1
        state["ring_from"][stream] = first
    elif to - first > 2 * (state["resident"][stream] - state["stray_size"][stream]) + 64:
        _close_gaps(state, stream)


@kernel
def _close_gaps(state, stream):
    to = state["ring_from"][stream]
    for at in range(state["ring_from"][stream], state["ring_to"][stream]):
        there = _at(state, stream, at)
        item = there["item"]
        if item != NONE:
            here = _at(state, stream, to)
            here["item"] = item
            here["group"] = there["group"]
            here["stamp"] = there["stamp"]
            mem.pool(state, item)["queued"] = to & (state["expiry_room"] - 1)
            to += 1
    state["ring_to"][stream] = to
    state["ring_ready"][stream] = 0


@inlined
def _first(state, stream):
    if state["ring_from"][stream] == state["ring_to"][stream]:
        return NONE, 0
    first = _at(state, stream, state["ring_from"][stream])
    return int(first["item"]), int(first["stamp"])


@in_plain(_first)
@inlined
def following(state, stream):
    """(tuple, stamp) that expires next; tuple -1 when there is none."""
    head, stamp = _first(state, stream)
    if state["stray_size"][stream] > 0:
        top = mem.stray(state)[stream, heap.TOP]
        ts = int(top["prio"])
        if head == NONE or ts < stamp or (ts == stamp and top["arrival"] < mem.pool(state, head)["arrival"]):
            return int(top["item"]), ts
    return head, stamp


@unless_plain
@inlined
def _fetch_entries(state, stream, first, end):
    """Prefetch the entries that move when tuples go."""
    for at in range(first, end):
        soon = _at(state, stream, at)
        if soon["item"] != NONE:
            bucket = mem.buckets(state, soon["group"])
            mem.fetch_entry(state, bucket["base"] + bucket["first"])
            mem.fetch_entry(state, bucket["base"] + bucket["first"] + 1)  # the next oldest
            pairing_heap.fetch_linked(state, soon["item"])


@kernel
def _look_ahead(state, stream):
    first = state["ring_from"][stream]
    end = min(first + AHEAD, state["ring_to"][stream])
    for at in range(first, end):
        soon = _at(state, stream, at)
        if soon["item"] != NONE:
            mem.fetch_tuple(state, soon["item"])
            mem.fetch_bucket(state, soon["group"])
            pairing_heap.fetch(state, soon["item"])
    _fetch_entries(state, stream, first, end)
    state["ring_ready"][stream] = end


@inlined
def look_ahead(state, stream):
    """Ask for what those that expire soon will need, when all that was asked for is used up."""
    if state["ring_from"][stream] >= state["ring_ready"][stream]:
        _look_ahead(state, stream)
