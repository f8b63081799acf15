"""The exact join by brute force, and what the logs say is missing from it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from naive.conditions import one_of_each
from naive.join import Join, Spec
from naive.rows import (
    DROPPED,
    EVICTED,
    LATE,
    PARTIAL,
    SCHEDULE,
    UNPROBED,
    Border,
    LeftOut,
    Record,
    Row,
    Stored,
    in_time,
    instants,
)
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
    placed = [x for x in place(pushes, len(join.windows), shut_out(join, log)) if not join.condition.is_null(x.row)]
    sides = [[x for x in placed if x.stream == stream] for stream in join.streams]
    met = one_of_each(sides, partial(goes, join))
    return [result for result in met if join.condition.passes([x.row for x in result])]


def shut_out(join: Join, log: Iterable[Record]) -> set[Number]:
    """The rows that row windows do not count: with dual windows, those that were dropped."""
    return {(record.stream, record.seq) for record in log if record.why == DROPPED} if join.counts_let_in else set()


def missing(
    spec: Spec | Join, pushes: Iterable[Sequence[Row]], log: Iterable[Record], left: Iterable[LeftOut] = ()
) -> list[tuple[Stored, ...]]:
    """What the logs say is not in the output."""
    join, log, left = Join.of(spec), list(log), list(left)
    return [result for result in exact(join, pushes, log) if cause(join, result, log, left) is not None]


class Completed(NamedTuple):
    """Results as row numbers: what a run has given; what it should have; and the same had no row been late."""

    given: Counter[tuple[int, ...]]
    exact: Counter[tuple[int, ...]]
    punctual: Counter[tuple[int, ...]]


def completed(
    spec: Spec | Join, pushes: Sequence[Sequence[Row]], log: Iterable[Record], left: Iterable[LeftOut] = ()
) -> Completed:
    """What a run that has ended has given, by its logs, and the exact join of its type.

    A row that was given as one without a partner stays one: pairs that a late row, or one that was dropped later, would have
    made with it are none.
    """
    join, log, left = Join.of(spec), list(log), list(left)
    pairs = everything = exact(join, pushes, log)
    delivered = [pair for pair in pairs if cause(join, pair, log, left) is None]
    judged = [x for x in place(pushes, len(join.windows)) if x.stream in join.how.judged]
    why = {(record.stream, record.seq) for record in log if record.why not in (PARTIAL, UNPROBED, LATE)}
    late = {(record.stream, record.seq) for record in log if record.why in (LATE, DROPPED)}
    found = {(x.stream, x.seq) for pair in delivered for x in pair}
    alone = {(x.stream, x.seq) for x in judged} - found - why
    if join.how.preserved:
        pairs = [pair for pair in pairs if not is_too_late(pair, alone, late)]
    preserved = {(x.stream, x.seq) for x in judged if x.stream in join.how.preserved}
    return Completed(
        given(join, delivered, preserved & alone),
        given(join, pairs, preserved - {(x.stream, x.seq) for pair in pairs for x in pair}),
        given(join, everything, preserved - {(x.stream, x.seq) for pair in everything for x in pair}),
    )


def is_too_late(pair: Sequence[Stored], alone: Collection[Number], late: Collection[Number]) -> bool:
    """Whether a row came so late that another was given as one without a partner."""
    numbers_of = [(x.stream, x.seq) for x in pair]
    return any(one in alone for one in numbers_of) and any(one in late for one in numbers_of)


def given(join: Join, pairs: Iterable[Sequence[Stored]], without: Iterable[Number]) -> Counter[tuple[int, ...]]:
    """What a join gives of these results and rows without a partner."""

    def alone(stream: int, seq: int) -> tuple[int, ...]:
        return tuple(seq if one == stream else -1 for one in join.streams)

    rows = Counter(alone(*number) for number in without)
    if join.how.name == "left_semi":
        return Counter({alone(0, pair[0].seq) for pair in pairs})
    return rows if join.how.name == "left_anti" else rows + Counter(numbers(pairs))


def cause(join: Join, result: tuple[Stored, ...], log: Sequence[Record], left: Sequence[LeftOut]) -> str | None:
    """Why a result of the exact join is missing: the first reason that holds."""
    members = {(x.stream, x.seq): x for x in result}
    records = [record for record in log if (record.stream, record.seq) in members]
    if any(record.why == DROPPED for record in records):
        return DROPPED
    for record in records:
        if record.why in (EVICTED, SCHEDULE) and any(x.seq >= record.seen[x.stream] for x in result):
            return record.why
    if any(record.why == LATE and came_too_late(record, x) for record in records for x in result):
        return LATE
    newest = max(result, key=lambda x: x.arrival)
    for one in left:
        if (one.stream, one.seq) == (newest.stream, newest.seq) and one.holds(join.windows, result[one.other]):
            return "left out"
    return None


def came_too_late(record: Record, x: Stored) -> bool:
    """Whether a tuple had expired when a late row came."""
    return x.stream != record.stream and x.seq < record.seen[x.stream] and x.ts <= record.expired[x.stream]


def numbers(results: Iterable[Sequence[Stored]]) -> list[tuple[int, ...]]:
    """Results as row numbers."""
    return [tuple(x.seq for x in result) for result in results]


def unlimited(spec: Spec | Join) -> Twin:
    """The same join with all the memory and CPU it needs."""
    join = Join.of(spec)
    return Twin(Join(join.windows, join.condition, lateness=join.lateness, max_skew=join.max_skew))


def without_limits(
    spec: Spec | Join, pushes: Iterable[Sequence[Row]], log: Iterable[Record] = ()
) -> list[tuple[int, ...]]:
    """What the same join finds with all the memory and CPU it needs, as row numbers. The log matters as it does to `exact`."""
    join, twin = Join.of(spec), unlimited(spec)
    placed = place(pushes, len(join.windows), shut_out(join, log))
    number = {(x.stream, x.place): x.seq for x in placed}
    instants_of = itertools.groupby(placed, key=lambda x: x.instant)
    pairs = [pair for _, instant in instants_of for pair in twin.push([x.row for x in instant]).pairs]
    return [tuple(number[one] for one in enumerate(pair)) for pair in pairs]


def exact_needs(spec: Spec | Join, pushes: Iterable[Sequence[Row]]) -> Border:
    """The most that the exact join stores of each stream when an instant closes (the time says nothing)."""
    join, twin = Join.of(spec), unlimited(spec)
    nothing = (0,) * len(join.windows)
    borders = [Border(0, nothing, nothing), *(border for rows in pushes for border in twin.push(rows).borders)]
    tuples, sizes = (tuple(map(max, zip(*column, strict=True))) for column in list(zip(*borders, strict=True))[1:])
    return Border(0, tuples, sizes)
