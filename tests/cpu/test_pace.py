"""Deadlines, on a clock that counts work: r falls when rows are many, and comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.cpu.pace import Script, Watch
from shedjoin.cpu.rows import Rows

pytestmark = pytest.mark.small


class Laps:
    """A clock by which every row takes a while, and every comparison."""

    def __init__(self, engine: sj.PredicateEngine) -> None:
        self._engine = engine

    def __call__(self) -> float:
        done = self._engine.counters
        return 1e-3 * done["rows"] + 1e-3 * done["compared"]


def rows(first: int, count: int, span: int) -> Rows:
    rng = np.random.default_rng(first + count)
    ts = first + np.arange(count) * span // count
    side: dict[str, Any] = {"ts": ts, "x": rng.integers(0, 20, count).astype(float)}
    return Rows.of(sj.Band("x", 1.0), side, {**side, "x": rng.integers(0, 20, count).astype(float)})


def join() -> sj.PredicateJoin:
    return sj.PredicateJoin(
        sj.TimeWindow(40), sj.Band("x", 1.0), index="scan", selective=sj.Selective(basic=4, rate=False, rank_period=40)
    )


def test_a_burst_ends_in_time_and_r_comes_back() -> None:
    engine = join().build(seed=1)
    clock = Laps(engine)
    spent, fractions = [], []
    for batch in range(14):
        count = 240 if 4 <= batch < 8 else 40
        watch = Watch(10.0, clock=clock)
        began = clock()
        list(engine.chunks(rows(batch * 20, count, 20), limit=1000, pace=watch))
        spent.append(clock() - began)
        fractions.append(engine.fraction)
    assert max(spent[:4]) < 10.0  # and before the burst all is compared
    assert fractions[3] == 1.0
    assert max(spent[6:]) < 1.3 * 10.0
    assert max(fractions[5:8]) < 0.5
    assert fractions[-1] == 1.0


def test_a_script_repeats_what_a_watch_said() -> None:
    first, second = join().build(seed=1), join().build(seed=1)
    clock = Laps(first)
    for batch in range(4):
        watch = Watch(0.5, clock=clock)
        # The pieces in which results leave make no difference.
        given = list(first.chunks(rows(batch * 20, 60, 20), limit=10, pace=watch))
        again = list(second.chunks(rows(batch * 20, 60, 20), limit=1000, pace=Script(watch.said)))
        assert [pair for out in given for pair in zip(out.left, out.right, strict=True)] == [
            pair for out in again for pair in zip(out.left, out.right, strict=True)
        ]
    assert first.fraction == second.fraction < 1.0
    assert first.snapshot() == second.snapshot()
