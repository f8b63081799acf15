"""What rows are joined on besides a key, as conditions of Spark: predicates of a join graph, and those on numbers and sets."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from shedjoin.engine import codes
from shedjoin.engine import graph as between
from shedjoin.predicates import Predicate

if TYPE_CHECKING:
    from pyspark.sql import Column

_ATTRIBUTES: dict[int, Callable[[Column, Column], Column]] = {
    between.LESS: operator.lt,
    between.AT_MOST: operator.le,
    between.MORE: operator.gt,
    between.AT_LEAST: operator.ge,
    between.UNEQUAL: operator.ne,
}
_NUMBERS: dict[int, Callable[[Column, Column], Column]] = {
    codes.LESS: operator.lt,
    codes.LESS_EQUAL: operator.le,
    codes.GREATER: operator.gt,
    codes.GREATER_EQUAL: operator.ge,
    codes.NOT_EQUAL: operator.ne,
}


def attribute(stream: int, place: int) -> Column:
    """An attribute of a row of a join graph."""
    from pyspark.sql import functions as F

    return F.col(f"r{stream}_key")[place]


def attributes_hold(graph: between.Graph, there: list[int], stream: int) -> list[Column]:
    """The predicates of a join graph, other than equalities, between a stream and those that are there."""
    from pyspark.sql import functions as F

    found = []
    for one in graph.thetas:
        if stream in (one.left, one.right) and {one.left, one.right} & {*there}:
            left, right = attribute(one.left, one.left_attr), attribute(one.right, one.right_attr)
            if one.op == between.BAND:  # differences of 64-bit numbers may need more
                near = F.abs(left.cast("decimal(20)") - right.cast("decimal(20)"))
                found.append(near <= F.lit(one.band))
            else:
                found.append(_ATTRIBUTES[one.op](left, right))
    return found


def predicate_holds(predicate: Predicate, left: Column, right: Column) -> Column:
    """A predicate on two numbers, two arrays of items, or two arrays of (item, weight) in the order of items."""
    from pyspark.sql import functions as F

    bound = F.lit(predicate.bound)
    match predicate.code:
        case codes.BAND:
            return F.abs(left - right) <= bound
        case codes.SUBSET:
            return F.size(F.array_except(left, right)) == 0
        case codes.SUPERSET:
            return F.size(F.array_except(right, left)) == 0
        case codes.OVERLAP:
            return F.size(F.array_intersect(left, right)) >= bound
        case codes.INNER:
            return _inner_product(left, right) >= bound
    return _NUMBERS[predicate.code](left, right + bound)


def _inner_product(left: Column, right: Column) -> Column:
    """The weights of common items multiplied and summed, in the order of the items, as the engine does."""
    from pyspark.sql import functions as F

    weights = F.map_from_entries(right)

    def added(total: Column, entry: Column) -> Column:
        product = entry["weight"] * F.element_at(weights, entry["item"])
        return total + F.coalesce(product, F.lit(0.0))

    return F.aggregate(left, F.lit(0.0), added)
