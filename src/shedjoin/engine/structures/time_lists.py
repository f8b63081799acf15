"""Lists of tuples in the order in which they expire, so that a search can begin and stop at a time.

An entry is (ts, row number, tuple); in windows of rows its ts is 0. Entries of tuples whose window has ended stand at the head of
a list. They are let go when the list is next searched or added to. An entry of an evicted tuple holds NO_TUPLE.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import ROW
from shedjoin.engine.jit import inlined, kernel

#: The place in the pool that no tuple has.
NO_TUPLE = 0
NO_LIST = -1
#: Lists 0 and 1 hold all tuples of a stream, 2 and 3 those with an empty set. The others belong to a stream and an item.
EMPTIES = 2
FIXED_LISTS = 4
#: A new list has room for this many.
FIRST_ROOM = 4
#: A list with this many dead entries, and as many dead as alive, is squeezed.
MANY_DEAD = 8


@inlined
def _mix(item, stream):
    """splitmix64's finaliser: items that are counted up spread over the table."""
    x = np.uint64(np.int64(item)) * np.uint64(2) + np.uint64(stream) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def table_size(state):
    """How many places the hash table of lists has: a power of two."""
    return state["lists_room"] - FIXED_LISTS


@inlined
def _place(state, stream, item):
    """The list of an item, or the free place where it belongs."""
    mask = table_size(state) - 1
    at = np.int64(_mix(item, stream) & np.uint64(mask))
    while True:
        one = mem.lists(state, FIXED_LISTS + at)
        if one["tag"] == 0 or (one["tag"] == stream + 1 and one["item"] == item):
            return FIXED_LISTS + at
        at = (at + 1) & mask


@kernel
def find(state, stream, item):
    """The list of an item, or NO_LIST."""
    which = _place(state, stream, item)
    return which if mem.lists(state, which)["tag"] != 0 else NO_LIST


@kernel
def find_or_make(state, stream, item):
    """The list of an item, an empty one if it had none. There must be room in the table."""
    which = _place(state, stream, item)
    one = mem.lists(state, which)
    if one["tag"] == 0:
        one["item"] = item
        one["tag"] = stream + 1
        state["lists_used"] += 1
    return which


@inlined
def ask(state, stream, item):
    """Prefetch the list of an item."""
    mem.fetch_list(state, FIXED_LISTS + np.int64(_mix(item, stream) & np.uint64(table_size(state) - 1)))


@inlined
def ask_for_entries(state, which):
    """Prefetch the first entries of a list."""
    first = first_of(state, which)
    mem.fetch_list_ts(state, first)
    mem.fetch_list_seq(state, first)
    mem.fetch_list_slot(state, first)


@inlined
def first_of(state, which):
    """Where the entries of a list begin."""
    one = mem.lists(state, which)
    return int(one["start"]) + int(one["head"])


@inlined
def end_of(state, which):
    """And where they end."""
    return first_of(state, which) + int(mem.lists(state, which)["length"])


@kernel
def _squeeze(state, which):
    """Close up the gaps of a list."""
    times, seqs, slots = mem.list_ts(state), mem.list_seq(state), mem.list_slot(state)
    one = mem.lists(state, which)
    first, end = first_of(state, which), end_of(state, which)
    to = first
    for p in range(first, end):
        if slots[p] != NO_TUPLE:
            times[to] = times[p]
            seqs[to] = seqs[p]
            slots[to] = slots[p]
            to += 1
    one["length"] = to - first
    one["dead"] = 0


@inlined
def is_gone(cfg, state, stream, ts, seq):
    """Whether the window of a tuple has ended and it is not stored any more. Rows of this instant stay to its end."""
    stamp = seq if mem.window_kind(cfg, stream) == ROW else ts
    return stamp <= state["limit"][stream] and seq < state["gone_to"][stream]


@kernel
def trim(cfg, state, which, stream):
    """Let go of entries whose tuples are gone, as far as they stand at the head."""
    times, seqs, slots = mem.list_ts(state), mem.list_seq(state), mem.list_slot(state)
    one = mem.lists(state, which)
    first, end, dead = first_of(state, which), end_of(state, which), int(one["dead"])
    at = first
    while at < end and (slots[at] == NO_TUPLE or is_gone(cfg, state, stream, times[at], seqs[at])):
        if slots[at] == NO_TUPLE:
            dead -= 1
        at += 1
    if at > first:
        one["head"] += at - first
        one["length"] -= at - first
        one["dead"] = dead
    if dead > MANY_DEAD and 2 * dead > end - at:
        _squeeze(state, which)


@inlined
def _is_before(state, at, ts, seq):
    """Whether an entry is before (ts, seq)."""
    time = mem.list_ts(state)[at]
    return time < ts or (time == ts and mem.list_seq(state)[at] < seq)


@kernel
def lower(state, which, ts, seq):
    """The first entry of a list that is not before (ts, seq).

    Most searches are for the whole of a window, which begins where the list does and ends behind it: the ends are asked first.
    """
    low, high = first_of(state, which), end_of(state, which)
    if low == high or not _is_before(state, low, ts, seq):
        return low
    if _is_before(state, high - 1, ts, seq):
        return high
    while low < high:
        middle = (low + high) >> 1
        if _is_before(state, middle, ts, seq):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def live_between(state, which, a, b):
    """How many of the entries from a to b are somebody's."""
    if b <= a:
        return 0
    one = mem.lists(state, which)
    dead = int(one["dead"])
    if dead == 0 or b - a == one["length"]:
        return b - a - dead
    slots = mem.list_slot(state)
    live = 0
    for p in range(a, b):
        live += slots[p] != NO_TUPLE
    return live


@kernel
def room_wanted(state, which):
    """How many new entries an addition to this list would claim."""
    if which == NO_LIST:
        return FIRST_ROOM
    one = mem.lists(state, which)
    room, head = int(one["room"]), int(one["head"])
    if head + one["length"] < room or (head > 0 and 2 * head >= room):
        return 0
    return max(FIRST_ROOM, 2 * room)


@kernel
def _make_room(state, which):
    """Move a list that is full: to its beginning, or to where there is twice the room."""
    one = mem.lists(state, which)
    times, seqs, slots = mem.list_ts(state), mem.list_seq(state), mem.list_slot(state)
    old = first_of(state, which)
    if one["head"] > 0 and 2 * one["head"] >= one["room"]:
        new = int(one["start"])
    else:
        new = int(state["list_top"])
        one["room"] = max(FIRST_ROOM, 2 * one["room"])
        state["list_top"] += one["room"]
    for i in range(one["length"]):
        times[new + i] = times[old + i]
        seqs[new + i] = seqs[old + i]
        slots[new + i] = slots[old + i]
    one["start"] = new
    one["head"] = 0


@kernel
def add(state, which, ts, seq, slot):
    """Put a tuple into a list, where it belongs. There must be room."""
    one = mem.lists(state, which)
    times, seqs, slots = mem.list_ts(state), mem.list_seq(state), mem.list_slot(state)
    if one["head"] + one["length"] == one["room"]:
        _make_room(state, which)
    first, at = first_of(state, which), end_of(state, which)
    while at > first and (times[at - 1] > ts or (times[at - 1] == ts and seqs[at - 1] > seq)):
        times[at] = times[at - 1]
        seqs[at] = seqs[at - 1]
        slots[at] = slots[at - 1]
        at -= 1
    times[at] = ts
    seqs[at] = seq
    slots[at] = slot
    one["length"] += 1


@kernel
def strike(state, which, ts, seq):
    """Mark a tuple's entry as empty."""
    mem.list_slot(state)[lower(state, which, ts, seq)] = NO_TUPLE
    mem.lists(state, which)["dead"] += 1
