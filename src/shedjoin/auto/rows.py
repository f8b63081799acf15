"""Rows of the sample that wait for the end of their stretch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import COLUMNS, LATEST, Batch, Values
from shedjoin.engine.plan import Plan

#: What a predicate looks at.
VALUES = ("null", "number", "offsets", "items", "weights")


def nothing(plan: Plan) -> Batch:
    """No rows of a join."""
    none = Batch.nothing(plan.width)
    return none if plan.predicate is None else replace(none, values=Values.none())


def joined(batches: Sequence[Batch], plan: Plan) -> Batch:
    """The rows of all batches, without what miniatures do not look at."""
    parts = [nothing(plan), *batches]
    columns = [np.concatenate(column) for column in zip(*(part.fields() for part in parts), strict=True)]
    values = [part.values for part in parts if part.values is not None]
    stream, key, null, ts, importance, row_bytes = columns
    whole = reduce(Values.joined, values) if plan.predicate is not None else None
    return Batch(stream, key, null, ts, importance, row_bytes, values=whole)


def written_rows(batch: Batch) -> dict[str, NDArray[Any]]:
    """A batch as columns of a snapshot."""
    columns = dict(zip(COLUMNS, batch.fields(), strict=True))
    if batch.values is not None:
        columns |= {f"value {name}": getattr(batch.values, name) for name in VALUES}
    return {
        f"row {name}": column.astype(np.int8) if column.dtype == np.bool_ else column
        for name, column in columns.items()
    }


def read_rows(columns: Mapping[str, NDArray[Any]], plan: Plan) -> Batch:
    """The batch that `written_rows` wrote. It is checked as any other when it is pushed."""
    stream, key, null, ts, importance, row_bytes = (columns[f"row {name}"] for name in COLUMNS)
    values = None
    if plan.predicate is not None:
        missing, *rest = (columns[f"row value {name}"] for name in VALUES)
        values = Values(missing.astype(np.bool_), *rest)
    whole = (np.isfinite(importance) & (importance > 0)).all() and (np.abs(ts) <= LATEST).all()
    if not whole or not ((row_bytes >= 0) & (row_bytes < 2**31)).all() or (values is not None and not _sound(values)):
        raise ValueError("rows of its sample are out of range")
    return Batch(stream, key, null.astype(np.bool_), ts, importance, row_bytes, values=values)


def _sound(values: Values) -> bool:
    return bool(np.isfinite(values.number).all() and np.isfinite(values.weights).all())
