"""Random draws of rows, hashes of keys, and the slots that they select in tables."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.jit import inlined

# The constants of splitmix64.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


@inlined
def draw_of(seed, stream, seq):
    """The random bits of a row (splitmix64). They depend on the seed and the row's number only."""
    x = seed + np.uint64(2 * seq + stream) * GOLDEN
    x = (x ^ (x >> np.uint64(30))) * MIX_1
    x = (x ^ (x >> np.uint64(27))) * MIX_2
    return x ^ (x >> np.uint64(31))


@inlined
def uniform_of(draw):
    """A draw as a number in [0, 1)."""
    return np.float64(np.int64(draw >> np.uint64(11))) * 2.0**-53


@inlined
def hash_of(key):
    x = np.uint64(key) * GOLDEN
    return x ^ (x >> np.uint64(32))


@inlined
def slot_of(bits, array):
    """The slot of these bits in an array of 2^n slots."""
    return bits & np.uint64(array.size - 1)


@inlined
def key_slot_of(hashed, stream, array):
    """The slot of a key's hash and a stream in an array of 2^n slots."""
    return ((hashed << np.uint64(1)) | np.uint64(stream)) & np.uint64(array.size - 1)


@inlined
def tag_of(hashed):
    """One of 16 tags. Most keys that share a slot have different tags."""
    return (hashed >> np.uint64(28)) & np.uint64(15)
