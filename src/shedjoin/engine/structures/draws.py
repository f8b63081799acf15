"""Lots: random numbers from the one generator of a join."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.jit import kernel


@kernel
def unit(state):
    """A random number from 0 up to 1: xorshift64, as policies draw."""
    x = state["random"]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state["random"] = x
    return np.float64(np.int64(x >> np.uint64(11))) * 2.0**-53
