"""Rotating popularity with a time shift: matches lie at a certain age (gedik2007, section 6.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shedjoin.workloads.importance import draw
from shedjoin.workloads.workload import Columns, Workload, at_least, columns, generators, whole
from shedjoin.workloads.zipf import draw_keys, zipf_probabilities

#: Rows of a set-valued stream are drawn in blocks of this many, to bound the memory for their random numbers.
_BLOCK = 4096


def rotating(
    instants: int,
    *,
    seed: int,
    window: int,
    values: int = 5000,
    skew: float = 0.6,
    rate: int = 1,
    shift: float = 5 / 8,
    importance: str = "one",
) -> Workload:
    """Single values 1 .. `values`; at time T the most popular is 1 + floor(values * (T mod period) / period).

    Parameters
    ----------
    instants, rate
        Time units, and tuples of each stream in each of them.
    window
        The join's window; the cycle period is twice that, as in the paper.
    shift
        How far the right stream lags behind, as a share of the cycle period.
    skew
        The paper's kappa (0.6 and 0.8 there).

    Examples
    --------
    >>> rotating(4, seed=1, window=2, values=4, skew=9.0, shift=0.5).left["key"]
    array([1, 2, 3, 4])
    """
    left_keys, right_keys, left_worth, right_worth = generators(seed, 4)
    ts = _times(instants, rate)
    probabilities = zipf_probabilities(values, skew)
    streams = []
    lags = (0.0, shift)
    for keys, worth, lag in zip((left_keys, right_keys), (left_worth, right_worth), lags, strict=True):
        ranks = draw_keys(keys, probabilities, ts.size)
        key = 1 + (_most_popular(ts, window, values, lag) + ranks) % values
        streams.append(columns(key, ts, draw(importance, worth, ts.size)))
    clock = np.arange(instants, dtype=np.int64)
    return Workload(
        tuple(streams),
        rates=lambda: tuple(_rates(_most_popular(clock, window, values, lag), rate * probabilities) for lag in lags),
    )


def _rates(first: NDArray[np.int64], by_rank: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of each key at each time; there is no key 0."""
    rates = np.zeros((first.size, 1 + by_rank.size))
    keys = 1 + (first[:, None] + np.arange(by_rank.size)) % by_rank.size
    np.put_along_axis(rates, keys, np.broadcast_to(by_rank, keys.shape), axis=1)
    return rates


def rotating_sets(
    instants: int,
    *,
    seed: int,
    window: int,
    values: int = 100,
    skew: float = 0.6,
    rate: int = 1,
    shift: float = 5 / 8,
    mean_size: float = 5.0,
    spread: float = 1.0,
) -> Workload:
    """The same with sets: about N(5, 1) different items of 1 .. `values` each (gedik2007's overlap joins).

    Row i holds `items[offsets[i] : offsets[i + 1]]`, sorted; there is no column `key`.
    """
    left_rng, right_rng = generators(seed, 2)
    ts = _times(instants, rate)
    probabilities = zipf_probabilities(values, skew)
    return Workload(
        tuple(
            _set_stream(rng, ts, probabilities, _most_popular(ts, window, values, lag), mean_size, spread)
            for rng, lag in ((left_rng, 0.0), (right_rng, shift))
        )
    )


def rotating_sets_at(
    ts: NDArray[np.int64],
    *,
    seed: int,
    window: int,
    values: int = 100,
    skew: float = 0.6,
    shift: float = 5 / 8,
    mean_size: float = 5.0,
    spread: float = 1.0,
) -> Workload:
    """Sets as in `rotating_sets`, at times of your own, the same in both streams."""
    probabilities = zipf_probabilities(values, skew)
    return Workload(
        tuple(
            _set_stream(rng, ts, probabilities, _most_popular(ts, window, values, lag), mean_size, spread)
            for rng, lag in zip(generators(seed, 2), (0.0, shift), strict=True)
        )
    )


def _times(instants: int, rate: int) -> NDArray[np.int64]:
    whole("instants", instants, 0)
    at_least("rate", rate, 1)
    return np.repeat(np.arange(instants, dtype=np.int64), rate)


def _most_popular(ts: NDArray[np.int64], window: int, values: int, lag: float) -> NDArray[np.int64]:
    """The most popular item at each time, counted from 0."""
    whole("window", window, 1)
    period = 2 * window
    place = np.mod(ts - lag * period, period) / period
    return np.asarray(np.minimum(values * place, values - 1), dtype=np.int64)


def _set_stream(
    rng: np.random.Generator,
    ts: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    first: NDArray[np.int64],
    mean_size: float,
    spread: float,
) -> Columns:
    values = probabilities.size
    sizes = np.clip(np.rint(rng.normal(mean_size, spread, ts.size)), 1, values).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    items = np.empty(offsets[-1], dtype=np.int64)
    logs = np.log(probabilities)
    for start in range(0, ts.size, _BLOCK):
        rows = slice(start, min(start + _BLOCK, ts.size))
        # Sorted noisy log-probabilities draw without replacement, in proportion to the probabilities (Gumbel's trick).
        noisy = logs + rng.gumbel(size=(rows.stop - start, values))
        most = int(sizes[rows].max())
        best = np.argpartition(-noisy, min(most, values - 1), axis=1)[:, :most]
        ranks = np.take_along_axis(best, np.argsort(-np.take_along_axis(noisy, best, axis=1), axis=1), axis=1)
        picked = 1 + (first[rows, None] + ranks) % values
        picked[np.arange(most) >= sizes[rows, None]] = values + 1  # more than the set has: sorted behind it
        picked.sort(axis=1)
        items[offsets[rows.start] : offsets[rows.stop]] = picked[np.arange(most) < sizes[rows, None]]
    return {"items": items, "offsets": offsets, "ts": ts, "importance": np.ones(ts.size)}
