"""The lots that rows draw, the hashes of their keys, and the places that these lead to."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.jit import inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@inlined
def lot_of(seed, stream, seq):
    """The row's own random bits (splitmix64): the same whenever and wherever they are asked for."""
    x = seed + np.uint64(2 * seq + stream) * GOLDEN
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@inlined
def unit_of(lot):
    """A lot as a number from 0 up to 1."""
    return np.float64(np.int64(lot >> np.uint64(11))) * 2.0**-53


@inlined
def hash_of(key):
    x = np.uint64(key) * GOLDEN
    return x ^ (x >> np.uint64(32))


@inlined
def place_of(bits, array):
    """Where in an array of 2^n places these bits lead."""
    return bits & np.uint64(array.size - 1)


@inlined
def cell_of(hashed, stream, array):
    """Where in an array of cells a key and a stream have their place."""
    return ((hashed << np.uint64(1)) | np.uint64(stream)) & np.uint64(array.size - 1)


@inlined
def tag_of(hashed):
    """One of 16: most keys that share a cell differ in it."""
    return (hashed >> np.uint64(28)) & np.uint64(15)
