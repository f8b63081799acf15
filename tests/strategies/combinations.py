"""All combinations of policy, estimator, allocation and window."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import numba
import pytest

from shedjoin.budget import ALLOCATIONS
from strategies import policies

#: Kernels run as plain Python under NUMBA_DISABLE_JIT=1, about a hundred times slower.
INTERPRETED = bool(numba.config.DISABLE_JIT)
#: `make matrix` draws all random inputs of a law; `make test` the first half, and a quarter without the compiler.
SHARE = 1 if os.environ.get("EXAMPLES") == "all" else 4 if INTERPRETED else 2


def share(count: int) -> int:
    """How many of this many random inputs are drawn: at least two, for the first is always the simplest."""
    return max(min(2, count), count // SHARE)


ESTIMATORS = ("table", "in_memory", "history", "in_window", "decayed", "count_min")
#: Exact joins are apart.
UNWEIGHED = tuple(name for name in policies.UNWEIGHED if name != "keep_all")
WEIGHED = policies.WEIGHED
WINDOWS = ("time", "row", "interval", "time_row", "row_time")


class Chooser(NamedTuple):
    """A policy, with the estimator where it has one."""

    policy: str
    estimator: str | None = None

    def __str__(self) -> str:
        return self.policy if self.estimator is None else f"{self.policy}-{self.estimator}"


class Combination(NamedTuple):
    chooser: Chooser
    allocation: str | None
    window: str

    def __str__(self) -> str:
        return "-".join(str(part) for part in self if part is not None)


#: Everything that can decide who goes.
CHOOSERS = [Chooser(policy) for policy in UNWEIGHED] + [
    Chooser(policy, estimator) for policy, estimator in itertools.product(WEIGHED, ESTIMATORS)
]
#: One estimator a policy, and every estimator once: what runs where all would take too long.
REPRESENTATIVES = [Chooser(policy) for policy in UNWEIGHED] + [
    Chooser(policy, estimator) for policy, estimator in zip(WEIGHED, itertools.cycle(ESTIMATORS), strict=False)
]


def choosers(some: Iterable[Chooser] = CHOOSERS) -> list[Any]:
    """As parameters of a test. Those of `REPRESENTATIVES` also run without the compiler."""
    return [pytest.param(one, marks=pytest.mark.small if one in REPRESENTATIVES else (), id=str(one)) for one in some]


EVERY_CHOOSER = pytest.mark.parametrize("chooser", choosers())
#: Two halves, in each of which any two of chooser, allocation and window meet. The twin is held against one, the laws against
#: the other.
HALVES = [
    [
        Combination(chooser, allocation, window)
        for c, chooser in enumerate(CHOOSERS)
        for a, allocation in enumerate(ALLOCATIONS)
        for w, window in enumerate(WINDOWS)
        if (c + a + w) % 2 == half
    ]
    for half in (0, 1)
]
EXACT = [Combination(Chooser("keep_all"), None, window) for window in WINDOWS]
