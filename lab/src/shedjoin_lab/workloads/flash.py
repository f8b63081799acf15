"""Flashes: now and then a key is all the rage for a while, first on one stream and soon on the other."""

from __future__ import annotations

import numpy as np

from shedjoin.errors import SpecError
from shedjoin.workloads.importance import draw
from shedjoin.workloads.workload import Rates, Workload, columns, generators, whole
from shedjoin.workloads.zipf import draw_keys, zipf_probabilities


def flashing(
    rows: int,
    *,
    seed: int,
    domain: int = 200,
    skew: float = 0.8,
    every: int = 60,
    length: int = 80,
    share: float = 0.5,
    importance: str = "one",
) -> Workload:
    """Zipf keys, one tuple of each stream per time unit, with flashes of random keys.

    Parameters
    ----------
    rows, seed, domain, skew, importance
        As in `zipf`.
    every
        Time units from one flash to the next, on average.
    length
        A flash lasts for a quarter of this to this; on the right stream it begins up to half of this later.
    share
        The chance that a tuple in a flash is of its key.

    Examples
    --------
    >>> flashing(5, seed=1, domain=3).probabilities is None
    True
    """
    whole("rows", rows, 0)
    whole("every", every, 1)
    whole("length", length, 4)
    if not 0 <= share <= 1:
        raise SpecError(f"share must be from 0 to 1, not {share!r}")
    left_keys, right_keys, flashes, left_worth, right_worth = generators(seed, 5)
    probabilities = zipf_probabilities(domain, skew)
    keys = [draw_keys(rng, probabilities, rows) for rng in (left_keys, right_keys)]
    flashed = []
    for start in np.flatnonzero(flashes.random(rows) < 1.0 / every).tolist():
        hot, lasting = int(flashes.integers(domain)), int(flashes.integers(length // 4, length))
        for stream, lag in enumerate((0, int(flashes.integers(length // 2)))):
            during = np.arange(start + lag, min(rows, start + lag + lasting))
            keys[stream][during[flashes.random(during.size) < share]] = hot
            flashed.append((stream, during, hot))
    ts = np.arange(rows, dtype=np.int64)
    worth = (draw(importance, rng, rows) for rng in (left_worth, right_worth))

    def rates() -> Rates:
        expected = tuple(np.tile(probabilities, (rows, 1)) for _ in keys)
        for stream, during, hot in flashed:
            expected[stream][during] *= 1.0 - share
            expected[stream][during, hot] += share
        return expected

    return Workload(tuple(columns(key, ts, values) for key, values in zip(keys, worth, strict=True)), rates=rates)
