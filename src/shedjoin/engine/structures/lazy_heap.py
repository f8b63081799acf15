"""A lazily sorted heap of tuples that wait to be given up.

The lowest entries are a heap, the rest stand behind it in no order. Both are in `heap`: `sorted` entries in heap order, then the
others of the `heap_size`. All sorted entries have priorities up to `bound`, all others higher ones. When the sorted part is used
up, about the lowest eighth of the rest becomes the next one. So most of a large memory is not moved about: joining or leaving
the rest costs one step, and entries are sorted many at a time, in one sweep.
"""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.structures import heap
from shedjoin.engine.structures.heap import TOP

#: This many of the rest, or up to twice as many, are sampled; the fourth lowest of them is the next bound.
ASKED = 32
#: Priorities are prefetched this many tuples ahead.
AHEAD = 8


@kernel
def push(state, stream, prio, rank, arrival, x):
    """Add a tuple."""
    entries, place = mem.heap(state)[stream], mem.place(state)
    size, ordered = state["heap_size"][stream], state["sorted"][stream]
    state["heap_size"][stream] = size + 1
    if prio > state["bound"][stream]:
        heap.put(entries, place, TOP + size, prio, rank, arrival, x)
        return
    if ordered < size:
        heap.copy(entries, place, TOP + size, entries[TOP + ordered])
    heap.push(entries, place, ordered, prio, rank, arrival, x)
    state["sorted"][stream] = ordered + 1


@kernel
def remove(state, stream, x):
    """Remove a tuple, wherever it stands."""
    entries, place = mem.heap(state)[stream], mem.place(state)
    size, ordered = state["heap_size"][stream], state["sorted"][stream]
    hole = int(place[x])
    if hole < TOP + ordered:
        heap.remove(entries, place, ordered, x)
        state["sorted"][stream] = ordered - 1
        hole = TOP + ordered - 1
    else:
        place[x] = -1
    if hole < TOP + size - 1:
        heap.copy(entries, place, hole, entries[TOP + size - 1])
    state["heap_size"][stream] = size - 1


@kernel
def move(state, stream, prio, x):
    """Give a tuple another priority; rank and arrival stay."""
    entries, place = mem.heap(state)[stream], mem.place(state)
    ordered = state["sorted"][stream]
    i = int(place[x])
    rank, arrival = entries[i]["rank"], entries[i]["arrival"]
    if prio > state["bound"][stream]:
        if i < TOP + ordered:
            heap.remove(entries, place, ordered, x)
            state["sorted"][stream] = ordered - 1
            i = TOP + ordered - 1
        heap.put(entries, place, i, prio, rank, arrival, x)
    elif i < TOP + ordered:
        heap.move(entries, place, ordered, prio, rank, arrival, x)
    else:
        heap.copy(entries, place, i, entries[TOP + ordered])
        heap.push(entries, place, ordered, prio, rank, arrival, x)
        state["sorted"][stream] = ordered + 1


@inlined
def _priority(state, entry, cumulative):
    """The priority as it is now: the heap is not told when a cumulative priority rises."""
    return mem.prio(state)[entry["item"]] if cumulative else entry["prio"]


@inlined
def _next_bound(state, stream, cumulative):
    """The fourth lowest of some of the rest, or the lowest if they are fewer than four; nothing is sorted."""
    entries, size = mem.heap(state)[stream], state["heap_size"][stream]
    a = b = c = d = math.inf
    for i in range(TOP, TOP + size, max(1, size // ASKED)):
        prio = _priority(state, entries[i], cumulative)
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
def _advance(state, stream, cumulative):
    """Sort the lowest of the rest."""
    entries, place = mem.heap(state)[stream], mem.place(state)
    bound = _next_bound(state, stream, cumulative)
    ordered = 0
    end = TOP + state["heap_size"][stream]
    for i in range(TOP, end):
        soon = entries[min(i + AHEAD, end - 1)]
        if cumulative and soon["prio"] <= bound:
            mem.fetch_prio(state, soon["item"])
        entry = entries[i]
        if entry["prio"] > bound:
            continue
        prio, rank, arrival, x = (
            _priority(state, entry, cumulative),
            entry["rank"],
            entry["arrival"],
            int(entry["item"]),
        )
        if prio > bound:
            entry["prio"] = prio
            continue
        heap.copy(entries, place, i, entries[TOP + ordered])
        heap.push(entries, place, ordered, prio, rank, arrival, x)
        ordered += 1
    state["bound"][stream] = bound
    state["sorted"][stream] = ordered


@kernel
def lead(state, stream, cumulative):
    """Bring the lowest of a heap that is not empty to the top, with its priority as it is now."""
    while True:
        if state["sorted"][stream] == 0:
            _advance(state, stream, cumulative)
        top = mem.heap(state)[stream, TOP]
        prio = _priority(state, top, cumulative)
        if not top["prio"] < prio:
            return
        move(state, stream, prio, int(top["item"]))
