"""A filter of shed rows that forgets by itself: cells hold the largest stamp of a row whose value hashes there.

A Bloom filter of times. A value has two cells, and the lesser of their stamps is at least that of every row with this value:
an answer may be too late, never too early. What is older than a window says nothing any more, so nothing is ever removed.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.jit import inlined, kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@inlined
def _hash_of(value):
    """splitmix64's finaliser: the low and the high half choose a cell each."""
    x = np.uint64(np.int64(value)) + GOLDEN
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@kernel
def insert(state, number, value, stamp):
    """Note a shed row."""
    hashed, mask = _hash_of(value), np.uint64(state["filters_room"] - 1)
    filters = mem.filters(state)
    low, high = np.int64(hashed & mask), np.int64((hashed >> np.uint64(32)) & mask)
    filters[number, low] = max(filters[number, low], stamp)
    filters[number, high] = max(filters[number, high], stamp)


@kernel
def newest(state, number, value):
    """No shed row with this value has a larger stamp."""
    hashed, mask = _hash_of(value), np.uint64(state["filters_room"] - 1)
    filters = mem.filters(state)
    low, high = np.int64(hashed & mask), np.int64((hashed >> np.uint64(32)) & mask)
    return min(filters[number, low], filters[number, high])
