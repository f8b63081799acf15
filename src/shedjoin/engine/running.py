"""What all running joins have in common: there is one of each, and it is either idle or in the middle of a push."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST
from shedjoin.engine.handle import Unique
from shedjoin.engine.records import NEVER
from shedjoin.errors import InputError, SpecError

Clocks = Sequence[int | None] | Mapping[str, int]


class Running(Unique):
    """A join that runs."""

    _busy = False  # whether rows are on their way

    def _check_idle(self) -> None:
        if self._busy:
            raise InputError(
                "this engine is in the middle of a push: take all pieces of the last `chunks` first; after an interruption go on "
                "from the last snapshot"
            )


def check_limit(limit: object) -> int:
    """The most results in a piece of the output."""
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1:
        raise SpecError(f"limit must be a whole number of at least 1, not {limit!r}")
    return int(limit)


def check_clocks(clocks: Clocks | None, names: Sequence[str] = ("left", "right")) -> NDArray[np.int64] | None:
    """One time a stream; NEVER where there is nothing to say."""
    if clocks is None:
        return None
    known = f"times within +-2**53 (or None), one for each of {', '.join(names)}, or by their names"
    if isinstance(clocks, Mapping):
        unknown = [name for name in clocks if name not in names]
        told = [clocks.get(name) for name in names] if not unknown else []
    else:
        told = list(clocks) if isinstance(clocks, Sequence) and not isinstance(clocks, str) else []
    whole = all(
        clock is None or (isinstance(clock, int | np.integer) and not isinstance(clock, bool)) for clock in told
    )
    if len(told) != len(names) or not whole or not all(clock is None or abs(clock) <= LATEST for clock in told):
        raise InputError(f"clocks must be {known}, not {clocks!r}")
    return np.array([NEVER if clock is None else int(clock) for clock in told], np.int64)


def check_arrived(
    arrived: Sequence[int] | None, names: Sequence[str], counted_elsewhere: bool
) -> NDArray[np.int64] | None:
    """Check `arrived`: how many rows of each stream have come to any engine."""
    if arrived is None:
        return None
    if not counted_elsewhere:
        raise InputError("arrived is for joins with JoinSpec.counted_elsewhere: this one counts its own rows")
    told = list(arrived) if isinstance(arrived, Sequence) and not isinstance(arrived, str) else []
    whole = all(isinstance(count, int | np.integer) and not isinstance(count, bool) for count in told)
    if len(told) != len(names) or not whole or not all(0 <= count <= LATEST for count in told):
        raise InputError(f"arrived must be how many rows of each of {', '.join(names)} have come, not {arrived!r}")
    return np.array(told, np.int64)
