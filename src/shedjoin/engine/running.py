"""What all running joins have in common: there is one of each, and it is either idle or in the middle of a push."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shedjoin.batch import LATEST
from shedjoin.engine.handle import STREAMS, Handle, Unique
from shedjoin.engine.state import NEVER
from shedjoin.errors import InputError, SpecError

Clocks = Sequence[int | None]


class Running(Unique):
    """A join that runs."""

    _busy = False  # whether rows are on their way

    def _check_idle(self) -> None:
        if self._busy:
            raise InputError(
                "this engine is in the middle of a push: take all pieces of the last `chunks` first; after an interruption go on "
                "from the last snapshot"
            )


class RunningPair(Running):
    """A join of two streams that runs."""

    _state: Handle

    @property
    def arrived(self) -> tuple[int, int]:
        """Rows of each stream so far; the next one gets this number."""
        return self._pair("arrived")

    @property
    def residents(self) -> tuple[int, int]:
        """Stored tuples of each stream."""
        return self._pair("resident")

    @property
    def clocks(self) -> tuple[int | None, int | None]:
        """The largest time of each stream that has gone through the join."""
        left, right = self._pair("clock")
        return None if left == NEVER else left, None if right == NEVER else right

    def _pair(self, field: str) -> tuple[int, int]:
        left, right = self._state[field]
        return int(left), int(right)


def check_limit(limit: object) -> int:
    """The most results in a piece of the output."""
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1:
        raise SpecError(f"limit must be a whole number of at least 1, not {limit!r}")
    return int(limit)


def check_clocks(clocks: Clocks | None) -> tuple[int, int] | None:
    """One time for each of two streams; NEVER where there is nothing to say."""
    if clocks is None:
        return None
    told = tuple(NEVER if clock is None else clock for clock in clocks) if isinstance(clocks, Sequence) else ()
    whole = all(isinstance(clock, int | np.integer) and not isinstance(clock, bool) for clock in told)
    if len(told) != STREAMS or not whole or not all(clock == NEVER or abs(clock) <= LATEST for clock in told):
        raise InputError(
            f"clocks must be one time within +-2**53 (or None) for each of {STREAMS} streams, not {clocks!r}"
        )
    return int(told[0]), int(told[1])
