"""The reason why a result is missing, from the logs: the rule of docs/semantics.md, "The shed log", for many results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shedjoin.engine.codes import DROPPED, EVICTED, LATE, PARTIAL, SCHEDULED, UNPROBED
from shedjoin.engine.output import LeftOutLog, ShedLog
from shedjoin.errors import InputError
from shedjoin.quality.arrivals import Arrivals, Integers, check_log
from shedjoin.window import TimeWindow, Window

Booleans = np.ndarray[tuple[int], np.dtype[np.bool_]]
NONE = -1
#: Rows that left early, and rows that left stretches of other windows out.
GONE, PARTLY = (EVICTED, SCHEDULED), (PARTIAL, UNPROBED)


@dataclass(frozen=True, slots=True)
class Stretches:
    """What the rows of one stream were not compared with in the window of another."""

    first: Integers  # of each row: its stretches are places `first[row]` to `first[row + 1]` of those below
    lo: tuple[Integers, Integers]  # time and row number
    hi: tuple[Integers, Integers]

    @classmethod
    def of(cls, log: LeftOutLog, stream: int, other: int, rows: int) -> Stretches:
        mine = np.flatnonzero((log.stream == stream) & (log.other == other))
        mine = mine[np.argsort(log.seq[mine], kind="stable")]
        first = np.searchsorted(log.seq[mine], np.arange(rows + 1))
        return cls(first, (log.lo_ts[mine], log.lo_seq[mine]), (log.hi_ts[mine], log.hi_seq[mine]))

    def hold(self, row: Integers, ts: Integers, seq: Integers) -> Booleans:
        """Whether a row left out a partner with this place in its window."""
        found = np.zeros(row.size, np.bool_)
        first, many = self.first[row], self.first[row + 1] - self.first[row]
        for k in range(int(many.max(initial=0))):  # a row has a few stretches at most
            some = np.flatnonzero(many > k)
            at = first[some] + k
            begun = _is_before(self.lo[0][at], self.lo[1][at], ts[some], seq[some] + 1)
            found[some] |= begun & _is_before(ts[some], seq[some], self.hi[0][at], self.hi[1][at])
        return found


def _is_before(ts: Integers, seq: Integers, other_ts: Integers, other_seq: Integers) -> Booleans:
    return np.asarray((ts < other_ts) | ((ts == other_ts) & (seq < other_seq)))


@dataclass(frozen=True, slots=True)
class Causes:
    """Which record of the shed log a result is put down to."""

    windows: tuple[Window, ...]
    seen: Integers  # of each record
    expired: Integers
    dropped: tuple[Integers, ...]  # of each stream, the record of each row; NONE: there is none
    gone: tuple[Integers, ...]
    late: tuple[Integers, ...]
    partly: tuple[Integers, ...]
    stretches: dict[tuple[int, int], Stretches]

    @classmethod
    def of(cls, shed: ShedLog, left_out: LeftOutLog, windows: tuple[Window, ...], rows: Sequence[int]) -> Causes:
        """Of streams with this many rows."""
        check_log("shed", shed, rows)
        check_log("left_out", left_out, rows)
        kinds = (_by_row(shed, why, rows) for why in ((DROPPED,), GONE, (LATE,), PARTLY))
        dropped, gone, late, partly = kinds
        for stream, records in enumerate(partly):
            seq = left_out.seq[left_out.stream == stream]
            if (records[seq] == NONE).any():
                raise InputError(
                    f"left_out has a stretch of row {seq[records[seq] == NONE][0]} of stream {stream}, of which shed has no "
                    "record: give both logs of the same run, whole"
                )
        stretches = {
            (stream, other): Stretches.of(left_out, stream, other, rows[stream])
            for stream in range(len(rows))
            for other in range(len(rows))
            if stream != other
        }
        return cls(windows, shed.seen, shed.expired, dropped, gone, late, partly, stretches)

    def records(self, arrivals: Arrivals, result: Sequence[Integers]) -> Integers:
        """The record of each result (rows by their places in `arrivals`); `NONE`: it was delivered.

        The first of: a row that was dropped; a row that had left before another came; a row that came when another had expired;
        the newest row, if it left another out. Of several such rows, that of the first stream.
        """
        number = [arrivals.number[stream][rows] for stream, rows in enumerate(result)]
        found = np.full(number[0].size, NONE)
        for stream, rows in enumerate(number):
            found = np.where(found == NONE, self.dropped[stream][rows], found)
        if self.seen.size:
            for records, misses in ((self.gone, self._came_later), (self.late, self._had_expired)):
                for stream, rows in enumerate(number):
                    record = records[stream][rows]
                    missed = np.zeros(record.size, np.bool_)
                    for other, partners in enumerate(number):
                        if other != stream:
                            missed |= misses(record, other, partners, arrivals.ts[other][result[other]])
                    found = np.where((found == NONE) & (record != NONE) & missed, record, found)
        newest = np.argmax([arrivals.place[stream][rows] for stream, rows in enumerate(result)], axis=0)
        for (stream, other), stretches in self.stretches.items():
            some = np.flatnonzero((found == NONE) & (newest == stream))
            ts = arrivals.ts[other][result[other][some]]
            if not isinstance(self.windows[other], TimeWindow):
                ts = np.zeros_like(ts)
            row = number[stream][some]
            left = stretches.hold(row, ts, number[other][some])
            found[some[left]] = self.partly[stream][row[left]]
        return found

    def _came_later(self, record: Integers, other: int, partners: Integers, ts: Integers) -> Booleans:
        """Whether partners came when the row of a record had left."""
        return np.asarray(partners >= self.seen[record, other])

    def _had_expired(self, record: Integers, other: int, partners: Integers, ts: Integers) -> Booleans:
        """Whether partners had expired when the late row of a record came."""
        return np.asarray((partners < self.seen[record, other]) & (ts <= self.expired[record, other]))


def _by_row(shed: ShedLog, why: tuple[int, ...], rows: Sequence[int]) -> tuple[Integers, ...]:
    """Of each stream, the record of each row that is in the log for one of some reasons."""
    found = tuple(np.full(many, NONE) for many in rows)
    for stream, records in enumerate(found):
        mine = np.flatnonzero((shed.stream == stream) & np.isin(shed.why, why))
        records[shed.seq[mine]] = mine
    return found
