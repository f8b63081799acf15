"""The optimum against memory: concave, and bounded everywhere by the prices of every solved memory."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.engine.records import NEVER
from shedjoin.offline import solver
from shedjoin.offline.curve import Curve, CurveSolver, Solved, least_memory
from shedjoin.offline.multipliers import Tangent

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
    land = CurveSolver(spec, batch, random.choice((NEVER, 6)), objective)
    for group in GROUPS:
        found = [land.at(group, memory) for memory in MEMORIES]
        values = np.array([one.value for one in found])
        for one in found:
            bounds = np.array([one.tangent.bound(memory) for memory in MEMORIES])
            assert (bounds >= values - 1e-6).all()
            assert one.tangent.bound(one.memory) == pytest.approx(one.value, abs=1e-6)
        slopes = np.diff(np.concatenate(([0.0], values))) / np.diff((0, *MEMORIES))
        assert (np.diff(slopes) <= 1e-6).all()
        everything = land.at(group, land.need(group)).value
        assert values.max() <= everything + 1e-6
        if land.need(group) > 1:
            assert land.at(group, land.need(group) - 1).value < everything


@pytest.mark.parametrize("objective", ["matches", "importance"])
@pytest.mark.parametrize("seed", range(8))
def test_any_prices_bound_every_memory(objective: str, seed: int) -> None:
    random = Random(100 + seed)
    batch = random_batch(random)
    spec = sj.JoinSpec(random.choice((sj.TimeWindow(12), sj.RowWindow(9))))
    land = CurveSolver(spec, batch, random.choice((NEVER, 6)), objective)
    draw = np.random.default_rng(seed)
    for group in GROUPS:
        relaxation = land.relaxation(group)
        best = [land.at(group, memory).value for memory in MEMORIES]
        everything = land.at(group, land.need(group)).value
        free = relaxation.near(None, 1, 0.0, np.inf)
        assert (free.base, free.slope) == (pytest.approx(everything), 0.0)
        for prices in (
            draw.random(free.price.size),
            draw.exponential(3.0, free.price.size) * (draw.random(free.price.size) < 0.3),
        ):
            tangent, held = relaxation.priced(prices)
            assert all(tangent.bound(memory) >= value - 1e-6 for memory, value in zip(MEMORIES, best, strict=True))
            # What is held at these prices is a schedule within as much memory as it takes.
            kept = tangent.base + float(prices @ held)
            assert kept <= land.at(group, max(1, int(held.max(initial=0)))).value + 1e-6
        for memory, value in zip(MEMORIES, best, strict=True):
            near = relaxation.near(free, memory, 0.0, 1e-3 * everything)
            assert value - 1e-6 <= near.bound(memory) <= free.bound(memory)
            assert all(0 <= relaxation.schedule(one, memory) <= value + 1e-6 for one in (near, tangent))


@pytest.mark.parametrize("objective", ["matches", "importance"])
def test_prices_of_one_memory_are_soon_those_of_another(objective: str) -> None:
    draw = np.random.default_rng(3)
    sides = ({"key": draw.zipf(1.4, 800) % 40, "importance": draw.integers(1, 9, 800) / 4} for _ in range(2))
    land = CurveSolver(sj.JoinSpec(sj.TimeWindow(60)), sj.Batch.of(*sides), 60, objective)
    group = (0, 1)
    everything = land.at(group, land.need(group)).value
    start = land.at(group, 40).tangent
    for memory in (10, 20, 60):
        best = land.at(group, memory).value
        near = land.relaxation(group).near(start, memory, 0.9 * best, 1e-3 * everything).bound(memory)
        assert best <= near + 1e-6
        had = land.relaxation(group).schedule(
            land.relaxation(group).near(start, memory, 0.9 * best, 1e-3 * everything), memory
        )
        assert 0.75 * best <= had <= best + 1e-6
        assert near - best <= 0.01 * everything < start.bound(memory) - best


@pytest.mark.parametrize("allocation", ["fixed", "variable"])
def test_groups_add_up_to_the_optimum(allocation: str) -> None:
    draw = np.random.default_rng(5)
    left, right = ({"key": draw.zipf(1.6, 400) % 25} for _ in range(2))
    spec = sj.JoinSpec(sj.TimeWindow(50), sj.Budget(tuples=30, allocation=allocation))
    land = CurveSolver(spec, sj.Batch.of(left, right), 50, "matches")
    parts = [land.at((0,), 15), land.at((1,), 15)] if allocation == "fixed" else [land.at((0, 1), 30)]
    assert land.together + sum(part.value for part in parts) == sj.optimum(spec, left, right, warmup=50).matches


def true_curve(memory: int) -> float:
    return 100.0 - (10 - memory) ** 2


def solved(memory: int) -> Solved:
    slope = 2.0 * (10 - memory)
    return Solved(memory, true_curve(memory), Tangent(true_curve(memory) - slope * memory, slope, np.zeros(0)))


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
