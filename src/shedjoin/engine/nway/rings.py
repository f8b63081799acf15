"""Buckets of windows: each a ring of tuples side by side, oldest first, so that a probe reads memory in sequence.

As shelves (engine.shelf), but a bucket holds whatever falls into it: with one bucket it is the whole window, which is scanned.
"""

from __future__ import annotations

from shedjoin.engine.jit import entry, inlined, kernel
from shedjoin.engine.nway import mem
from shedjoin.engine.state import NONE

SMALLEST = 2


@inlined
def bucket_of(index, key):
    """Which bucket of an index a value belongs to."""
    many = index["many"]
    if many == 1:
        return index["first"]
    if index["modular"]:
        return index["first"] + key % many
    mixed = (key ^ (key >> 32)) * 0x9E3779B97F4A7C1
    return index["first"] + (((mixed >> 24) ^ mixed) & (many - 1))


@inlined
def _list_of(room):
    number = 0
    while room > SMALLEST:
        room >>= 1
        number += 1
    return number


@inlined
def lacks(st, bucket):
    """How large a piece of the arena `append` would miss; 0 when it will find a place."""
    b = mem.buckets(st, bucket)
    if b["span"] < b["room"]:
        return 0
    room = max(2 * b["room"], SMALLEST)
    if st["free_ring"][_list_of(room)] != NONE or st["ring_top"] + room <= st["ring_room"]:
        return 0
    return room


@inlined
def _take(st, room):
    number = _list_of(room)
    base = int(st["free_ring"][number])
    if base != NONE:
        st["free_ring"][number] = mem.ring(st, base)["item"]
    else:
        base = int(st["ring_top"])
        st["ring_top"] += room
    return base


@inlined
def _give_back(st, base, room):
    if room > 0:
        number = _list_of(room)
        mem.ring(st, base)["item"] = st["free_ring"][number]
        st["free_ring"][number] = base


@inlined
def _put(st, place, key, ts, seq, importance, x, spots, which):
    there = mem.ring(st, place)
    mem.set_ring_key(st, place, key)
    there["key"] = key
    there["ts"] = ts
    there["seq"] = seq
    there["importance"] = importance
    there["item"] = x
    mem.set_spot(st, x * spots + which, place)


@kernel
def _move(st, b, base, source, spots, which):
    """All tuples of a bucket to an empty ring, without the gaps; returns how many there are."""
    filled = 0
    for k in range(b["span"]):
        e = mem.ring(source, b["base"] + ((b["first"] + k) & (b["room"] - 1)))
        if e["item"] != NONE:
            _put(st, base + filled, e["key"], e["ts"], e["seq"], e["importance"], e["item"], spots, which)
            filled += 1
    return filled


@kernel
def _enlarge(st, b, spots, which):
    room = max(2 * b["room"], SMALLEST)
    base = _take(st, room)
    filled = _move(st, b, base, st, spots, which)
    _give_back(st, int(b["base"]), int(b["room"]))
    b["base"] = base
    b["room"] = room
    b["first"] = 0
    b["span"] = filled


@kernel
def _close_ranks(st, b, spots, which):
    """Tuples move up to the front over the gaps."""
    filled = 0
    for k in range(b["span"]):
        e = mem.ring(st, b["base"] + ((b["first"] + k) & (b["room"] - 1)))
        if e["item"] != NONE:
            if k != filled:
                place = b["base"] + ((b["first"] + filled) & (b["room"] - 1))
                _put(st, place, e["key"], e["ts"], e["seq"], e["importance"], e["item"], spots, which)
            filled += 1
    b["span"] = filled


@inlined
def append(st, bucket, key, ts, seq, importance, x, spots, which):
    """Put a tuple at the end of a bucket; the caller has asked what it `lacks`."""
    b = mem.buckets(st, bucket)
    if b["span"] == b["room"]:
        _enlarge(st, b, spots, which)
    place = b["base"] + ((b["first"] + b["span"]) & (b["room"] - 1))
    _put(st, place, key, ts, seq, importance, x, spots, which)
    b["span"] += 1
    b["count"] += 1


@inlined
def remove(st, bucket, x, spots, which):
    """Take a tuple from its bucket. A gap in front or at the end is dropped; of others, half the ring at most."""
    b = mem.buckets(st, bucket)
    place = mem.spot(st, x * spots + which)
    b["count"] -= 1
    if b["count"] == 0:
        # A ring of some size is kept: a bucket of a window fills again at once.
        if b["room"] > 64:
            _give_back(st, int(b["base"]), int(b["room"]))
            b["room"] = 0
        b["first"] = 0
        b["span"] = 0
        return
    mem.ring(st, place)["item"] = NONE
    last = b["room"] - 1
    while mem.ring(st, b["base"] + (b["first"] & last))["item"] == NONE:
        b["first"] = (b["first"] + 1) & last
        b["span"] -= 1
    while mem.ring(st, b["base"] + ((b["first"] + b["span"] - 1) & last))["item"] == NONE:
        b["span"] -= 1
    if b["span"] > 2 * b["count"]:
        _close_ranks(st, b, spots, which)


@kernel
def _fitting_room(count):
    room = SMALLEST
    while room < count:
        room *= 2
    return room


@entry
def places_needed(state):
    """How many places all rings would take if each were of the room that fits."""
    st = state[0]
    places = 0
    for bucket in range(st["buckets_room"]):
        count = mem.buckets(st, bucket)["count"]
        if count > 0:
            places += _fitting_room(count)
    return places


@entry
def repack(settings, state, old):
    """Move all rings out of an arena that is full into a new one, each to the room that fits."""
    how, st, source = settings[0], state[0], old[0]
    st["ring_top"] = 0
    st["free_ring"][:] = NONE
    for number in range(st["indexes_room"]):
        index = mem.indexes(st, number)
        which = number - st["first_index"][index["stream"]]
        for bucket in range(index["first"], index["first"] + index["many"]):
            b = mem.buckets(st, bucket)
            room = _fitting_room(b["count"]) if b["count"] > 0 else 0
            filled = 0
            if room > 0:
                base = _take(st, room)
                filled = _move(st, b, base, source, how["spots"], which)
                b["base"] = base
            b["room"] = room
            b["first"] = 0
            b["span"] = filled


@entry
def redistribute(settings, state, old):
    """Put the tuples of the old buckets (those of `old`) into new ones, of which there are more. The arena has room."""
    how, st, source = settings[0], state[0], old[0]
    st["ring_top"] = 0
    st["free_ring"][:] = NONE
    for number in range(st["indexes_room"]):
        index, before = mem.indexes(st, number), mem.indexes(source, number)
        which = number - st["first_index"][index["stream"]]
        for bucket in range(before["first"], before["first"] + before["many"]):
            b = mem.buckets(source, bucket)
            for k in range(b["span"]):
                e = mem.ring(source, b["base"] + ((b["first"] + k) & (b["room"] - 1)))
                if e["item"] != NONE:
                    to = bucket_of(index, e["key"])
                    append(st, to, e["key"], e["ts"], e["seq"], e["importance"], e["item"], how["spots"], which)
