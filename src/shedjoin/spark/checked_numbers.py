"""What the condition `where` compares, as whole numbers of 64 bits that have the order of the values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.batch import Checked
from shedjoin.spark.exchange import valid

Integers = NDArray[np.int64]
#: Bytes of a SHA-256.
DIGEST = 32
#: NaN is equal to NaN and larger than all other numbers, as in Spark.
_NAN = np.int64(2**63 - 1)


def checked_numbers(columns: pa.StructArray, checked: Checked) -> pa.StructArray:
    """A struct of numbers; behind them, if rows with nulls may meet something, one with a bit for each that is null."""
    made: dict[str, pa.Array] = {}
    nulls = np.zeros(len(columns), np.int64)
    place = {name: number for number, name in enumerate(checked.names)}
    for field, column in zip(columns.type, columns.flatten(), strict=True):
        first = int(field.name[1:])
        null = ~valid(column)
        for number, values in enumerate(as_numbers(column)):
            name = f"{field.name[0]}{first + number}"
            made[name] = pa.array(np.where(null, 0, values))
            if not checked.strict[place[name]]:
                nulls |= null.astype(np.int64) << place[name]
    ordered = [made[name] for name in checked.names]
    names = [*checked.names]
    if checked.nulls:
        ordered.append(pa.array(nulls))
        names.append("nulls")
    return pa.StructArray.from_arrays(ordered, names)


def as_numbers(column: pa.Array) -> tuple[Integers, ...]:
    """One number of a value; two of a digest. What stands where a value is null means nothing.

    Examples
    --------
    >>> as_numbers(pa.array([-1.5, -0.0, 0.0, float("nan")]))[0].argsort(kind="stable")
    array([0, 1, 2, 3])
    """
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _digests(column)
    if pa.types.is_floating(kind):
        return (_ordered(column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)),)
    if pa.types.is_decimal(kind):
        words = np.frombuffer(column.cast(pa.decimal128(38, kind.scale)).buffers()[1], np.int64)
        return (words[2 * column.offset : 2 * (column.offset + len(column)) : 2],)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    return (np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), np.int64),)


def _ordered(numbers: NDArray[np.float64]) -> Integers:
    """The bits of floats, so that they have the order of the floats."""
    bits = (numbers + 0.0).view(np.int64)  # -0.0 is 0.0
    ordered = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    return np.where(np.isnan(numbers), _NAN, ordered)


def _digests(column: pa.Array) -> tuple[Integers, Integers]:
    """The first 16 bytes of each digest."""
    whole = column.cast(pa.binary()).fill_null(bytes(DIGEST))
    offsets = np.frombuffer(whole.buffers()[1], np.int32)[whole.offset : whole.offset + len(whole) + 1]
    flat = np.frombuffer(whole.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    first = flat.reshape(-1, DIGEST)[:, :16].copy().view(np.int64)
    return first[:, 0], first[:, 1]
