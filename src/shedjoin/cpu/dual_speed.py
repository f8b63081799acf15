"""How fast a join with rear-shedding should be fed: the speed V_opt at which it gives most (dual2006, section 4).

The paper's formulas are lost in the text that we have; these were rebuilt from the words around them. With V_w updates and
V_j probes a time unit, a share k of the rows not probing, the CPU keeps up with V = V_j / (a + 1 - k) rows a time unit,
a = V_j / V_w. Of the rows, those with fewest partners are shed first, so what is left of the output is a sum over the best
ones. It is largest at one of the borders between numbers of partners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shedjoin.errors import SpecError

Numbers = NDArray[np.float64]


#: How likely each value is in each stream.
Probabilities = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Speed:
    """The best speed and what belongs to it.

    Attributes
    ----------
    rows
        V_opt: rows of both streams together that should enter in a time unit.
    shed
        k_r at that speed: the share of rows that do not probe.
    output
        Results in a time unit.
    """

    rows: float
    shed: float
    output: float


def rear_share(rows: float, probes: float, updates: float) -> float:
    """k_r: the share of rows that must not probe for the CPU to keep up with `rows` a time unit.

    Examples
    --------
    >>> rear_share(rows=100.0, probes=100.0, updates=1000.0)
    0.1
    """
    if rows <= 0.0:
        return 0.0
    return round(min(1.0, max(0.0, 1.0 - probes / rows + probes / updates)), 12)


def partners(own: ArrayLike, other: ArrayLike, rows: float, *, timed: bool = False) -> Numbers:
    """P_i: the chance that a row finds exactly i partners in a window of `rows` rows of the other stream.

    Parameters
    ----------
    own, other
        How likely each value is in the row's own stream and in the other.
    timed
        The window holds `rows` on average (a time window): Poisson instead of binomial numbers.

    Examples
    --------
    >>> partners([0.5, 0.5], [0.5, 0.5], 2).round(3)
    array([0.25, 0.5 , 0.25])
    """
    p, q = np.asarray(own, np.float64), np.asarray(other, np.float64)
    if p.shape != q.shape or p.ndim != 1 or not all((one >= 0).all() and 0 < one.sum() < np.inf for one in (p, q)):
        raise SpecError("partners needs the probabilities of the same values in both streams, none below 0")
    p, q = p / p.sum(), q / q.sum()
    p, q = p[p > 0], q[p > 0]
    # Values of equal probability have equal chances: there may be many of them.
    chances, which = np.unique(q, return_inverse=True)
    weight = np.bincount(which, p)
    top = rows * chances.max()
    most = int(np.ceil(top + 12.0 * np.sqrt(top) + 12.0))
    counts = np.arange((most if timed else min(most, int(rows))) + 1)
    total = np.zeros(counts.size)
    for chance, share in zip(chances, weight, strict=True):
        total += share * (_poisson(counts, rows * chance) if timed else _binomial(counts, int(rows), chance))
    return np.asarray(total / total.sum())


def best_speed(
    distributions: Sequence[Numbers], probes: float, updates: float, shares: Sequence[float] = (0.5, 0.5)
) -> Speed:
    """V_opt, by search over all borders between numbers of partners, for each stream's P_i and its share of the rows.

    Examples
    --------
    >>> uniform = partners([1.0] * 50, [1.0] * 50, 400)
    >>> best_speed([uniform, uniform], probes=100.0, updates=1000.0).shed > 0.0
    True
    """
    if len(distributions) != len(shares) or not 0.0 < float(np.sum(shares)) < np.inf or min(shares) < 0.0:
        raise SpecError(
            f"best_speed needs one distribution a stream and a rate for it, not all of them 0, not {shares!r}"
        )
    if not probes > 0.0 or not updates > 0.0:
        raise SpecError("best_speed needs speeds above 0")
    part = np.asarray(shares, np.float64) / float(np.sum(shares))
    lost = [np.concatenate(([0.0], np.cumsum(one))) for one in distributions]
    borders = np.unique(np.clip(np.concatenate(lost), 0.0, 1.0))
    ratio = probes / updates
    kept = sum(share * _kept(one, borders) for share, one in zip(part, distributions, strict=True))
    speed = probes / (ratio + 1.0 - borders)
    output = speed * kept
    best = int(np.argmax(output))
    return Speed(float(speed[best]), float(borders[best]), float(output[best]))


def _kept(chances: Numbers, shed: Numbers) -> Numbers:
    """Mean partners that are still met when the share `shed` of the rows, those with fewest, does not probe."""
    lost = np.concatenate(([0.0], np.cumsum(chances)))
    met = np.concatenate(([0.0], np.cumsum(chances * np.arange(chances.size))))
    return np.asarray(met[-1] - np.interp(shed, lost, met))


def _log_factorials(most: int) -> Numbers:
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, most + 1)))))


def _binomial(counts: NDArray[np.int64], rows: int, chance: float) -> Numbers:
    if chance <= 0.0 or chance >= 1.0:
        return np.asarray(counts == (rows if chance >= 1.0 else 0), np.float64)
    logs = _log_factorials(rows)
    choose = logs[rows] - logs[counts] - logs[rows - counts]
    return np.asarray(np.exp(choose + counts * np.log(chance) + (rows - counts) * np.log1p(-chance)))


def _poisson(counts: NDArray[np.int64], mean: float) -> Numbers:
    if mean <= 0.0:
        return np.asarray(counts == 0, np.float64)
    return np.asarray(np.exp(counts * np.log(mean) - mean - _log_factorials(int(counts[-1]))[counts]))
