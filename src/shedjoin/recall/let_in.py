"""Dual windows of rows count the rows that were let in: the exact join is that of these rows, and the sample gets no others.

Whether a row is let in is known when it enters the aux-window, or is dropped before that. Rows have their turn in order of
arrival, so it is enough to know how many were let in, and which were dropped. Rows wait here until it is known of all rows of
their instant. The sample numbers the rows that it gets; results of the join have other numbers, which are translated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import COLUMNS, Batch, Values
from shedjoin.engine.codes import DROPPED
from shedjoin.engine.output import ShedLog
from shedjoin.spec import JoinSpec
from shedjoin.window import RowWindow

Integers = NDArray[np.int64]
Clocks = Sequence[int | None]
_VALUES = ("null", "number", "offsets", "items", "weights")


class LetIn:
    """The rows of a join whose fate is not known yet, and the numbers of those that were dropped."""

    def __init__(self, spec: JoinSpec) -> None:
        plan = spec.plan()
        values = None if plan.predicate is None else Values.none()
        self._rows = replace(Batch.nothing(plan.width), values=values)
        self._seq = np.zeros(0, np.int64)
        self._instant = np.zeros(0, np.int64)
        self._came = np.zeros(plan.streams, np.int64)  # rows of each stream
        self._passed = 0  # rows of all streams that wait no more
        self._count = 0  # rows that were let in and still wait here
        self._told: list[tuple[int, list[int | None]]] = []  # clocks, each with the number of rows that came before
        self._dropped = [np.zeros(0, np.int64) for _ in spec.names]
        self._forgotten = np.zeros(plan.streams, np.int64)  # rows that were dropped before all of these

    @staticmethod
    def matters(spec: JoinSpec) -> bool:
        """Whether rows of a join may be dropped that its windows do not count."""
        drops = spec.dual is not None and (spec.dual.front is not False or spec.queue is not None)
        return drops and any(isinstance(window, RowWindow) for window in spec.windows)

    def come(self, batch: Batch) -> None:
        """Rows arrive."""
        if not len(batch):
            return
        seq = np.zeros(len(batch), np.int64)
        for stream in range(self._came.size):
            mine = batch.stream == stream
            seq[mine] = self._came[stream] + np.arange(int(mine.sum()))
            self._came[stream] += int(mine.sum())
        first = 0 if not self._instant.size else int(self._instant[-1]) + 1
        instant = first + np.cumsum(np.append(False, np.diff(batch.ts) != 0))
        self._rows = _joined(self._rows, batch)
        self._seq = np.concatenate([self._seq, seq])
        self._instant = np.concatenate([self._instant, instant])

    def tell(self, clocks: Clocks) -> None:
        """Clocks that the join was told after these rows."""
        if any(clock is not None for clock in clocks):
            self._told.append((self._passed + len(self._rows), list(clocks)))

    def hear(self, shed: ShedLog, let_in: int) -> None:
        """What became of rows: which were dropped, and how many were let in."""
        log = shed.records()
        log = log[log["why"] == DROPPED]
        for stream, known in enumerate(self._dropped):
            self._dropped[stream] = np.union1d(known, log["seq"][log["stream"] == stream])
        self._count += let_in

    def take(self) -> Iterator[Batch | list[int | None]]:
        """The rows that were let in, of instants of which all is known, and clocks, in their order.

        Instants of one time that others had come between, or whose rows came in two pushes, are given apart.
        """
        stays = np.ones(len(self._rows), np.bool_)
        for stream, dropped in enumerate(self._dropped):
            stays &= (self._rows.stream != stream) | ~np.isin(self._seq, dropped)
        open_rows = np.flatnonzero(stays & (np.cumsum(stays) > self._count))
        end = int(np.searchsorted(self._instant, self._instant[open_rows[0]])) if open_rows.size else stays.size
        there, start = np.flatnonzero(stays[:end]), 0
        apart = (np.diff(self._rows.ts[there]) == 0) & (np.diff(self._instant[there]) != 0)
        borders = {*(np.flatnonzero(apart) + 1).tolist(), there.size}
        marks = [(int(np.searchsorted(there, rows - self._passed)), clocks) for rows, clocks in self._told]
        due = sum(rows - self._passed <= end for rows, _ in self._told)
        for border in sorted(borders | {place for place, _ in marks[:due]}):
            if border > start:
                yield self._rows.take(there[start:border])
            yield from (clocks for place, clocks in marks[:due] if place == border)
            start = border
        self._told = self._told[due:]
        self._rows, self._seq, self._instant = self._rows.take(slice(end, None)), self._seq[end:], self._instant[end:]
        self._passed += end
        self._count -= there.size

    # -------------------------------------------------------------------------------------------------------- numbers

    def numbers(self, stream: int, seq: Integers) -> Integers:
        """What rows that were let in are numbered by in the sample; of forgotten ones something that it has not any more."""
        numbers: Integers = seq - self._forgotten[stream] - np.searchsorted(self._dropped[stream], seq)
        return numbers

    def forget(self, stream: int, least: int) -> None:
        """Nothing is asked any more of rows with numbers below this."""
        dropped = self._dropped[stream]
        gone = int((self.numbers(stream, dropped) < least).sum())
        self._dropped[stream] = dropped[gone:]
        self._forgotten[stream] += gone

    # -------------------------------------------------------------------------------------------------------- as bytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved as arrays. The names are part of the format."""
        rows, values = self._rows, self._rows.values
        dropped = {f"dropped {stream}": one for stream, one in enumerate(self._dropped)}
        compared = {} if values is None else {f"value {name}": getattr(values, name) for name in _VALUES}
        own = {"seq": self._seq, "instant": self._instant, "came": self._came, "forgotten": self._forgotten}
        every = {name: getattr(rows, name) for name in COLUMNS} | compared | own | dropped
        return {f"let in {name}": array for name, array in every.items()}

    def plain(self) -> list[Any]:
        """What is saved beside them."""
        return [self._passed, self._count, self._told]

    def restore(self, arrays: Mapping[str, NDArray[Any]], plain: list[Any]) -> None:
        """Go on from what was saved."""
        values = None
        if self._rows.values is not None:
            values = Values(*(arrays[f"let in value {name}"] for name in _VALUES))
        columns: dict[str, Any] = {name: arrays[f"let in {name}"] for name in COLUMNS}
        self._rows = Batch(**columns, values=values)
        self._seq, self._instant, self._came, self._forgotten = (
            arrays[f"let in {name}"] for name in ("seq", "instant", "came", "forgotten")
        )
        self._dropped = [arrays[f"let in dropped {stream}"] for stream in range(self._came.size)]
        self._passed, self._count = plain[:2]
        self._told = [(rows, clocks) for rows, clocks in plain[2]]


def _joined(first: Batch, second: Batch) -> Batch:
    """The rows of one after those of the other; types of rows are not needed here."""
    columns: dict[str, Any] = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in COLUMNS}
    values = None
    if first.values is not None and second.values is not None:
        values = Values.joined(first.values, second.values)
    return Batch(**columns, values=values)
