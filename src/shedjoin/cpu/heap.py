"""A binary heap of numbers that stand for tuples or rows, lowest (priority, arrival) first; each knows its place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.jit import inlined, kernel


class Heap(NamedTuple):
    """The columns of a heap. All but the first are by the numbers that are in it."""

    order: NDArray[np.int64]
    at: NDArray[np.int64]  # their places in the order
    prio: NDArray[np.float64]
    seq: NDArray[np.int64]


@inlined
def _before(heap, a, b):
    return heap.prio[a] < heap.prio[b] or (heap.prio[a] == heap.prio[b] and heap.seq[a] < heap.seq[b])


@kernel
def _up(heap, i):
    order, at = heap.order, heap.at
    one = order[i]
    while i > 0:
        parent = (i - 1) >> 1
        if not _before(heap, one, order[parent]):
            break
        order[i] = order[parent]
        at[order[i]] = i
        i = parent
    order[i] = one
    at[one] = i


@kernel
def _down(heap, size, i):
    order, at = heap.order, heap.at
    one = order[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap, order[child + 1], order[child]):
            child += 1
        if not _before(heap, order[child], one):
            break
        order[i] = order[child]
        at[order[i]] = i
        i = child
    order[i] = one
    at[one] = i


@kernel
def push(heap, size, one):
    """Put one in; the heap then holds size + 1."""
    heap.order[size] = one
    _up(heap, size)


@kernel
def remove(heap, size, one):
    """Take one out, wherever it is; the heap then holds size - 1."""
    order, at = heap.order, heap.at
    i = at[one]
    last = order[size - 1]
    at[one] = -1
    if last == one:
        return
    order[i] = last
    at[last] = i
    _up(heap, i)
    _down(heap, size - 1, at[last])
