"""Bursts: for a while several tuples arrive per time unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import SpecError
from shedjoin.workloads.workload import Rates, Workload, at_least, whole
from shedjoin.workloads.zipf import zipf_at


@dataclass(frozen=True, slots=True)
class Burst:
    """From `start` up to `stop` (not included) each of `streams` brings `factor` times its usual tuples."""

    start: int
    stop: int
    factor: int = 10
    streams: tuple[int, ...] = (0, 1)

    def __post_init__(self) -> None:
        at_least("Burst.start", self.start, 0)
        at_least("Burst.factor", self.factor, 1)
        if self.stop <= self.start:
            raise SpecError(f"Burst.stop must come after start={self.start}, not {self.stop}")
        if not set(self.streams) <= {0, 1}:
            raise SpecError(f"Burst.streams must be 0 (left) and 1 (right), not {self.streams!r}")


def bursty(
    instants: int,
    *,
    seed: int,
    bursts: Sequence[Burst],
    rate: int = 1,
    domain: int = 50,
    skew: float | tuple[float, float] = 1.0,
    ranks: str = "correlated",
    importance: str = "one",
) -> Workload:
    """Zipf keys, `rate` tuples of each stream per time unit, more during bursts (overlapping bursts multiply).

    Examples
    --------
    >>> bursty(4, seed=0, bursts=[Burst(1, 2, factor=3, streams=(1,))]).right["ts"]
    array([0, 1, 1, 1, 2, 3])
    """
    whole("instants", instants, 0)
    at_least("rate", rate, 1)
    left_ts, right_ts = (_times(instants, rate, bursts, stream) for stream in (0, 1))
    streams = zipf_at((left_ts, right_ts), seed=seed, domain=domain, skew=skew, ranks=ranks, importance=importance)
    return replace(streams, rates=lambda: _rates(instants, (left_ts, right_ts), streams))


def _rates(instants: int, times: Sequence[NDArray[np.int64]], streams: Workload) -> Rates:
    assert streams.probabilities is not None
    return tuple(
        np.outer(np.bincount(ts, minlength=instants), probabilities)
        for ts, probabilities in zip(times, streams.probabilities, strict=True)
    )


def _times(instants: int, rate: int, bursts: Sequence[Burst], stream: int) -> NDArray[np.int64]:
    count = np.full(instants, rate, dtype=np.int64)
    for burst in bursts:
        if stream in burst.streams:
            count[burst.start : burst.stop] *= burst.factor
    return np.repeat(np.arange(instants, dtype=np.int64), count)
