"""Time-ordered lists: entries (time, arrival, tuple) in the order of (time, arrival), so that a search can stop at a time.

What has expired stands at the head of a list and is let go when the list is next added to or searched.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine.jit import inlined, kernel
from shedjoin.predicates import state as mem
from shedjoin.predicates.state import FIXED_LISTS, NO_LIST, NOBODY

#: A new list has room for this many.
FIRST_ROOM = 4


@inlined
def mix(item, stream):
    """splitmix64's finaliser: items that are counted up spread over the table."""
    x = np.uint64(np.int64(item)) * np.uint64(2) + np.uint64(stream) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def _place(st, stream, item):
    """Where the table has an item, or the free place where it belongs."""
    table, tags = mem.table_of(st), mem.tags_of(st)
    mask = table.size - 1
    at = np.int64(mix(item, stream) & np.uint64(mask))
    while tags[at] != 0 and not (tags[at] == stream + 1 and table[at] == item):
        at = (at + 1) & mask
    return at


@kernel
def find(st, stream, item):
    """The list of an item, or NO_LIST."""
    at = _place(st, stream, item)
    return at + FIXED_LISTS if mem.tags_of(st)[at] != 0 else NO_LIST


@kernel
def find_or_make(st, stream, item):
    """The list of an item, an empty one if it had none. There must be room in the table."""
    at = _place(st, stream, item)
    which = at + FIXED_LISTS
    if mem.tags_of(st)[at] != 0:
        return which
    mem.table_of(st)[at] = item
    mem.tags_of(st)[at] = stream + 1
    st["table_used"] += 1
    mem.cap_of(st)[which] = 0
    mem.head_of(st)[which] = 0
    mem.length_of(st)[which] = 0
    return which


@kernel
def trim(st, which, floor):
    """Let go of entries whose time is below the floor."""
    head, length, times = mem.head_of(st), mem.length_of(st), mem.entry_ts_of(st)
    at = mem.start_of(st)[which] + head[which]
    gone = 0
    while gone < length[which] and times[at + gone] < floor:
        gone += 1
    head[which] += gone
    length[which] -= gone


@kernel
def lower(st, which, ts, seq):
    """The first entry of a list that is not before (ts, seq)."""
    times, seqs = mem.entry_ts_of(st), mem.entry_seq_of(st)
    low = mem.start_of(st)[which] + mem.head_of(st)[which]
    high = low + mem.length_of(st)[which]
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < ts or (times[middle] == ts and seqs[middle] < seq):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def room_wanted(st, which):
    """How many new entries an addition to this list would claim."""
    if which == NO_LIST:
        return FIRST_ROOM
    cap, head = mem.cap_of(st)[which], mem.head_of(st)[which]
    if head + mem.length_of(st)[which] < cap or (head > 0 and 2 * head >= cap):
        return 0
    return max(FIRST_ROOM, 2 * cap)


@kernel
def add(st, which, ts, seq, slot):
    """Put a tuple into a list, where its time belongs. There must be room."""
    start, cap, head, length = mem.start_of(st), mem.cap_of(st), mem.head_of(st), mem.length_of(st)
    times, seqs, slots = mem.entry_ts_of(st), mem.entry_seq_of(st), mem.entry_slot_of(st)
    if head[which] + length[which] == cap[which]:
        old = start[which] + head[which]
        if head[which] > 0 and 2 * head[which] >= cap[which]:
            new = start[which]
        else:
            cap[which] = max(FIRST_ROOM, 2 * cap[which])
            new = st["entry_top"]
            st["entry_top"] += cap[which]
        for i in range(length[which]):
            times[new + i] = times[old + i]
            seqs[new + i] = seqs[old + i]
            slots[new + i] = slots[old + i]
        start[which] = new
        head[which] = 0
    first = start[which] + head[which]
    at = first + length[which]
    while at > first and (times[at - 1] > ts or (times[at - 1] == ts and seqs[at - 1] > seq)):
        times[at] = times[at - 1]
        seqs[at] = seqs[at - 1]
        slots[at] = slots[at - 1]
        at -= 1
    times[at] = ts
    seqs[at] = seq
    slots[at] = slot
    length[which] += 1


@kernel
def strike(st, which, ts, seq):
    """Point a tuple's entry at nobody."""
    at = lower(st, which, ts, seq)
    mem.entry_slot_of(st)[at] = NOBODY
    st["dead"] += 1
