"""The optimum against memory: concave, and bounded everywhere by the prices of every solved memory."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.engine.state import NEVER
from shedjoin.offline import solver
from shedjoin.offline.curve import Curve, Landscape, Solved, least_memory

GROUPS = ((0,), (1,), (0, 1))
MEMORIES = (1, 2, 3, 4, 6, 9, 14)


def random_batch(random: Random) -> sj.Batch:
    """Ties, gaps, null keys, few keys, importances."""
    sides = []
    for _ in range(2):
        size = random.randint(5, 40)
        steps = random.choices((0, 1, 1, 3), k=size)
        sides.append(
            {
                "key": random.choices((1, 2, 3, 4, 5, None), k=size),
                "ts": np.cumsum(steps),
                "importance": random.choices((1.0, 2.0, 0.3, 7.0), k=size),
            }
        )
    return sj.Batch.of(*sides)


@pytest.mark.parametrize("objective", ["matches", "importance"])
@pytest.mark.parametrize("seed", range(12))
def test_every_memory_bounds_all_others(objective: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "BLOCK", 8 if seed % 2 else 4000)  # in blocks, and at once
    random = Random(seed)
    batch = random_batch(random)
    spec = sj.JoinSpec(
        random.choice((sj.TimeWindow(12), sj.RowWindow(9))), importance=random.choice(("min", "product"))
    )
    land = Landscape(spec, batch, random.choice((NEVER, 6)), objective)
    for group in GROUPS:
        found = [land.at(group, memory) for memory in MEMORIES]
        values = np.array([one.value for one in found])
        for one in found:
            bounds = np.array([one.bound(memory) for memory in MEMORIES])
            assert (bounds >= values - 1e-6).all()
            assert one.bound(one.memory) == pytest.approx(one.value, abs=1e-6)
        slopes = np.diff(np.concatenate(([0.0], values))) / np.diff((0, *MEMORIES))
        assert (np.diff(slopes) <= 1e-6).all()
        everything = land.at(group, land.need(group)).value
        assert values.max() <= everything + 1e-6
        if land.need(group) > 1:
            assert land.at(group, land.need(group) - 1).value < everything


@pytest.mark.parametrize("allocation", ["fixed", "variable"])
def test_groups_add_up_to_the_optimum(allocation: str) -> None:
    draw = np.random.default_rng(5)
    left, right = ({"key": draw.zipf(1.6, 400) % 25} for _ in range(2))
    spec = sj.JoinSpec(sj.TimeWindow(50), sj.Budget(tuples=30, allocation=allocation))
    land = Landscape(spec, sj.Batch.of(left, right), 50, "matches")
    parts = [land.at((0,), 15), land.at((1,), 15)] if allocation == "fixed" else [land.at((0, 1), 30)]
    assert land.together + sum(part.value for part in parts) == sj.optimum(spec, left, right, warmup=50).matches


def true_curve(memory: int) -> float:
    return 100.0 - (10 - memory) ** 2


def solved(memory: int) -> Solved:
    slope = 2.0 * (10 - memory)
    return Solved(memory, true_curve(memory), true_curve(memory) - slope * memory, slope)


def test_a_curve_is_known_between_its_points() -> None:
    curve = Curve(need=10, everything=100.0)
    while max(gaps := [curve.high(memory) - curve.low(memory) for memory in range(11)]) > 2.0:
        worst = gaps.index(max(gaps))
        assert curve.open(worst)
        curve.solved.append(solved(worst))
        assert not curve.open(worst)
    assert len(curve.solved) < 8
    assert not curve.open(10)
    for memory in range(11):
        assert curve.low(memory) <= true_curve(memory) <= curve.high(memory) <= curve.low(memory) + 2.0
    assert [curve.low(memory) for memory in (10, 12)] == [100.0, 100.0]


def test_the_least_memory_that_is_not_ruled_out() -> None:
    curve = Curve(10, 100.0, [solved(memory) for memory in range(10)])
    assert least_memory([curve], lambda memory: [memory], true_curve(6), 10) == 6
    assert least_memory([curve, curve], lambda memory: [memory // 2] * 2, 2 * true_curve(6), 20) == 12
