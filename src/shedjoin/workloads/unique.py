"""Unique keys: each click refers to one impression by its id, and comes some time after it."""

from __future__ import annotations

import math

import numpy as np

from shedjoin.errors import SpecError
from shedjoin.workloads.workload import Workload, at_least, columns, generators, whole


def unique(
    rows: int,
    *,
    seed: int,
    clicked: float = 0.6,
    delay: float = 100.0,
    spread: float = 1.2,
    strays: float = 0.1,
    duplicates: float = 0.1,
) -> Workload:
    """Impressions, one per time unit, and clicks on some of them by their id. Most clicks come soon, some very late.

    Parameters
    ----------
    rows
        Impressions; their `ts` is 0, 1, 2, ..., and their key as well.
    seed
        The same seed and settings give the same streams.
    clicked
        The share of impressions that are clicked.
    delay, spread
        The median of the time between the two, and the standard deviation of its logarithm: the distribution is log-normal,
        which has a long tail.
    strays
        Clicks whose impression there is not, as a share of the others.
    duplicates
        Clicks that come a second time, as a share of the others. The second has a delay of its own.

    Examples
    --------
    >>> workload = unique(4, seed=1, clicked=1.0, delay=2.0, strays=0.0, duplicates=0.0)
    >>> workload.left["key"], workload.right["key"], workload.right["ts"]
    (array([0, 1, 2, 3]), array([2, 3, 1, 0]), array([ 3,  7,  9, 40]))
    """
    whole("rows", rows, 1)
    for name, share in (("clicked", clicked), ("strays", strays), ("duplicates", duplicates)):
        if not 0.0 <= share <= 1.0:
            raise SpecError(f"{name} must be from 0 to 1, not {share!r}")
    at_least("delay", delay, 1e-9)
    at_least("spread", spread, 0.0)
    which, when, more, never = generators(seed, 4)
    impressions = np.arange(rows, dtype=np.int64)
    chosen = impressions[which.random(rows) < clicked]
    again = chosen[more.random(chosen.size) < duplicates]
    keys = np.concatenate([chosen, again])
    waits = [rng.lognormal(math.log(delay), spread, some.size) for rng, some in ((when, chosen), (more, again))]
    times = keys + np.ceil(np.minimum(np.concatenate(waits), 1e9)).astype(np.int64)
    lost = round(strays * chosen.size)
    keys = np.concatenate([keys, rows + np.arange(lost, dtype=np.int64)])
    times = np.concatenate([times, never.integers(0, rows, lost)])
    order = np.argsort(times, kind="stable")
    return Workload((columns(impressions, impressions.copy()), columns(keys[order], times[order])))
