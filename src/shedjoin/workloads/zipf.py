"""Zipf keys: one tuple of each stream per time unit, independent (das2003 section 4, importance2006 section 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import SpecError
from shedjoin.workloads.importance import draw
from shedjoin.workloads.workload import Workload, at_least, columns, generators, whole

#: How the popularity orders of two streams relate.
RANKS = ("correlated", "uncorrelated", "anti")


def zipf_probabilities(domain: int, skew: float) -> NDArray[np.float64]:
    """Probability of the 1st, 2nd, ... most popular value: proportional to 1 / rank**skew.

    Examples
    --------
    >>> zipf_probabilities(3, 1.0).round(3)
    array([0.545, 0.273, 0.182])
    >>> zipf_probabilities(4, 0.0)
    array([0.25, 0.25, 0.25, 0.25])
    """
    whole("domain", domain, 1)
    at_least("skew", skew, 0)
    weights = np.arange(1, domain + 1, dtype=np.float64) ** -float(skew)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def popularity_order(ranks: str, domain: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The right stream's key of each rank, where the left stream's key is the rank itself."""
    order = np.arange(domain, dtype=np.int64)
    if ranks == "correlated":
        return order
    if ranks == "anti":
        return order[::-1].copy()
    if ranks == "uncorrelated":
        return rng.permutation(order)
    raise SpecError(f"ranks must be one of {', '.join(RANKS)}, not {ranks!r}")


def zipf(
    rows: int,
    *,
    seed: int,
    domain: int = 50,
    skew: float | tuple[float, float] = 1.0,
    ranks: str = "correlated",
    importance: str = "one",
) -> Workload:
    """Two streams of `rows` tuples, one each per time unit.

    Parameters
    ----------
    rows
        Tuples of each stream; their `ts` is 0, 1, 2, ...
    seed
        The same seed and settings give the same streams. Importance and popularity order have generators of their
        own, so changing one leaves the others as they were.
    domain
        Number of different keys, 0 .. domain - 1.
    skew
        Zipf parameter of both streams, or one each. 0 is uniform.
    ranks
        ``"correlated"``: the same keys are popular in both streams. ``"uncorrelated"``: the right stream's popularity
        order is a random permutation. ``"anti"``: it is reversed. das2003 writes "uncorrelated" and leaves open whether
        it means the second, or independent draws of equal ranks (here ``"correlated"``); the lab runs both.
    importance
        Name of a distribution in `IMPORTANCE`.

    Examples
    --------
    >>> workload = zipf(5, seed=1, domain=3, ranks="anti")
    >>> workload.left["key"], workload.right["key"]
    (array([1, 0, 1, 0, 0]), array([2, 2, 1, 1, 2]))
    >>> workload.probabilities[1].round(3)
    array([0.182, 0.273, 0.545])
    """
    whole("rows", rows, 0)
    ts = np.arange(rows, dtype=np.int64)
    return zipf_at((ts, ts), seed=seed, domain=domain, skew=skew, ranks=ranks, importance=importance)


def zipf_at(
    times: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    seed: int,
    domain: int,
    skew: float | tuple[float, float],
    ranks: str,
    importance: str,
) -> Workload:
    """The same with tuples at given times."""
    skews = skew if isinstance(skew, tuple) else (skew, skew)
    if len(skews) != 2:
        raise SpecError(f"skew must be one number, or one for each of the two streams, not {skew!r}")
    left_keys, right_keys, order_rng, left_worth, right_worth = generators(seed, 5)
    order = popularity_order(ranks, domain, order_rng)
    left_p = zipf_probabilities(domain, skews[0])
    right_p = np.empty(domain)
    right_p[order] = zipf_probabilities(domain, skews[1])
    streams = tuple(
        columns(draw_keys(keys, probabilities, ts.size), ts, draw(importance, worth, ts.size))
        for ts, keys, probabilities, worth in zip(
            times, (left_keys, right_keys), (left_p, right_p), (left_worth, right_worth), strict=True
        )
    )
    return Workload(streams, probabilities=(left_p, right_p))


def draw_keys(rng: np.random.Generator, probabilities: NDArray[np.float64], rows: int) -> NDArray[np.int64]:
    """Independent keys 0, 1, ... with these probabilities."""
    return rng.choice(probabilities.size, size=rows, p=probabilities).astype(np.int64)
