"""The columns of stored rows: immutable segments, one a micro-batch, merged as they age; and results gathered from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: So many segments of one level become one of the next: each row is rewritten once a level.
FAN = 8
#: No columns.
NOTHING: Mapping[str, pa.Array] = MappingProxyType({})
#: Dead rows are searched when they may outnumber the live ones, and this number.
SLACK = 4096
#: So the columns may take up to this many times their size, plus `SLACK` rows.
COPIES = 2.25


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows of one stream in the order of their numbers."""

    number: int
    level: int
    first: int  # the number of its first row
    batch: pa.RecordBatch
    seqs: Integers | None = None  # None: the rows are first, first + 1, ...

    @property
    def rows(self) -> int:
        return int(self.batch.num_rows)

    @property
    def end(self) -> int:
        """One past the number of its last row."""
        return self.first + self.rows if self.seqs is None else int(self.seqs[-1]) + 1

    def places(self, seqs: Integers) -> Integers:
        """The positions of rows that are stored here."""
        return seqs - self.first if self.seqs is None else np.searchsorted(self.seqs, seqs)

    def only(self, live: Integers, number: int, level: int) -> Segment:
        """The live rows alone, as a new segment."""
        mine = live[np.searchsorted(live, self.first) : np.searchsorted(live, self.end)]
        return Segment(number, level, int(mine[0]), self.batch.take(pa.array(self.places(mine))), mine)


@dataclass
class Payload:
    """All segments of one stream, in the order of their rows."""

    segments: list[Segment] = field(default_factory=list)
    next_number: int = 0

    def add(self, batch: pa.RecordBatch, first: int, seqs: Integers | None = None) -> None:
        """The rows of a micro-batch: the first has this number, or all have numbers of their own, in ascending order."""
        if batch.num_rows:
            first = first if seqs is None else int(seqs[0])
            self.segments.append(Segment(self._number(), 0, first, batch, seqs))

    def _number(self) -> int:
        self.next_number += 1
        return self.next_number - 1

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.segments)

    @property
    def nbytes(self) -> int:
        return sum(int(segment.batch.nbytes) for segment in self.segments)

    def locate(self, seqs: Integers) -> NDArray[np.intp]:
        """The segment of each row."""
        starts = np.array([segment.first for segment in self.segments], np.int64)
        return np.searchsorted(starts, seqs, side="right") - 1

    def rows_at(self, seqs: Integers) -> pa.RecordBatch:
        """The columns of rows, in the given order."""
        where = self.locate(seqs)
        used, counts = np.unique(where, return_counts=True)
        if used.size == 1:
            segment = self.segments[int(used[0])]
            return segment.batch.take(pa.array(segment.places(seqs)))
        order = np.argsort(where, kind="stable")
        parts = []
        for number, some in zip(used.tolist(), np.split(seqs[order], np.cumsum(counts)[:-1]), strict=True):
            segment = self.segments[number]
            parts.append(segment.batch.take(pa.array(segment.places(some))))
        back = np.empty(order.size, np.int64)
        back[order] = np.arange(order.size)
        return pa.concat_batches(parts).take(pa.array(back))

    def tidy(self, residents: int, live_rows: Callable[[], Integers]) -> None:
        """Drop what is dead and merge what is small, so that the cost is a constant number of rewrites a row.

        Parameters
        ----------
        residents
            How many rows are live.
        live_rows
            Their numbers, in ascending order; asked for only when something is to be rewritten.
        """
        live: Integers | None = None
        if self.rows > 2 * residents + max(SLACK, residents // 4):
            live = live_rows()
            self._drop_dead(live)
        while (run := self._run_to_merge()) > 0:
            live = live_rows() if live is None else live
            self._merge(run, live)

    def _drop_dead(self, live: Integers) -> None:
        kept = []
        for segment in self.segments:
            alive = int(np.searchsorted(live, segment.end) - np.searchsorted(live, segment.first))
            if 0 < 2 * alive < segment.rows:
                kept.append(segment.only(live, self._number(), segment.level))
            elif alive:
                kept.append(segment)
        self.segments = kept

    def _run_to_merge(self) -> int:
        """How many segments at the end are of one level, if they are enough to be merged."""
        run = 0
        for segment in reversed(self.segments):
            if segment.level != self.segments[-1].level:
                break
            run += 1
        return run if run >= FAN else 0

    def _merge(self, run: int, live: Integers) -> None:
        old = self.segments[-run:]
        del self.segments[-run:]
        parts = []
        for segment in old:
            if np.searchsorted(live, segment.end) > np.searchsorted(live, segment.first):
                parts.append(segment.only(live, 0, 0))
        if not parts:
            return
        seqs = np.concatenate([part.seqs for part in parts if part.seqs is not None])
        whole = pa.concat_batches([part.batch for part in parts])
        self.segments.append(Segment(self._number(), old[-1].level + 1, int(seqs[0]), whole, seqs))


def column_name(streams: int, side: int, place: int) -> str:
    """What a column of results is called in their blobs."""
    return f"{'lr'[side]}{place}" if streams == 2 else f"s{side}_{place}"


def assemble(
    payloads: Sequence[Payload], numbers: Sequence[Integers], beside: Mapping[str, pa.Array] = NOTHING
) -> pa.RecordBatch:
    """The columns of all streams side by side, a row for each result, in the order given; `beside`: columns of the results."""
    columns: list[pa.Array] = []
    names: list[str] = []
    for side, (payload, seqs) in enumerate(zip(payloads, numbers, strict=True)):
        rows = payload.rows_at(seqs)
        columns += rows.columns
        names += [column_name(len(payloads), side, place) for place in range(rows.num_columns)]
    return pa.RecordBatch.from_arrays([*columns, *beside.values()], names=[*names, *beside])


def assemble_alone(
    payloads: Sequence[Payload], schemas: Sequence[pa.Schema], side: int, seqs: Integers
) -> pa.RecordBatch:
    """The columns of rows of one side, and nulls in place of all others."""
    columns: list[pa.Array] = []
    names: list[str] = []
    for other, schema in enumerate(schemas):
        names += [column_name(len(payloads), other, place) for place in range(len(schema))]
        columns += (
            payloads[side].rows_at(seqs).columns
            if other == side
            else [pa.nulls(seqs.size, one) for one in schema.types]
        )
    return pa.RecordBatch.from_arrays(columns, names=names)


def gather(
    left: Payload, right: Payload, pairs: tuple[Integers, Integers], beside: Mapping[str, pa.Array] = NOTHING
) -> Iterator[pa.RecordBatch]:
    """Left's columns beside right's for each pair of row numbers, in an order that suits the segments; `beside`: columns of the
    pairs."""
    places = left.locate(pairs[0]), right.locate(pairs[1])
    code = places[0] * len(right.segments) + places[1]
    if code.size == 0:
        return
    order: NDArray[np.intp] | slice = slice(None)
    cuts: Sequence[int] = [0, code.size]
    if (code != code[0]).any():
        order = np.argsort(code, kind="stable")
        ordered = code[order]
        beside = {name: column.take(pa.array(order)) for name, column in beside.items()}
        cuts = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), code.size]
    sides = (pairs[0][order], pairs[1][order])
    where = (places[0][order], places[1][order])
    for start, end in pairwise(cuts):
        columns: list[pa.Array] = []
        names: list[str] = []
        for side, payload in enumerate((left, right)):
            segment = payload.segments[int(where[side][start])]
            rows = segment.batch.take(pa.array(segment.places(sides[side][start:end])))
            columns += rows.columns
            names += [column_name(2, side, place) for place in range(rows.num_columns)]
        columns += [column.slice(start, end - start) for column in beside.values()]
        yield pa.RecordBatch.from_arrays(columns, names=[*names, *beside])
