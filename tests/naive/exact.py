"""The exact join, by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from naive.rows import LATE, STREAMS, Border, Record, Row, Windows, in_time, instants
from naive.twin import Twin
from shedjoin.policies import KeepAll
from shedjoin.spec import JoinSpec
from shedjoin.window import RowWindow


class Placed(NamedTuple):
    """A row with its numbers, its instant, and how many rows of each stream had arrived by the end of that."""

    row: Row
    seq: int
    arrival: int
    instant: int
    arrived: tuple[int, int]


def place(pushes: Iterable[Sequence[Row]]) -> list[Placed]:
    placed: list[Placed] = []
    count = [0, 0]
    for tick, instant in enumerate(one for rows in pushes for one in instants(rows)):
        numbered = []
        for row in instant:
            numbered.append((row, count[row.stream], sum(count)))
            count[row.stream] += 1
        placed += [Placed(row, seq, arrival, tick, (count[0], count[1])) for row, seq, arrival in numbered]
    return placed


def in_rows(windows: Windows, x: Placed, y: Placed) -> bool:
    """Whether the older one by arrival was still in its row window; time windows set no condition here."""
    older, newer = (x, y) if x.arrival < y.arrival else (y, x)
    window = windows[older.row.stream]
    if not isinstance(window, RowWindow) or older.instant == newer.instant:
        return True
    return older.seq >= newer.arrived[older.row.stream] - window.rows


def exact_records(pushes: Iterable[Sequence[Row]], windows: Windows) -> list[tuple[Placed, Placed]]:
    placed = place(pushes)
    sides = [[x for x in placed if x.row.stream == stream and x.row.key is not None] for stream in STREAMS]
    return [
        (r, s)
        for r, s in itertools.product(*sides)
        if r.row.key == s.row.key and in_time(windows, r.row, s.row) and in_rows(windows, r, s)
    ]


def exact_pairs(pushes: Iterable[Sequence[Row]], windows: Windows) -> list[tuple[int, int]]:
    """The exact join, late rows included, as (left seq, right seq)."""
    return [(r.seq, s.seq) for r, s in exact_records(pushes, windows)]


def missing_pairs(log: Iterable[Record], pushes: Iterable[Sequence[Row]], windows: Windows) -> list[tuple[int, int]]:
    """What the shed log says is not in the output: those of the exact join that lost a row in time."""
    records = {(record.stream, record.seq): record for record in log}
    return [(r.seq, s.seq) for r, s in exact_records(pushes, windows) if _is_missing(records, r, s)]


def _is_missing(records: dict[tuple[int, int], Record], r: Placed, s: Placed) -> bool:
    mine = [records.get((x.row.stream, x.seq)) for x in (r, s)]
    if any(record is not None and record.why == LATE for record in mine):
        return True
    older, newer = sorted((r, s), key=lambda x: x.arrival)
    record = records.get((older.row.stream, older.seq))
    return record is not None and newer.seq >= record.seen[newer.row.stream]


def exact_needs(spec: JoinSpec, pushes: Iterable[Sequence[Row]]) -> Border:
    """The most that the exact join stores of each stream at an instant border (the time says nothing)."""
    exact = Twin(JoinSpec(spec.window, policy=KeepAll(), lateness=spec.lateness, max_skew=spec.max_skew))
    borders = [Border(0, (0, 0), (0, 0)), *(border for rows in pushes for border in exact.push(rows).borders)]
    tuples, sizes = (
        [max(side) for side in zip(*column, strict=True)] for column in list(zip(*borders, strict=True))[1:]
    )
    return Border(0, (tuples[0], tuples[1]), (sizes[0], sizes[1]))
