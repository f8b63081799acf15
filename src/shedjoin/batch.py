"""Batches: columns with the rows of all streams in order of arrival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.errors import InputError
from shedjoin.row_numbers import RowNumbers, numbers_of

#: Beyond this, times are no longer exact in a float.
LATEST = 2**53
#: The range of importances: their products with counts are then within the range of floats.
SMALLEST, LARGEST = 1e-100, 1e100
#: The bytes of a stored tuple in the engine's arrays, rounded up; the default of the `bytes` column.
ROW_BYTES = 192
STREAMS = ("left", "right")
#: The most streams that a join can have.
MOST_STREAMS = 16
#: The columns that every batch has, and what they are of.
COLUMNS = ("stream", "key", "null", "ts", "importance", "bytes")
_KINDS = (np.int64, np.int64, np.bool_, np.int64, np.float64, np.int64)

TableLike = Any  # pyarrow.Table, pandas.DataFrame, or a mapping from column names to arrays


class Checked(NamedTuple):
    """Columns of a stream that a condition looks at: they stand behind its attributes in `Batch.key`.

    Attributes
    ----------
    names, strict
        The columns, and whether a row in which one is null meets nothing.
    first, width
        Where the first of them stands, and how many numbers a row has in all.
    nulls
        Whether a number behind them has a bit for each column that is null.
    """

    names: tuple[str, ...]
    strict: tuple[bool, ...]
    first: int
    width: int
    nulls: bool


@dataclass(frozen=True, slots=True)
class Values:
    """What a predicate compares of rows: a number each, or `items[offsets[i] : offsets[i + 1]]`.

    What it does not look at is empty.
    """

    null: NDArray[np.bool_]
    number: NDArray[np.float64]
    offsets: NDArray[np.int64]
    items: NDArray[np.int64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return int(self.null.size)

    def fits(self, rows: int) -> bool:
        """Whether it has what kernels read of this many rows."""
        sizes = (self.null.size, self.number.size, self.offsets.size - 1)
        inside = self.offsets[0] == 0 and (np.diff(self.offsets) >= 0).all() and self.offsets[-1] == self.items.size
        return sizes == (rows,) * 3 and bool(inside) and self.weights.size == self.items.size

    def take(self, rows: NDArray[np.int64] | slice) -> Values:
        """Some of the rows, in the order given."""
        if isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        sizes = np.diff(self.offsets)[rows] if self.offsets.size > 1 else np.zeros(rows.size, np.int64)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        starts = self.offsets[:-1][rows] if self.offsets.size > 1 else np.zeros(rows.size, np.int64)
        places = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Values(self.null[rows], self.number[rows], offsets, self.items[places], self.weights[places])

    @classmethod
    def joined(cls, first: Values, second: Values) -> Values:
        """The rows of one after those of the other."""
        offsets = np.concatenate((first.offsets, first.offsets[-1] + second.offsets[1:]))
        both = [
            np.concatenate((getattr(first, part), getattr(second, part)))
            for part in ("null", "number", "items", "weights")
        ]
        return cls(both[0], both[1], offsets, both[2], both[3])

    @classmethod
    def none(cls) -> Values:
        """No rows."""
        nothing = np.empty(0, np.int64)
        return cls(np.empty(0, np.bool_), np.empty(0), np.zeros(1, np.int64), nothing, np.empty(0))


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows in order of arrival. Inside an instant (a run of equal `ts`) they are in the order of streams.

    Make one with `Batch.of` (a table for each of two streams), `Batch.of_streams` (more streams), or `Batch.rows` (one table,
    in your own order). `key` has one number for each row; in a join graph one column for each attribute. `kind` is the type of
    a row, if selective processing distinguishes types; None: all have type 0. `numbers` is only for joins that are
    `counted_elsewhere`: `Batch.numbered` makes them. `dropped` marks rows, null here, that were shed before they arrived: they
    are numbered and join nothing, but other rows may have missed them. Waiting rows have no such marks.
    """

    stream: NDArray[np.int64]
    key: NDArray[np.int64]
    null: NDArray[np.bool_]
    ts: NDArray[np.int64]
    importance: NDArray[np.float64]
    bytes: NDArray[np.int64]
    kind: NDArray[np.int64] | None = None
    #: What a predicate on numbers or sets compares; None in joins on keys.
    values: Values | None = None
    numbers: RowNumbers | None = field(default=None, kw_only=True)
    dropped: NDArray[np.bool_] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        columns = [*zip(COLUMNS, _KINDS, strict=True), *([("kind", np.int64)] if self.kind is not None else [])]
        for name, kind in columns:
            column = getattr(self, name)
            flat = isinstance(column, np.ndarray) and column.ndim == 1 + (name == "key" and column.ndim == 2)
            if not flat or column.dtype != kind:
                raise InputError(
                    f"Batch.{name} must be a flat array of {np.dtype(kind)}: make batches with Batch.of or Batch.rows"
                )
            if len(column) != self.stream.size:
                raise InputError(f"Batch.{name} has {len(column)} rows where stream has {self.stream.size}")
        if self.stream.size and not (self.stream.min() >= 0 and self.stream.max() < MOST_STREAMS):
            raise InputError("Batch.stream must be the number of a stream in every row: 0 (left), 1 (right), ...")
        if self.kind is not None and self.kind.size and self.kind.min() < 0:
            raise InputError(f"Batch.kind must be at least 0 in every row, but one has {self.kind.min()}")
        if self.values is not None and not self.values.fits(self.stream.size):
            raise InputError("Batch.values must have a number or a set for each row: make batches with Engine.batch")
        if self.numbers is not None and self.numbers.seq.size != self.stream.size:
            raise InputError(f"Batch.numbers has {self.numbers.seq.size} rows where stream has {self.stream.size}")

    def __len__(self) -> int:
        return int(self.stream.size)

    @classmethod
    def of(cls, left: TableLike = None, right: TableLike = None, *, start: Sequence[int] = (0, 0)) -> Batch:
        """Interleave one table a stream by time (by the running maximum of `ts`, where rows are out of order).

        Parameters
        ----------
        left, right
            Arrow tables, DataFrames or dicts of arrays with the columns `key`, `ts` (default: 0, 1, 2, ...), `importance`
        (default: 1) and `bytes` (default: `ROW_BYTES`). Other columns are ignored. None: no rows.
        start
            Where the default `ts` of each stream starts.

        Examples
        --------
        >>> batch = Batch.of({"key": [1, 2]}, {"key": [3, None]})
        >>> batch.stream, batch.ts
        (array([0, 1, 0, 1]), array([0, 0, 1, 1]))
        """
        return cls.of_streams({"left": left, "right": right}, dict.fromkeys(STREAMS, ("key",)), start=start)

    @classmethod
    def nothing(cls, width: int = 1) -> Batch:
        """No rows, of a join that looks at this many attributes of a stream."""
        return _nothing(width)

    @classmethod
    def of_streams(
        cls,
        tables: Mapping[str, TableLike],
        columns: Mapping[str, Sequence[str]],
        *,
        start: Sequence[int] | None = None,
        kinds: bool = False,
        checked: Sequence[Checked] | None = None,
    ) -> Batch:
        """Interleave one table a stream by time. `columns`: the streams in their order, and what each is joined on.

        `kinds`: also read the column `kind`, the type of a row from 0 on (default: 0). `checked`: what else a condition looks at.
        """
        if not isinstance(tables, Mapping):
            raise InputError(f"rows must be a table for each stream, by its name, not {type(tables).__name__}")
        unknown = [name for name in tables if name not in columns]
        if unknown:
            raise InputError(f"there is no stream {unknown[0]!r}; the streams are {', '.join(columns)}")
        width = _width(columns, checked)
        first = start or [0] * len(columns)
        sides = [
            _columns(
                name, tables[name], number, mine, width, first[number], kinds, checked[number] if checked else None
            )
            for number, (name, mine) in enumerate(columns.items())
            if tables.get(name) is not None
        ]
        if not sides:
            return _nothing(width)
        return sides[0] if len(sides) == 1 else _interleave(sides)

    @classmethod
    def rows(
        cls,
        table: TableLike,
        columns: Mapping[str, Sequence[str]] | None = None,
        *,
        kinds: bool = False,
        checked: Sequence[Checked] | None = None,
    ) -> Batch:
        """Rows in the given order, with the columns of `Batch.of` and a column `stream` (numbers of streams).

        A row needs only the columns of its own stream; its values in other streams' columns are ignored. `kinds`: also
        read the column `kind`, the type of a row.

        Examples
        --------
        >>> Batch.rows({"stream": [1, 0], "key": [5, 5], "ts": [7, 7]}).stream
        array([0, 1])
        """
        columns = dict.fromkeys(STREAMS, ("key",)) if columns is None else columns
        names = column_names("rows", table)
        if "stream" not in names:
            raise InputError(f"rows needs a column 'stream'; it has {', '.join(names) or 'none'}")
        stream, missing = integers("rows.stream", column_of(table, "stream"))
        if missing.any() or not np.isin(stream, range(len(columns))).all():
            which = (
                "0 (left) or 1 (right)"
                if tuple(columns) == STREAMS
                else f"0 to {len(columns) - 1}: {', '.join(columns)},"
            )
            raise InputError(f"rows.stream must be {which} in every row")
        width = _width(columns, checked)
        key, null = np.zeros((stream.size, width), np.int64), np.zeros(stream.size, np.bool_)
        for number, (name, mine) in enumerate(columns.items()):
            _check_there("rows", names, mine, "" if len(set(map(tuple, columns.values()))) == 1 else f" for {name}")
            of_stream = stream == number
            for place, column in enumerate(mine):
                values, missed = integers(f"rows.{column}", column_of(table, column))
                check_size(f"rows.{column}", values.size, stream.size, "stream")
                key[of_stream, place] = values[of_stream]
                null |= missed & of_stream
            if checked is not None:
                own = np.zeros_like(key)
                missed = _read_checked("rows", table, names, checked[number], own)
                key[of_stream] += own[of_stream]
                null |= missed & of_stream
        rest = _rest("rows", table, names, stream.size, 0)
        kind = _kind("rows", table, names, stream.size) if kinds else None
        return cls(stream, key[:, 0] if width == 1 else key, null, *rest, kind=kind).in_canonical_order()

    def fields(self) -> tuple[NDArray[Any], ...]:
        """The columns that every batch has."""
        return (self.stream, self.key, self.null, self.ts, self.importance, self.bytes)

    def take(self, rows: NDArray[np.int64] | slice) -> Batch:
        """Some of the rows, in the order given; a slice copies no columns."""
        values = None if self.values is None else self.values.take(rows)
        kind = None if self.kind is None else self.kind[rows]
        numbers = None if self.numbers is None else self.numbers.take(rows)
        dropped = None if self.dropped is None else self.dropped[rows]
        made = _batch([column[rows] for column in self.fields()], values, kind)
        return replace(made, numbers=numbers, dropped=dropped)

    def without(self, dropped: NDArray[np.bool_] | None) -> Batch:
        """The same rows, of which some were dropped before they came."""
        if dropped is None:
            return self
        null = self.null | dropped
        values = None if self.values is None else replace(self.values, null=null)
        return replace(self, null=null, values=values, dropped=dropped)

    def numbered(self, start: Sequence[int] = (0, 0)) -> Batch:
        """The same rows with the numbers that one engine would give them.

        You can then send some of them (`take`) to one engine and some to another: row windows count all of them. See
        `JoinSpec.counted_elsewhere`.

        Parameters
        ----------
        start
            Rows of each stream that have come before, anywhere.

        Examples
        --------
        >>> batch = Batch.of({"key": [1, 2], "ts": [5, 6]}, {"key": [3, 1], "ts": [6, 6]}).numbered()
        >>> batch.numbers.seq, batch.take(np.array([0, 3])).numbers.arrived.tolist()
        (array([0, 1, 0, 1]), [[1, 0], [2, 2]])
        """
        streams = tuple(int(count) for count in start)
        if self.stream.size and self.stream.max() >= len(streams):
            raise InputError(f"start must have a number for each stream, not {start!r}")
        return replace(self, numbers=numbers_of(self.stream, self.ts, streams))

    def in_canonical_order(self) -> Batch:
        """In the order of streams inside each run of equal `ts`."""
        order = self.canonical_order()
        return self if order is None else self.take(order)

    def canonical_order(self) -> NDArray[np.int64] | None:
        """The rows in the order of streams inside each run of equal `ts`; None: they are in it."""
        instant = np.concatenate(([0], np.cumsum(np.diff(self.ts) != 0)))[: len(self)]
        place = MOST_STREAMS * instant + self.stream
        return np.argsort(place, kind="stable") if (np.diff(place) < 0).any() else None


def _batch(
    columns: Sequence[NDArray[Any]], values: Values | None = None, kind: NDArray[np.int64] | None = None
) -> Batch:
    stream, key, null, ts, importance, row_bytes = columns
    return Batch(stream, key, null, ts, importance, row_bytes, kind, values)


def _of_columns(columns: Sequence[NDArray[Any]]) -> Batch:
    """A batch of its columns, with the types of rows or without."""
    return _batch(columns[: len(COLUMNS)], None, columns[len(COLUMNS)] if len(columns) > len(COLUMNS) else None)


def _nothing(width: int) -> Batch:
    nothing = np.empty(0, np.int64)
    key = nothing if width == 1 else np.empty((0, width), np.int64)
    return Batch(nothing, key, np.empty(0, np.bool_), nothing, np.empty(0), nothing)


def _interleave(sides: Sequence[Batch]) -> Batch:
    """Merge streams by their clocks, the first first on equal times."""
    clocks = [np.maximum.accumulate(side.ts) for side in sides]
    if len(sides) == 2:  # by counting, which is quicker than sorting
        places = [
            np.arange(len(sides[0])) + np.searchsorted(clocks[1], clocks[0], side="left"),
            np.arange(len(sides[1])) + np.searchsorted(clocks[0], clocks[1], side="right"),
        ]
        merged = _of_columns([_spread(places, parts) for parts in _parts(sides)])
    else:
        whole = _of_columns([np.concatenate(parts) for parts in _parts(sides)])
        merged = whole.take(np.argsort(np.concatenate(clocks), kind="stable"))
    in_order = all(np.array_equal(clock, side.ts) for clock, side in zip(clocks, sides, strict=True))
    return merged if in_order else merged.in_canonical_order()


def _parts(sides: Sequence[Batch]) -> list[tuple[NDArray[Any], ...]]:
    """Each column of all sides."""
    parts = list(zip(*(side.fields() for side in sides), strict=True))
    kinds = tuple(side.kind for side in sides if side.kind is not None)
    return [*parts, kinds] if kinds else parts


def _spread(places: Sequence[NDArray[Any]], parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    column = np.empty((sum(len(part) for part in parts), *parts[0].shape[1:]), parts[0].dtype)
    for place, part in zip(places, parts, strict=True):
        column[place] = part
    return column


def column_names(name: str, table: TableLike) -> list[str]:
    """The columns that a table has."""
    if isinstance(table, Mapping):
        return [str(column) for column in table]
    names = None
    if isinstance(table, pa.Table | pa.RecordBatch):
        names = list(table.schema.names)
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):
        names = [str(column) for column in table.columns]
    if names is not None:
        twice = next((column for column in names if names.count(column) > 1), None)
        if twice is not None:
            raise InputError(f"{name} has more than one column {twice!r}")
        return names
    raise InputError(
        f"{name} must be an Arrow table, a DataFrame or a dict of arrays with a column 'key', not {type(table).__name__}"
    )


def column_of(table: TableLike, column: str) -> Any:
    """One column of a table."""
    if isinstance(table, pa.Table | pa.RecordBatch):
        return table.column(column)
    return table[column]


def _check_there(name: str, there: list[str], columns: Sequence[str], whose: str = "") -> None:
    missing = [column for column in columns if column not in there]
    if missing:
        raise InputError(f"{name} needs a column {missing[0]!r}{whose}; it has {', '.join(there) or 'no columns'}")


def _width(columns: Mapping[str, Sequence[str]], checked: Sequence[Checked] | None) -> int:
    """How many numbers a row has: its attributes, and what a condition looks at."""
    return checked[0].width if checked else max(1, *(len(mine) for mine in columns.values()))


def _read_checked(
    name: str, table: TableLike, there: list[str], checked: Checked, key: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Put what a condition looks at beside the attributes; returns which rows meet nothing, for what they lack."""
    _check_there(name, there, checked.names)
    nowhere = np.zeros(len(key), np.bool_)
    for place, (column, strict) in enumerate(zip(checked.names, checked.strict, strict=True)):
        values = arrow_column(f"{name}.{column}", column_of(table, column))
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.int8())
        numbers, missed = integers(f"{name}.{column}", values)
        check_size(f"{name}.{column}", numbers.size, len(key))
        key[:, checked.first + place] = numbers
        if strict:
            nowhere |= missed
        else:
            key[:, checked.first + len(checked.names)] |= missed.astype(np.int64) << place
    return nowhere


def _columns(
    name: str,
    table: TableLike,
    stream: int,
    columns: Sequence[str],
    width: int,
    first: int,
    kinds: bool = False,
    checked: Checked | None = None,
) -> Batch:
    names = column_names(name, table)
    _check_there(name, names, columns)
    read = [integers(f"{name}.{column}", column_of(table, column)) for column in columns]
    size = read[0][0].size
    for column, (values, _) in zip(columns, read, strict=True):
        check_size(f"{name}.{column}", values.size, size)
    if width == 1:
        key, null = read[0]
    else:
        key, null = np.zeros((size, width), np.int64), np.zeros(size, np.bool_)
        for place, (values, missed) in enumerate(read):
            key[:, place] = values
            null |= missed
    if checked is not None:
        null |= _read_checked(name, table, names, checked, key)
    kind = _kind(name, table, names, size) if kinds else None
    return Batch(np.full(size, stream, dtype=np.int64), key, null, *_rest(name, table, names, size, first), kind=kind)


def _kind(name: str, table: TableLike, names: list[str], size: int) -> NDArray[np.int64]:
    """The types of rows."""
    if "kind" not in names:
        return np.zeros(size, np.int64)
    kinds = _without_null(f"{name}.kind", column_of(table, "kind"), size)
    check_values(f"{name}.kind", kinds, kinds >= 0, "be at least 0")
    return kinds


def _rest(
    name: str, table: TableLike, names: list[str], size: int, first: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Times, importance and bytes."""
    ts = np.arange(first, first + size, dtype=np.int64)
    importance = np.ones(size)
    row_bytes = np.full(size, ROW_BYTES, dtype=np.int64)
    if "ts" in names:
        ts = _without_null(f"{name}.ts", column_of(table, "ts"), size)
        check_values(f"{name}.ts", ts, (ts >= -LATEST) & (ts <= LATEST), "lie within +-2**53")
    if "importance" in names:
        importance = floats(f"{name}.importance", column_of(table, "importance"), size)
        check_importance(f"{name}.importance", importance)
    if "bytes" in names:
        row_bytes = _without_null(f"{name}.bytes", column_of(table, "bytes"), size)
        check_values(f"{name}.bytes", row_bytes, (row_bytes > 0) & (row_bytes < 2**31), "be above 0 and below 2**31")
    return ts, importance, row_bytes


def check_values(name: str, values: NDArray[Any], fits: NDArray[np.bool_], must: str) -> None:
    """Refuse values that are out of range."""
    if not fits.all():
        row = int(np.argmin(fits))
        raise InputError(f"{name} must {must}, but row {row} has {values[row]} (rows like it: {int((~fits).sum())})")


def wrong_importance(values: NDArray[np.float64]) -> tuple[NDArray[np.bool_], str]:
    """Which importances are out of range, and what they must do."""
    wrong = ~(np.isfinite(values) & (values > 0))
    if wrong.any():
        return wrong, "be finite and above 0"
    return (values < SMALLEST) | (values > LARGEST), f"lie from {SMALLEST:g} to {LARGEST:g}"


def check_importance(name: str, values: NDArray[np.float64]) -> None:
    """Refuse importances that are out of range."""
    wrong, must = wrong_importance(values)
    check_values(name, values, ~wrong, must)


def arrow_column(name: str, values: Any) -> pa.Array:
    """A column of any kind as one Arrow array."""
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as reason:
        raise InputError(f"{name} is not a column that can be read: {reason}") from None


def integers(name: str, values: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """An integer column and where it is null."""
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, not of shape {values.shape}")
    if isinstance(values, np.ndarray) and values.dtype == np.int64 and not np.ma.isMaskedArray(values):
        return np.ascontiguousarray(values), np.zeros(values.size, dtype=np.bool_)
    if isinstance(values, list) and all(type(value) is int for value in values):
        with suppress(OverflowError):  # Arrow would load pandas first, which takes longer than to load the kernels
            return np.array(values, np.int64), np.zeros(len(values), dtype=np.bool_)
    array = arrow_column(name, values)
    if pa.types.is_null(array.type):
        array = array.cast(pa.int64())
    if pa.types.is_timestamp(array.type):
        try:
            array = array.cast(pa.timestamp("us")).cast(pa.int64())
        except pa.ArrowInvalid as reason:
            raise InputError(f"{name} must be times in whole microseconds: {reason}") from None
    if not pa.types.is_integer(array.type):
        other = ": hash or number other kinds of keys first" if name.endswith("key") else ""
        raise InputError(f"{name} must be a column of whole numbers, not {array.type}{other}")
    null = np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    try:
        filled = array.fill_null(0).cast(pa.int64())
    except pa.ArrowInvalid as reason:
        raise InputError(f"{name} must fit into 64 bits: {reason}") from None
    return np.array(filled.to_numpy(zero_copy_only=False), dtype=np.int64), null


def _without_null(name: str, values: Any, size: int) -> NDArray[np.int64]:
    numbers, null = integers(name, values)
    check_size(name, numbers.size, size)
    if null.any():
        raise InputError(f"{name} must have a value in every row, but row {int(np.argmax(null))} is null")
    return numbers


def floats(name: str, values: Any, size: int | None = None, *, safe: bool = True) -> NDArray[np.float64]:
    """A column of numbers; NaN: null. `safe` refuses whole numbers that a float cannot hold."""
    array = arrow_column(name, values)
    if pa.types.is_null(array.type):
        array = array.cast(pa.float64())
    if not (pa.types.is_floating(array.type) or pa.types.is_integer(array.type) or pa.types.is_decimal(array.type)):
        raise InputError(f"{name} must be a column of numbers, not {array.type}")
    if size is not None:
        check_size(name, len(array), size)
    try:
        numbers = array.cast(pa.float64(), safe=safe).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as reason:
        raise InputError(f"{name} must be numbers that a float can hold: {reason}") from None
    return np.array(numbers, dtype=np.float64)


def check_size(name: str, came: int, size: int, other: str = "key") -> None:
    """Refuse columns of different lengths."""
    if came != size:
        raise InputError(f"{name} has {came} rows where {other} has {size}: all columns must be equally long")
