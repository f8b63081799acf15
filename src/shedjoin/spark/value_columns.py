"""Columns that predicates on numbers and sets compare: their types, and how Spark gives them to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shedjoin.errors import SpecError
from shedjoin.predicates import Predicate
from shedjoin.spark.keys import SIDES, WHOLE, check_column, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

NUMBERS = (*WHOLE, "float", "double", "decimal")
#: The types in which values are archived, by the kind of the predicate.
ARCHIVED_VALUES = {
    "number": "double",
    "set": "array<bigint>",
    "weighted": "array<struct<item: bigint, weight: double>>",
}


def check_values(predicate: Predicate, frames: Sequence[DataFrame]) -> list[DataType]:
    """A clear word where a side's column is not what the predicate looks at; returns their types."""
    found = []
    for side, (frame, name) in enumerate(zip(frames, predicate.columns, strict=True)):
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
    return found


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

    def code(item: Column) -> Column:
        return _code(item, _item(kind))

    if wanted == "set":
        return fn.transform(column, code)
    pairs = fn.map_entries(column) if kind.typeName() == "map" else column
    first, second = ("key", "value") if kind.typeName() == "map" else [one.name for one in _element(kind).fields]

    def pair(entry: Column) -> Column:
        return fn.struct(code(entry[first]).alias("item"), entry[second].cast("double").alias("weight"))

    return fn.transform(pairs, pair)


def _code(item: Column, kind: Any) -> Column:
    """An item as 64 bits. A null stays one, so that the packing task can say so: Spark's hash of it is a number like others."""
    from pyspark.sql import functions as fn

    return item.cast("bigint") if kind.typeName() in WHOLE else fn.when(item.isNotNull(), fn.xxhash64(item))


def item_type(kind: Any, wanted: str) -> str:
    """The type of what estimators count: items, or whole numbers."""
    return "bigint" if wanted == "number" else str(_item(kind).simpleString())


def item_number(frame: DataFrame, *, name: str) -> Column:
    """A column of items as the engine takes them."""
    from pyspark.sql import functions as fn

    return _code(fn.col(quoted(name)), frame.schema[name].dataType)
