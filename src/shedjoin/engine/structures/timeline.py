"""The stored tuples of a window in the order in which they leave it, so that a stretch of it is found and counted.

The order is (time, row number), in row windows the row number alone. Tuples stand in an array, with a Fenwick tree that counts
those that are still stored: a place is found, and the tuples between two places are counted, in logarithmic time. A tuple that is
gone leaves a gap. A row out of order is put where it belongs; the tuples behind it move up to the next gap. Python closes the
gaps when an array is full (engine/selection.py).
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import ROW
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE

#: After all times.
FAR = 2**62


@inlined
def at(state, stream, place):
    """One of the tuples of a window."""
    return mem.timeline(state, stream * state["timeline_room"] + place)


@inlined
def _is_before(cfg, state, stream, place, ts, seq):
    e = at(state, stream, place)
    if mem.window_kind(cfg, stream) == ROW:
        return e["seq"] < seq
    return e["ts"] < ts or (e["ts"] == ts and e["seq"] < seq)


@kernel
def lower(cfg, state, stream, ts, seq):
    """The first place from which on tuples are not before (ts, seq)."""
    low, high = state["line_from"][stream], state["line_to"][stream]
    while low < high:
        middle = (low + high) // 2
        if _is_before(cfg, state, stream, middle, ts, seq):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def lower_by_time(state, stream, ts):
    """The same by time, in a row window whose times rise."""
    low, high = state["line_from"][stream], state["line_to"][stream]
    while low < high:
        middle = (low + high) // 2
        if at(state, stream, middle)["ts"] < ts:
            low = middle + 1
        else:
            high = middle
    return low


# -------------------------------------------------------------------------------------------------------- the counts


@kernel
def _add(state, stream, place, one):
    room = state["timeline_room"]
    first, node = stream * room - 1, place + 1
    while node <= room:
        mem.set_timeline_count(state, first + node, mem.timeline_counts(state, first + node) + one)
        node += node & -node


@kernel
def before(state, stream, place):
    """How many tuples are stored before a place."""
    first, node, total = stream * state["timeline_room"] - 1, place, 0
    while node > 0:
        total += mem.timeline_counts(state, first + node)
        node &= node - 1
    return total


@kernel
def _nth(state, stream, number):
    """The place of the tuple with a number, from 0 on, among those that are stored."""
    room = state["timeline_room"]
    first, node, step = stream * room - 1, 0, room
    while step > 0:
        if node + step <= room and mem.timeline_counts(state, first + node + step) <= number:
            node += step
            number -= mem.timeline_counts(state, first + node)
        step //= 2
    return node


@kernel
def count(state, stream, first, end, until):
    """How many tuples are stored from one place to before another, of times before `until`."""
    if until == FAR:
        return before(state, stream, end) - before(state, stream, first)
    total = 0
    for place in range(first, end):
        e = at(state, stream, place)
        if e["item"] != NONE and e["ts"] < until:
            total += 1
    return total


@kernel
def nth_last(state, stream, end, number, until):
    """The place of the tuple with a number, from 1 on, counted back from before a place. It is there."""
    if until == FAR:
        return _nth(state, stream, before(state, stream, end) - number)
    while number > 0:
        end -= 1
        e = at(state, stream, end)
        if e["item"] != NONE and e["ts"] < until:
            number -= 1
    return end


# ------------------------------------------------------------------------------------------------- coming and going


@inlined
def _write(state, stream, place, ts, seq, item):
    e = at(state, stream, place)
    e["ts"] = ts
    e["seq"] = seq
    e["item"] = item


@kernel
def _place_for(cfg, state, stream, ts, seq):
    """Make a gap where a tuple belongs; returns its place. There is room for one more."""
    first, end = state["line_from"][stream], state["line_to"][stream]
    if first == end or _is_before(cfg, state, stream, end - 1, ts, seq):
        if first < end and ts < at(state, stream, end - 1)["ts"]:
            state["line_torn"][stream] = end
        state["line_to"][stream] = end + 1
        _add(state, stream, end, 1)
        return end
    place = lower(cfg, state, stream, ts, seq)
    if place == first and first > 0:
        state["line_from"][stream] = first - 1
        _add(state, stream, first - 1, 1)
        return first - 1
    gap = place
    while gap < end and at(state, stream, gap)["item"] != NONE:
        gap += 1
    state["line_to"][stream] = max(end, gap + 1)
    _add(state, stream, gap, 1)  # all between the place and the gap are stored, and stay so
    while gap > place:
        e = at(state, stream, gap - 1)
        _write(state, stream, gap, e["ts"], e["seq"], e["item"])
        gap -= 1
    return place


@kernel
def enter(cfg, state, x, stream, ts, seq):
    """A tuple is stored."""
    if state["line_from"][stream] == state["line_to"][stream]:
        state["line_newest"][stream] = ts
        state["line_lag"][stream] = 0
    state["line_newest"][stream] = max(state["line_newest"][stream], ts)
    state["line_lag"][stream] = max(state["line_lag"][stream], state["line_newest"][stream] - ts)
    place = _place_for(cfg, state, stream, ts, seq)
    _write(state, stream, place, ts, seq, x)


@kernel
def leave(cfg, state, stream, ts, seq):
    """A tuple goes."""
    place = lower(cfg, state, stream, ts, seq)
    at(state, stream, place)["item"] = NONE
    _add(state, stream, place, -1)
    first, end = state["line_from"][stream], state["line_to"][stream]
    while first < end and at(state, stream, first)["item"] == NONE:
        first += 1
    state["line_from"][stream] = first
