"""What goes through the join: rows, what is stored of them, records of the logs, and what comes out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shedjoin.batch import ROW_BYTES
from shedjoin.window import TimeWindow, Window

EVICTED, LATE, SCHEDULE, DROPPED, PARTIAL, UNPROBED = "evicted", "late", "schedule", "dropped", "partial", "unprobed"
UNKNOWN = "unknown"
#: Before and after all times.
FIRST, LAST = -(2**62), 2**62
Windows = Sequence[Window]


class Row(NamedTuple):
    """What arrives. `value` is what the condition looks at: a key, a number, a set, weights by item, or attributes by
    column; None is null. `more` has the columns that `where` looks at. A row may be dropped before it comes."""

    stream: int
    value: Any
    ts: int
    importance: float = 1.0
    bytes: int = ROW_BYTES
    kind: int = 0
    more: Mapping[str, int | None] = {}
    dropped: bool = False


@dataclass(eq=False, slots=True)
class Stored:
    """A row that has its numbers, and what the join keeps of it. Compared by identity: duplicates are different tuples."""

    row: Row
    seq: int
    arrival: int
    #: The number of the instant in which it arrived, and how many rows of each stream had arrived by the end of that.
    instant: int
    through: tuple[int, ...]
    #: What a row window counts: the row number, with dual windows the number among the rows let in.
    place: int
    priority: float = math.nan
    #: The chance as it was weighed last, where each tuple is a group of its own.
    chance: float = 0.0
    #: Results that its own probe found.
    met: int = 0
    #: Dual windows: the partners it can expect, and whether it may probe.
    expected: float = 0.0
    probes: bool = True
    #: How many results it is part of; whether it was compared with a part of the windows only; how many rows of each stream
    #: came before its instant; and of windows of rows the first row number that it may meet.
    partners: int = 0
    doubt: bool = False
    before: tuple[int, ...] = ()
    floor: Sequence[int] = ()
    #: Age: whether it was part of an output.
    found: bool = False
    #: Sample: its weight, and how many tuples had been evicted when it began to be sampled; None: it is kept.
    weight: float = 1.0
    since: int | None = None

    @property
    def stream(self) -> int:
        return self.row.stream

    @property
    def value(self) -> Any:
        return self.row.value

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
    when: int
    tick: int
    why: str
    #: How many rows of each stream had come: by then, or, of a late row, before it (of its own stream: its number).
    seen: tuple[int, ...]
    #: Of a late row: tuples of each stream with a time up to this had expired. FIRST: none.
    expired: tuple[int, ...]


class LeftOut(NamedTuple):
    """A stretch of another window that a row was not compared with: from `lo` up to, but not including, `hi`."""

    stream: int
    seq: int
    other: int
    lo_ts: int
    lo_seq: int
    hi_ts: int
    hi_seq: int

    def holds(self, windows: Windows, y: Stored) -> bool:
        return (self.lo_ts, self.lo_seq) <= place_in_window(windows, y) < (self.hi_ts, self.hi_seq)


class Result(NamedTuple):
    """The row number of its tuple on each stream, its importance, and when it was produced."""

    rows: tuple[int, ...]
    importance: float
    produced: int
    #: Sample: one divided by the probability that its older tuples were in memory.
    weight: float = 1.0


class Border(NamedTuple):
    """What was stored when an instant closed, per stream."""

    ts: int
    tuples: tuple[int, ...]
    bytes: tuple[int, ...]


@dataclass(slots=True)
class Output:
    """What one push gave."""

    results: list[Result] = field(default_factory=list)
    shed: list[Record] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    borders: list[Border] = field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[int, ...]]:
        return [result.rows for result in self.results]

    def after(self, earlier: Output) -> Output:
        """This and what was given before it, as one."""
        return Output(
            earlier.results + self.results,
            earlier.shed + self.shed,
            earlier.left_out + self.left_out,
            earlier.borders + self.borders,
        )


def remove(members: list[Stored], x: Stored) -> None:
    """The last takes the place of the one removed; only lots see the difference."""
    last = members.pop()
    if last is not x:
        members[members.index(x)] = last


def instants(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Maximal runs of equal `ts`, streams in their order inside each."""
    for _, run in itertools.groupby(rows, key=lambda row: row.ts):
        yield sorted(run, key=lambda row: row.stream)


def interleave(*sides: Sequence[Row]) -> list[Row]:
    """Tables as one sequence: by each stream's running maximum of `ts`, streams in their order on equal values."""
    placed = [
        (clock, row)
        for side in sides
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
    """Whether neither is newer than the other by its window or more; row windows set no condition here."""
    pairs = ((x, y), (y, x))
    return all(
        not isinstance(window, TimeWindow) or other.ts - one.ts < window.length
        for one, other in pairs
        for window in [windows[one.stream]]
    )


def place_in_window(windows: Windows, x: Stored) -> tuple[int, int]:
    """The order in which the tuples of a window leave it: by time, or by row number alone."""
    return (x.ts if isinstance(windows[x.stream], TimeWindow) else 0, x.seq)
