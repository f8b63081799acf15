"""Ground: both streams laid out on the line of instants, and where memory is short at all."""

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
    end: Ints  # the first instant at which the row is out of its window
    importance: Floats
    rows: int  # of the stream, null keys included


@dataclass(frozen=True, slots=True)
class Ground:
    """Rows by instant (`tick`) and key; results count from the instant `since` on."""

    times: Ints
    sides: tuple[Side, Side]
    since: int

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


def lay_out(batch: Batch, windows: tuple[Window, ...], warmup: int) -> Ground:
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
    sides = [
        _side(batch, stream, key.astype(np.int64), tick.astype(np.int64), times, windows[stream]) for stream in (0, 1)
    ]
    return Ground(times, (sides[0], sides[1]), int(np.searchsorted(times, warmup)))


def _side(batch: Batch, stream: int, key: Ints, tick: Ints, times: Ints, window: Window) -> Side:
    mine = np.flatnonzero(batch.stream == stream)
    if isinstance(window, TimeWindow):
        end = np.searchsorted(times, batch.ts[mine] + window.length)
    else:
        end = np.full(mine.size, times.size)
        end[: max(mine.size - window.rows, 0)] = tick[mine[window.rows :]]
    keyed = np.flatnonzero(~batch.null[mine])
    rows = mine[keyed]
    return Side(keyed, key[rows], tick[rows], end[keyed].astype(np.int64), batch.importance[rows], int(mine.size))


def stops_of(ground: Ground, stream: int) -> Stops:
    """The stops of a stream's tuples."""
    mine, other = ground.sides[stream], ground.sides[1 - stream]
    width = ground.ticks + 1
    counted = np.flatnonzero(other.tick >= ground.since)
    codes = other.key[counted] * width + other.tick[counted]
    order = np.argsort(codes, kind="stable")
    code, begin = np.unique(codes[order], return_index=True)
    return Stops(
        code=code,
        width=width,
        partner=counted[order],
        begin=np.append(begin, counted.size).astype(np.int64),
        first=np.searchsorted(code, mine.key * width + mine.tick, side="right").astype(np.int64),
        last=np.searchsorted(code, mine.key * width + mine.end, side="left").astype(np.int64),
    )


def squeeze(ground: Ground, stops: list[tuple[int, Stops]], memory: int) -> Ints:
    """Number the instants so that only borders at which memory is short count.

    At a border where all tuples that still have a partner to come fit into memory, holding costs nothing: the
    instants on its
    two sides get the same number. This is exact, and where it leaves nothing, everything can be kept.
    """
    short = wanting(ground, stops) > memory
    return np.concatenate(([0], np.cumsum(short)[:-1])).astype(np.int64) if ground.ticks else np.empty(0, np.int64)


def wanting(ground: Ground, stops: list[tuple[int, Stops]]) -> Ints:
    """How many tuples still have a partner to come, at the border after each instant."""
    change = np.zeros(ground.ticks + 1, np.int64)
    for stream, on in stops:
        useful = np.flatnonzero(on.first < on.last)
        np.add.at(change, ground.sides[stream].tick[useful], 1)
        np.subtract.at(change, on.tick[on.last[useful] - 1], 1)
    return np.cumsum(change)[:-1]
