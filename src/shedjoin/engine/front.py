"""The queue in which tuples wait to be given up: a heap of the lowest, its front, and behind it the rest in no order.

Both stand in `heap`: `front` entries in the order of a heap, then the others of the `heap_size`. All of the front have
priorities up to `bound`, all of the rest higher ones. When the front is used up, the lowest eighth of the rest or so becomes
the next. So most of a large memory is not moved about: who joins the rest, or leaves it, costs a step and not a way through
a heap that is larger than a cache; and who comes to the front comes with many others, in one sweep.
"""

from __future__ import annotations

import math

from shedjoin.engine import heap, mem
from shedjoin.engine.heap import TOP
from shedjoin.engine.jit import inlined, kernel

#: So many of the rest, or up to twice as many, are asked, and the fourth lowest of them is the next bound.
ASKED = 32
#: Priorities are asked for so many tuples before they are needed.
AHEAD = 8


@kernel
def push(st, stream, prio, rank, arrival, x):
    """A tuple joins the queue."""
    entries, place = mem.heap(st)[stream], mem.place(st)[stream]
    size, front = st["heap_size"][stream], st["front"][stream]
    st["heap_size"][stream] = size + 1
    if prio > st["bound"][stream]:
        heap.put(entries, place, TOP + size, prio, rank, arrival, x)
        return
    if front < size:
        heap.copy(entries, place, TOP + size, entries[TOP + front])
    heap.push(entries, place, front, prio, rank, arrival, x)
    st["front"][stream] = front + 1


@kernel
def remove(st, stream, x):
    """A tuple leaves the queue, wherever it stands."""
    entries, place = mem.heap(st)[stream], mem.place(st)[stream]
    size, front = st["heap_size"][stream], st["front"][stream]
    hole = int(place[x])
    if hole < TOP + front:
        heap.remove(entries, place, front, x)
        st["front"][stream] = front - 1
        hole = TOP + front - 1
    else:
        place[x] = -1
    if hole < TOP + size - 1:
        heap.copy(entries, place, hole, entries[TOP + size - 1])
    st["heap_size"][stream] = size - 1


@kernel
def move(st, stream, prio, x):
    """Give a tuple of the queue another priority; rank and arrival stay."""
    entries, place = mem.heap(st)[stream], mem.place(st)[stream]
    front = st["front"][stream]
    i = int(place[x])
    rank, arrival = entries[i]["rank"], entries[i]["arrival"]
    if prio > st["bound"][stream]:
        if i < TOP + front:
            heap.remove(entries, place, front, x)
            st["front"][stream] = front - 1
            i = TOP + front - 1
        heap.put(entries, place, i, prio, rank, arrival, x)
    elif i < TOP + front:
        heap.move(entries, place, front, prio, rank, arrival, x)
    else:
        heap.copy(entries, place, i, entries[TOP + front])
        heap.push(entries, place, front, prio, rank, arrival, x)
        st["front"][stream] = front + 1


@inlined
def _priority(st, entry, cumulative):
    """What a tuple has by now: the queue is not told when a cumulative priority rises."""
    return mem.cumulated(st)[entry["item"]] if cumulative else entry["prio"]


@inlined
def _next_bound(st, stream, cumulative):
    """The fourth lowest of some of the rest, or the lowest if they are fewer than four; the front is empty."""
    entries, size = mem.heap(st)[stream], st["heap_size"][stream]
    a = b = c = d = math.inf
    for i in range(TOP, TOP + size, max(1, size // ASKED)):
        prio = _priority(st, entries[i], cumulative)
        if prio < d:
            d = prio
            if d < c:
                c, d = d, c
            if c < b:
                b, c = c, b
            if b < a:
                a, b = b, a
    return d if size >= 4 else a


@kernel
def _advance(st, stream, cumulative):
    """The lowest of the rest become the front."""
    entries, place = mem.heap(st)[stream], mem.place(st)[stream]
    bound = _next_bound(st, stream, cumulative)
    front = 0
    end = TOP + st["heap_size"][stream]
    for i in range(TOP, end):
        soon = entries[min(i + AHEAD, end - 1)]
        if cumulative and soon["prio"] <= bound:
            mem.fetch_cumulated(st, soon["item"])
        entry = entries[i]
        if entry["prio"] > bound:
            continue
        prio, rank, arrival, x = _priority(st, entry, cumulative), entry["rank"], entry["arrival"], int(entry["item"])
        if prio > bound:
            entry["prio"] = prio
            continue
        heap.copy(entries, place, i, entries[TOP + front])
        heap.push(entries, place, front, prio, rank, arrival, x)
        front += 1
    st["bound"][stream] = bound
    st["front"][stream] = front


@kernel
def lead(st, stream, cumulative):
    """See to it that the lowest of a queue that is not empty stands on top, with the priority that it has by now."""
    while True:
        if st["front"][stream] == 0:
            _advance(st, stream, cumulative)
        top = mem.heap(st)[stream, TOP]
        prio = _priority(st, top, cumulative)
        if not top["prio"] < prio:
            return
        move(st, stream, prio, int(top["item"]))


@kernel
def clear(st):
    """Nobody waits."""
    st["heap_size"][:] = 0
    st["front"][:] = 0
    st["bound"][:] = -math.inf
