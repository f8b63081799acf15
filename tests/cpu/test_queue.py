"""A slow CPU and the queue in front of it: semantic dropping finds more, and the CPU does no more than it can."""

from __future__ import annotations

import numpy as np
import pytest

import shedjoin as sj


def overload(drop: str, seed: int) -> sj.Engine:
    """Zipf values, four times what the CPU can do."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / np.arange(1, 51)
    rows = 6000
    ts = np.arange(rows) // 4
    tables = [{"x": rng.choice(50, rows, p=chance / chance.sum()), "ts": ts} for _ in range(2)]
    join = sj.PredicateJoin(
        sj.TimeWindow(100),
        sj.Equal("x"),
        cpu=sj.VirtualCpu(capacity=2.0, probe=1.0, comparison=0.0),
        queue=sj.Queue(tuples=100, drop=drop),
    )
    engine = join.engine(seed, emit=False)
    engine.push(left=tables[0], right=tables[1])
    engine.flush()
    return engine


def test_semantic_dropping_finds_more_than_chance() -> None:
    random, semantic = overload("random", 1), overload("semantic", 1)
    assert random.counters["dropped"] == pytest.approx(0.75 * 12000, rel=0.05)
    assert semantic.counters["dropped"] == pytest.approx(random.counters["dropped"], rel=0.02)
    assert semantic.counters["results"] > 1.5 * random.counters["results"]


def test_the_cpu_does_no_more_than_it_can() -> None:
    engine = overload("random", 2)
    assert engine.worked <= 2.0 * (1500 + 110), "capacity times the time, and the queue at the end"


def test_a_deadline_lowers_the_fraction() -> None:
    """A real clock: an impossible deadline makes r as small as it gets, a generous one leaves it at 1."""
    rng = np.random.default_rng(0)
    tables = [{"x": rng.integers(0, 9, 3000), "ts": np.arange(3000)} for _ in range(2)]
    fractions = {}
    for seconds in (1e-9, 1e9):
        join = sj.PredicateJoin(
            sj.TimeWindow(500), sj.Equal("x"), cpu=sj.Deadline(seconds), selective=sj.Selective(basic=50)
        )
        engine = join.build()
        engine.push(left=tables[0], right=tables[1])
        fractions[seconds] = engine.fraction
    assert fractions == {1e-9: pytest.approx(1e-4), 1e9: 1.0}
