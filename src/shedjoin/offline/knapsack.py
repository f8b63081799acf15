"""The dynamic programs of das2003 3.1.1, compiled: T(i, j), and its variant with a number for each relation."""

from __future__ import annotations

import numba
import numpy as np

# Not the engine's `kernel`: these tables are allocated inside.
kernel = numba.njit(cache=True, nogil=True)


@kernel
def edges(m, n, p):
    """C_mn(p): the most results of p tuples of a component with m and n, taken from both sides in turn."""
    few = min(m, n)
    if p <= 2 * few:
        return (p // 2) * (p - p // 2)
    return few * (p - few)


@kernel
def fill(m, n, keep, chosen):
    """T(c, .): the most results of `keep` tuples in all; of the best j of the first i + 1 components, `chosen[i, j]` are of i."""
    best = np.zeros(keep + 1, np.int64)
    row = np.empty(keep + 1, np.int64)
    for i in range(m.size):
        both = m[i] + n[i]
        for j in range(keep + 1):
            top, at = best[j], 0
            for p in range(2, min(both, j) + 1):
                value = best[j - p] + edges(m[i], n[i], p)
                if value > top:
                    top, at = value, p
            row[j] = top
            chosen[i, j] = at
        best, row = row, best
    return best


@kernel
def fill_two(m, n, keep_left, keep_right, left, right):
    """The same with a number for each relation; what is chosen of each component goes to `left` and `right`."""
    best = np.zeros((keep_left + 1, keep_right + 1), np.int64)
    row = np.empty((keep_left + 1, keep_right + 1), np.int64)
    for i in range(m.size):
        for j in range(keep_left + 1):
            for k in range(keep_right + 1):
                top, at_left, at_right = best[j, k], 0, 0
                for p in range(1, min(m[i], j) + 1):
                    for q in range(1, min(n[i], k) + 1):
                        value = best[j - p, k - q] + p * q
                        if value > top:
                            top, at_left, at_right = value, p, q
                row[j, k] = top
                left[i, j, k] = at_left
                right[i, j, k] = at_right
        best, row = row, best
    return best
