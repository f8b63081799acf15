"""Join graphs on Spark: the columns and types of their attributes, and the cube of their shards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shedjoin.engine.graph import Graph
from shedjoin.errors import SpecError
from shedjoin.spark.hypercube import HyperCube, choose, dimensions, weights_of
from shedjoin.spark.keys import NUMBERS, check_column, check_comparable, key_number, quoted, widened
from shedjoin.window import Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def cube_of(
    graph: Graph,
    shards: int,
    windows: Sequence[Window],
    rates: Sequence[float],
    before: Sequence[int] | None = None,
    whole: Sequence[int] = (),
) -> HyperCube:
    """How the rows of a join graph are spread over at most this many shards.

    `before`: as the checkpoint has it. `whole`: the streams of which a shard must see all partners of its rows: they are not
    copied, so that only dimensions which all of them know have several coordinates.

    Examples
    --------
    >>> from shedjoin.engine.graph import parse
    >>> from shedjoin.window import TimeWindow
    >>> graph = parse(["a.x = b.x", "b.y = c.y"], ["a", "b", "c"])
    >>> [cube_of(graph, 4, [TimeWindow(9)] * 3, [1.0] * 3, whole=whole).shares for whole in ([], [0], [0, 2])]
    [(2, 2), (4, 1), (1, 1)]
    """
    dims = dimensions(graph)
    if before is not None and len(before) == len(dims) and math.prod(before) <= shards:
        return HyperCube(dims, tuple(before))
    free = [place for place, dim in enumerate(dims) if all(stream in dim for stream in whole)]
    chosen = choose(tuple(dims[place] for place in free), shards, weights_of(windows, rates)).shares
    known = dict(zip(free, chosen, strict=True))
    return HyperCube(dims, tuple(known.get(place, 1) for place in range(len(dims))))


# ---------------------------------------------------------------------------------------------------------- the columns


def attribute_types(frames: Sequence[DataFrame], graph: Graph, names: Sequence[str]) -> list[list[str]]:
    """The type in which each attribute of each stream is compared, as Spark itself widens them.

    Attributes that predicates link, directly or through others, have one type. All but equality need a type with an order that
    whole numbers keep.
    """
    ordered = {end for one in graph.thetas for end in ((one.left, one.left_attr), (one.right, one.right_attr))}
    for stream, columns in enumerate(graph.columns):
        for name in columns:
            check_column("on", name, frames[stream], names[stream])
    called_at = {
        (stream, place): f"{names[stream]}.{name}"
        for stream, columns in enumerate(graph.columns)
        for place, name in enumerate(columns)
    }
    kind_at = {
        (stream, place): frames[stream].schema[graph.columns[stream][place]].dataType for stream, place in called_at
    }
    for one in (*graph.equalities, *graph.thetas):
        ends = ((one.left, one.left_attr), (one.right, one.right_attr))
        check_comparable([kind_at[end] for end in ends], [called_at[end] for end in ends])
    types = [[""] * len(columns) for columns in graph.columns]
    for linked in _linked(graph):
        kinds, called = [kind_at[end] for end in linked], [called_at[end] for end in linked]
        common = widened(frames[0], kinds, called)
        compared = [name for end, name in zip(linked, called, strict=True) if end in ordered]
        if compared and common not in NUMBERS:
            raise SpecError(
                f"on: {compared[0]} is compared as {common}, but <, <=, >, >=, != and bands take whole numbers, dates and "
                "timestamps: cast it, such as cast(price * 100 as bigint)"
            )
        for stream, place in linked:
            types[stream][place] = common
    return types


def _linked(graph: Graph) -> list[list[tuple[int, int]]]:
    """Sets of (stream, attribute) that predicates of any kind link."""
    sets = [{(stream, place)} for stream, columns in enumerate(graph.columns) for place in range(len(columns))]
    for one in (*graph.equalities, *graph.thetas):
        ends = {(one.left, one.left_attr), (one.right, one.right_attr)}
        sets = [part for part in sets if not part & ends] + [set().union(*(part for part in sets if part & ends))]
    return [sorted(part) for part in sorted(sets, key=min)]


def is_hashed(kind: str) -> bool:
    """Whether attributes of a type travel as hashes, so that the values of results are compared once more."""
    return kind not in NUMBERS


def attributes_column(
    frame: DataFrame, names: Sequence[str], types: Sequence[str], hashed: Sequence[str] = ()
) -> Column:
    """The attributes of a row as a struct of 64-bit numbers, null if one of them is; `hashed`: with a hash of these columns.

    The hash places rows that no equality leads to. It depends on the row alone: a task that is run again, on rows in another
    order, sends each row where it was sent before.
    """
    from pyspark.sql import functions as fn

    numbers = [
        key_number(frame, [name], [kind]).alias(f"k{place}")
        for place, (name, kind) in enumerate(zip(names, types, strict=True))
    ]
    there = fn.lit(True)
    for name in names:
        there = there & fn.col(quoted(name)).isNotNull()
    fit = [name for name in hashed if _hashable(frame.schema[name].dataType.simpleString())]
    rows = [fn.xxhash64(*(fn.col(quoted(name)) for name in fit)).alias("row")] if hashed else []
    return fn.when(there, fn.struct(*numbers, *rows))


def _hashable(kind: str) -> bool:
    return "map<" not in kind and "variant" not in kind and "collate" not in kind
