"""Counts, sums and averages over the exact join, from the weighted results of a join that samples what it stores."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shedjoin.errors import InputError

#: Groups with fewer effective rows have no interval: sums of so few are not normally distributed.
FEWEST_ROWS = 30


class Estimates(NamedTuple):
    """One line a group.

    Attributes
    ----------
    group
        The groups, in ascending order; without `by` there is one, 0.
    value
        The estimate.
    low, high
        The limits of its confidence interval; NaN where `rows` is below 30 and the estimate is not exact.
    rows
        Effective rows behind it: as many stored rows with equal shares would be as uneven.
    """

    group: NDArray[np.int64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rows: NDArray[np.float64]


class Top(NamedTuple):
    """The groups with the largest estimated totals, the largest first.

    Attributes
    ----------
    group, value, rows
        As in `Estimates`.
    low, high
        Limits that hold for all groups at once, however few rows are behind a group.
    certain
        Whether the group is one of the k largest of the exact join. All that are called certain are so at once, at the level.
    others
        No group that is not listed has a total above this, at the same level.
    """

    group: NDArray[np.int64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rows: NDArray[np.float64]
    certain: NDArray[np.bool_]
    others: float


class _Sums(NamedTuple):
    """By group: the weighted sum, its variance, and the effective rows behind it."""

    total: NDArray[np.float64]
    variance: NDArray[np.float64]
    rows: NDArray[np.float64]


def estimate_total(
    weight: ArrayLike,
    stored: ArrayLike,
    value: ArrayLike | None = None,
    by: ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> Estimates:
    """The sum of a value over all results of the exact join, by group; without a value, their number.

    Parameters
    ----------
    weight, stored
        `Output.weight` and `Output.stored`, one of each result.
    value
        What is summed.
    by
        The group of each result, a whole number.
    level
        Of the confidence interval.

    Examples
    --------
    Three results of one stored row, which was in memory with probability 1/2 when the last two came:

    >>> one = estimate_total([1, 2, 2], [7, 7, 7])
    >>> one.value.tolist(), one.rows.tolist()
    ([5.0], [1.0])
    """
    columns = _columns(weight, stored, value, by)
    group, which = np.unique(columns.group, return_inverse=True)
    sums = _sums(columns._replace(group=which), group.size, columns.value)
    return _limited(group, sums.total, np.sqrt(sums.variance), sums, level)


def estimate_mean(
    weight: ArrayLike, stored: ArrayLike, value: ArrayLike, by: ArrayLike | None = None, *, level: float = 0.95
) -> Estimates:
    """The mean of a value over all results of the exact join, by group: a ratio of two sums, its bias falls with their rows."""
    columns = _columns(weight, stored, value, by)
    group, which = np.unique(columns.group, return_inverse=True)
    columns = columns._replace(group=which)
    counts = _sums(columns, group.size, np.ones_like(columns.value))
    mean = _sums(columns, group.size, columns.value).total / counts.total
    apart = _sums(columns, group.size, columns.value - mean[which])
    return _limited(group, mean, np.sqrt(apart.variance) / counts.total, counts, level)


def estimate_distinct(
    weight: ArrayLike, stored: ArrayLike, by: ArrayLike | None = None, *, level: float = 0.95
) -> Estimates:
    """The number of older rows that have a result in the exact join, by group: each counts once, by its first result.

    Distinct values of a column have no unbiased estimate: a value of which no result was delivered leaves no trace.

    Examples
    --------
    >>> estimate_distinct([1, 2, 2], [7, 7, 8]).value.tolist()
    [3.0]
    """
    columns = _columns(weight, stored, None, by)
    order = np.lexsort((columns.weight, columns.stored, columns.group))
    stored, group = columns.stored[order], columns.group[order]
    first = np.append(True, (stored[1:] != stored[:-1]) | (group[1:] != group[:-1]))[: order.size]
    value = np.empty(order.size)
    value[order] = first
    return estimate_total(weight, columns.stored, value, columns.group, level=level)


def estimate_top(
    weight: ArrayLike,
    stored: ArrayLike,
    by: ArrayLike,
    k: int,
    value: ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> Top:
    """The k groups with the largest totals over the exact join, and which of them are certain to belong there.

    A group is certain if fewer than k others can have a total as large as its lower limit. Groups without a delivered result
    count as others: how large they can be follows from the largest share that one stored row was seen to have in a group.

    Parameters
    ----------
    weight, stored, by
        As in `estimate_total`.
    k
        How many groups are listed, if there are as many.
    value
        What is summed, not below 0; default: 1, the total is the number of results.
    level
        Of all limits and all that is called certain, together.

    Examples
    --------
    >>> top = estimate_top([1, 1, 1, 1, 2], [1, 2, 3, 4, 5], by=[8, 8, 8, 8, 9], k=1)
    >>> top.group.tolist(), top.value.tolist(), top.certain.tolist()
    ([8], [4.0], [False])
    """
    check_level(level)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number from 1 on, not {k!r}")
    columns = _columns(weight, stored, value, by)
    if columns.value.size and not columns.value.min() >= 0.0:
        raise InputError(f"value must be at least 0 for every result, not {columns.value.min()}: totals are compared")
    group, which = np.unique(columns.group, return_inverse=True)
    columns = columns._replace(group=which)
    sums = _sums(columns, group.size, columns.value)
    low, high, unseen = _limits_at_once(columns, sums.total, 1.0 - level)
    order = np.argsort(-sums.total, kind="stable")
    chosen, rest = order[:k], order[k:]
    # As many as reach the lower limit of a group, itself left out.
    reached = group.size - np.searchsorted(np.sort(high), low[chosen]) - 1
    certain = (reached < k) & (unseen < low[chosen])
    others = max(unseen, float(high[rest].max(initial=0.0)))
    return Top(group[chosen], sums.total[chosen], low[chosen], high[chosen], sums.rows[chosen], certain, others)


def _limits_at_once(
    columns: _Columns, total: NDArray[np.float64], doubt: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Limits of all groups' totals, and one for groups without a result, all of which hold but for a chance of `doubt`.

    A total is a sum of independent parts between 0 and the largest share of a row in a group, to which Chernoff's bound applies
    (M. Thorup: Confidence intervals for priority sampling, 2006). Unlike a normal distribution it holds for few rows, and far
    from the mean. Results with a weight of 1 are certain, and are counted as they are.
    """
    groups = total.size
    lots = columns.weight > 1.0
    share = _largest_share(columns, lots)
    if share == 0.0:
        return total, total, 0.0 if groups else math.inf
    sure = np.bincount(columns.group[~lots], columns.value[~lots], groups)
    found = (total - sure) / share
    nats = -math.log(doubt / (2 * groups + 1))
    low, high = (sure + share * _chernoff(found, nats, upper=upper) for upper in (False, True))
    return low, high, _unseen(float(high.sum()), share, nats)


def _largest_share(columns: _Columns, lots: NDArray[np.bool_]) -> float:
    """The most that one stored row adds to one group, of results that were left to chance."""
    if not lots.any():
        return 0.0
    stored, group = columns.stored[lots], columns.group[lots]
    order = np.lexsort((stored, group))
    stored, group = stored[order], group[order]
    first = np.flatnonzero(np.append(True, (stored[1:] != stored[:-1]) | (group[1:] != group[:-1])))
    return float(np.add.reduceat((columns.weight[lots] * columns.value[lots])[order], first).max())


def _chernoff(found: NDArray[np.float64], nats: float, *, upper: bool) -> NDArray[np.float64]:
    """The mean m at which a sum of independent parts from 0 to 1 reaches `found` with a chance of at most exp(-nats).

    That chance is at most exp(-d) with d = m - found + found log(found / m).
    """
    below = found if upper else np.zeros_like(found)
    above = found + nats + np.sqrt(nats * (nats + 2.0 * found)) if upper else found
    for _ in range(60):
        middle = 0.5 * (below + above)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = middle - found + np.where(found > 0.0, found * np.log(found / middle), 0.0)
        outside = (apart > nats) == upper
        below, above = np.where(outside, below, middle), np.where(outside, middle, above)
    return above if upper else below


def _unseen(total: float, share: float, nats: float) -> float:
    """No group of which nothing was delivered has a larger total: there are at most total / limit groups as large."""
    limit = share * nats
    for _ in range(60):
        limit = share * (nats + max(0.0, math.log(total / limit)))
    return limit


class _Columns(NamedTuple):
    weight: NDArray[np.float64]
    stored: NDArray[np.int64]
    value: NDArray[np.float64]
    group: NDArray[np.int64]


def _columns(weight: ArrayLike, stored: ArrayLike, value: ArrayLike | None, by: ArrayLike | None) -> _Columns:
    weights = np.asarray(weight, np.float64)
    made = _Columns(
        weights,
        np.asarray(stored),
        np.ones_like(weights) if value is None else np.asarray(value, np.float64),
        np.zeros(weights.size, np.int64) if by is None else np.asarray(by),
    )
    if any(column.shape != (weights.size,) for column in made):
        sizes = ", ".join(f"{name} {column.shape}" for name, column in zip(made._fields, made, strict=True))
        raise InputError(f"weight, stored, value and by must be columns of one length, not {sizes}")
    if weights.size and not weights.min() >= 1.0:
        raise InputError(f"weight must be at least 1 for every result, not {weights.min()}")
    return made


def _sums(columns: _Columns, groups: int, value: NDArray[np.float64]) -> _Sums:
    """Rows are independent. Of one row, a result that came later is seen only if those before it were: its weights rise."""
    order = np.lexsort((columns.weight, columns.stored, columns.group))
    weight, stored, group, y = columns.weight[order], columns.stored[order], columns.group[order], value[order]
    first = np.append(True, (stored[1:] != stored[:-1]) | (group[1:] != group[:-1]))[: order.size]
    row = np.cumsum(first) - 1
    excess = y * (weight - 1.0)
    before = np.cumsum(excess) - excess
    before -= before[np.flatnonzero(first)][row] if order.size else 0.0
    rows = int(row[-1]) + 1 if order.size else 0
    share = np.bincount(row, weight * y, rows)
    variance = np.bincount(row, weight * (y * excess + 2.0 * y * before), rows)
    owner = group[first]
    total: NDArray[np.float64] = np.bincount(owner, share, groups).astype(np.float64)
    whole = np.bincount(owner, np.abs(share), groups)
    square = np.bincount(owner, share**2, groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        effective = np.where(square > 0.0, whole**2 / square, 0.0)
    return _Sums(total, np.maximum(np.bincount(owner, variance, groups), 0.0), effective)


def check_level(level: object) -> None:
    if isinstance(level, bool) or not isinstance(level, float | int) or not 0.0 < level < 1.0:
        raise InputError(f"level must be above 0 and below 1, not {level!r}")


def _limited(
    group: NDArray[np.int64], value: NDArray[np.float64], error: NDArray[np.float64], sums: _Sums, level: float
) -> Estimates:
    check_level(level)
    reach = NormalDist().inv_cdf(0.5 + level / 2.0) * error
    reach = np.where((sums.rows < FEWEST_ROWS) & (sums.variance > 0.0), np.nan, reach)
    return Estimates(group, value, value - reach, value + reach, sums.rows)
