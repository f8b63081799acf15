"""A workload: the streams of one experiment, and what is known about them in advance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import SpecError
from shedjoin.estimators import Table

#: For each stream the rows to be expected, [time, key].
Rates = tuple[NDArray[np.float64], ...]
#: One stream: arrays `key`, `ts`, `importance`, as `sj.simulate` takes them.
Columns = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """Streams with, where it exists, the true probability of each key.

    Parameters
    ----------
    streams
        A dict of columns a stream.
    probabilities
        For each stream an array whose index is the key; None where keys have no fixed distribution.
    rates
        Works out how many rows of each key were to be expected at each time, before any was drawn; None where it is not known.
    """

    streams: tuple[Columns, ...]
    probabilities: tuple[NDArray[np.float64], ...] | None = None
    rates: Callable[[], Rates] | None = field(default=None, repr=False, compare=False)

    @property
    def left(self) -> Columns:
        return self.streams[0]

    @property
    def right(self) -> Columns:
        return self.streams[1]

    def table(self) -> Table:
        """The true probabilities, as the experiments of das2003 give them to PROB and LIFE."""
        if self.probabilities is None:
            raise SpecError(
                "this workload has no fixed key distribution, so there is no true table: use another estimator"
            )
        left, right = self.probabilities[:2]
        return Table(left, right)


def columns(key: Any, ts: NDArray[np.int64], importance: NDArray[np.float64] | None = None) -> Columns:
    """One stream; importance is 1 where none is given."""
    return {"key": key, "ts": ts, "importance": np.ones(len(ts)) if importance is None else importance}


def generators(seed: int, parts: int) -> list[np.random.Generator]:
    """Independent generators, one a part of the workload, so that one part's settings leave the others as they were."""
    if isinstance(seed, bool) or seed < 0:
        raise SpecError(f"seed must be a whole number of at least 0, not {seed!r}")
    return np.random.default_rng(seed).spawn(parts)


def at_least(name: str, value: float, least: float) -> None:
    """Refuse an argument that is too small."""
    if not value >= least:
        raise SpecError(f"{name} must be at least {least:g}, not {value!r}")


def whole(name: str, value: int, least: int) -> None:
    """The same for an argument that counts something."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise SpecError(f"{name} must be a whole number of at least {least}, not {value!r}")
    at_least(name, value, least)
