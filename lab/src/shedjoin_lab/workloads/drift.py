"""Drifting keys: what is popular changes as time goes by, so counts of long ago mislead."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import SpecError
from shedjoin.workloads.importance import draw
from shedjoin.workloads.workload import Workload, columns, generators, whole
from shedjoin.workloads.zipf import draw_keys, zipf_probabilities


def drifting(
    rows: int,
    *,
    seed: int,
    domain: int = 50,
    skew: float = 1.0,
    every: int = 100,
    swaps: int = 1,
    together: bool = True,
    importance: str = "one",
) -> Workload:
    """Zipf keys whose popularity order changes: every `every` time units `swaps` random pairs of ranks are swapped.

    Parameters
    ----------
    rows, seed, domain, skew, importance
        As in `zipf`.
    every, swaps
        The speed of the drift.
    together
        True: both streams drift alike. False: each on its own, from a common start.

    Examples
    --------
    >>> drifting(1000, seed=3, domain=5, every=10).probabilities is None
    True
    """
    whole("rows", rows, 0)
    whole("every", every, 1)
    whole("swaps", swaps, 0)
    if domain < 2:
        raise SpecError(f"domain must be at least 2 for ranks to be swapped, not {domain}")
    left_keys, right_keys, left_drift, right_drift, left_worth, right_worth = generators(seed, 6)
    probabilities = zipf_probabilities(domain, skew)
    left_orders = _orders(rows, domain, every, swaps, left_drift)
    right_orders = left_orders if together else _orders(rows, domain, every, swaps, right_drift)
    ts = np.arange(rows, dtype=np.int64)
    streams = tuple(
        columns(orders[ts // every, draw_keys(keys, probabilities, rows)], ts, draw(importance, worth, rows))
        for orders, keys, worth in (
            (left_orders, left_keys, left_worth),
            (right_orders, right_keys, right_worth),
        )
    )
    return Workload(
        streams,
        rates=lambda: tuple(_rates(ts // every, orders, probabilities) for orders in (left_orders, right_orders)),
    )


def _rates(
    period: NDArray[np.int64], orders: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The chance of each key at each time."""
    chances = np.empty(orders.shape)
    np.put_along_axis(chances, orders, np.broadcast_to(probabilities, orders.shape), axis=1)
    return chances[period]


def _orders(rows: int, domain: int, every: int, swaps: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The key of each rank, one line for each period of `every` time units."""
    periods = max(1, -(-rows // every))
    orders = np.empty((periods, domain), dtype=np.int64)
    order = np.arange(domain, dtype=np.int64)
    for period in range(periods):
        orders[period] = order
        for _ in range(swaps):
            pair = rng.choice(domain, size=2, replace=False)
            order[pair] = order[pair[::-1]]
    return orders
