"""The exact join by brute force, and what the logs say is missing from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from naive.conditions import one_of_each
from naive.join import Join, Spec
from naive.rows import DROPPED, EVICTED, LATE, SCHEDULE, Border, LeftOut, Record, Row, Stored, in_time, instants
from naive.twin import Twin
from shedjoin.window import RowWindow

Number = tuple[int, int]


def place(pushes: Iterable[Sequence[Row]], streams: int = 2, absent: Collection[Number] = ()) -> list[Stored]:
    """All rows with their numbers, less those that are called absent: these take no place in a row window."""
    placed: list[Stored] = []
    count, let_in = [0] * streams, [0] * streams
    for tick, instant in enumerate(one for rows in pushes for one in instants(rows)):
        there = []
        for row in instant:
            number = (row.stream, count[row.stream])
            if number not in absent:
                there.append(Stored(row, number[1], sum(count), tick, (), let_in[row.stream]))
                let_in[row.stream] += 1
            count[row.stream] += 1
        for x in there:
            x.through = tuple(let_in)
        placed += there
    return placed


def goes(join: Join, x: Stored, y: Stored) -> bool:
    """Whether two rows go together in the exact join; x is of the stream with the lower number."""
    return join.condition.holds(x.row, y.row) and in_time(join.windows, x.row, y.row) and in_rows(join, x, y)


def in_rows(join: Join, x: Stored, y: Stored) -> bool:
    """Whether the older one by arrival was still in its row window; time windows set no condition here."""
    older, newer = (x, y) if x.arrival < y.arrival else (y, x)
    window = join.windows[older.stream]
    if not isinstance(window, RowWindow) or older.instant == newer.instant:
        return True
    return older.place >= newer.through[older.stream] - window.rows


def exact(spec: Spec | Join, pushes: Iterable[Sequence[Row]], log: Iterable[Record] = ()) -> list[tuple[Stored, ...]]:
    """The exact join, late rows included. The log matters only to row windows that count the rows let in."""
    join = Join.of(spec)
    dropped = [(record.stream, record.seq) for record in log if record.why == DROPPED] if join.counts_let_in else ()
    placed = [x for x in place(pushes, len(join.windows), dropped) if not join.condition.is_null(x.row)]
    sides = [[x for x in placed if x.stream == stream] for stream in join.streams]
    return list(one_of_each(sides, partial(goes, join)))


def missing(
    spec: Spec | Join, pushes: Iterable[Sequence[Row]], log: Iterable[Record], left: Iterable[LeftOut] = ()
) -> list[tuple[Stored, ...]]:
    """What the logs say is not in the output."""
    join, log, left = Join.of(spec), list(log), list(left)
    return [result for result in exact(join, pushes, log) if cause(join, result, log, left) is not None]


def cause(join: Join, result: tuple[Stored, ...], log: Sequence[Record], left: Sequence[LeftOut]) -> str | None:
    """Why a result of the exact join is missing: the first reason that holds."""
    members = {(x.stream, x.seq): x for x in result}
    records = [record for record in log if (record.stream, record.seq) in members]
    for record in records:
        if record.why in (LATE, DROPPED):
            return record.why
    for record in records:
        if record.why in (EVICTED, SCHEDULE) and any(x.seq >= record.seen[x.stream] for x in result):
            return record.why
    newest = max(result, key=lambda x: x.arrival)
    for one in left:
        if (one.stream, one.seq) == (newest.stream, newest.seq) and one.holds(join.windows, result[one.other]):
            return "left out"
    return None


def numbers(results: Iterable[Sequence[Stored]]) -> list[tuple[int, ...]]:
    """Results as row numbers."""
    return [tuple(x.seq for x in result) for result in results]


def unlimited(spec: Spec | Join) -> Twin:
    """The same join with all the memory and CPU it needs."""
    join = Join.of(spec)
    return Twin(Join(join.windows, join.condition, lateness=join.lateness, max_skew=join.max_skew))


def on_time(spec: Spec | Join, pushes: Iterable[Sequence[Row]]) -> list[tuple[int, ...]]:
    """The exact join of the rows that are not late, as row numbers."""
    twin = unlimited(spec)
    return [pair for rows in pushes for pair in twin.push(rows).pairs]


def exact_needs(spec: Spec | Join, pushes: Iterable[Sequence[Row]]) -> Border:
    """The most that the exact join stores of each stream when an instant closes (the time says nothing)."""
    join, twin = Join.of(spec), unlimited(spec)
    nothing = (0,) * len(join.windows)
    borders = [Border(0, nothing, nothing), *(border for rows in pushes for border in twin.push(rows).borders)]
    tuples, sizes = (tuple(map(max, zip(*column, strict=True))) for column in list(zip(*borders, strict=True))[1:])
    return Border(0, tuples, sizes)
