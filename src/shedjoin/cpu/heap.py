"""A binary heap of numbers that stand for tuples or rows, lowest (priority, arrival) first; each knows its place."""

from __future__ import annotations

from shedjoin.engine.jit import kernel


@kernel
def _before(prio, seq, a, b):
    return prio[a] < prio[b] or (prio[a] == prio[b] and seq[a] < seq[b])


@kernel
def _up(heap, at, prio, seq, i):
    one = heap[i]
    while i > 0:
        parent = (i - 1) >> 1
        if not _before(prio, seq, one, heap[parent]):
            break
        heap[i] = heap[parent]
        at[heap[i]] = i
        i = parent
    heap[i] = one
    at[one] = i


@kernel
def _down(heap, size, at, prio, seq, i):
    one = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _before(prio, seq, heap[child + 1], heap[child]):
            child += 1
        if not _before(prio, seq, heap[child], one):
            break
        heap[i] = heap[child]
        at[heap[i]] = i
        i = child
    heap[i] = one
    at[one] = i


@kernel
def push(heap, size, at, prio, seq, one):
    """Put one in; the heap then holds size + 1."""
    heap[size] = one
    _up(heap, at, prio, seq, size)


@kernel
def remove(heap, size, at, prio, seq, one):
    """Take one out, wherever it is; the heap then holds size - 1."""
    i = at[one]
    last = heap[size - 1]
    at[one] = -1
    if last == one:
        return
    heap[i] = last
    at[last] = i
    _up(heap, at, prio, seq, i)
    _down(heap, size - 1, at, prio, seq, at[last])
