"""All rows of a run by stream, with what had arrived before and after each instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import STREAMS, Batch, TableLike, Values
from shedjoin.engine.output import LeftOutLog, ShedLog
from shedjoin.errors import InputError

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The rows of each stream, in the order in which they arrived.

    Attributes
    ----------
    key, null, values
        What rows are joined on: a number or a line of attributes, whether one is null, and what a predicate compares.
    ts, instant
        The time of a row, and the number of its instant.
    place
        Its place among the rows of all streams.
    number
        Its row number: its place in its stream, unless rows were taken out.
    arrived
        `arrived[k, i]`: rows of stream i before instant k; the last line has the totals.
    """

    key: tuple[Integers, ...]
    null: tuple[NDArray[np.bool_], ...]
    values: tuple[Values, ...] | None
    ts: tuple[Integers, ...]
    instant: tuple[Integers, ...]
    place: tuple[Integers, ...]
    number: tuple[Integers, ...]
    arrived: Integers

    @classmethod
    def of(cls, left: TableLike, right: TableLike) -> Arrivals:
        """As `simulate` takes two tables."""
        return cls.pushed([Batch.of(left, right)])

    @classmethod
    def pushed(cls, batches: Sequence[Batch], streams: int = len(STREAMS)) -> Arrivals:
        """As an engine took batches, one push each."""
        parts = [part for part in batches if len(part)] or list(batches[:1]) or [Batch.nothing()]
        starts = [np.concatenate(([True], np.diff(part.ts) != 0))[: len(part)] for part in parts]
        instant = np.cumsum(np.concatenate(starts)) - 1
        stream, key, null, ts = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("stream", "key", "null", "ts")
        )
        mine = [np.flatnonzero(stream == one) for one in range(streams)]
        values = _joined([part.values for part in parts if part.values is not None])
        return cls(
            tuple(key[rows] for rows in mine),
            tuple(null[rows] for rows in mine),
            None if values is None else tuple(values.take(rows) for rows in mine),
            tuple(ts[rows] for rows in mine),
            tuple(instant[rows] for rows in mine),
            tuple(mine),
            tuple(np.arange(rows.size) for rows in mine),
            _counted([instant[rows] for rows in mine], int(instant[-1]) + 1 if instant.size else 0),
        )

    @property
    def streams(self) -> range:
        return range(len(self.ts))

    def rows(self, stream: int) -> int:
        return int(self.ts[stream].size)

    def codes(self) -> tuple[Integers, ...]:
        """The keys of all streams numbered from 0; -1: null."""
        return numbered(self.key, self.null)

    def only(self, kept: Sequence[NDArray[np.bool_]]) -> Arrivals:
        """Without some rows: they take no place in a row window. Row numbers and instants stay."""
        rows = [np.flatnonzero(one) for one in kept]

        def some(columns: tuple[Integers, ...]) -> tuple[Integers, ...]:
            return tuple(column[mine] for column, mine in zip(columns, rows, strict=True))

        values = None
        if self.values is not None:
            values = tuple(one.take(mine) for one, mine in zip(self.values, rows, strict=True))
        instant = some(self.instant)
        return replace(
            self,
            key=some(self.key),
            null=tuple(column[mine] for column, mine in zip(self.null, rows, strict=True)),
            values=values,
            ts=some(self.ts),
            instant=instant,
            place=some(self.place),
            number=some(self.number),
            arrived=_counted(instant, self.arrived.shape[0] - 1),
        )


def numbered(columns: Sequence[Integers], null: Sequence[NDArray[np.bool_]]) -> tuple[Integers, ...]:
    """Values of several columns numbered from 0, the same in all of them; -1: null."""
    codes = np.unique(np.concatenate(columns), return_inverse=True)[1].astype(np.int64)
    codes[np.concatenate(null)] = -1
    return tuple(np.split(codes, np.cumsum([column.size for column in columns])[:-1]))


def check_log(name: str, log: ShedLog | LeftOutLog, rows: Sequence[int]) -> None:
    """See that a log is of these rows."""
    stream, seq = log.stream, log.seq
    for side, there in enumerate(rows):
        most = int(seq[stream == side].max(initial=-1))
        if most >= there:
            raise InputError(
                f"{name} has a record of row {most} of stream {side}, but the input has {there} rows: "
                "give the inputs of the same run, whole"
            )


def _counted(instant: Sequence[Integers], instants: int) -> Integers:
    arrived = np.zeros((instants + 1, len(instant)), dtype=np.int64)
    for side, mine in enumerate(instant):
        arrived[1:, side] = np.cumsum(np.bincount(mine, minlength=instants))
    return arrived


def _joined(parts: Sequence[Values]) -> Values | None:
    whole = None
    for part in parts:
        whole = part if whole is None else Values.joined(whole, part)
    return whole
