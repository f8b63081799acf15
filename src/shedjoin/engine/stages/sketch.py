"""The count-min sketch: part, stream, row, column."""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.jit import kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@kernel
def cell_of(how, part, stream, row, key):
    """Where the sketch counts a value: splitmix64's finaliser, salted with the row."""
    x = np.uint64(key) + np.uint64(row + 1) * GOLDEN
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    x = x ^ (x >> np.uint64(31))
    table = (part * how["streams"] + stream) * how["depth"] + row
    return table * how["sketch_width"] + np.int64(x % np.uint64(how["sketch_width"]))


@kernel
def count_of(how, st, part, stream, key):
    """The least of the counts of a value."""
    least = mem.sketch(st)[cell_of(how, part, stream, 0, key)]
    for row in range(1, how["depth"]):
        least = min(least, mem.sketch(st)[cell_of(how, part, stream, row, key)])
    return least
