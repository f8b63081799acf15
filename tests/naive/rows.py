"""What goes through the join: rows, what is stored of them, records of the shed log, and what comes out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shedjoin.batch import ROW_BYTES
from shedjoin.window import TimeWindow, Window

STREAMS = (0, 1)
EVICTED, LATE, SCHEDULE = "evicted", "late", "schedule"
Windows = tuple[Window, Window]


class Row(NamedTuple):
    """What arrives."""

    stream: int
    key: int | None
    ts: int
    importance: float = 1.0
    bytes: int = ROW_BYTES


@dataclass(eq=False, slots=True)
class Stored:
    """A row that has its numbers, and what step 6 gave it. Compared by identity: duplicates are different tuples."""

    row: Row
    seq: int
    arrival: int
    priority: float = math.nan

    @property
    def stream(self) -> int:
        return self.row.stream

    @property
    def key(self) -> int | None:
        return self.row.key

    @property
    def ts(self) -> int:
        return self.row.ts

    @property
    def importance(self) -> float:
        return self.row.importance


class Record(NamedTuple):
    """One line of the shed log."""

    stream: int
    seq: int
    ts: int
    key: int | None
    when: int
    tick: int
    why: str
    seen: tuple[int, int]


class Border(NamedTuple):
    """What was stored at the end of an instant, per stream."""

    ts: int
    tuples: tuple[int, int]
    bytes: tuple[int, int]


@dataclass(slots=True)
class Output:
    """What one push gave. `pairs`, `importance` and `produced` run in parallel."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    importance: list[float] = field(default_factory=list)
    produced: list[int] = field(default_factory=list)
    shed: list[Record] = field(default_factory=list)
    borders: list[Border] = field(default_factory=list)


def instants(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Maximal runs of equal `ts`, stream 0 before stream 1 inside each."""
    for _, run in itertools.groupby(rows, key=lambda row: row.ts):
        yield sorted(run, key=lambda row: row.stream)


def interleave(left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    """Two tables as one sequence: by each stream's running maximum of `ts`, stream 0 first on equal values."""
    placed = [
        (clock, row)
        for side in (left, right)
        for clock, row in zip(itertools.accumulate((row.ts for row in side), max), side, strict=True)
    ]
    return [row for _, row in sorted(placed, key=lambda one: one[0])]


def cut(rows: Sequence[Row], at: Iterable[int]) -> list[list[Row]]:
    """The rows as pushes that begin at the given places."""
    borders = [0, *sorted(at), len(rows)]
    return [list(rows[start:end]) for start, end in itertools.pairwise(borders)]


def instant_borders(rows: Sequence[Row]) -> list[int]:
    """The places at which a cut divides no instant."""
    return [place for place in range(1, len(rows)) if rows[place].ts != rows[place - 1].ts]


def in_time(windows: Windows, x: Row, y: Row) -> bool:
    """Whether the older one by `ts` still is in its time window; row windows set no condition here.

    On equal times both orders allow the pair, so it does not matter which is called older.
    """
    older, newer = (x, y) if x.ts <= y.ts else (y, x)
    window = windows[older.stream]
    return not isinstance(window, TimeWindow) or newer.ts - older.ts < window.length
