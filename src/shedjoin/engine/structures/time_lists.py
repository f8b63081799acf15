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
def _place(state, stream, item):
    """Where the table has an item, or the free place where it belongs."""
    table, tags = mem.list_item(state), mem.list_tag(state)
    mask = table.size - 1
    at = np.int64(_mix(item, stream) & np.uint64(mask))
    while tags[at] != 0 and not (tags[at] == stream + 1 and table[at] == item):
        at = (at + 1) & mask
    return at


@kernel
def find(state, stream, item):
    """The list of an item, or NO_LIST."""
    at = _place(state, stream, item)
    return at + FIXED_LISTS if mem.list_tag(state)[at] != 0 else NO_LIST


@kernel
def find_or_make(state, stream, item):
    """The list of an item, an empty one if it had none. There must be room in the table."""
    at = _place(state, stream, item)
    which = at + FIXED_LISTS
    if mem.list_tag(state)[at] != 0:
        return which
    mem.list_item(state)[at] = item
    mem.list_tag(state)[at] = stream + 1
    state["lists_used"] += 1
    mem.list_room(state)[which] = 0
    mem.list_head(state)[which] = 0
    mem.list_length(state)[which] = 0
    mem.list_dead(state)[which] = 0
    return which


@kernel
def _squeeze(state, which):
    """Close up the gaps of a list."""
    times, seqs, slots = mem.list_ts(state), mem.list_seq(state), mem.list_slot(state)
    first = mem.list_start(state)[which] + mem.list_head(state)[which]
    to = first
    for p in range(first, first + mem.list_length(state)[which]):
        if slots[p] != NOBODY:
            times[to] = times[p]
            seqs[to] = seqs[p]
            slots[to] = slots[p]
            to += 1
    mem.list_length(state)[which] = to - first
    mem.list_dead(state)[which] = 0


@inlined
def is_gone(cfg, state, stream, ts, seq):
    """Whether the window of a tuple has ended and it is not stored any more. Rows of this instant stay to its end."""
    stamp = seq if mem.window_kind(cfg, stream) == ROW else ts
    return stamp <= state["limit"][stream] and seq < state["gone_to"][stream]


@kernel
def trim(cfg, state, which, stream):
    """Let go of entries whose tuples are gone, as far as they stand at the head."""
    head, length, dead, slots = mem.list_head(state), mem.list_length(state), mem.list_dead(state), mem.list_slot(state)
    times, seqs = mem.list_ts(state), mem.list_seq(state)
    at = mem.list_start(state)[which] + head[which]
    gone = 0
    while gone < length[which] and (
        slots[at + gone] == NOBODY or is_gone(cfg, state, stream, times[at + gone], seqs[at + gone])
    ):
        if slots[at + gone] == NOBODY:
            dead[which] -= 1
        gone += 1
    head[which] += gone
    length[which] -= gone
    if dead[which] > MANY_DEAD and 2 * dead[which] > length[which]:
        _squeeze(state, which)


@kernel
def lower(state, which, ts, seq):
    """The first entry of a list that is not before (ts, seq)."""
    times, seqs = mem.list_ts(state), mem.list_seq(state)
    low = mem.list_start(state)[which] + mem.list_head(state)[which]
    high = low + mem.list_length(state)[which]
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < ts or (times[middle] == ts and seqs[middle] < seq):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def live_between(state, which, a, b):
    """How many of the entries from a to b are somebody's."""
    if b <= a:
        return 0
    dead = mem.list_dead(state)[which]
    if dead == 0 or b - a == mem.list_length(state)[which]:
        return b - a - dead
    slots = mem.list_slot(state)
    live = 0
    for p in range(a, b):
        live += slots[p] != NOBODY
    return live


@kernel
def room_wanted(state, which):
    """How many new entries an addition to this list would claim."""
    if which == NO_LIST:
        return FIRST_ROOM
    room, head = mem.list_room(state)[which], mem.list_head(state)[which]
    if head + mem.list_length(state)[which] < room or (head > 0 and 2 * head >= room):
        return 0
    return max(FIRST_ROOM, 2 * room)


@kernel
def _make_room(state, which):
    """Move a list that is full: to its beginning, or to where there is twice the room."""
    start, room, head, length = (
        mem.list_start(state),
        mem.list_room(state),
        mem.list_head(state),
        mem.list_length(state),
    )
    times, seqs, slots = mem.list_ts(state), mem.list_seq(state), mem.list_slot(state)
    old = start[which] + head[which]
    if head[which] > 0 and 2 * head[which] >= room[which]:
        new = start[which]
    else:
        room[which] = max(FIRST_ROOM, 2 * room[which])
        new = state["list_top"]
        state["list_top"] += room[which]
    for i in range(length[which]):
        times[new + i] = times[old + i]
        seqs[new + i] = seqs[old + i]
        slots[new + i] = slots[old + i]
    start[which] = new
    head[which] = 0


@kernel
def add(state, which, ts, seq, slot):
    """Put a tuple into a list, where it belongs. There must be room."""
    head, length = mem.list_head(state), mem.list_length(state)
    times, seqs, slots = mem.list_ts(state), mem.list_seq(state), mem.list_slot(state)
    if head[which] + length[which] == mem.list_room(state)[which]:
        _make_room(state, which)
    first = mem.list_start(state)[which] + head[which]
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
def strike(state, which, ts, seq):
    """Point a tuple's entry at nobody."""
    mem.list_slot(state)[lower(state, which, ts, seq)] = NOBODY
    mem.list_dead(state)[which] += 1
