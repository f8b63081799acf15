"""Importance of tuples: normal importance dominates, high importance is rare (importance2006, section 5)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import SpecError

Importance = Callable[[np.random.Generator, int], NDArray[np.float64]]

#: importance2006's upper bound U; every distribution here stays at or below it.
MOST = 100.0


def one(rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
    """Every tuple counts 1: das2003's case."""
    del rng
    return np.ones(rows)


def rare_high(rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
    """95% uniform over 1..10, 5% uniform over 50..100: the lab's default.

    The paper gives no distribution, only the words "normal importance tuples dominate [...] high importance [...] occur
    infrequently" and an example with values of 1 to 20. Here the rare tuples carry about 43% of all importance.
    """
    usual = rng.uniform(1.0, 10.0, rows)
    high = rng.uniform(50.0, MOST, rows)
    return np.where(rng.random(rows) < 0.05, high, usual)


def pareto(rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
    """Pareto with exponent 1.5 and least value 1, cut at 100: the lab's alternative, with no gap."""
    return np.asarray(np.minimum(1.0 + rng.pareto(1.5, rows), MOST), dtype=np.float64)


IMPORTANCE: dict[str, Importance] = {"one": one, "rare_high": rare_high, "pareto": pareto}


def draw(name: str, rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
    """Importance values from the distribution of that name."""
    if name not in IMPORTANCE:
        raise SpecError(f"importance must be one of {', '.join(IMPORTANCE)}, not {name!r}")
    return IMPORTANCE[name](rng, rows)
