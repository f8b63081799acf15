"""Values of a column as kernels take them: a number a row, or offsets into sorted items (and weights)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from shedjoin.batch import Values, arrow_column, floats
from shedjoin.engine.codes import MOST_ITEMS
from shedjoin.errors import InputError


class Sets:
    """A column of sets: row i holds `items[offsets[i] : offsets[i + 1]]`, with `weights` where they have any.

    Items are whole numbers, in any order; a repeated item counts once.

    Examples
    --------
    >>> len(Sets(offsets=[0, 2, 2], items=[5, 7]))
    2
    """

    __slots__ = ("items", "offsets", "weights")

    def __init__(self, offsets: ArrayLike, items: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.offsets = np.asarray(offsets, np.int64)
        self.items = np.asarray(items)
        self.weights = None if weights is None else np.asarray(weights, np.float64)
        inside = self.offsets.ndim == 1 and self.offsets.size > 0 and self.offsets[0] == 0
        if not inside or self.offsets[-1] != self.items.size or (np.diff(self.offsets) < 0).any():
            raise InputError(
                f"Sets.offsets must rise from 0 to the number of items ({self.items.size}), one more than there are rows"
            )
        if self.weights is not None and self.weights.size != self.items.size:
            raise InputError(f"Sets.weights has {self.weights.size} numbers for {self.items.size} items")

    def __len__(self) -> int:
        return int(self.offsets.size - 1)


def read(name: str, column: Any, kind: str) -> Values:
    """The values of a column of a table; `name` is for messages."""
    if kind == "number":
        return _numbers(name, column)
    if kind == "value":
        return _single(name, column)
    return _sets(name, column, kind == "weighted")


def hashed(texts: pa.Array) -> NDArray[np.int64]:
    """A 64-bit number for each text, the same in every process. Two different texts agree with a chance of 2**-64."""
    coded = texts.dictionary_encode()
    numbers = np.array(
        [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)
         for text in coded.dictionary.to_pylist()],
        dtype=np.int64,
    )  # fmt: skip
    if numbers.size == 0:
        return np.zeros(len(texts), np.int64)
    places = np.asarray(coded.indices.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    return np.asarray(numbers[places], np.int64)


def _empty_items(rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    return np.zeros(rows + 1, np.int64), np.empty(0, np.int64), np.empty(0)


def _numbers(name: str, column: Any) -> Values:
    number = floats(name, column, safe=False)
    null = np.isnan(number)
    if np.isinf(number).any():
        raise InputError(f"{name} must hold finite numbers, but row {int(np.argmax(np.isinf(number)))} is infinite")
    return Values(null, np.where(null, 0.0, number) + 0.0, *_empty_items(number.size))  # no -0.0


def _codes(name: str, array: pa.Array) -> NDArray[np.int64]:
    """Items as 64-bit numbers: whole numbers stay, text is hashed."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return hashed(array)
    if not pa.types.is_integer(array.type):
        raise InputError(f"{name} must hold whole numbers or text, not {array.type}")
    try:
        return np.array(array.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)
    except pa.ArrowInvalid as reason:
        raise InputError(f"{name} must fit into 64 bits: {reason}") from None


def _single(name: str, column: Any) -> Values:
    array = arrow_column(name, column)
    null = np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)
    items = _codes(name, array)
    # A null row has its item too: it is never looked at.
    return Values(null, np.zeros(null.size), np.arange(null.size + 1), items, np.ones(null.size))


def _sets(name: str, column: Any, weighted: bool) -> Values:
    null, sets = _read_sets(name, column, weighted)
    rows = np.repeat(np.arange(len(sets)), np.diff(sets.offsets))
    items = _codes(name, arrow_column(name, sets.items)) if sets.items.dtype != np.int64 else sets.items
    weights = np.ones(items.size) if sets.weights is None else sets.weights
    if weighted and not np.isfinite(weights).all():
        raise InputError(
            f"{name} must have finite weights, but row {int(rows[np.argmin(np.isfinite(weights))])} has not"
        )
    order = np.lexsort((items, rows))
    rows, items, weights = rows[order], items[order], weights[order]
    again = np.zeros(items.size, np.bool_)
    again[1:] = (rows[1:] == rows[:-1]) & (items[1:] == items[:-1])
    if weighted and again.any():
        raise InputError(f"{name} must have each item once, but row {int(rows[np.argmax(again)])} has one twice")
    sizes = np.bincount(rows[~again], minlength=null.size).astype(np.int64)
    if sizes.size and sizes.max() > MOST_ITEMS:
        raise InputError(f"{name} may have {MOST_ITEMS} items a row, but row {int(np.argmax(sizes))} has {sizes.max()}")
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    return Values(null, np.zeros(null.size), offsets, items[~again], weights[~again])


def _read_sets(name: str, column: Any, weighted: bool) -> tuple[NDArray[np.bool_], Sets]:
    if isinstance(column, Sets):
        if weighted and column.weights is None:
            raise InputError(f"{name} must have weights for an inner product: give Sets(offsets, items, weights)")
        return np.zeros(len(column), np.bool_), column
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.Array):
        return _arrow_sets(name, column, weighted)
    return _python_sets(name, column, weighted)


def _arrow_sets(name: str, array: pa.Array, weighted: bool) -> tuple[NDArray[np.bool_], Sets]:
    kind = array.type
    null = np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)
    if pa.types.is_null(kind):
        return null, Sets(np.zeros(null.size + 1), np.empty(0, np.int64), np.empty(0))
    if pa.types.is_map(kind):
        pairs = pa.list_(pa.struct([("item", kind.key_type), ("weight", kind.item_type)]))
        array = array.cast(pairs)
    elif not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise InputError(f"{name} must be a column of lists of items, not {kind}")
    items, weights = array.flatten(), None
    if pa.types.is_struct(items.type) and items.type.num_fields == 2:
        items, second = items.flatten()
        weights = np.array(second.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    if weighted and weights is None and len(items):
        raise InputError(f"{name} must hold items with weights (a map, or a list of pairs) for an inner product")
    sizes = np.array(array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    return null, Sets(np.concatenate(([0], np.cumsum(sizes))), _items(name, items), weights)


def _items(name: str, items: pa.Array) -> NDArray[np.int64]:
    """The items of all sets, one after the other."""
    if items.null_count:
        raise InputError(f"{name} must have no null among the items of a set")
    return _codes(name, items)


def _python_sets(name: str, column: Any, weighted: bool) -> tuple[NDArray[np.bool_], Sets]:
    """Sets, lists or dicts of Python, one by one: for small inputs."""
    items: list[Any] = []
    weights: list[float] = []
    sizes, null = [], []
    what = "a dict of items and weights" if weighted else "a set or a list of items"
    if not isinstance(column, Iterable):
        raise InputError(f"{name} must be a column with {what} in every row, not {column!r}")
    for row in column:
        missing = row is None or (isinstance(row, float) and row != row)
        wrong = isinstance(row, str | bytes)  # which would be a set of letters
        try:
            parts = [] if missing else list(dict(row).items() if weighted else row)
            weights += [float(part[1]) for part in parts] if weighted else []
        except (TypeError, ValueError):
            wrong = True
        if wrong:
            raise InputError(f"{name} must hold {what} in every row, not {row!r}")
        null.append(missing)
        sizes.append(len(parts))
        items += [part[0] for part in parts] if weighted else parts
    codes = _items(name, arrow_column(name, items))
    offsets = np.concatenate(([0], np.cumsum(np.array(sizes, np.int64))))
    return np.array(null, np.bool_), Sets(offsets, codes, np.array(weights) if weighted else None)
