"""One memory for several joins: each further tuple goes where it gains most (das2003's outlook on shared resources)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def gains(left: Floats, right: Floats, window: int) -> Floats:
    """What each further pair of tuples, one a stream, gains at most: results a time unit, expected by key probabilities.

    A stream has at most window * p(key) live tuples of a key, each of which meets p'(key) partners a time unit. They fill the
    memory in the order of p': no pair gains more than one before it.
    """
    result = np.zeros(2 * window)
    for own, other in ((left, right), (right, left)):
        order = np.argsort(-other, kind="stable")
        live = np.concatenate(([0.0], np.cumsum(window * own[order])))
        worth = np.concatenate(([0.0], np.cumsum(window * own[order] * other[order])))
        result += np.diff(np.interp(np.arange(2 * window + 1), live, worth))
    return result


def divide(curves: Sequence[Floats], pairs: int) -> tuple[int, ...]:
    """So many pairs among the joins, by marginal gain; of equal gains the first join's.

    Examples
    --------
    >>> divide([np.array([5.0, 1.0]), np.array([3.0, 2.0])], 3)
    (1, 2)
    """
    given = [0] * len(curves)
    heap = [(-curve[0], join) for join, curve in enumerate(curves) if curve.size]
    heapq.heapify(heap)
    for _ in range(pairs):
        if not heap:
            break
        _, join = heap[0]
        given[join] += 1
        if given[join] < curves[join].size:
            heapq.heapreplace(heap, (-curves[join][given[join]], join))
        else:
            heapq.heappop(heap)
    return tuple(given)
