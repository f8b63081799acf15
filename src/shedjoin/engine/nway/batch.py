"""The columns that flow through an n-way join: rows of all streams in the order in which they arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import (
    LATEST,
    ROW_BYTES,
    Table,
    check_importance,
    check_values,
    column_names,
    column_of,
    floats,
    integers,
)
from shedjoin.errors import InputError


@dataclass(frozen=True, slots=True)
class MultiBatch:
    """Rows in order of arrival; inside an instant (a run of equal `ts`) in the order of streams. Made by `MultiEngine.batch`."""

    stream: NDArray[np.int64]
    ts: NDArray[np.int64]
    null: NDArray[np.bool_]
    importance: NDArray[np.float64]
    bytes: NDArray[np.int64]
    attr: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.stream.size)

    def fields(self) -> tuple[NDArray[Any], ...]:
        return (self.stream, self.ts, self.null, self.importance, self.bytes, self.attr)

    def take(self, rows: NDArray[np.int64] | slice) -> MultiBatch:
        """Some of the rows, in the order given; a slice copies nothing."""
        return MultiBatch(*(column[rows] for column in self.fields()))

    def in_canonical_order(self, streams: int) -> MultiBatch:
        """In the order of streams inside each run of equal `ts`."""
        instant = np.concatenate(([0], np.cumsum(np.diff(self.ts) != 0)))[: len(self)]
        place = streams * instant + self.stream
        if not (np.diff(place) < 0).any():
            return self
        return self.take(np.argsort(place, kind="stable"))


Columns = Sequence[Sequence[str]]


def of_tables(
    tables: Mapping[str, Table], names: Sequence[str], columns: Columns, width: int, start: Sequence[int]
) -> MultiBatch:
    """Interleave one table a stream by time (by the running maximum of `ts`, where rows are out of order)."""
    if not isinstance(tables, Mapping):
        raise InputError(f"rows must be a table for each stream, by its name, not {type(tables).__name__}")
    unknown = [name for name in tables if name not in names]
    if unknown:
        raise InputError(f"there is no stream {unknown[0]!r}; the streams are {', '.join(names)}")
    sides = [
        _rows(name, tables[name], number, columns[number], width, start[number])
        for number, name in enumerate(names)
        if tables.get(name) is not None
    ]
    if not sides:
        nothing = np.empty(0, np.int64)
        empty = np.empty((0, width), np.int64)
        return MultiBatch(nothing, nothing, np.empty(0, np.bool_), np.empty(0), nothing, empty)
    whole = MultiBatch(*(np.concatenate(parts) for parts in zip(*(side.fields() for side in sides), strict=True)))
    clocks = np.concatenate([np.maximum.accumulate(side.ts) for side in sides])
    merged = whole.take(np.argsort(clocks, kind="stable"))
    return merged.in_canonical_order(len(names))


def _rows(name: str, table: Table, stream: int, columns: Sequence[str], width: int, first: int) -> MultiBatch:
    there = column_names(name, table)
    missing = [column for column in columns if column not in there]
    if missing:
        raise InputError(f"{name} needs a column {missing[0]!r}; it has {', '.join(there) or 'no columns'}")
    read = [integers(f"{name}.{column}", column_of(table, column)) for column in columns]
    size = read[0][0].size
    for column, (values, _) in zip(columns, read, strict=True):
        _check_size(f"{name}.{column}", values.size, size)
    attr = np.zeros((size, width), np.int64)
    null = np.zeros(size, np.bool_)
    for number, (values, missed) in enumerate(read):
        attr[:, number] = values
        null |= missed
    return MultiBatch(np.full(size, stream, np.int64), *_time_and_worth(name, table, there, size, first, null), attr)


def _time_and_worth(
    name: str, table: Table, there: list[str], size: int, first: int, null: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    ts = np.arange(first, first + size, dtype=np.int64)
    importance = np.ones(size)
    row_bytes = np.full(size, ROW_BYTES, dtype=np.int64)
    if "ts" in there:
        ts = _whole(f"{name}.ts", column_of(table, "ts"), size)
        check_values(f"{name}.ts", ts, (ts >= -LATEST) & (ts <= LATEST), "lie within +-2**53")
    if "importance" in there:
        importance = floats(f"{name}.importance", column_of(table, "importance"), size)
        check_importance(f"{name}.importance", importance)
    if "bytes" in there:
        row_bytes = _whole(f"{name}.bytes", column_of(table, "bytes"), size)
        check_values(f"{name}.bytes", row_bytes, (row_bytes > 0) & (row_bytes < 2**31), "be above 0 and below 2**31")
    return ts, null, importance, row_bytes


def _whole(name: str, values: Any, size: int) -> NDArray[np.int64]:
    numbers, null = integers(name, values)
    _check_size(name, numbers.size, size)
    if null.any():
        raise InputError(f"{name} must have a value in every row, but row {int(np.argmax(null))} is null")
    return numbers


def _check_size(name: str, came: int, size: int) -> None:
    if came != size:
        raise InputError(f"{name} has {came} rows where another column has {size}: all columns must be equally long")


def of_rows(table: Table, names: Sequence[str], columns: Columns, width: int) -> MultiBatch:
    """Rows in the order given, with a column `stream` of numbers of streams.

    A row needs the columns of its own stream only; what other streams' columns hold in it is not looked at.
    """
    there = column_names("rows", table)
    if "stream" not in there:
        raise InputError(f"rows needs a column 'stream'; it has {', '.join(there) or 'none'}")
    given = column_of(table, "stream")
    stream, missing = integers("rows.stream", given)
    if missing.any() or not np.isin(stream, range(len(names))).all():
        raise InputError(f"rows.stream must be 0 to {len(names) - 1} in every row: {', '.join(names)}")
    size = stream.size
    attr = np.zeros((size, width), np.int64)
    null = np.zeros(size, np.bool_)
    for number, mine in enumerate(columns):
        of_stream = stream == number
        for place, column in enumerate(mine):
            if column not in there:
                raise InputError(f"rows needs a column {column!r} for {names[number]}; it has {', '.join(there)}")
            values, missed = integers(f"rows.{column}", column_of(table, column))
            _check_size(f"rows.{column}", values.size, size)
            attr[of_stream, place] = values[of_stream]
            null |= missed & of_stream
    made = MultiBatch(stream, *_time_and_worth("rows", table, there, size, 0, null), attr)
    return made.in_canonical_order(len(names))
