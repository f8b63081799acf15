"""Sums over the counts of sampled rows, and sums of delivered importance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.jit import entry, inlined, kernel
from shedjoin.recall.sample.state import POWERS, STORED


@inlined
def _add(sums, kind, rest, z):
    sums[kind, 0] += z
    sums[kind, 1] += rest * z * z
    sums[kind, 2] += rest * z * z * z


@kernel
def add_row(sums, row):
    """Add the counts z of a sampled row to sums of z, (1 - p) z^2 and (1 - p) z^3."""
    rest = 1.0 - row["probability"]
    _add(sums, 0, rest, row["missing"])
    _add(sums, 1, rest, row["missing_importance"])
    _add(sums, 2, rest, row["recent"])
    _add(sums, 3, rest, row["recent_importance"])


@entry
def add_sample(record: NDArray[Any], table: NDArray[np.void], sums: NDArray[np.float64]) -> None:
    """Add the counts of all shed rows in the sample to `sums`."""
    state = record[0]
    for index in range(state["used"]):
        if table[index]["state"] != STORED:
            add_row(sums, table[index])


@entry
def rescale_recent(record: NDArray[Any], table: NDArray[np.void], factor: float) -> None:
    """Multiply all decayed counts and their weight by a factor, before they overflow."""
    state = record[0]
    state["recent_weight"] *= factor
    for index in range(state["used"]):
        table[index]["recent"] *= factor
        table[index]["recent_importance"] *= factor
    for kind in range(2, 4):
        power = factor
        for column in range(POWERS):
            state["sums"][kind, column] *= power
            power *= factor


@entry
def add_in_lanes(lanes: NDArray[np.float64], done: int, values: NDArray[np.float64]) -> None:
    """Add value number n to lane n % 4, where the first value has number `done`.

    The lanes do not depend on how the values are split into calls.
    """
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
