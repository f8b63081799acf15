"""Shelves: the tuples of one key and stream side by side, oldest first, so that a probe reads memory in sequence.

A shelf is a ring whose room is a power of two; where it is, where it begins and how far it reaches stands in the key's
`sides`. A tuple that goes leaves a gap unless it stood at an end; when more than half are gaps the rest close ranks, which
costs no more than the removals before it. A full shelf moves to one of twice the room. Empty ones go back to a list, one for
each room.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.forms import in_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.state import NONE

SMALLEST = 2


@inlined
def of(st, x):
    """The time, row number and importance of a stored tuple."""
    return mem.shelf(st, mem.pool(st, x)["place"])


@inlined
def _list_of(room):
    """Which list of empty shelves has those of a room."""
    number = 0
    while room > SMALLEST:
        room >>= 1
        number += 1
    return number


@inlined
def _lacks(st, room):
    """Whether there is no shelf of a room to take."""
    return st["free_shelf"][_list_of(room)] == NONE and st["shelf_top"] + room > st["shelf_room"]


@inlined
def _take(st, room):
    """An empty shelf of a room of which one is there to take."""
    number = _list_of(room)
    base = int(st["free_shelf"][number])
    if base != NONE:
        st["free_shelf"][number] = mem.shelf(st, base)["item"]
    else:
        base = int(st["shelf_top"])
        st["shelf_top"] += room
    return base


@inlined
def give_back(st, slot, stream):
    """A key needs its shelf no more."""
    side = mem.sides(st, slot)
    base = int(side["shelf"][stream])
    if base != NONE:
        number = _list_of(side["room"][stream])
        mem.shelf(st, base)["item"] = st["free_shelf"][number]
        st["free_shelf"][number] = base
    side["shelf"][stream] = NONE
    side["room"][stream] = 0
    side["first"][stream] = 0
    side["span"][stream] = 0


@inlined
def _put(st, place, ts, seq, importance, x):
    there = mem.shelf(st, place)
    there["ts"] = ts
    there["seq"] = seq
    there["importance"] = importance
    there["item"] = x
    mem.pool(st, x)["place"] = place


@kernel
def _move(st, slot, stream, source, base):
    """All tuples of a shelf, which is in `source`, to an empty one, without the gaps."""
    side = mem.sides(st, slot)
    old, last_place = int(side["shelf"][stream]), int(side["room"][stream]) - 1
    filled = 0
    for k in range(side["span"][stream]):
        there = mem.shelf(source, old + ((side["first"][stream] + k) & last_place))
        if there["item"] != NONE:
            _put(st, base + filled, there["ts"], there["seq"], there["importance"], there["item"])
            filled += 1
    return filled


@inlined
def _settle_in(st, slot, stream, base, room, filled):
    side = mem.sides(st, slot)
    side["shelf"][stream] = base
    side["room"][stream] = room
    side["first"][stream] = 0
    side["span"][stream] = filled


@kernel
def _enlarge(st, slot, stream):
    """Twice the room for a key whose shelf is full; returns how much the arena lacks for that, or 0."""
    room = 2 * int(mem.sides(st, slot)["room"][stream])
    if _lacks(st, room):
        return room
    base = _take(st, room)
    filled = _move(st, slot, stream, st, base)
    give_back(st, slot, stream)
    _settle_in(st, slot, stream, base, room, filled)
    return 0


@inlined
def make_place(st, slot, stream):
    """See to it that `append` finds a place; returns how large a piece of the arena is missing for that, most often 0."""
    side = mem.sides(st, slot)
    if side["span"][stream] < side["room"][stream]:
        return 0
    if side["room"][stream] > 0:
        return _enlarge(st, slot, stream)
    if _lacks(st, SMALLEST):
        return SMALLEST
    _settle_in(st, slot, stream, _take(st, SMALLEST), SMALLEST, 0)
    return 0


@kernel
def _close_ranks(st, slot, stream):
    """Tuples move up to the front over the gaps."""
    side = mem.sides(st, slot)
    base, last_place = int(side["shelf"][stream]), int(side["room"][stream]) - 1
    first = int(side["first"][stream])
    filled = 0
    for k in range(side["span"][stream]):
        there = mem.shelf(st, base + ((first + k) & last_place))
        if there["item"] != NONE:
            if k != filled:
                place = base + ((first + filled) & last_place)
                _put(st, place, there["ts"], there["seq"], there["importance"], there["item"])
            filled += 1
    side["span"][stream] = filled


@inlined
def append(how, st, slot, stream, ts, seq, importance, x):
    """Put a tuple at the end of its key's shelf, where there is a place."""
    side = mem.sides(st, slot)
    at = (side["first"][stream] + side["span"][stream]) & (side["room"][stream] - 1)
    _put(st, side["shelf"][stream] + at, ts, seq, importance, x)
    if how["fifo"] and side["count"][stream] == 0:
        side["low"][stream] = x
    side["span"][stream] += 1
    side["count"][stream] += 1


@inlined
def _drop_gaps_in_front(how, st, side, stream):
    """The first is gone: the next that is there comes first."""
    base, last_place = int(side["shelf"][stream]), int(side["room"][stream]) - 1
    first, span = int(side["first"][stream]), int(side["span"][stream])
    item = NONE
    while item == NONE:
        first = (first + 1) & last_place
        span -= 1
        item = int(mem.shelf(st, base + first)["item"])
    side["first"][stream] = first
    side["span"][stream] = span
    if how["fifo"]:
        side["low"][stream] = item


@inlined
def _drop_gaps_at_the_end(st, side, stream):
    base, last_place = int(side["shelf"][stream]), int(side["room"][stream]) - 1
    first, span = int(side["first"][stream]), int(side["span"][stream])
    item = NONE
    while item == NONE:
        span -= 1
        item = int(mem.shelf(st, base + ((first + span - 1) & last_place))["item"])
    side["span"][stream] = span


@inlined
def _drop_first(how, st, x, slot, stream):
    side = mem.sides(st, slot)
    side["first"][stream] = (side["first"][stream] + 1) & (side["room"][stream] - 1)
    side["span"][stream] -= 1


@in_plain(_drop_first)
@inlined
def _close_up(how, st, x, slot, stream):
    """A tuple, but not the last of its shelf, is gone."""
    side = mem.sides(st, slot)
    of(st, x)["item"] = NONE
    at = mem.pool(st, x)["place"] - side["shelf"][stream]
    if at == side["first"][stream]:
        _drop_gaps_in_front(how, st, side, stream)
    elif at == (side["first"][stream] + side["span"][stream] - 1) & (side["room"][stream] - 1):
        _drop_gaps_at_the_end(st, side, stream)
    elif side["span"][stream] > 2 * side["count"][stream]:
        _close_ranks(st, slot, stream)


@inlined
def remove(how, st, x, slot, stream):
    """Take a tuple from its shelf."""
    side = mem.sides(st, slot)
    side["count"][stream] -= 1
    if side["count"][stream] == 0:
        give_back(st, slot, stream)
        return
    _close_up(how, st, x, slot, stream)


@kernel
def _fitting_room(tuples):
    room = SMALLEST
    while room < tuples:
        room *= 2
    return room


@kernel
def needed(st):
    """How many places all shelves would take if each were of the room that fits."""
    places = 0
    for bucket in range(st["buckets_room"]):
        slot = int(mem.buckets(st, bucket))
        while slot != NONE:
            for stream in range(2):
                count = mem.sides(st, slot)["count"][stream]
                if count > 0:
                    places += _fitting_room(count)
            slot = int(mem.keys(st, slot)["next"])
    return places


@kernel
def repack(st, source):
    """Move all shelves out of an arena that is full (`source`) into the state's new one, each to the room that fits."""
    st["shelf_top"] = 0
    st["free_shelf"][:] = NONE
    for bucket in range(st["buckets_room"]):
        slot = int(mem.buckets(st, bucket))
        while slot != NONE:
            for stream in range(2):
                count = mem.sides(st, slot)["count"][stream]
                if count > 0:
                    room = _fitting_room(count)
                    base = _take(st, room)
                    _settle_in(st, slot, stream, base, room, _move(st, slot, stream, source, base))
                else:
                    _settle_in(st, slot, stream, NONE, 0, 0)
            slot = int(mem.keys(st, slot)["next"])
