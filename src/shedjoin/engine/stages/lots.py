"""Lots: the random numbers of a join, one generator for all of them, in the order of events."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.jit import inlined


@inlined
def next_random(x):
    """xorshift64."""
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    return x


@inlined
def unit_of(random):
    """From 0 up to 1."""
    return np.float64(np.int64(random >> np.uint64(11))) * 2.0**-53


@inlined
def draw(state):
    """The next lot, from 0 up to 1."""
    state["random"] = next_random(state["random"])
    return unit_of(state["random"])
