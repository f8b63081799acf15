"""The count-min sketch: part, stream, row, column."""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.jit import kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@kernel
def cell_of(cfg, part, stream, row, key):
    """Where the sketch counts a value: splitmix64's finaliser, salted with the row."""
    x = np.uint64(key) + np.uint64(row + 1) * GOLDEN
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    x = x ^ (x >> np.uint64(31))
    table = (part * cfg["streams"] + stream) * cfg["depth"] + row
    return table * cfg["sketch_width"] + np.int64(x % np.uint64(cfg["sketch_width"]))


@kernel
def count_of(cfg, state, part, stream, key):
    """The least of the counts of a value."""
    least = mem.sketch(state)[cell_of(cfg, part, stream, 0, key)]
    for row in range(1, cfg["depth"]):
        least = min(least, mem.sketch(state)[cell_of(cfg, part, stream, row, key)])
    return least
