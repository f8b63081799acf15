"""A four-ary heap that knows where each item stands, so that items can be moved and removed.

Entries are (priority, rank, arrival, item), ordered in this order; `place[item]` is the index, -1 when absent. The lowest stands
at index TOP, so that the four entries below one fill two whole cache lines.
"""

from __future__ import annotations

from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.views import fetch_of

TOP = 3


@inlined
def lower(prio, rank, arrival, prio2, rank2, arrival2):
    return prio < prio2 or (prio == prio2 and (rank < rank2 or (rank == rank2 and arrival < arrival2)))


@inlined
def _lower_of(heap, i, j):
    """Which of two entries is the lower one, without a branch; the first if they are equal."""
    a, b = heap[i], heap[j]
    on_tie = (b["rank"] < a["rank"]) | ((b["rank"] == a["rank"]) & (b["arrival"] < a["arrival"]))
    return i + (j - i) * int((b["prio"] < a["prio"]) | ((b["prio"] == a["prio"]) & on_tie))


@inlined
def _least(heap, first, last):
    """The lowest of up to four entries from `first` on, of which none is behind `last`."""
    if first + 3 <= last:
        return _lower_of(heap, _lower_of(heap, first, first + 1), _lower_of(heap, first + 2, first + 3))
    return _lower_of(heap, _lower_of(heap, first, min(first + 1, last)), min(first + 2, last))


@inlined
def _least_by_guess(heap, first, last):
    """The same by branches; see `_sink`."""
    least = first
    for child in range(first + 1, min(first + 3, last) + 1):
        a, b = heap[child], heap[least]
        if lower(a["prio"], a["rank"], a["arrival"], b["prio"], b["rank"], b["arrival"]):
            least = child
    return least


@inlined
def put(heap, place, i, prio, rank, arrival, item):
    """Write an entry, and where it stands."""
    entry = heap[i]
    entry["prio"] = prio
    entry["rank"] = rank
    entry["arrival"] = arrival
    entry["item"] = item
    place[item] = i


@inlined
def copy(heap, place, i, entry):
    """Write an entry at another place too. (Field by field: as a whole, a record is copied byte by byte.)"""
    put(heap, place, i, entry["prio"], entry["rank"], entry["arrival"], entry["item"])


@inlined
def _rise(heap, place, i, prio, rank, arrival, item):
    while i > TOP:
        up = ((i - 4) >> 2) + TOP
        above = heap[up]
        if not lower(prio, rank, arrival, above["prio"], above["rank"], above["arrival"]):
            break
        copy(heap, place, i, above)
        i = up
    put(heap, place, i, prio, rank, arrival, item)


@inlined
def _sink(heap, place, size, i, prio, rank, arrival, item, far):
    """Let an entry sink to its place.

    Who is likely to sink far is led down without branches, of which every second would be guessed wrong. Who is likely to
    stay is there sooner by a guess, which does not wait for memory.
    """
    last = TOP + size - 1
    while True:
        first = 4 * i - 8
        if first > last:
            break
        for line in range(8):  # those below these four, whichever it will be: side by side, two to a cache line
            fetch_of(heap, 4 * first - 8 + 2 * line)
        least = _least(heap, first, last) if far else _least_by_guess(heap, first, last)
        below = heap[least]
        if not lower(below["prio"], below["rank"], below["arrival"], prio, rank, arrival):
            break
        copy(heap, place, i, below)
        i = least
    put(heap, place, i, prio, rank, arrival, item)


@kernel
def push(heap, place, size, prio, rank, arrival, item):
    """Add an item to a heap of `size` entries."""
    _rise(heap, place, TOP + size, prio, rank, arrival, item)


@kernel
def move(heap, place, size, prio, rank, arrival, item):
    """Give an item that is in the heap another priority."""
    i = place[item]
    old = heap[i]
    if lower(prio, rank, arrival, old["prio"], old["rank"], old["arrival"]):
        _rise(heap, place, i, prio, rank, arrival, item)
    else:
        _sink(heap, place, size, i, prio, rank, arrival, item, False)


@kernel
def remove(heap, place, size, item):
    """Take an item out of a heap of `size` entries."""
    i = place[item]
    place[item] = -1
    last = TOP + size - 1
    if i == last:
        return
    moved = heap[last]
    prio, rank, arrival, other = moved["prio"], moved["rank"], moved["arrival"], moved["item"]
    gone = heap[i]
    if lower(prio, rank, arrival, gone["prio"], gone["rank"], gone["arrival"]):
        _rise(heap, place, i, prio, rank, arrival, other)
    else:
        _sink(heap, place, size - 1, i, prio, rank, arrival, other, True)


@kernel
def rebuild(heap, place, size):
    """Restore the order of a heap whose priorities were changed in place."""
    for i in range(TOP + size // 4 + 1, TOP - 1, -1):
        if i < TOP + size:
            entry = heap[i]
            _sink(heap, place, size, i, entry["prio"], entry["rank"], entry["arrival"], entry["item"], False)
