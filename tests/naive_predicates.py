"""Slow and obvious: predicates as Python says them, and the exact join as two loops."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import shedjoin as sj

OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne}


def holds(predicate: sj.Predicate, left: Any, right: Any) -> bool:
    """Whether a pair of values (a number, a value, a set, or a dict of weights) fulfils a predicate."""
    if left is None or right is None:
        return False
    match predicate:
        case sj.Equal():
            return left == right
        case sj.Band():
            return abs(left - right) <= predicate.within
        case sj.Theta():
            return OPERATORS[predicate.operator](left, right + predicate.offset)
        case sj.SameSet():
            return set(left) == set(right)
        case sj.Subset():
            return set(left) <= set(right)
        case sj.Superset():
            return set(left) >= set(right)
        case sj.Overlap():
            return len(set(left) & set(right)) >= predicate.at_least
        case sj.InnerProduct():
            # In the order of the items, as the engine adds.
            return sum((left[item] * right[item] for item in sorted(set(left) & set(right))), 0.0) >= predicate.at_least
    raise AssertionError(predicate)


def exact(
    predicate: sj.Predicate,
    windows: tuple[int, int],
    left: Sequence[tuple[int, Any]],
    right: Sequence[tuple[int, Any]],
) -> list[tuple[int, int]]:
    """All pairs of row numbers that the windows and the predicate allow; rows are (ts, value)."""
    pairs = []
    for i, (t, x) in enumerate(left):
        for j, (u, y) in enumerate(right):
            near = u - t < windows[0] if t <= u else t - u < windows[1]
            if near and holds(predicate, x, y):
                pairs.append((i, j))
    return sorted(pairs)
