"""The missing results for two streams on a key and whole windows, without computing the exact join.

The partners of a shed row are a range of row numbers and a range of times among the rows of its key. Rows are sorted by
key once; then a range is two binary searches, for all shed rows together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import DROPPED, LATE, UNKNOWN
from shedjoin.engine.output import ShedLog
from shedjoin.quality.arrivals import Arrivals, Integers, check_log
from shedjoin.window import RowWindow, TimeWindow, Window

NEVER = 2**62  # beyond every time and row number, and far enough from the end of 64 bits to be added to
CHUNK = 2**22  # pairs made at a time


def exact_pairs(
    arrivals: Arrivals, windows: tuple[Window, ...], warmup: int | None = None
) -> tuple[Integers, Integers]:
    """The exact join of what arrived."""
    mine, theirs = arrivals.codes()
    everything = Partners.of(arrivals, 1, theirs, np.ones(arrivals.rows(1), dtype=np.bool_))
    rows = np.arange(arrivals.rows(0))
    return pairs_of([_loss(arrivals, windows, 0, rows, rows, mine, everything, warmup)])


def losses(shed: ShedLog, arrivals: Arrivals, windows: tuple[Window, ...], warmup: int | None = None) -> list[Loss]:
    """What each record cost: a pair is missing iff one of its rows was dropped, or its older row had left before the newer
    came, or had expired before the newer, which was late, came. Each missing pair is in exactly one of these."""
    check_log("shed", shed, [arrivals.rows(side) for side in (0, 1)])
    codes, late, dropped = arrivals.codes(), shed.why == LATE, shed.why == DROPPED
    left = ~late & ~dropped & (shed.why != UNKNOWN)
    every = _without(arrivals, shed, np.zeros_like(late))
    came, stayed = _without(arrivals, shed, dropped), _without(arrivals, shed, dropped | left)

    def lost(side: int, chosen: NDArray[np.bool_], others: Sequence[NDArray[np.bool_]], **bounds: Integers) -> Loss:
        mine = np.flatnonzero(chosen & (shed.stream == side))
        partners = Partners.of(arrivals, 1 - side, codes[1 - side], others[1 - side] & bool(mine.size))
        bounds = {name: bound[mine, 1 - side] for name, bound in bounds.items()}
        return _loss(arrivals, windows, side, mine, shed.seq[mine], codes[side], partners, warmup, **bounds)

    return [
        lost(0, dropped, every),
        lost(1, dropped, came),
        *(lost(side, left, came, seq_from=shed.seen) for side in (0, 1)),
        *(lost(side, late, stayed, seq_to=shed.seen, ts_to=shed.expired + 1) for side in (0, 1)),
    ]


def _without(arrivals: Arrivals, shed: ShedLog, chosen: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """All rows but those of some records."""
    masks = [np.ones(arrivals.rows(side), dtype=np.bool_) for side in (0, 1)]
    for side, mask in enumerate(masks):
        mask[shed.seq[chosen & (shed.stream == side)]] = False
    return masks


def pairs_of(found: Sequence[Loss]) -> tuple[Integers, Integers]:
    """All pairs of some losses, in the order of left, then right row number."""
    sides: tuple[list[Integers], list[Integers]] = ([np.empty(0, np.int64)], [np.empty(0, np.int64)])
    for loss in found:
        for place, partner in loss.ranges.meetings():
            sides[loss.stream].append(loss.seq[place])
            sides[1 - loss.stream].append(partner)
    left, right = np.concatenate(sides[0]), np.concatenate(sides[1])
    order = np.lexsort((right, left))
    return left[order], right[order]


def pairs_with_records(found: Sequence[Loss]) -> tuple[tuple[Integers, Integers], Integers]:
    """All pairs of some losses, and the record of the shed log that each is put down to."""
    sides: tuple[list[Integers], list[Integers]] = ([np.empty(0, np.int64)], [np.empty(0, np.int64)])
    records = [np.empty(0, np.int64)]
    for loss in found:
        for place, partner in loss.ranges.meetings():
            sides[loss.stream].append(loss.seq[place])
            sides[1 - loss.stream].append(partner)
            records.append(loss.record[place])
    return (np.concatenate(sides[0]), np.concatenate(sides[1])), np.concatenate(records)


def partner_counts(arrivals: Arrivals, windows: tuple[Window, ...], stream: int) -> Integers:
    """How many partners each row of a stream has in the exact join."""
    codes, rows = arrivals.codes(), np.arange(arrivals.rows(stream))
    everything = Partners.of(arrivals, 1 - stream, codes[1 - stream], np.ones(arrivals.rows(1 - stream), np.bool_))
    return _loss(arrivals, windows, stream, rows, rows, codes[stream], everything, None).ranges.counts()


@dataclass(frozen=True, slots=True)
class Partners:
    """Rows of one stream, sorted by key; inside a key by row number, or by time where time runs back and forth."""

    seq: Integers  # of each slot
    place: Integers  # key * size + position, in ascending order
    ordered_seq: Integers  # row numbers in order of position
    ordered_ts: Integers  # times in order of position
    by_time: bool  # positions follow time and not row numbers

    @classmethod
    def of(cls, arrivals: Arrivals, stream: int, key: Integers, chosen: NDArray[np.bool_]) -> Partners:
        seq = np.flatnonzero(chosen & (key >= 0))
        ts = arrivals.ts[stream][seq]
        by_time = bool((np.diff(ts) < 0).any())
        if by_time:
            order = np.argsort(ts, kind="stable")
            seq, ts = seq[order], ts[order]
        slots = np.argsort(key[seq], kind="stable")
        return cls(seq[slots], key[seq][slots] * seq.size + slots, seq, ts, by_time)

    def slots(self, key: Integers, region: Region) -> tuple[Integers, Integers]:
        """The slots of a key inside a region; where `by_time`, row numbers are still to be looked at."""
        low = np.searchsorted(self.ordered_ts, region.ts_from)
        high = np.searchsorted(self.ordered_ts, region.ts_to)
        if not self.by_time:
            low = np.maximum(low, np.searchsorted(self.ordered_seq, region.seq_from))
            high = np.minimum(high, np.searchsorted(self.ordered_seq, region.seq_to))
        size = self.ordered_seq.size
        first = np.searchsorted(self.place, key * size + low)
        last = np.searchsorted(self.place, key * size + high)
        return first, np.where(key >= 0, np.maximum(first, last), first)


@dataclass(frozen=True, slots=True)
class Region:
    """Where the partners of each of some rows lie: half-open ranges of time and of row numbers."""

    ts_from: Integers
    ts_to: Integers
    seq_from: Integers
    seq_to: Integers

    @classmethod
    def of(cls, arrivals: Arrivals, windows: tuple[Window, ...], stream: int, other: int, rows: Integers) -> Region:
        """All that the windows allow: a row's own window reaches forward, that of its partners' stream back."""
        ts = arrivals.ts[stream][rows]
        before = arrivals.arrived[arrivals.instant[stream][rows], other]
        after = arrivals.arrived[arrivals.instant[stream][rows] + 1, other]
        ts_from, ts_to = np.full(rows.size, -NEVER), np.full(rows.size, NEVER)
        seq_from, seq_to = np.zeros(rows.size, dtype=np.int64), np.full(rows.size, NEVER)
        match windows[stream]:
            case TimeWindow(length):
                ts_to = ts + length
            case RowWindow(count):
                arrived = arrivals.arrived[arrivals.instant[other] + 1, stream]  # with the instant of each partner
                seq_to = np.maximum(np.searchsorted(arrived, rows + count, side="right"), after)
        match windows[other]:
            case TimeWindow(length):
                ts_from = ts - length + 1
            case RowWindow(count):
                seq_from = np.minimum(after - count, before)
        return cls(ts_from, ts_to, seq_from, seq_to)

    def within(self, **bounds: Integers) -> Region:
        """What of it lies within other bounds."""
        tighter = {name: (np.minimum if name.endswith("to") else np.maximum) for name in bounds}
        return replace(self, **{name: tighter[name](getattr(self, name), bound) for name, bound in bounds.items()})

    def has(self, ts: Integers, seq: Integers) -> NDArray[np.bool_]:
        """Whether a row lies in the region of its number."""
        in_time = (ts >= self.ts_from) & (ts < self.ts_to)
        return np.asarray(in_time & (seq >= self.seq_from) & (seq < self.seq_to))


@dataclass(frozen=True, slots=True)
class Ranges:
    """For each of some rows, the slots in which its partners are."""

    first: Integers
    last: Integers
    region: Region
    partners: Partners

    @classmethod
    def of(cls, key: Integers, region: Region, partners: Partners) -> Ranges:
        return cls(*partners.slots(key, region), region, partners)

    def counts(self) -> Integers:
        """How many partners each row has."""
        if not self.partners.by_time:
            return self.last - self.first
        counts = np.zeros(self.first.size, dtype=np.int64)
        for place, _ in self.meetings():
            counts += np.bincount(place, minlength=self.first.size)
        return counts

    def touched(self) -> Integers:
        """The row numbers of all partners that occur."""
        size = self.partners.seq.size
        if not self.partners.by_time:
            begin, end = (np.bincount(slots, minlength=size + 1)[:size] for slots in (self.first, self.last))
            return self.partners.seq[np.cumsum(begin - end) > 0]
        return np.unique(np.concatenate([np.empty(0, np.int64), *(partner for _, partner in self.meetings())]))

    def meetings(self, most: int | None = None) -> Iterator[tuple[Integers, Integers]]:
        """Numbers of rows and row numbers of their partners, about `most` at a time."""
        sizes = self.last - self.first
        ends = np.cumsum(sizes)
        start = 0
        while start < ends.size:
            done = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + (most or CHUNK), side="right")))
            size = sizes[start:stop]
            place = np.repeat(np.arange(start, stop), size)
            slot = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size) + self.first[place]
            partner = self.partners.seq[slot]
            if self.partners.by_time:
                fits = (partner >= self.region.seq_from[place]) & (partner < self.region.seq_to[place])
                place, partner = place[fits], partner[fits]
            yield place, partner
            start = stop


@dataclass(frozen=True, slots=True)
class Loss:
    """Rows of one stream and the partners they did not meet."""

    stream: int
    record: Integers  # in the shed log
    seq: Integers
    ranges: Ranges


def _loss(
    arrivals: Arrivals,
    windows: tuple[Window, ...],
    stream: int,
    record: Integers,
    rows: Integers,
    key: Integers,
    partners: Partners,
    warmup: int | None,
    **bounds: Integers,
) -> Loss:
    """`bounds` of the partners that were lost: all that the windows allow, if there are none."""
    region = Region.of(arrivals, windows, stream, 1 - stream, rows).within(**bounds)
    if warmup is not None:
        early = arrivals.ts[stream][rows] < warmup
        region = replace(region, ts_from=np.where(early, np.maximum(region.ts_from, warmup), region.ts_from))
    return Loss(stream, record, rows, Ranges.of(key[rows], region, partners))
