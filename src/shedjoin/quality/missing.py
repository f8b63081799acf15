"""Which results are missing, from the shed log and the inputs: exact, and without running the join again.

The partners of a shed row are a range of row numbers and a range of times among the rows of its key. Rows are sorted by
key once; then a range is two binary searches, for all shed rows together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch, Table
from shedjoin.engine.codes import LATE
from shedjoin.engine.output import ShedLog
from shedjoin.errors import InputError
from shedjoin.spec import JoinSpec, check_whole_windows
from shedjoin.window import RowWindow, TimeWindow, Window

Integers = NDArray[np.int64]
NEVER = 2**62  # beyond every time and row number, and far enough from the end of 64 bits to be added to
CHUNK = 2**22  # pairs made at a time


def missing_results(
    shed: ShedLog, left: Table, right: Table, spec: JoinSpec, *, warmup: int | None = None
) -> tuple[Integers, Integers]:
    """The results of the exact join that shedding cost, late rows included, as left and right row numbers.

    Parameters
    ----------
    shed
        The shed log of the whole run.
    left, right
        The inputs of that run, as `simulate` had them.
    spec
        Its specification.
    warmup
        Leave out results produced (at the later of their two times) before this.
    """
    check_whole_windows("missing_results", spec)
    return pairs_of(losses(shed, Arrivals.of(left, right), spec.windows, warmup))


def missing_counts(shed: ShedLog, left: Table, right: Table, spec: JoinSpec, *, warmup: int | None = None) -> Integers:
    """How many results each record of the shed log cost. A pair of two late rows is put down to the left one."""
    check_whole_windows("missing_counts", spec)
    counts = np.zeros(shed.seq.size, dtype=np.int64)
    for loss in losses(shed, Arrivals.of(left, right), spec.windows, warmup):
        counts[loss.record] += loss.counts()
    return counts


def exact_results(left: Table, right: Table, spec: JoinSpec, *, warmup: int | None = None) -> tuple[Integers, Integers]:
    """The exact join of the inputs, rows that a run would refuse as late included.

    Examples
    --------
    >>> from shedjoin.window import TimeWindow
    >>> exact_results({"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]}, JoinSpec(TimeWindow(3)))
    (array([0, 1, 1, 2, 2, 3, 3]), array([2, 2, 3, 2, 3, 1, 4]))
    """
    return exact_pairs(Arrivals.of(left, right), spec.windows, warmup)


def exact_pairs(
    arrivals: Arrivals, windows: tuple[Window, ...], warmup: int | None = None
) -> tuple[Integers, Integers]:
    """The exact join of what arrived."""
    everything = Partners.of(arrivals, 1, np.ones(arrivals.rows(1), dtype=np.bool_))
    rows = np.arange(arrivals.rows(0))
    return pairs_of([_loss(arrivals, windows, 0, rows, rows, everything, None, warmup)])


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Both streams row by row, with what had arrived before and after each instant."""

    key: tuple[Integers, Integers]  # numbered from 0 over both streams; -1: null
    ts: tuple[Integers, Integers]
    instant: tuple[Integers, Integers]
    arrived: Integers  # arrived[k, i]: rows of stream i before instant k; the last row has the totals

    @classmethod
    def of(cls, left: Table, right: Table) -> Arrivals:
        """As `simulate` takes two tables."""
        return cls.pushed([Batch.of(left, right)])

    @classmethod
    def pushed(cls, batches: Sequence[Batch]) -> Arrivals:
        """As an engine took batches, one push each."""
        parts = [part for part in batches if len(part)] or [Batch.of()]
        starts = [np.concatenate(([True], np.diff(part.ts) != 0))[: len(part)] for part in parts]
        instant = np.cumsum(np.concatenate(starts)) - 1
        stream = np.concatenate([part.stream for part in parts])
        ts = np.concatenate([part.ts for part in parts])
        null = np.concatenate([part.null for part in parts])
        key = np.unique(np.concatenate([part.key for part in parts]), return_inverse=True)[1].astype(np.int64)
        key[null] = -1
        instants = int(instant[-1]) + 1 if instant.size else 0
        arrived = np.zeros((instants + 1, 2), dtype=np.int64)
        for side in (0, 1):
            arrived[1:, side] = np.cumsum(np.bincount(instant[stream == side], minlength=instants))
        first, second = stream == 0, stream == 1
        return cls((key[first], key[second]), (ts[first], ts[second]), (instant[first], instant[second]), arrived)

    def rows(self, stream: int) -> int:
        return int(self.ts[stream].size)


def losses(shed: ShedLog, arrivals: Arrivals, windows: tuple[Window, ...], warmup: int | None = None) -> list[Loss]:
    """What each record cost: a pair is missing iff one of its rows was late, or its older row had left before the newer
    came. Each missing pair is in exactly one of these."""
    if not isinstance(shed, ShedLog):
        raise InputError(f"shed must be the ShedLog of a run, not {type(shed).__name__}")
    stream, seq = shed.stream, shed.seq
    for side in (0, 1):
        most = int(seq[stream == side].max(initial=-1))
        if most >= arrivals.rows(side):
            raise InputError(
                f"shed has a record of row {most} of stream {side}, but the input has {arrivals.rows(side)} rows: "
                "give the inputs of the same run, whole"
            )
    late = shed.why == LATE
    on_time = [np.ones(arrivals.rows(side), dtype=np.bool_) for side in (0, 1)]
    for side in (0, 1):
        on_time[side][seq[late & (stream == side)]] = False
    partners = [Partners.of(arrivals, side, on_time[side]) for side in (0, 1)]
    found = []
    for side in (0, 1):
        gone = np.flatnonzero(~late & (stream == side))
        seen = shed.seen[gone, 1 - side]
        found.append(_loss(arrivals, windows, side, gone, seq[gone], partners[1 - side], seen, warmup))
        refused = np.flatnonzero(late & (stream == side))
        others = partners[0] if side == 1 else Partners.of(arrivals, 1, np.ones_like(on_time[1]))
        found.append(_loss(arrivals, windows, side, refused, seq[refused], others, None, warmup))
    return found


def pairs_of(found: Sequence[Loss]) -> tuple[Integers, Integers]:
    """All pairs of some losses, in the order of left, then right row number."""
    sides: tuple[list[Integers], list[Integers]] = ([np.empty(0, np.int64)], [np.empty(0, np.int64)])
    for loss in found:
        for place, partner in loss.meetings():
            sides[loss.stream].append(loss.seq[place])
            sides[1 - loss.stream].append(partner)
    left, right = np.concatenate(sides[0]), np.concatenate(sides[1])
    order = np.lexsort((right, left))
    return left[order], right[order]


@dataclass(frozen=True, slots=True)
class Partners:
    """Rows of one stream, sorted by key; inside a key by row number, or by time where time runs back and forth."""

    seq: Integers  # of each slot
    place: Integers  # key * size + position, in ascending order
    ordered_seq: Integers  # row numbers in order of position
    ordered_ts: Integers  # times in order of position
    by_time: bool  # positions follow time and not row numbers

    @classmethod
    def of(cls, arrivals: Arrivals, stream: int, chosen: NDArray[np.bool_]) -> Partners:
        seq = np.flatnonzero(chosen & (arrivals.key[stream] >= 0))
        ts = arrivals.ts[stream][seq]
        by_time = bool((np.diff(ts) < 0).any())
        if by_time:
            order = np.argsort(ts, kind="stable")
            seq, ts = seq[order], ts[order]
        key = arrivals.key[stream][seq]
        slots = np.argsort(key, kind="stable")
        return cls(seq[slots], key[slots] * seq.size + slots, seq, ts, by_time)

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
    def of(cls, arrivals: Arrivals, windows: tuple[Window, ...], stream: int, rows: Integers) -> Region:
        """All that the windows allow: a row's own window reaches forward, that of its partners' stream back."""
        other = 1 - stream
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


@dataclass(frozen=True, slots=True)
class Loss:
    """Rows of one stream and the partners they did not meet."""

    stream: int
    record: Integers  # in the shed log
    seq: Integers
    first: Integers  # slots of `partners`
    last: Integers
    region: Region
    partners: Partners

    def counts(self) -> Integers:
        """Missing results of each record."""
        if not self.partners.by_time:
            return self.last - self.first
        counts = np.zeros(self.seq.size, dtype=np.int64)
        for place, _ in self.meetings():
            counts += np.bincount(place, minlength=self.seq.size)
        return counts

    def touched(self) -> Integers:
        """The row numbers of all partners that occur."""
        size = self.partners.seq.size
        if not self.partners.by_time:
            begin, end = (np.bincount(slots, minlength=size + 1)[:size] for slots in (self.first, self.last))
            return self.partners.seq[np.cumsum(begin - end) > 0]
        return np.unique(np.concatenate([np.empty(0, np.int64), *(partner for _, partner in self.meetings())]))

    def meetings(self) -> Iterator[tuple[Integers, Integers]]:
        """Places in `seq` and row numbers of partners, some millions at a time."""
        ends = np.cumsum(self.last - self.first)
        start = 0
        while start < ends.size:
            done = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + CHUNK, side="right")))
            size = (self.last - self.first)[start:stop]
            place = np.repeat(np.arange(start, stop), size)
            slot = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size) + self.first[place]
            partner = self.partners.seq[slot]
            if self.partners.by_time:
                fits = (partner >= self.region.seq_from[place]) & (partner < self.region.seq_to[place])
                place, partner = place[fits], partner[fits]
            yield place, partner
            start = stop


def _loss(
    arrivals: Arrivals,
    windows: tuple[Window, ...],
    stream: int,
    record: Integers,
    rows: Integers,
    partners: Partners,
    seen: Integers | None,
    warmup: int | None,
) -> Loss:
    region = Region.of(arrivals, windows, stream, rows)
    if seen is not None:
        region = Region(region.ts_from, region.ts_to, np.maximum(region.seq_from, seen), region.seq_to)
    if warmup is not None:
        early = arrivals.ts[stream][rows] < warmup
        ts_from = np.where(early, np.maximum(region.ts_from, warmup), region.ts_from)
        region = Region(ts_from, region.ts_to, region.seq_from, region.seq_to)
    first, last = partners.slots(arrivals.key[stream][rows], region)
    return Loss(stream, record, rows, first, last, region, partners)
