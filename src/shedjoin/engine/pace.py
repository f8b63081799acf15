"""Pace: how r is adapted while a push runs, so that it ends in time. By a clock, or as it was the first time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from shedjoin.engine.stages.adapt import LEAST_FRACTION

#: A push is run in about this many parts, and r is looked at after each.
PARTS = 16


class Pace(Protocol):
    """Is asked for r after every part of a push, and at its end."""

    def begin(self, rows: int) -> int:
        """A push of this many rows begins. Returns the rows of a part."""

    def look(self, fraction: float) -> float:
        """A part is done: r for the next one."""

    def finish(self, fraction: float) -> float:
        """All is done: r for the next push."""


def part_of(rows: int) -> int:
    """How many rows make a part."""
    return max(1, -(-rows // PARTS))


class Watch:
    """Holds a push to its deadline: r follows the time that is left for the rows that are left.

    `said` has what it answered, so that a `Script` can say the same again.
    """

    def __init__(self, seconds: float, *, boost: float = 1.2, clock: Callable[[], float] = time.perf_counter) -> None:
        self._seconds = seconds
        self._boost = boost
        self._clock = clock
        self.said: list[float] = []

    def begin(self, rows: int) -> int:
        self._left = rows
        self._part = part_of(rows)
        self._begin = self._last = self._clock()
        return self._part

    def look(self, fraction: float) -> float:
        """By what the rest would take at the pace of the last part, and what it may take."""
        now = self._clock()
        took, self._last = now - self._last, now
        self._left -= self._part
        return self._say(fraction, took * self._left / self._part, self._seconds - (now - self._begin))

    def finish(self, fraction: float) -> float:
        """With time to spare, the next push may do more."""
        return self._say(fraction, self._clock() - self._begin, self._seconds)

    def _say(self, fraction: float, needed: float, allowed: float) -> float:
        if needed > 0.0:
            beta = max(allowed, 0.0) / needed
            fraction *= beta if beta < 1.0 else min(self._boost, beta)
        self.said.append(min(1.0, max(LEAST_FRACTION, fraction)))
        return self.said[-1]


class Script:
    """Says what a `Watch` said: the same push gives the same results once more."""

    def __init__(self, said: Sequence[float]) -> None:
        self._said = iter(said)

    def begin(self, rows: int) -> int:
        return part_of(rows)

    def look(self, fraction: float) -> float:
        return next(self._said, fraction)

    finish = look
