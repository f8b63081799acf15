"""An exact join by time stores what it needs and no more: the rows that a row to come, which is not late, can meet."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import shedjoin as sj
from naive import Row
from strategies import batch

#: Lowest and highest difference of times, right less left, and the arguments that say so.
NEAR: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "window": ((-6, 6), {"window": sj.TimeWindow(7)}),
    "two windows": ((-2, 11), {"window": (sj.TimeWindow(12), sj.TimeWindow(3))}),
    "around": ((-3, 5), {"between": (-3, 5)}),
    "after": ((0, 9), {"between": (0, 9)}),
    "later": ((4, 9), {"between": (4, 9)}),
    "before": ((-9, -4), {"between": (-9, -4)}),
    "exactly": ((5, 5), {"between": (5, 5)}),
}


def rows_of(seed: int, streams: int = 2, lags: tuple[int, ...] = (0, 0, 0, 2, 4, 25), size: int = 60) -> list[Row]:
    """Of streams that are out of order, and of which one may run ahead; some rows are late, some have no key."""
    random = Random(seed)
    ahead, rows = random.choice((0, 0, 8)), []
    for number in range(size):
        stream = random.randrange(streams)
        lag = random.choice(lags)
        rows.append(Row(stream, random.choice((None, 1, 1, 2)), number // 2 + ahead * stream - lag))
    return rows


def needed(rows: list[Row], lateness: int, low: int, high: int) -> tuple[int, int]:
    """Of each stream the rows for which there is a time at which a partner can still come in time."""
    clocks = [max((row.ts for row in rows if row.stream == stream), default=-(10**6)) for stream in (0, 1)]

    def is_needed(row: Row) -> bool:
        first, last = (row.ts + low, row.ts + high) if row.stream == 0 else (row.ts - high, row.ts - low)
        return row.value is not None and max(first, clocks[1 - row.stream] - lateness) <= last

    counts = [sum(is_needed(row) for row in rows if row.stream == stream) for stream in (0, 1)]
    return counts[0], counts[1]


@pytest.mark.small
@pytest.mark.parametrize("lateness", [0, 3])
@pytest.mark.parametrize("name", NEAR)
def test_rows_are_stored_while_they_can_find_a_partner(name: str, lateness: int) -> None:
    (low, high), near = NEAR[name]
    for seed in range(8):
        rows, engine = rows_of(seed), sj.JoinSpec(**near, lateness=lateness).build()
        for number, row in enumerate(rows):
            engine.push(batch([row]))
            assert engine.residents == needed(rows[: number + 1], lateness, low, high)


def has_met(rows: list[Row], low: int, high: int) -> int:
    """How many left rows have found a partner and could find more."""
    clock = max((row.ts for row in rows if row.stream == 1), default=-(10**6))
    right = {(row.value, row.ts) for row in rows if row.stream == 1}
    return sum(
        row.stream == 0
        and row.value is not None
        and clock - LATENESS <= row.ts + high
        and any((row.value, ts) in right for ts in range(row.ts + low, row.ts + high + 1))
        for row in rows
    )


LATENESS = 4


@pytest.mark.small
@pytest.mark.parametrize(
    ("settings", "leaves"),
    [
        ({"how": "left_semi"}, True),
        ({"how": "left_anti"}, True),
        ({"matches": (1, None)}, True),
        ({"how": "left_outer"}, False),
        ({"how": "right_outer"}, False),
        ({"how": "full_outer"}, False),
    ],
    ids=str,
)
def test_rows_leave_once_they_need_no_partner(settings: dict[str, Any], leaves: bool) -> None:
    """Outer joins store what the inner join does; a row that needs one partner leaves with it."""
    low, high = -3, 5
    for seed in range(4):
        rows = rows_of(seed, lags=(0, 0, 2, LATENESS))
        engine = sj.JoinSpec(between=(low, high), lateness=LATENESS, **settings).build()
        for number, row in enumerate(rows):
            engine.push(batch([row]))
            so_far = rows[: number + 1]
            left, right = needed(so_far, LATENESS, low, high)
            assert engine.residents == (left - has_met(so_far, low, high) * leaves, right)


@pytest.mark.small
@pytest.mark.parametrize("lateness", [0, 3])
def test_rows_of_three_streams_are_stored_while_one_of_another_can_meet_them(lateness: int) -> None:
    lengths = {"a": 7, "b": 12, "c": 3}
    spec = sj.JoinSpec({name: sj.TimeWindow(length) for name, length in lengths.items()}, lateness=lateness)
    for seed in range(8):
        rows, engine = rows_of(seed, streams=3), spec.build()
        for number, row in enumerate(rows):
            engine.push(batch([row]))
            so_far = rows[: number + 1]
            clocks = [max((one.ts for one in so_far if one.stream == stream), default=-(10**6)) for stream in range(3)]
            assert engine.residents == tuple(
                sum(
                    one.stream == stream
                    and one.value is not None
                    and min(clocks[:stream] + clocks[stream + 1 :]) - lateness < one.ts + length
                    for one in so_far
                )
                for stream, length in enumerate(lengths.values())
            )
