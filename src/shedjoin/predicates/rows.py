"""Tables as a predicate reads them: rows of both streams in the order in which they arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch, Checked, TableLike, Values, column_names, column_of
from shedjoin.engine.codes import SAME
from shedjoin.errors import InputError
from shedjoin.predicates.values import read

if TYPE_CHECKING:
    from shedjoin.predicates.base import Predicate

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
#: The column with the places of rows in their table.
PLACE = "_sj_place"
_OTHERS = ("ts", "importance", "bytes", "kind")


def interleaved(
    predicate: Predicate,
    tables: Mapping[str, TableLike],
    names: Sequence[str],
    start: Sequence[int],
    kinds: bool,
    checked: Sequence[Checked] | None = None,
) -> Batch:
    """One table a stream, interleaved by time as `Batch.of` does."""
    sides = [
        _side(name, tables.get(name), column, predicate, () if checked is None else checked[stream].names)
        for stream, (name, column) in enumerate(zip(names, predicate.columns, strict=True))
    ]
    unknown = [name for name in tables if name not in names]
    if unknown:
        raise InputError(f"there is no stream {unknown[0]!r}; the streams are {', '.join(names)}")
    batch = Batch.of_streams(
        {name: others for name, (others, _) in zip(names, sides, strict=True)},
        dict.fromkeys(names, (PLACE,)),
        start=start,
        kinds=kinds,
        checked=checked,
    )
    # The key of the batch is a row's place in its own table; rows of the second table come after those of the first.
    places = _first_column(batch) + np.where(batch.stream == 1, len(sides[0][1]), 0)
    return _with_values(predicate, batch, Values.joined(sides[0][1], sides[1][1]).take(places))


def in_order(predicate: Predicate, table: TableLike, kinds: bool, checked: Sequence[Checked] | None = None) -> Batch:
    """Rows in the order given, with a column `stream`. A row needs the column of its own stream only."""
    names = column_names("rows", table)
    if "stream" not in names:
        raise InputError(f"rows needs a column 'stream'; it has {', '.join(names) or 'none'}")
    sides = []
    for column in predicate.columns:
        if column not in names:
            raise InputError(f"rows needs a column {column!r}; it has {', '.join(names)}")
        sides.append(read(f"rows.{column}", column_of(table, column), predicate.kind))
    looked_at = [name for one in checked or () for name in one.names if name in names]
    others = {part: column_of(table, part) for part in ("stream", *_OTHERS, *looked_at) if part in names}
    columns = dict.fromkeys(("left", "right"), (PLACE,))
    batch = Batch.rows({**others, PLACE: np.arange(len(sides[0]))}, columns, kinds=kinds, checked=checked)
    places = _first_column(batch) + batch.stream * len(sides[0])
    return _with_values(predicate, batch, Values.joined(*sides).take(places))


def _first_column(batch: Batch) -> NDArray[np.int64]:
    return batch.key if batch.key.ndim == 1 else batch.key[:, 0]


def _side(name: str, table: Any, column: str, predicate: Predicate, checked: Sequence[str]) -> tuple[Any, Values]:
    """What `Batch.of` reads of a table, and what the predicate compares."""
    if table is None:
        return None, Values.none()
    names = column_names(name, table)
    if column not in names:
        raise InputError(f"{name} needs a column {column!r}; it has {', '.join(names) or 'no columns'}")
    values = read(f"{name}.{column}", column_of(table, column), predicate.kind)
    others = {part: column_of(table, part) for part in (*_OTHERS, *checked) if part in names}
    return {**others, PLACE: np.arange(len(values))}, values


def _with_values(predicate: Predicate, batch: Batch, values: Values) -> Batch:
    """Equal values, and equal sets, are keys; all else is compared."""
    key = np.zeros(len(batch), np.int64)
    if predicate.code == SAME:
        key = values.items if predicate.kind == "value" else hashes_of_sets(values)
    null = values.null | batch.null
    kept = replace(values, null=null) if predicate.code != SAME else None
    if batch.key.ndim == 2:  # with what a condition looks at
        key = np.column_stack([key, batch.key[:, 1:]])
    return replace(batch, key=key, null=null, values=kept)


def hashes_of_sets(values: Values) -> NDArray[np.int64]:
    """A 64-bit number for each set, the same in every process. Two different sets agree with a chance of 2**-64."""
    sizes = np.diff(values.offsets)
    hashes = np.zeros(sizes.size, np.uint64)
    for place in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > place)
        item = values.items[values.offsets[:-1][rows] + place].astype(np.uint64)
        hashes[rows] = splitmix64((hashes[rows] ^ item) + GOLDEN)
    return hashes.view(np.int64)


def splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: mixes all bits."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed
