"""The histogram of the numbers of both streams: at most 64 buckets, which become twice as wide when a number does not fit.

The width is a power of two. While all numbers are the same there is no width: a number is its own bucket, by its bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from shedjoin.engine.handle import Handle
from shedjoin.engine.jit import inlined, kernel

MOST_BUCKETS = 64
FARTHEST = 2.0**62
#: How many numbers are known.
NOTHING, ONE, SEVERAL = range(3)


@inlined
def bucket(state, number):
    """The bucket of a number, whether or not the histogram reaches so far."""
    if state["known_numbers"] < SEVERAL:
        return np.float64(number + 0.0).view(np.int64)  # 0 and -0 are one number
    place = number / state["bucket_width"]
    # Held within bounds before it is made whole: compiled, `floor` is of 64 bits.
    return np.int64(math.floor(min(max(place, -FARTHEST), FARTHEST)))


@inlined
def first_bucket(state):
    """The lowest of 64 buckets."""
    return np.int64(math.floor(state["lowest_number"] / state["bucket_width"]))


@kernel
def has(state, number):
    """Whether a number lies in what the histogram covers."""
    if state["known_numbers"] == NOTHING:
        return False
    return state["lowest_number"] <= number <= state["highest_number"]


def widen(state: Handle, numbers: Iterable[float]) -> None:
    """Make room for numbers, one after the other. Buckets that were counted by must be renamed: see `renamed`."""
    low, high, width = float(state["lowest_number"]), float(state["highest_number"]), float(state["bucket_width"])
    known = int(state["known_numbers"])
    for number in numbers:
        low, high = (number, number) if known == NOTHING else (min(low, number), max(high, number))
        known = max(known, ONE)
        if low == high:
            continue
        if known == ONE:
            width, known = 2.0 ** math.frexp((high - low) / (MOST_BUCKETS - 1))[1], SEVERAL
        while high >= (math.floor(low / width) + MOST_BUCKETS) * width:
            width *= 2
    state["lowest_number"], state["highest_number"], state["bucket_width"], state["known_numbers"] = (
        low,
        high,
        width,
        known,
    )


def renamed(keys: Any, before: tuple[int, float], state: Handle) -> Any:
    """The buckets that counts of old buckets belong to now. `before`: how many numbers were known, and the width."""
    known, width = before
    if known < SEVERAL:
        numbers = np.asarray(keys, np.int64).view(np.float64)
        if int(state["known_numbers"]) < SEVERAL:
            return keys
        return np.floor(numbers / float(state["bucket_width"])).astype(np.int64)
    return np.asarray(keys, np.int64) >> (math.frexp(float(state["bucket_width"]))[1] - math.frexp(width)[1])
