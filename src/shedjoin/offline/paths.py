"""Paths: what can be gained by keeping tuples, as chains of stops along the line of instants.

A path is what memory may hold: a tuple, or (where all results have the same weight) a key of one stream. Its *stops* are the
instants at which partners arrive: a tuple that is held up to a stop gains what the stop offers. Its *entries* are the instants
at which tuples arrive. The number held up to a stop is at most the number of tuples in their window there.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.offline.timeline import Floats, Ints, Side, Stops, Timeline
from shedjoin.offline.worth import Worth

#: Pairs of tuples are weighed in pieces of about this many.
PIECE = 1 << 22


@dataclass(frozen=True, slots=True)
class Paths:
    """Stops sorted by (path, instant), rows and entries by (first stop, instant).

    Instants are numbered by `squeeze` but for `stop_when`. `free` is what is gained without holding over a border
    where memory is short.
    """

    stop_path: Ints
    stop_tick: Ints
    stop_when: Ints
    stop_gain: NDArray[Any]  # whole numbers where results are counted
    stop_room: Ints
    row_stream: Ints
    row: Ints  # its place in its side
    row_tick: Ints
    row_first: Ints  # the stop it is held up to first
    free: float
    free_until: tuple[Ints, Ints]  # for each row of the two sides, the instant until which keeping it is free

    def entries(self) -> tuple[Ints, Ints, Ints]:
        """(instant, how many, first stop): rows of one path and instant are one entry."""
        new = np.ones(self.row.size, np.bool_)
        new[1:] = (np.diff(self.row_first) != 0) | (np.diff(self.row_tick) != 0)
        begin = np.flatnonzero(new)
        return self.row_tick[begin], np.diff(np.append(begin, self.row.size)), self.row_first[begin]


def by_key(timeline: Timeline, stream: int, stops: Stops, number: Ints) -> Paths:
    """One path a key: enough where all results weigh the same, for of equal keys the newest is never the worse to keep."""
    mine = timeline.sides[stream]
    gain = np.diff(stops.begin)
    start = _after_squeeze(mine, stops, number)
    total = np.concatenate(([0], np.cumsum(gain)))
    held = np.flatnonzero(start < stops.last)
    room = np.zeros(stops.code.size + 1, np.int64)
    np.add.at(room, start[held], 1)
    np.subtract.at(room, stops.last[held], 1)
    room = np.cumsum(room)[:-1]
    met = room > 0
    place = np.cumsum(met) - 1
    tick = stops.tick
    rows = held[np.lexsort((mine.tick[held], start[held]))]
    return Paths(
        stop_path=(stops.code // stops.width)[met],
        stop_tick=number[tick[met]],
        stop_when=tick[met],
        stop_gain=gain[met],
        stop_room=room[met],
        row_stream=np.full(rows.size, stream),
        row=rows,
        row_tick=number[mine.tick[rows]],
        row_first=place[start[rows]],
        free=int((total[start] - total[np.minimum(stops.first, start)]).sum()),
        free_until=_free(timeline, stream, stops, start),
    )


def by_tuple(timeline: Timeline, stream: int, stops: Stops, number: Ints, worth: Worth) -> Paths:
    """One path a tuple, for results of any worth."""
    mine = timeline.sides[stream]
    start = _after_squeeze(mine, stops, number)
    gains = gains_of(timeline, stream, stops, worth)
    met = np.maximum(stops.last - stops.first, 0)
    path = np.repeat(np.arange(mine.tick.size), met)
    at = _ranges(stops.first, met)
    paid = at >= start[path]  # the others are met before memory is short
    held = np.flatnonzero(start < stops.last)
    tick = stops.tick[at[paid]]
    stop_path = path[paid]
    return Paths(
        stop_path=stop_path,
        stop_tick=number[tick],
        stop_when=tick,
        stop_gain=gains[paid],
        stop_room=np.ones(stop_path.size, np.int64),
        row_stream=np.full(held.size, stream),
        row=held,
        row_tick=number[mine.tick[held]],
        row_first=np.searchsorted(stop_path, held),
        free=gains[~paid].sum().item(),
        free_until=_free(timeline, stream, stops, start),
    )


def _after_squeeze(mine: Side, stops: Stops, number: Ints) -> Ints:
    """The first stop of each row that lies beyond a border where memory is short; `last` if there is none."""
    if not stops.code.size:
        return stops.last
    key, tick = stops.code // stops.width, stops.tick
    squeezed = key * stops.width + number[tick]
    start = np.searchsorted(squeezed, mine.key * stops.width + number[mine.tick], side="right")
    return np.clip(start, stops.first, np.maximum(stops.first, stops.last))


def _free(timeline: Timeline, stream: int, stops: Stops, start: Ints) -> tuple[Ints, Ints]:
    until = [side.tick.copy() for side in timeline.sides]
    some = np.flatnonzero(start > stops.first)
    until[stream][some] = stops.tick[start[some] - 1]
    return until[0], until[1]


def _ranges(first: Ints, count: Ints) -> Ints:
    """first[0], first[0] + 1, ... so many of each, one after the other."""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - count - first, count)


def gains_of(timeline: Timeline, stream: int, stops: Stops, worth: Worth) -> NDArray[Any]:
    """What each row gains at each of its stops, one row after the other."""
    met = np.maximum(stops.last - stops.first, 0)
    if worth.counts:
        return np.diff(stops.begin)[_ranges(stops.first, met)]
    mine, other = timeline.sides[stream], timeline.sides[1 - stream]
    pairs = np.where(met > 0, stops.begin[stops.first + met] - stops.begin[stops.first], 0)
    cuts = np.searchsorted(np.cumsum(pairs), np.arange(PIECE, max(int(pairs.sum()), 1), PIECE))
    parts: list[Floats] = [np.empty(0)]
    for rows in np.split(np.arange(mine.tick.size), np.unique(cuts)):
        with_stops = rows[met[rows] > 0]
        if not with_stops.size:
            continue
        at = _ranges(stops.first[with_stops], met[with_stops])
        partners = stops.begin[at + 1] - stops.begin[at]
        theirs = other.importance[stops.partner[_ranges(stops.begin[at], partners)]]
        ours = np.repeat(np.repeat(mine.importance[with_stops], met[with_stops]), partners)
        begin = np.cumsum(partners) - partners
        parts.append(np.add.reduceat(worth.of(ours, theirs), begin))
    return np.concatenate(parts)


def together(timeline: Timeline, worth: Worth) -> float:
    """What tuples of one instant give: always produced, whatever is kept."""
    left, right = pairs_together(timeline)
    if worth.counts:
        return int(left.size)
    return float(worth.of(timeline.sides[0].importance[left], timeline.sides[1].importance[right]).sum())


def pairs_together(timeline: Timeline) -> tuple[Ints, Ints]:
    """The results of one instant that count, as places in the two sides."""
    left, right = timeline.sides
    width = timeline.ticks + 1
    theirs = np.flatnonzero((right.tick >= timeline.since) & timeline.at_once)
    codes = right.key[theirs] * width + right.tick[theirs]
    order = np.argsort(codes, kind="stable")
    mine = left.key * width + left.tick
    low, high = (np.searchsorted(codes[order], mine, side=side) for side in ("left", "right"))
    count = high - low
    return np.repeat(np.arange(mine.size), count), theirs[order[_ranges(low, count)]]


def pairs_of(stops: Stops) -> tuple[Ints, Ints]:
    """Each row with each partner that it can meet at a stop, as places in its side and in the other."""
    met = np.maximum(stops.last - stops.first, 0)
    count = np.where(met > 0, stops.begin[stops.first + met] - stops.begin[stops.first], 0)
    first = stops.begin[np.minimum(stops.first, stops.begin.size - 1)]
    return np.repeat(np.arange(met.size), count), stops.partner[_ranges(first, count)]


def side_by_side(parts: list[Paths]) -> Paths:
    """The paths of two streams that share one memory."""
    if len(parts) == 1:
        return parts[0]
    one, two = parts
    paths, stops = int(one.stop_path.max(initial=-1)) + 1, one.stop_path.size
    joined = {
        field.name: np.concatenate([getattr(one, field.name), getattr(two, field.name)])
        for field in fields(Paths)
        if not field.name.startswith("free")
    }
    joined["stop_path"][stops:] += paths
    joined["row_first"][one.row.size :] += stops
    until = tuple(np.maximum(mine, theirs) for mine, theirs in zip(one.free_until, two.free_until, strict=True))
    return Paths(**joined, free=one.free + two.free, free_until=(until[0], until[1]))


def merge(paths: Paths) -> Paths:
    """Stops between which nothing can enter memory become one: leaving at the first of them gains nothing."""
    size = paths.stop_path.size
    if size < 2:
        return paths
    line = np.searchsorted(np.unique(paths.row_tick), paths.stop_tick)
    entered = np.zeros(size, np.bool_)
    entered[paths.row_first] = True
    again = np.zeros(size, np.bool_)
    again[1:] = (np.diff(paths.stop_path) == 0) & (np.diff(line) == 0) & (np.diff(paths.stop_room) == 0) & ~entered[1:]
    begin = np.flatnonzero(~again)
    last = np.append(begin[1:], size) - 1
    return Paths(
        stop_path=paths.stop_path[begin],
        stop_tick=paths.stop_tick[begin],
        stop_when=paths.stop_when[last],
        stop_gain=np.add.reduceat(paths.stop_gain, begin),
        stop_room=paths.stop_room[begin],
        row_stream=paths.row_stream,
        row=paths.row,
        row_tick=paths.row_tick,
        row_first=(np.cumsum(~again) - 1)[paths.row_first],
        free=paths.free,
        free_until=paths.free_until,
    )
