"""What witnesses counted: summed up, expressed anew, and the sums of what was delivered."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.jit import entry, inlined, kernel
from shedjoin.recall.sample.state import POWERS, WAITING


@inlined
def _add(sums, row, rest, x):
    sums[row, 0] += x
    sums[row, 1] += rest * x * x
    sums[row, 2] += rest * x * x * x


@kernel
def fold(sums, w):
    """Add what a witness counted to sums: x, (1 - p) x^2, (1 - p) x^3."""
    rest = 1.0 - w["keep"]
    _add(sums, 0, rest, w["results"])
    _add(sums, 1, rest, w["worth"])
    _add(sums, 2, rest, w["recent"])
    _add(sums, 3, rest, w["recent_worth"])


@entry
def tally(state: NDArray[Any], table: NDArray[np.void], sums: NDArray[np.float64]) -> None:
    """Add what the witnesses that are still here have counted to `sums`."""
    st = state[0]
    for x in range(st["used"]):
        if table[x]["state"] != WAITING:
            fold(sums, table[x])


@entry
def rescale(state: NDArray[Any], table: NDArray[np.void], factor: float) -> None:
    """Express all recent counts in another measure, before the numbers grow out of bounds."""
    st = state[0]
    st["fade"] *= factor
    for x in range(st["used"]):
        table[x]["recent"] *= factor
        table[x]["recent_worth"] *= factor
    for row in range(2, 4):
        power = factor
        for column in range(POWERS):
            st["sums"][row, column] *= power
            power *= factor


@entry
def add_up(lanes: NDArray[np.float64], done: int, values: NDArray[np.float64]) -> None:
    """Add values to four sums in turn, the first value being number `done`: the same sums however values are cut."""
    size = values.size
    i = 0
    while i < size and (done + i) & 3 != 0:
        lanes[(done + i) & 3] += values[i]
        i += 1
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    while i + 4 <= size:
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        i += 4
    lanes[0], lanes[1], lanes[2], lanes[3] = a, b, c, d
    while i < size:
        lanes[(done + i) & 3] += values[i]
        i += 1
