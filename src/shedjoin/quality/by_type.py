"""Results by join type: derive rows without a partner from the pairs of the exact join and from missing pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import DROPPED, EVICTED, LATE, SCHEDULED, UNKNOWN
from shedjoin.engine.output import ShedLog
from shedjoin.join_type import FIRSTS, PAIRS, TYPES, JoinType
from shedjoin.quality.arrivals import Arrivals, Integers
from shedjoin.spec import JoinSpec

#: The number of a row that a result has not.
NONE = -1
Booleans = NDArray[np.bool_]
Rows = tuple[Integers, ...]


@dataclass(frozen=True)
class Missing:
    """Pairs that are missing, the record of each, and how many pairs of the exact join each judged row has."""

    rows: Rows
    records: Integers
    partners: dict[int, Integers]


def type_of(spec: JoinSpec) -> JoinType:
    return TYPES[spec.how]


def exact(how: JoinType, pairs: Rows, partners: dict[int, Integers]) -> Rows:
    """The results of a type, from all pairs."""
    streams = len(pairs)
    without = [_alone(stream, np.flatnonzero(partners[stream] == 0), streams) for stream in how.preserved]
    if how.gives == FIRSTS:
        return _alone(0, np.flatnonzero(partners[0] > 0), streams)
    return _joined([*([pairs] if how.gives == PAIRS else []), *without], streams)


def missing(how: JoinType, lost: Missing, shed: ShedLog, arrivals: Arrivals) -> tuple[Rows, Integers]:
    """The results of a type that a run which has ended has not given, and the record that each is put down to.

    A row that was given as one without a partner stays one: what a late row would have found with it is no result.
    """
    streams = len(lost.rows)
    own = {stream: _record_of(shed, stream, arrivals.rows(stream)) for stream in how.judged}
    met = {
        stream: lost.partners[stream] - _count(lost.rows[stream], arrivals.rows(stream)) > 0 for stream in how.judged
    }
    alone = {stream: ~met[stream] & (own[stream] == NONE) for stream in how.preserved}
    stays = ~_is_too_late(lost.rows, alone, shed, arrivals)
    rows, records = tuple(column[stays] for column in lost.rows), lost.records[stays]
    dropped = tuple(column[~stays] for column in lost.rows)
    found: list[Rows] = []
    causes: list[Integers] = []
    if how.gives == PAIRS:
        found, causes = [rows], [records]
    elif how.gives == FIRSTS:
        first, place = np.unique(rows[0], return_index=True)
        unmet = ~met[0][first]
        found, causes = [_alone(0, first[unmet], streams)], [records[place[unmet]]]
    for stream in how.preserved:
        partners = lost.partners[stream] - _count(dropped[stream], arrivals.rows(stream))
        without = np.flatnonzero((partners == 0) & ~alone[stream])
        found.append(_alone(stream, without, streams))
        causes.append(own[stream][without])
    return _joined(found, streams), np.concatenate([np.empty(0, np.int64), *causes])


def since(how: JoinType, arrivals: Arrivals, rows: Rows, warmup: int | None) -> Booleans:
    """Which results were produced at a time or later: at the latest of their times."""
    if warmup is None:
        return np.ones(rows[0].size, np.bool_)
    times = [
        np.where(column == NONE, -(2**62), np.append(ts, 0)[column])
        for ts, column in zip(arrivals.ts, rows, strict=True)
    ]
    return np.asarray(np.max(times, axis=0) >= warmup)


def count_all(
    results: Iterator[Rows], judged: Sequence[int], arrivals: Arrivals
) -> tuple[dict[int, Integers], list[Rows]]:
    """How many of these results each judged row has; and the results."""
    counts = {stream: np.zeros(arrivals.rows(stream), np.int64) for stream in judged}
    kept = []
    for result in results:
        for stream in judged:
            counts[stream] += _count(result[stream], arrivals.rows(stream))
        kept.append(result)
    return counts, kept


def _count(rows: Integers, many: int) -> Integers:
    return np.bincount(rows, minlength=many)


def _alone(stream: int, rows: Integers, streams: int) -> Rows:
    """Results of one row."""
    return tuple(rows if one == stream else np.full(rows.size, NONE) for one in range(streams))


def _joined(pieces: Sequence[Rows], streams: int) -> Rows:
    nothing = np.empty(0, np.int64)
    return tuple(np.concatenate([nothing, *(piece[stream] for piece in pieces)]) for stream in range(streams))


def _record_of(shed: ShedLog, stream: int, rows: int) -> Integers:
    """The record of each row that left, or never came in, so that it was not given as one without a partner."""
    records = np.full(rows, NONE)
    mine = np.flatnonzero((shed.stream == stream) & np.isin(shed.why, (EVICTED, SCHEDULED, DROPPED, UNKNOWN)))
    records[shed.seq[mine]] = mine
    return records


def _is_too_late(rows: Rows, alone: dict[int, Booleans], shed: ShedLog, arrivals: Arrivals) -> Booleans:
    """Which results have a row that was given as one without a partner, and a late one."""
    given, late = np.zeros(rows[0].size, np.bool_), np.zeros(rows[0].size, np.bool_)
    for stream, column in enumerate(rows):
        if stream in alone:
            given |= alone[stream][column]
        is_late = np.zeros(arrivals.rows(stream), np.bool_)
        is_late[shed.seq[(shed.stream == stream) & np.isin(shed.why, (LATE, DROPPED))]] = True
        late |= is_late[column]
    return given & late
