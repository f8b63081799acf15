"""The timeline: rows of both streams by instant and key, and the borders between instants where memory is short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import STREAMS, Batch
from shedjoin.errors import InputError
from shedjoin.window import TimeWindow, Window

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Side(NamedTuple):
    """The rows of one stream that have a key, in order of arrival."""

    seq: Ints
    key: Ints  # numbered from 0
    tick: Ints
    begin: Ints  # the first instant at which partners may come
    end: Ints  # the first instant at which the row is out of its window
    importance: Floats
    rows: int  # of the stream, null keys included


@dataclass(frozen=True, slots=True)
class Timeline:
    """Rows by instant (`tick`) and key; results count from the instant `since` on.

    `at_once`: whether rows of one instant join, so that partners may come from then on.
    """

    times: Ints
    sides: tuple[Side, Side]
    since: int
    at_once: bool = True

    @property
    def ticks(self) -> int:
        return int(self.times.size)


class Stops(NamedTuple):
    """Where tuples of one stream can meet partners: the (key, instant) pairs of the other stream that count."""

    code: Ints  # key * width + tick, sorted
    width: int
    partner: Ints  # rows of the other side, sorted by code
    begin: Ints  # where each stop's partners begin, and their number at the end
    first: Ints  # for each row of this side: the stops from `first` to before `last` can be met
    last: Ints

    @property
    def tick(self) -> Ints:
        return self.code % self.width


def timeline_of(batch: Batch, windows: tuple[Window, ...], warmup: int) -> Timeline:
    """Number instants and keys, and find where each row leaves its window. Refuses rows that are out of time order."""
    for stream, name in enumerate(STREAMS):
        ts = batch.ts[batch.stream == stream]
        if (np.diff(ts) < 0).any():
            row = int(np.argmax(np.diff(ts) < 0)) + 1
            raise InputError(
                f"{name}.ts must be in order for an offline optimum, but row {row} has {ts[row]} after {ts[row - 1]}: "
                f"sort the stream by ts first"
            )
    times, tick = np.unique(batch.ts, return_inverse=True)
    _, key = np.unique(batch.key, return_inverse=True)
    sides = [_side(batch, stream, key.astype(np.int64), tick.astype(np.int64), times, windows) for stream in (0, 1)]
    at_once = all(window.size > 0 for window in windows)
    return Timeline(times, (sides[0], sides[1]), int(np.searchsorted(times, warmup)), at_once)


def _side(batch: Batch, stream: int, key: Ints, tick: Ints, times: Ints, windows: tuple[Window, ...]) -> Side:
    mine = np.flatnonzero(batch.stream == stream)
    window, other = windows[stream], windows[1 - stream]
    begin = tick[mine]
    if isinstance(other, TimeWindow):
        begin = np.maximum(begin, np.searchsorted(times, batch.ts[mine] - other.length + 1))
    if isinstance(window, TimeWindow):
        end = np.searchsorted(times, batch.ts[mine] + window.length)
    else:
        end = np.full(mine.size, times.size)
        end[: max(mine.size - window.rows, 0)] = tick[mine[window.rows :]]
    keyed = np.flatnonzero(~batch.null[mine])
    rows = mine[keyed]
    ends = end[keyed].astype(np.int64)
    return Side(keyed, key[rows], tick[rows], begin[keyed], ends, batch.importance[rows], int(mine.size))


def stops_of(timeline: Timeline, stream: int) -> Stops:
    """The stops of a stream's tuples."""
    mine, other = timeline.sides[stream], timeline.sides[1 - stream]
    width = timeline.ticks + 1
    counted = np.flatnonzero(other.tick >= timeline.since)
    codes = other.key[counted] * width + other.tick[counted]
    order = np.argsort(codes, kind="stable")
    code, begin = np.unique(codes[order], return_index=True)
    first = np.maximum(
        np.searchsorted(code, mine.key * width + mine.tick, side="right"),
        np.searchsorted(code, mine.key * width + mine.begin, side="left"),
    ).astype(np.int64)
    last = np.searchsorted(code, mine.key * width + mine.end, side="left").astype(np.int64)
    return Stops(
        code=code,
        width=width,
        partner=counted[order],
        begin=np.append(begin, counted.size).astype(np.int64),
        first=first,
        last=np.maximum(first, last),
    )


def squeeze(timeline: Timeline, stops: list[tuple[int, Stops]], memory: int) -> Ints:
    """Number the instants so that only borders at which memory is short count.

    Where all tuples that still have a partner to come fit into memory, holding is free: the instants on both sides of the
    border get the same number. This is exact. If no border is left, everything can be kept.
    """
    short = demand(timeline, stops) > memory
    return np.concatenate(([0], np.cumsum(short)[:-1])).astype(np.int64) if timeline.ticks else np.empty(0, np.int64)


def demand(timeline: Timeline, stops: list[tuple[int, Stops]]) -> Ints:
    """How many tuples still have a partner to come, at the border after each instant."""
    change = np.zeros(timeline.ticks + 1, np.int64)
    for stream, on in stops:
        useful = np.flatnonzero(on.first < on.last)
        np.add.at(change, timeline.sides[stream].tick[useful], 1)
        np.subtract.at(change, on.tick[on.last[useful] - 1], 1)
    return np.cumsum(change)[:-1]
