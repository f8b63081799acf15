"""The static join of das2003 3.1 on Spark: which rows of whole DataFrames to keep so that their join is largest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shedjoin.errors import SpecError
from shedjoin.spark.arguments import stream_names
from shedjoin.spark.inputs import check_frames
from shedjoin.spark.keys import Keys, check_column, check_suffixes, column_names, common_types, out_columns, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from shedjoin.offline import Truncated

#: The columns of a key in the type in which it is compared, of counts, of what to keep, and the place of a row in its key.
KEY, COUNT, ROOM, PLACE = "_sj_key_{}", "_sj_count_{}", "_sj_room_{}", "_sj_place"


@dataclass(frozen=True, slots=True)
class StaticJoin:
    """The chosen rows.

    Attributes
    ----------
    kept
        The kept rows of each DataFrame.
    joined
        Their join.
    choice
        For each key the number of rows and of kept rows; `size`, `exact` and `bound` of the join. Several key columns are a
        struct.
    """

    kept: tuple[DataFrame, ...]
    joined: DataFrame
    choice: Truncated


def static_join(
    left: DataFrame,
    right: DataFrame,
    *more: DataFrame,
    on: Any,
    keep: int | tuple[int, int] | Sequence[int],
    order: Any = None,
    select: Any = None,
    suffixes: Any = None,
    names: Sequence[str] | None = None,
) -> StaticJoin:
    """The largest join of a number of rows of two DataFrames; of more than two an approximation (see `truncated_joins`).

    Spark counts the rows of each key, and the driver chooses from the counts. Rows stay where they are.

    Parameters
    ----------
    left, right, more
        Batch DataFrames.
    on
        The key columns, as in `shed_join`. Nulls join nothing.
    keep
        The number of rows to keep of both together, or a pair with a number for each; for more DataFrames one number each.
    order
        A column of each DataFrame: the rows of a key with the lowest values are kept. A name, or one each. Default: by all
        columns that have an order. Of equal rows any may be kept.
    select, suffixes, names
        Of the result, as in `shed_join`.
    """
    from shedjoin.offline import static  # this imports numba

    frames = (left, right, *more)
    sides = stream_names(names, len(frames))
    check_frames(frames, sides)
    if left.isStreaming:
        raise SpecError("static_join takes batch DataFrames, which it counts as a whole, not streaming ones")
    check_suffixes(suffixes, sides)
    keys = Keys.of(on, *frames, sides=sides)
    types = common_types(frames, keys, sides)
    orders = column_names("order", order, sides, optional=True)
    for side, frame, name in zip(sides, frames, orders, strict=True):
        if name is not None:
            check_column("order", name, frame, side)
    out = out_columns(frames, keys, select, suffixes, sides)
    typed = [_with_key(frame, keys.names(place), types) for place, frame in enumerate(frames)]
    table = _counts(typed, len(types))
    counts = np.array([table.column(COUNT.format(place)).to_numpy() for place in range(len(frames))], np.int64)
    if len(frames) == 2:
        numbers: Any = tuple(keep) if isinstance(keep, list) else keep
        choice = static.best_of_two(_values(table, len(types)), counts, numbers)
    else:
        choice = static.approximate(_values(table, len(types)), counts, _listed(keep))
    rooms = _rooms(table, choice.kept, len(types))
    known = left.sparkSession.createDataFrame(rooms)
    kept = [
        _first_rows(frame, known, place, len(types), orders[place] or frames[place].columns)
        for place, frame in enumerate(typed)
    ]
    shared = [KEY.format(number) for number in range(len(types))]
    parts = [_numbered(frame, place, frames[place].columns) for place, frame in enumerate(kept)]
    whole = reduce(lambda one, two: one.join(two, shared), parts)
    chosen = [_column(place=one.side, name=one.source, columns=frames[one.side].columns).alias(one.name) for one in out]
    return StaticJoin(tuple(frame.drop(*shared) for frame in kept), whole.select(*chosen), choice)


def _listed(keep: Any) -> Sequence[int]:
    if not isinstance(keep, list | tuple):
        raise SpecError(f"keep must be one number for each of more than two DataFrames, not {keep!r}")
    return keep


def _with_key(frame: DataFrame, names: list[str], types: list[str]) -> DataFrame:
    """The rows that have a key, and its columns in the types in which they are compared."""
    from pyspark.sql import functions as fn

    pairs = zip(names, types, strict=True)
    made = {KEY.format(place): fn.col(quoted(name)).cast(kind) for place, (name, kind) in enumerate(pairs)}
    return frame.withColumns(made).dropna(subset=[*made])


def _counts(frames: Sequence[DataFrame], parts: int) -> pa.Table:
    """The keys that all DataFrames have, in their order, and how many rows of each there are."""
    from pyspark.sql import functions as fn

    keys = [KEY.format(place) for place in range(parts)]
    counted = [frame.groupBy(*keys).agg(fn.count("*").alias(COUNT.format(place))) for place, frame in enumerate(frames)]
    return reduce(lambda one, two: one.join(two, keys), counted).orderBy(*keys).toArrow()


def _values(table: pa.Table, parts: int) -> pa.Array:
    """Keys as one array."""
    columns = [table.column(place).combine_chunks() for place in range(parts)]
    return columns[0] if parts == 1 else pa.StructArray.from_arrays(columns, [f"key_{place}" for place in range(parts)])


def _rooms(table: pa.Table, kept: np.ndarray, parts: int) -> pa.Table:
    """The keys with kept rows, and their number in each DataFrame."""
    columns = {KEY.format(place): table.column(place) for place in range(parts)}
    columns |= {ROOM.format(place): pa.array(room) for place, room in enumerate(kept)}
    return pa.table(columns).filter(pa.array((kept > 0).any(axis=0)))


def _first_rows(frame: DataFrame, rooms: DataFrame, place: int, parts: int, order: str | list[str]) -> DataFrame:
    """The first rows of each key, as many as there is room for."""
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

    keys = [KEY.format(number) for number in range(parts)]
    names = [order] if isinstance(order, str) else [name for name in order if _has_order(frame, name)] or keys
    window = Window.partitionBy(*keys).orderBy(*(fn.col(quoted(name)) for name in names))
    room = ROOM.format(place)
    ranked = frame.join(rooms.select(*keys, room), keys).withColumn(PLACE, fn.row_number().over(window))
    return ranked.where(fn.col(PLACE) <= fn.col(room)).select(*(quoted(name) for name in frame.columns))


def _has_order(frame: DataFrame, name: str) -> bool:
    kind = frame.schema[name].dataType.simpleString()
    return not any(word in kind for word in ("map<", "variant", "void"))


def _numbered(frame: DataFrame, place: int, names: list[str]) -> DataFrame:
    """Columns by their positions, so that those of several DataFrames differ."""
    from pyspark.sql import functions as fn

    own = [fn.col(quoted(name)).alias(f"_sj_{place}_{number}") for number, name in enumerate(names)]
    return frame.select(*own, *(name for name in frame.columns if name not in names))


def _column(*, place: int, name: str, columns: list[str]) -> Column:
    from pyspark.sql import functions as fn

    return fn.col(f"_sj_{place}_{columns.index(name)}")
