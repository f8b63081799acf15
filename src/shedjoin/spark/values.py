"""What a predicate compares, on its way through Spark: put in order by the packing task, taken as it is by every shard."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shedjoin.batch import Values
from shedjoin.predicates.values import read

_WEIGHTED = pa.list_(pa.struct([("item", pa.int64()), ("weight", pa.float64())]))
#: How values travel, by the kind of the predicate.
TYPES = {"number": pa.float64(), "set": pa.list_(pa.int64()), "weighted": _WEIGHTED}


def in_order(name: str, column: pa.Array, kind: str) -> pa.Array:
    """The values checked; sets sorted, each item once, so that no shard need do it again."""
    return to_column(read(name, column, kind), kind)


def to_column(values: Values, kind: str | None = None) -> pa.Array:
    """Values as one column of a kind; None: of the simplest. Weights of 1 are no weights, and empty sets only are no sets."""
    if kind is None:
        weighted = bool((values.weights != 1.0).any())
        kind = "weighted" if weighted else "set" if values.items.size else "number"
    if kind == "number":
        return pa.array(values.number, mask=values.null)
    items: pa.Array = pa.array(values.items)
    if kind == "weighted":
        items = pa.StructArray.from_arrays([items, pa.array(values.weights)], fields=list(_WEIGHTED.value_type))
    made = pa.ListArray.from_arrays(pa.array(values.offsets, pa.int32()), items, mask=pa.array(values.null))
    return made.cast(TYPES[kind])


def from_column(column: pa.Array) -> Values:
    """What `to_column` made, as kernels take it."""
    null = np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
    rows = null.size
    if pa.types.is_floating(column.type):
        number = np.asarray(column.fill_null(0.0).to_numpy(zero_copy_only=False), np.float64)
        return Values(null, number, np.zeros(rows + 1, np.int64), np.empty(0, np.int64), np.empty(0))
    sizes = np.asarray(column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    flat = column.flatten()
    items, weights = flat.flatten() if pa.types.is_struct(flat.type) else (flat, None)
    return Values(
        null,
        np.zeros(rows),
        np.concatenate(([0], np.cumsum(sizes))),
        np.array(items.to_numpy(zero_copy_only=False), np.int64),
        np.ones(len(items)) if weights is None else np.array(weights.to_numpy(zero_copy_only=False), np.float64),
    )
