"""Row numbers over all parts of a join: for engines that each get a part of the rows, and whose row windows count all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import InputError

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """What rows need to know of rows that went elsewhere.

    Attributes
    ----------
    seq
        The number of each row among all rows of its stream.
    arrived
        (row, stream): how many rows of each stream have arrived anywhere by the end of the row's instant.
    """

    seq: Integers
    arrived: Integers

    def __post_init__(self) -> None:
        for name, dimensions in (("seq", 1), ("arrived", 2)):
            column = getattr(self, name)
            if not isinstance(column, np.ndarray) or column.dtype != np.int64 or column.ndim != dimensions:
                shape = "a flat array" if dimensions == 1 else "an array of shape (rows, streams)"
                raise InputError(f"RowNumbers.{name} must be {shape} of int64: make it with Batch.numbered")
        if len(self.arrived) != self.seq.size:
            raise InputError(f"RowNumbers.arrived has {len(self.arrived)} rows where seq has {self.seq.size}")

    def take(self, rows: Integers | slice) -> RowNumbers:
        """Those of some rows, in the order given."""
        return RowNumbers(self.seq[rows], self.arrived[rows])


def numbers_of(stream: Integers, ts: Integers, start: tuple[int, ...]) -> RowNumbers:
    """The numbers that one engine would give these rows, of which so many of each stream have come before."""
    mine = stream[:, None] == np.arange(len(start))
    arrived = np.array(start, np.int64) + np.cumsum(mine, axis=0)
    seq = arrived[np.arange(stream.size), stream] - 1
    last = np.flatnonzero(np.append(np.diff(ts) != 0, True)) if ts.size else np.empty(0, np.int64)
    return RowNumbers(seq, arrived[last[np.searchsorted(last, np.arange(stream.size))]])


def check(stream: Integers, ts: Integers, numbers: RowNumbers, arrived: tuple[int, ...]) -> None:
    """See that rows have numbers that the engine can go on with, of which so many of each stream have come anywhere before."""
    if numbers.arrived.shape[1] != len(arrived):
        raise InputError(f"Batch.numbers counts {numbers.arrived.shape[1]} streams, but this join has {len(arrived)}")
    if not stream.size:
        return
    places, counts = np.arange(stream.size), numbers.arrived
    border = np.append(True, (np.diff(ts) != 0) | (np.diff(counts, axis=0) != 0).any(axis=1))
    first = np.flatnonzero(border)
    before = np.vstack([np.array(arrived, np.int64), counts[first[1:] - 1]])[np.cumsum(border) - 1]
    fits = (numbers.seq >= before[places, stream]) & (numbers.seq < counts[places, stream])
    fits &= (counts >= before).all(axis=1)
    for one in range(len(arrived)):
        mine = np.flatnonzero(stream == one)
        fits[mine[1:]] &= np.diff(numbers.seq[mine]) > 0
    if not fits.all():
        row = int(np.argmin(fits))
        raise InputError(
            f"Batch.numbers must go on from {arrived} rows of each stream, rise, and count each row's instant whole, but row "
            f"{row} of stream {stream[row]} has number {numbers.seq[row]} with {tuple(counts[row].tolist())} arrived"
        )
