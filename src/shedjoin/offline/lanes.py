"""Lanes: what can be gained by keeping tuples, as chains of stops along the line of instants.

A lane is something that may be held in memory: a tuple, or (where all results weigh the same) a key of one stream.
Its *stops* are
the instants at which partners arrive; whoever is held up to a stop gains what the stop offers. Its *entries* are the
instants
at which tuples arrive and may be taken into memory. No more can be held up to a stop than tuples are in their window there.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.offline.ground import Floats, Ground, Ints, Side, Stops
from shedjoin.offline.worth import Worth

#: Pairs of tuples are weighed in pieces of about this many.
PIECE = 1 << 22


@dataclass(frozen=True, slots=True)
class Lanes:
    """Stops sorted by (lane, instant), rows and entries by (first stop, instant).

    Instants are numbered by `squeeze` but for `stop_when`. `free` is what is gained without holding over a border
    where memory is short.
    """

    stop_lane: Ints
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
        """(instant, how many, first stop): rows of one lane and instant are one entry."""
        new = np.ones(self.row.size, np.bool_)
        new[1:] = (np.diff(self.row_first) != 0) | (np.diff(self.row_tick) != 0)
        begin = np.flatnonzero(new)
        return self.row_tick[begin], np.diff(np.append(begin, self.row.size)), self.row_first[begin]


def by_key(ground: Ground, stream: int, stops: Stops, number: Ints) -> Lanes:
    """One lane a key: enough where all results weigh the same, for of equal keys the newest is never the worse to keep."""
    mine = ground.sides[stream]
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
    return Lanes(
        stop_lane=(stops.code // stops.width)[met],
        stop_tick=number[tick[met]],
        stop_when=tick[met],
        stop_gain=gain[met],
        stop_room=room[met],
        row_stream=np.full(rows.size, stream),
        row=rows,
        row_tick=number[mine.tick[rows]],
        row_first=place[start[rows]],
        free=int((total[start] - total[np.minimum(stops.first, start)]).sum()),
        free_until=_free(ground, stream, stops, start),
    )


def by_tuple(ground: Ground, stream: int, stops: Stops, number: Ints, worth: Worth) -> Lanes:
    """One lane a tuple, for results of any worth."""
    mine = ground.sides[stream]
    start = _after_squeeze(mine, stops, number)
    gains = gains_of(ground, stream, stops, worth)
    met = np.maximum(stops.last - stops.first, 0)
    lane = np.repeat(np.arange(mine.tick.size), met)
    at = _ranges(stops.first, met)
    paid = at >= start[lane]  # the others are met before memory is short
    held = np.flatnonzero(start < stops.last)
    tick = stops.tick[at[paid]]
    stop_lane = lane[paid]
    return Lanes(
        stop_lane=stop_lane,
        stop_tick=number[tick],
        stop_when=tick,
        stop_gain=gains[paid],
        stop_room=np.ones(stop_lane.size, np.int64),
        row_stream=np.full(held.size, stream),
        row=held,
        row_tick=number[mine.tick[held]],
        row_first=np.searchsorted(stop_lane, held),
        free=gains[~paid].sum().item(),
        free_until=_free(ground, stream, stops, start),
    )


def _after_squeeze(mine: Side, stops: Stops, number: Ints) -> Ints:
    """The first stop of each row that lies beyond a border where memory is short; `last` if there is none."""
    if not stops.code.size:
        return stops.last
    key, tick = stops.code // stops.width, stops.tick
    squeezed = key * stops.width + number[tick]
    start = np.searchsorted(squeezed, mine.key * stops.width + number[mine.tick], side="right")
    return np.clip(start, stops.first, np.maximum(stops.first, stops.last))


def _free(ground: Ground, stream: int, stops: Stops, start: Ints) -> tuple[Ints, Ints]:
    until = [side.tick.copy() for side in ground.sides]
    some = np.flatnonzero(start > stops.first)
    until[stream][some] = stops.tick[start[some] - 1]
    return until[0], until[1]


def _ranges(first: Ints, count: Ints) -> Ints:
    """first[0], first[0] + 1, ... so many of each, one after the other."""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - count - first, count)


def gains_of(ground: Ground, stream: int, stops: Stops, worth: Worth) -> NDArray[Any]:
    """What each row gains at each of its stops, one row after the other."""
    met = np.maximum(stops.last - stops.first, 0)
    if worth.counts:
        return np.diff(stops.begin)[_ranges(stops.first, met)]
    mine, other = ground.sides[stream], ground.sides[1 - stream]
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


def together(ground: Ground, worth: Worth) -> float:
    """What tuples of one instant give: always produced, whatever is kept."""
    left, right = pairs_together(ground)
    if worth.counts:
        return int(left.size)
    return float(worth.of(ground.sides[0].importance[left], ground.sides[1].importance[right]).sum())


def pairs_together(ground: Ground) -> tuple[Ints, Ints]:
    """The results of one instant that count, as places in the two sides."""
    left, right = ground.sides
    width = ground.ticks + 1
    theirs = np.flatnonzero(right.tick >= ground.since)
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


def side_by_side(parts: list[Lanes]) -> Lanes:
    """The lanes of two streams that share one memory."""
    if len(parts) == 1:
        return parts[0]
    one, two = parts
    lanes, stops = int(one.stop_lane.max(initial=-1)) + 1, one.stop_lane.size
    joined = {
        field.name: np.concatenate([getattr(one, field.name), getattr(two, field.name)])
        for field in fields(Lanes)
        if not field.name.startswith("free")
    }
    joined["stop_lane"][stops:] += lanes
    joined["row_first"][one.row.size :] += stops
    until = tuple(np.maximum(mine, theirs) for mine, theirs in zip(one.free_until, two.free_until, strict=True))
    return Lanes(**joined, free=one.free + two.free, free_until=(until[0], until[1]))


def merge(lanes: Lanes) -> Lanes:
    """Stops between which nothing can enter memory become one: to leave at the first of them would help nobody."""
    size = lanes.stop_lane.size
    if size < 2:
        return lanes
    line = np.searchsorted(np.unique(lanes.row_tick), lanes.stop_tick)
    entered = np.zeros(size, np.bool_)
    entered[lanes.row_first] = True
    again = np.zeros(size, np.bool_)
    again[1:] = (np.diff(lanes.stop_lane) == 0) & (np.diff(line) == 0) & (np.diff(lanes.stop_room) == 0) & ~entered[1:]
    begin = np.flatnonzero(~again)
    last = np.append(begin[1:], size) - 1
    return Lanes(
        stop_lane=lanes.stop_lane[begin],
        stop_tick=lanes.stop_tick[begin],
        stop_when=lanes.stop_when[last],
        stop_gain=np.add.reduceat(lanes.stop_gain, begin),
        stop_room=lanes.stop_room[begin],
        row_stream=lanes.row_stream,
        row=lanes.row,
        row_tick=lanes.row_tick,
        row_first=(np.cumsum(~again) - 1)[lanes.row_first],
        free=lanes.free,
        free_until=lanes.free_until,
    )
