"""Counts, sums and averages over the exact join, from the weighted results of a join that stores a sample."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shedjoin.errors import InputError

#: Groups with fewer effective rows have no interval: of so few, neither a sum nor its variance is known well enough.
FEWEST_ROWS = 10
#: The same for means, which divide two sums, and for products of weights.
FEWEST_OF_RATIOS = 30
#: With more streams intervals are wider than they need to be: rows that two results share are counted one by one.
MOST_STREAMS = 6


class Estimates(NamedTuple):
    """One line a group.

    Attributes
    ----------
    group
        The groups, in ascending order; without `by` there is one, 0.
    value
        The estimate.
    low, high
        The limits of its confidence interval. NaN where `rows` is below 10 (for means, and for joins of three and more streams,
        below 30), unless all weights of the call are 1: then the estimate is taken to be exact.
    rows
        Effective rows behind it that were left to chance: as many stored rows with equal shares would be as uneven.
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
        Whether the group is certainly one of the k largest of the exact join. The level holds for all certain groups at once.
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
    """By group: the weighted sum, its variance, the effective rows behind it, and by how much the variance rises with the sum."""

    total: NDArray[np.float64]
    variance: NDArray[np.float64]
    rows: NDArray[np.float64]
    slope: NDArray[np.float64]


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
        `Output.weight` and `Output.stored`, one of each result. Of three and more streams `Output.inverse` and `Output.rows`.
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
    return _limited(columns, group, sums, level, FEWEST_ROWS)


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
    sums = _Sums(mean, apart.variance / counts.total**2, counts.rows, np.zeros(group.size))
    return _limited(columns, group, sums, level, FEWEST_OF_RATIOS)


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
    if columns.weight.ndim > 1:
        raise InputError(
            "estimate_distinct counts the older rows of joins of two streams: results of more have several"
        )
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
    """The k groups with the largest totals over the exact join, and which of them are certain.

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
        The level of all limits and all certain groups together.

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
    if columns.weight.ndim > 1:
        raise InputError("estimate_top is for joins of two streams: results of more have several stored rows")
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
    weights, rows = np.asarray(weight, np.float64), np.asarray(stored)
    results = len(weights) if weights.ndim else 0
    made = _Columns(
        weights,
        rows,
        np.ones(results) if value is None else np.asarray(value, np.float64),
        np.zeros(results, np.int64) if by is None else np.asarray(by),
    )
    fits = weights.ndim in (1, 2) and rows.shape == weights.shape
    if not fits or any(column.shape != (results,) for column in made[2:]):
        sizes = ", ".join(f"{name} {column.shape}" for name, column in zip(made._fields, made, strict=True))
        raise InputError(f"weight, stored, value and by must be columns of one length, not {sizes}")
    if weights.size and not weights.min() >= 1.0:
        raise InputError(f"weight must be at least 1 for every result, not {weights.min()}")
    return made


def _sums(columns: _Columns, groups: int, value: NDArray[np.float64]) -> _Sums:
    """Rows are independent. Of one row, a result that came later is seen only if those before it were: its weights rise."""
    if columns.weight.ndim > 1:
        return _sums_of_many(columns, groups, value)
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
    lots = np.where(variance != 0.0, np.abs(share), 0.0)
    effective = _effective(lots, owner, groups)
    whole = np.bincount(owner, variance, groups)
    grown = np.bincount(owner, variance * np.bincount(row, excess, rows), groups)
    return _Sums(total, np.maximum(whole, 0.0), effective, _ratio(grown, whole))


def _sums_of_many(columns: _Columns, groups: int, value: NDArray[np.float64]) -> _Sums:
    """Results of three and more streams depend on one another where they share stored rows.

    Two results with the stored rows C in common have covariance y1 y2 (1 - product of p over C), divided by the probability of
    seeing both; p is that at the first of them. With q = 1 - p, 1 - product of (1 - q) is a sum over the subsets D of C: plus or
    minus the product of q over D. So for each set of streams, results with the same rows there are followed in order of time.
    """
    weight, group = columns.weight, columns.group
    share, missed = value * weight.prod(axis=1), 1.0 - 1.0 / weight
    streams, whole = weight.shape[1], weight.shape[1] <= MOST_STREAMS
    variance = np.zeros(groups)
    for many in range(1, streams if whole else 2):
        for some in itertools.combinations(range(streams), many):
            risk = missed[:, some].prod(axis=1)
            there = np.flatnonzero(risk > 0.0)
            rows = [columns.stored[there, one] for one in some]
            order = np.lexsort((risk[there], *rows, group[there]))
            there = there[order]
            lines = np.stack([group[there], *(row[order] for row in rows)])
            first = np.append(True, (lines[:, 1:] != lines[:, :-1]).any(axis=0))[: there.size]
            y, q = share[there] if whole else np.abs(share[there]), risk[there]
            before = np.cumsum(y * q) - y * q
            before -= before[np.flatnonzero(first)][np.cumsum(first) - 1] if there.size else 0.0
            sign = 1.0 if many % 2 else -1.0
            variance += sign * np.bincount(group[there], y * (y * q + 2.0 * before), groups)
    total: NDArray[np.float64] = np.bincount(group, share, groups).astype(np.float64)
    of_streams = np.array([_rows_of_one(columns, share, groups, one) for one in range(streams)])
    effective = np.where(variance > 0.0, of_streams.min(axis=0), 0.0)
    return _Sums(total, np.maximum(variance, 0.0), effective, np.zeros(groups))


def _rows_of_one(columns: _Columns, share: NDArray[np.float64], groups: int, stream: int) -> NDArray[np.float64]:
    """Effective rows of one stream behind each sum."""
    names, which = np.unique(np.stack([columns.group, columns.stored[:, stream]]), axis=1, return_inverse=True)
    return _effective(np.bincount(which.ravel(), np.abs(share), names.shape[1]), names[0], groups)


def _effective(share: NDArray[Any], group: NDArray[np.int64], groups: int) -> NDArray[np.float64]:
    """As many equal shares would have the same sum of squares."""
    return _ratio(np.bincount(group, share, groups) ** 2, np.bincount(group, share**2, groups))


def _ratio(above: NDArray[Any], below: NDArray[Any]) -> NDArray[np.float64]:
    """0 where the divisor is not above 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        part: NDArray[np.float64] = np.where(below > 0.0, above / below, 0.0)
        return part


def check_level(level: object) -> None:
    if isinstance(level, bool) or not isinstance(level, float | int) or not 0.0 < level < 1.0:
        raise InputError(f"level must be above 0 and below 1, not {level!r}")


def _limited(columns: _Columns, group: NDArray[np.int64], sums: _Sums, level: float, fewest: float) -> Estimates:
    """Limits of sums of rows that are left to chance.

    The variance is itself an estimate. It is low where the sum is low, because rows with a large share were missed. Let it rise
    with the sum by `slope`: a true sum m then has the variance v + slope (m - sum). The farthest m within the given number of
    standard errors are the roots of a quadratic equation, as in Wilson's interval. Each limit is the farther one of this and the
    usual limit.

    Weights of several stored rows are products: sums of them have long tails, so their limits are those of Chebyshev.
    """
    check_level(level)
    many = columns.weight.ndim > 1
    errors = math.sqrt(1.0 / (1.0 - level)) if many else NormalDist().inv_cdf(0.5 + level / 2.0)
    usual, shift = errors * np.sqrt(sums.variance), errors**2 * sums.slope / 2.0
    reach = np.hypot(usual, shift)
    below, above = np.maximum(usual, reach - shift), np.maximum(usual, reach + shift)
    known = (sums.rows >= (FEWEST_OF_RATIOS if many else fewest)) | ~(columns.weight > 1.0).any()
    low, high = (np.where(known, limit, np.nan) for limit in (sums.total - below, sums.total + above))
    return Estimates(group, sums.total, low, high, sums.rows)
