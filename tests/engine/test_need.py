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


def rows_of(seed: int, size: int = 60) -> list[Row]:
    """Of streams that are out of order, and of which one may run ahead; some rows are late, some have no key."""
    random = Random(seed)
    ahead, rows = random.choice((0, 0, 8)), []
    for number in range(size):
        stream = random.randrange(2)
        lag = random.choice((0, 0, 0, 2, 4, 25))
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
