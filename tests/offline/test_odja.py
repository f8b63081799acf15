"""ODJA against ESJA, and against all schedules where the objective is another."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from offline.test_optimum import WINDOWS, random_rows, tables, zipf
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.offline import odja

FIXED = (sj.Budget(tuples=2, shares=(1, 1)), sj.Budget(tuples=5, shares=(3, 2)))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_odja_is_esja(window: Any) -> None:
    random = Random(str(window))
    for budget, importance in itertools.product(FIXED, IMPORTANCE):
        left, right = tables(random_rows(random, 12))
        spec = sj.JoinSpec(window, budget, importance=importance)
        for objective in ("matches", "importance"):
            best = sj.optimum(spec, left, right, objective=objective, warmup=1)
            assert odja(spec, left, right, objective=objective, warmup=1).value == pytest.approx(best.value)


@pytest.mark.parametrize("memory", [1, 9])
def test_odja_is_esja_at_both_ends_of_memory(memory: int) -> None:
    left, right = zipf(400, 8, 5)
    spec = sj.JoinSpec(sj.TimeWindow(10), sj.Budget(tuples=2 * memory, shares=(1, 1)))
    best = sj.optimum(spec, left, right, objective="importance")
    assert odja(spec, left, right).importance == pytest.approx(best.importance)


def test_lowest_and_highest_lie_on_both_sides_of_every_policy() -> None:
    left, right = zipf(150, 5, 2)
    spec = sj.JoinSpec(sj.TimeWindow(9), sj.Budget(tuples=6, shares=(1, 1)))
    least, most = (odja(spec, left, right, sense=sense).importance for sense in ("lowest", "highest"))
    runs = [sj.simulate(sj.JoinSpec(spec.window, spec.budget, sj.Rand()), left, right, seed=seed) for seed in range(20)]
    assert least < min(run.importance for run in runs)
    assert most > max(run.importance for run in runs)


def test_undesired_results_count_against_the_schedule() -> None:
    """With signs turned round, the highest is the lowest; and with mixed signs undesired results are avoided."""
    left, right = zipf(150, 5, 2)
    spec = sj.JoinSpec(sj.TimeWindow(9), sj.Budget(tuples=6, shares=(1, 1)))

    def undesired(left_rows: Any, right_rows: Any) -> Any:
        return -np.ones(left_rows.size)

    turned = odja(spec, left, right, worth=undesired)
    assert turned.value == -odja(spec, left, right, objective="matches", sense="lowest").value

    def mixed(left_rows: Any, right_rows: Any) -> Any:
        return np.where(left["key"][left_rows] % 2 == 0, 1.0, -1.0)

    best = odja(spec, left, right, worth=mixed)
    blind = odja(spec, left, right, objective="matches")
    assert best.value == mixed(*best.pairs()).sum()
    assert best.value > mixed(*blind.pairs()).sum()


def test_refuses_in_advance_and_says_how_many() -> None:
    left, right = zipf(1000, 5, 2)
    with pytest.raises(sj.SpecError, match=r"up to about 10\^59 memory states \(any 100 of 200 tuples\)"):
        odja(sj.JoinSpec(sj.TimeWindow(200), sj.Budget(tuples=200, shares=(1, 1))), left, right)
    with pytest.raises(sj.SpecError, match=r"up to 30,045,015 memory states \(any 10 of 30 tuples\)"):
        odja(sj.JoinSpec(sj.TimeWindow(30), sj.Budget(tuples=20, shares=(1, 1))), left, right)
    with pytest.raises(sj.SpecError, match="fixed shares"):
        odja(sj.JoinSpec(sj.TimeWindow(2), sj.Budget(tuples=2, allocation="variable")), left, right)
    with pytest.raises(sj.SpecError, match="sense must be one of highest, lowest, not 'best'"):
        odja(sj.JoinSpec(sj.TimeWindow(2), sj.Budget(tuples=2, shares=(1, 1))), left, right, sense="best")
    with pytest.raises(sj.SpecError, match="worth must give a finite number"):
        odja(
            sj.JoinSpec(sj.TimeWindow(2), sj.Budget(tuples=2, shares=(1, 1))),
            left,
            right,
            worth=lambda x, y: np.zeros(1),
        )
