"""Lists of tuples in the order in which they expire, so that a search can begin and stop at a time.

An entry is (ts, row number, tuple); in windows of rows its ts is 0. Entries of tuples whose window has ended stand at the head of
a list. They are let go when the list is next searched or added to. An entry of an evicted tuple points to nobody.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import ROW
from shedjoin.engine.jit import inlined, kernel

#: The place in the pool that no tuple has.
NOBODY = 0
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
def _place(st, stream, item):
    """Where the table has an item, or the free place where it belongs."""
    table, tags = mem.list_item(st), mem.list_tag(st)
    mask = table.size - 1
    at = np.int64(_mix(item, stream) & np.uint64(mask))
    while tags[at] != 0 and not (tags[at] == stream + 1 and table[at] == item):
        at = (at + 1) & mask
    return at


@kernel
def find(st, stream, item):
    """The list of an item, or NO_LIST."""
    at = _place(st, stream, item)
    return at + FIXED_LISTS if mem.list_tag(st)[at] != 0 else NO_LIST


@kernel
def find_or_make(st, stream, item):
    """The list of an item, an empty one if it had none. There must be room in the table."""
    at = _place(st, stream, item)
    which = at + FIXED_LISTS
    if mem.list_tag(st)[at] != 0:
        return which
    mem.list_item(st)[at] = item
    mem.list_tag(st)[at] = stream + 1
    st["lists_used"] += 1
    mem.list_room(st)[which] = 0
    mem.list_head(st)[which] = 0
    mem.list_length(st)[which] = 0
    mem.list_dead(st)[which] = 0
    return which


@kernel
def _squeeze(st, which):
    """Close up the gaps of a list."""
    times, seqs, slots = mem.list_ts(st), mem.list_seq(st), mem.list_slot(st)
    first = mem.list_start(st)[which] + mem.list_head(st)[which]
    to = first
    for p in range(first, first + mem.list_length(st)[which]):
        if slots[p] != NOBODY:
            times[to] = times[p]
            seqs[to] = seqs[p]
            slots[to] = slots[p]
            to += 1
    mem.list_length(st)[which] = to - first
    mem.list_dead(st)[which] = 0


@inlined
def is_gone(how, st, stream, ts, seq):
    """Whether the window of a tuple has ended and it is not stored any more. Rows of this instant stay to its end."""
    stamp = seq if mem.window_kind(how, stream) == ROW else ts
    return stamp <= st["limit"][stream] and seq < st["gone_to"][stream]


@kernel
def trim(how, st, which, stream):
    """Let go of entries whose tuples are gone, as far as they stand at the head."""
    head, length, dead, slots = mem.list_head(st), mem.list_length(st), mem.list_dead(st), mem.list_slot(st)
    times, seqs = mem.list_ts(st), mem.list_seq(st)
    at = mem.list_start(st)[which] + head[which]
    gone = 0
    while gone < length[which] and (
        slots[at + gone] == NOBODY or is_gone(how, st, stream, times[at + gone], seqs[at + gone])
    ):
        if slots[at + gone] == NOBODY:
            dead[which] -= 1
        gone += 1
    head[which] += gone
    length[which] -= gone
    if dead[which] > MANY_DEAD and 2 * dead[which] > length[which]:
        _squeeze(st, which)


@kernel
def lower(st, which, ts, seq):
    """The first entry of a list that is not before (ts, seq)."""
    times, seqs = mem.list_ts(st), mem.list_seq(st)
    low = mem.list_start(st)[which] + mem.list_head(st)[which]
    high = low + mem.list_length(st)[which]
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < ts or (times[middle] == ts and seqs[middle] < seq):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def live_between(st, which, a, b):
    """How many of the entries from a to b are somebody's."""
    if b <= a:
        return 0
    dead = mem.list_dead(st)[which]
    if dead == 0 or b - a == mem.list_length(st)[which]:
        return b - a - dead
    slots = mem.list_slot(st)
    live = 0
    for p in range(a, b):
        live += slots[p] != NOBODY
    return live


@kernel
def room_wanted(st, which):
    """How many new entries an addition to this list would claim."""
    if which == NO_LIST:
        return FIRST_ROOM
    room, head = mem.list_room(st)[which], mem.list_head(st)[which]
    if head + mem.list_length(st)[which] < room or (head > 0 and 2 * head >= room):
        return 0
    return max(FIRST_ROOM, 2 * room)


@kernel
def _make_room(st, which):
    """Move a list that is full: to its beginning, or to where there is twice the room."""
    start, room, head, length = mem.list_start(st), mem.list_room(st), mem.list_head(st), mem.list_length(st)
    times, seqs, slots = mem.list_ts(st), mem.list_seq(st), mem.list_slot(st)
    old = start[which] + head[which]
    if head[which] > 0 and 2 * head[which] >= room[which]:
        new = start[which]
    else:
        room[which] = max(FIRST_ROOM, 2 * room[which])
        new = st["list_top"]
        st["list_top"] += room[which]
    for i in range(length[which]):
        times[new + i] = times[old + i]
        seqs[new + i] = seqs[old + i]
        slots[new + i] = slots[old + i]
    start[which] = new
    head[which] = 0


@kernel
def add(st, which, ts, seq, slot):
    """Put a tuple into a list, where it belongs. There must be room."""
    head, length = mem.list_head(st), mem.list_length(st)
    times, seqs, slots = mem.list_ts(st), mem.list_seq(st), mem.list_slot(st)
    if head[which] + length[which] == mem.list_room(st)[which]:
        _make_room(st, which)
    first = mem.list_start(st)[which] + head[which]
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
    mem.list_slot(st)[lower(st, which, ts, seq)] = NOBODY
    mem.list_dead(st)[which] += 1
