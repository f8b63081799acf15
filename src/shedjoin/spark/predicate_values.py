"""What a predicate looks at, on its way through Spark: a column of the engine's kind, read in the JVM, put in order by the
packing task, and taken as it is by every shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shedjoin.batch import Values
from shedjoin.engine.codes import SAME
from shedjoin.errors import SpecError
from shedjoin.predicates.base import Predicate
from shedjoin.predicates.values import read
from shedjoin.spark.keys import SIDES, WHOLE, check_column, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

NUMBERS = (*WHOLE, "float", "double", "decimal")
_WEIGHTED = pa.list_(pa.struct([("item", pa.int64()), ("weight", pa.float64())]))
#: How values travel, by the kind of the predicate.
TYPES = {"number": pa.float64(), "set": pa.list_(pa.int64()), "weighted": _WEIGHTED}
#: The same as Spark's types, as they are archived.
ARCHIVED_VALUES = {
    "number": "double",
    "set": "array<bigint>",
    "weighted": "array<struct<item: bigint, weight: double>>",
}


def is_spread(predicate: Predicate) -> bool:
    """Whether every row probes all shards; equal sets meet in the shard of their hash."""
    return predicate.code != SAME


def check_values(predicate: Predicate, left: DataFrame, right: DataFrame) -> list[str]:
    """A clear word where a side's column is not what the predicate looks at; returns their types."""
    found = []
    for side, (frame, name) in enumerate(zip((left, right), predicate.columns, strict=True)):
        check_column("predicate", name, frame, SIDES[side])
        kind = frame.schema[name].dataType
        what = _wrong(predicate.kind, kind)
        if what is not None:
            raise SpecError(
                f"predicate: {SIDES[side]}.{name} is of type {kind.simpleString()}, but "
                f"{type(predicate).__name__} takes {what}"
            )
        found.append(kind)
    items = [_item(kind) for kind in found]
    if predicate.kind != "number" and _spelling(items[0]) != _spelling(items[1]):
        raise SpecError(
            f"predicate: the items of left.{predicate.columns[0]} are {items[0].simpleString()} and those of "
            f"right.{predicate.columns[1]} {items[1].simpleString()}: they are not compared, so cast one of them"
        )
    return [kind.simpleString() for kind in found]


def _wrong(wanted: str, kind: DataType) -> str | None:
    """What is wanted, if this is something else."""
    name = kind.typeName()
    if wanted == "number":
        return None if name.split("(")[0] in NUMBERS else "a number"
    weighted = _weight(kind) in NUMBERS
    if wanted == "weighted":
        return None if weighted else "weighted sets: a map from items to numbers, or an array of pairs (item, number)"
    return None if name == "array" and not hasattr(_element(kind), "fields") else "sets: an array of items"


def _element(kind: Any) -> Any:
    return kind.elementType


def _weight(kind: Any) -> str | None:
    """The type of the weights of weighted sets; None if these are none."""
    if kind.typeName() == "map":
        return str(kind.valueType.typeName()).split("(")[0]
    pair: list[Any] = list(getattr(_element(kind), "fields", ())) if kind.typeName() == "array" else []
    return str(pair[1].dataType.typeName()).split("(")[0] if len(pair) == 2 else None


def _item(kind: Any) -> Any:
    """The type of an item."""
    if kind.typeName() == "map":
        return kind.keyType
    if kind.typeName() == "array":
        return kind.elementType.fields[0].dataType if hasattr(kind.elementType, "fields") else kind.elementType
    return kind


def _spelling(kind: Any) -> str:
    """Types whose values are written alike: all whole numbers are."""
    return "whole" if kind.typeName() in WHOLE else str(kind.simpleString())


def value_column(frame: DataFrame, name: str, wanted: str) -> Column:
    """The column as the engine takes it: a number, or an array of 64-bit items (with weights). Text is hashed by the JVM."""
    from pyspark.sql import functions as fn

    column, kind = fn.col(quoted(name)), frame.schema[name].dataType
    if wanted == "number":
        return column.cast("double")
    whole = _item(kind).typeName() in WHOLE

    def code(item: Column) -> Column:
        # A null stays one, so that the packing task can say so: Spark's hash of it is a number like others.
        return item.cast("bigint") if whole else fn.when(item.isNotNull(), fn.xxhash64(item))

    if wanted == "set":
        return fn.transform(column, code)
    pairs = fn.map_entries(column) if kind.typeName() == "map" else column
    first, second = ("key", "value") if kind.typeName() == "map" else [one.name for one in _element(kind).fields]

    def pair(entry: Column) -> Column:
        return fn.struct(code(entry[first]).alias("item"), entry[second].cast("double").alias("weight"))

    return fn.transform(pairs, pair)


def in_order(name: str, column: pa.Array, kind: str) -> pa.Array:
    """The values checked; sets sorted, each item once, so that no shard need do it again."""
    values = read(name, column, kind)
    if kind == "number":
        return pa.array(values.number, mask=values.null)
    items: pa.Array = pa.array(values.items)
    if kind == "weighted":
        items = pa.StructArray.from_arrays([items, pa.array(values.weights)], fields=list(_WEIGHTED.value_type))
    made = pa.ListArray.from_arrays(pa.array(values.offsets, pa.int32()), items, mask=pa.array(values.null))
    return made.cast(TYPES[kind])


def values_of(column: pa.Array, kind: str) -> Values:
    """What `in_order` says, as kernels take it."""
    null = np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
    rows = null.size
    if kind == "number":
        number = np.asarray(column.fill_null(0.0).to_numpy(zero_copy_only=False), np.float64)
        return Values(null, number, np.zeros(rows + 1, np.int64), np.empty(0, np.int64), np.empty(0))
    sizes = np.asarray(column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    flat = column.flatten()
    items, weights = flat.flatten() if kind == "weighted" else (flat, None)
    return Values(
        null,
        np.zeros(rows),
        np.concatenate(([0], np.cumsum(sizes))),
        np.array(items.to_numpy(zero_copy_only=False), np.int64),
        np.ones(len(items)) if weights is None else np.array(weights.to_numpy(zero_copy_only=False), np.float64),
    )


def values_in(column: pa.Array) -> Values:
    """What `as_column` wrote."""
    if pa.types.is_floating(column.type):
        return values_of(column, "number")
    return values_of(column, "weighted" if pa.types.is_struct(column.type.value_type) else "set")


def as_column(values: Values) -> pa.Array:
    """Values as one column, for the state store. Weights of 1 are no weights, and empty sets only are no sets."""
    if values.items.size == 0:
        return pa.array(values.number, mask=values.null)
    items: pa.Array = pa.array(values.items)
    if (values.weights != 1.0).any():
        items = pa.StructArray.from_arrays([items, pa.array(values.weights)], fields=list(_WEIGHTED.value_type))
    return pa.ListArray.from_arrays(pa.array(values.offsets, pa.int32()), items, mask=pa.array(values.null))
