"""The columns that flow through a join on any predicate: rows of both streams in the order in which they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import STREAMS, Batch, Table, Values
from shedjoin.errors import InputError
from shedjoin.predicates.base import Predicate
from shedjoin.predicates.values import Sets, read

_TIMES = ("ts", "importance")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in order of arrival: inside an instant (a run of equal `ts`) stream 0 comes before stream 1."""

    stream: NDArray[np.int64]
    ts: NDArray[np.int64]
    importance: NDArray[np.float64]
    kind: NDArray[np.int64]
    values: Values

    def __len__(self) -> int:
        return int(self.stream.size)

    @classmethod
    def of(
        cls, predicate: Predicate, left: Table = None, right: Table = None, *, start: Sequence[int] = (0, 0)
    ) -> Rows:
        """Interleave one table a stream by time.

        Parameters
        ----------
        left, right
            Arrow tables, DataFrames or dicts of columns: the predicate's column, `ts` (default: 0, 1, 2, ...),
            `importance` (default: 1) and `kind` (the type of a row, from 0 on; default: 0). None: no rows.
        start
            Where the default `ts` of each stream starts.
        """
        sides = [
            _side(name, table, column, predicate.kind)
            for name, table, column in zip(STREAMS, (left, right), predicate.columns, strict=True)
        ]
        batch = Batch.of(*(times for times, _, _ in sides), start=start)
        # The key of the batch is the row's place in its own table; rows of the right table come after those of the left.
        places = batch.key + np.where(batch.stream == 1, len(sides[0][1]), 0)
        values = Values.joined(sides[0][1], sides[1][1]).take(places)
        kind = np.concatenate((sides[0][2], sides[1][2]))[places]
        return cls(batch.stream, batch.ts, batch.importance, kind, values)

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """Some of the rows, in the order given."""
        return Rows(self.stream[rows], self.ts[rows], self.importance[rows], self.kind[rows], self.values.take(rows))

    @classmethod
    def joined(cls, first: Rows, second: Rows) -> Rows:
        """The rows of one after those of the other."""
        return cls(
            np.concatenate((first.stream, second.stream)),
            np.concatenate((first.ts, second.ts)),
            np.concatenate((first.importance, second.importance)),
            np.concatenate((first.kind, second.kind)),
            Values.joined(first.values, second.values),
        )

    @classmethod
    def none(cls) -> Rows:
        """No rows."""
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, np.empty(0), nothing, Values.none())


def _side(name: str, table: Any, column: str, kind: str) -> tuple[Any, Values, NDArray[np.int64]]:
    """A table's times as `Batch.of` reads them, its values, and its types."""
    if table is None:
        return None, Values.none(), np.empty(0, np.int64)
    names = _names(name, table)
    if column not in names:
        raise InputError(f"{name} needs a column {column!r}; it has {', '.join(names) or 'no columns'}")
    values = read(f"{name}.{column}", _column(table, column), kind)
    times = {part: _column(table, part) for part in _TIMES if part in names}
    times["key"] = np.arange(len(values))
    kinds = np.zeros(len(values), np.int64)
    if "kind" in names:
        given = np.asarray(_column(table, "kind"))
        whole = given.dtype.kind in "iu" or given.size == 0
        if not whole or given.size != len(values) or (given < 0).any():
            raise InputError(f"{name}.kind must be a whole number of at least 0 in each of {len(values)} rows")
        kinds = given.astype(np.int64)
    return times, values, kinds


def _names(name: str, table: Any) -> list[str]:
    if hasattr(table, "schema"):
        return list(table.schema.names)
    if isinstance(table, Sets) or not hasattr(table, "__getitem__") or isinstance(table, list | tuple | str):
        raise InputError(f"{name} must be an Arrow table, a DataFrame or a dict of columns, not {type(table).__name__}")
    return [str(column) for column in getattr(table, "columns", table)]


def _column(table: Any, column: str) -> Any:
    return table.column(column) if hasattr(table, "schema") else table[column]
