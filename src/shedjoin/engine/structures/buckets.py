"""Buckets: tuples side by side, oldest first, so that a probe reads memory in sequence.

A bucket is a ring of entries whose room is a power of two. A tuple that goes leaves a gap unless it stood at an end; when more
than half are gaps the rest moves up, which costs no more than the removals before it. A full bucket moves to a ring of twice the
room. Empty rings go back to a list, one for each room.

`which`: in a join graph, a tuple stands in several indexes; this is the number of the index among those of its stream.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.forms import in_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import NONE

SMALLEST = 2


@inlined
def _list_of(room):
    """Which list of empty rings has those of a room."""
    number = 0
    while room > SMALLEST:
        room >>= 1
        number += 1
    return number


@inlined
def _lacks(state, room):
    """Whether there is no ring of a room to take."""
    return state["free_entries"][_list_of(room)] == NONE and state["entry_top"] + room > state["entries_room"]


@inlined
def _take(state, room):
    """An empty ring of a room of which one is there to take."""
    number = _list_of(room)
    base = int(state["free_entries"][number])
    if base != NONE:
        state["free_entries"][number] = mem.entries(state, base)["item"]
    else:
        base = int(state["entry_top"])
        state["entry_top"] += room
    return base


@inlined
def _give_back(state, b):
    """A bucket no longer needs its ring."""
    base = int(b["base"])
    if base != NONE:
        number = _list_of(b["room"])
        mem.entries(state, base)["item"] = state["free_entries"][number]
        state["free_entries"][number] = base
    b["base"] = NONE
    b["room"] = 0
    b["first"] = 0
    b["span"] = 0


@inlined
def _set(b, base, room, filled):
    b["base"] = base
    b["room"] = room
    b["first"] = 0
    b["span"] = filled


@inlined
def _put(cfg, state, place, ts, seq, importance, x, which):
    there = mem.entries(state, place)
    there["ts"] = ts
    there["seq"] = seq
    there["importance"] = importance
    there["item"] = x
    if cfg["counts"]:
        there["partners"] = 0
    storage.note_place(cfg, state, x, which, place)


@inlined
def _move(cfg, state, b, from_place, to_place, which):
    """One entry to another place."""
    there = mem.entries(state, from_place)
    _put(cfg, state, to_place, there["ts"], there["seq"], there["importance"], there["item"], which)
    if cfg["counts"]:
        mem.entries(state, to_place)["partners"] = there["partners"]
    storage.move_key(cfg, state, from_place, to_place)


@kernel
def _enlarge(cfg, state, b, which):
    """Twice the room for a bucket that is full; returns how much the arena lacks for that, or 0."""
    room = 2 * int(b["room"])
    if _lacks(state, room):
        return room
    base = _take(state, room)
    old, first, last_place = int(b["base"]), int(b["first"]), int(b["room"]) - 1
    filled = 0
    for k in range(b["span"]):
        place = old + ((first + k) & last_place)
        if mem.entries(state, place)["item"] != NONE:
            _move(cfg, state, b, place, base + filled, which)
            filled += 1
    _give_back(state, b)
    _set(b, base, room, filled)
    return 0


@inlined
def make_place(cfg, state, b, which):
    """See to it that `append` finds a place; returns how large a piece of the arena is missing for that, most often 0."""
    if b["span"] < b["room"]:
        return 0
    if b["room"] > 0:
        return _enlarge(cfg, state, b, which)
    if _lacks(state, SMALLEST):
        return SMALLEST
    _set(b, _take(state, SMALLEST), SMALLEST, 0)
    return 0


@inlined
def append(cfg, state, b, ts, seq, importance, x, which):
    """Put a tuple at the end of a bucket, where there is a place; returns the place."""
    at = (b["first"] + b["span"]) & (b["room"] - 1)
    place = b["base"] + at
    _put(cfg, state, place, ts, seq, importance, x, which)
    b["span"] += 1
    b["count"] += 1
    return place


@kernel
def _close_gaps(cfg, state, b, which):
    """Tuples move up to the front over the gaps."""
    base, first, last_place = int(b["base"]), int(b["first"]), int(b["room"]) - 1
    filled = 0
    for k in range(b["span"]):
        place = base + ((first + k) & last_place)
        if mem.entries(state, place)["item"] != NONE:
            if k != filled:
                _move(cfg, state, b, place, base + ((first + filled) & last_place), which)
            filled += 1
    b["span"] = filled


@inlined
def _drop_gaps_in_front(state, b):
    """The first is gone: the next that is there comes first; returns it."""
    base, last_place = int(b["base"]), int(b["room"]) - 1
    first, span = int(b["first"]), int(b["span"])
    item = NONE
    while item == NONE:
        first = (first + 1) & last_place
        span -= 1
        item = int(mem.entries(state, base + first)["item"])
    b["first"] = first
    b["span"] = span
    return item


@inlined
def _drop_gaps_at_the_end(state, b):
    base, first, last_place = int(b["base"]), int(b["first"]), int(b["room"]) - 1
    span = int(b["span"])
    item = NONE
    while item == NONE:
        span -= 1
        item = int(mem.entries(state, base + ((first + span - 1) & last_place))["item"])
    b["span"] = span


@inlined
def _drop_first(cfg, state, b, place, which):
    b["first"] = (b["first"] + 1) & (b["room"] - 1)
    b["span"] -= 1
    return NONE


@in_plain(_drop_first)
@inlined
def _close_up(cfg, state, b, place, which):
    """A tuple, but not the last of its bucket, is gone. Returns the tuple that comes first if that is another now, or -1."""
    mem.entries(state, place)["item"] = NONE
    at = place - b["base"]
    if at == b["first"]:
        return _drop_gaps_in_front(state, b)
    if at == (b["first"] + b["span"] - 1) & (b["room"] - 1):
        _drop_gaps_at_the_end(state, b)
    elif b["span"] > 2 * b["count"]:
        _close_gaps(cfg, state, b, which)
    return NONE


@inlined
def remove(cfg, state, b, place, which):
    """Take the tuple at a place from its bucket. Returns the tuple that comes first if that is another now, or -1."""
    b["count"] -= 1
    if b["count"] == 0:
        _give_back(state, b)
        return NONE
    return _close_up(cfg, state, b, place, which)
