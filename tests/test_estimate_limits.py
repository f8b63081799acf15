"""Limits of estimates: what they are, when there are none, and that they hold where the usual ones do not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import shedjoin as sj

pytestmark = pytest.mark.small


def test_a_group_of_which_only_certain_rows_were_seen_is_not_exact() -> None:
    """Rows of it may have been lost. Where no weight is above 1, nothing says that any was."""
    shed = sj.estimate_total([1.0, 1.0, 4.0], [1, 2, 3], by=[0, 0, 1])
    assert shed.rows.tolist() == [0.0, 1.0]
    assert np.isnan([shed.low, shed.high]).all()
    sure = sj.estimate_total([1.0, 1.0, 1.0], [1, 2, 3], by=[0, 0, 1])
    assert sure.low.tolist() == sure.value.tolist() == sure.high.tolist() == [2.0, 1.0]
    mean = sj.estimate_mean([1.0, 1.0], [1, 2], [3.0, 5.0])
    assert (mean.low[0], mean.high[0]) == (4.0, 4.0)


def test_certain_rows_are_not_among_the_effective_ones() -> None:
    many = sj.estimate_total([1.0] * 500 + [3.0] * 5, np.arange(505))
    assert many.rows[0] == pytest.approx(5.0)
    assert math.isnan(many.low[0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_farther_limit_is_a_root(sign: float) -> None:
    """Twenty rows of probability 1/4: a true sum m has the variance 3 m, and the limit is as many standard errors away."""
    one = sj.estimate_total(np.full(20, 4.0), np.arange(20), np.full(20, sign))
    near, far = sorted((abs(one.low[0]), abs(one.high[0])))
    assert near == pytest.approx(80.0 - 1.959964 * math.sqrt(80.0 * 3.0))
    assert far - 80.0 == pytest.approx(1.959964 * math.sqrt(far * 3.0))


@pytest.mark.parametrize(("p", "rows", "value"), [(0.1, 150, 1.0), (0.05, 500, 1.0), (0.2, 100, 3.0)])
def test_limits_of_skewed_sums_hold(p: float, rows: int, value: float) -> None:
    """Many rows of a high probability, and some of a low one that make most of the variance; each group is a run."""
    rng, runs = np.random.default_rng(1), 3000
    chance = np.concatenate([np.full(200, 0.8), np.full(rows, p)])
    worth = np.concatenate([np.ones(200), np.full(rows, value)])
    run, row = np.nonzero(rng.random((runs, chance.size)) < chance)
    told = sj.estimate_total(1.0 / chance[row], row, worth[row], by=run)
    assert not np.isnan(told.low).any()
    assert 0.93 <= share(told, worth.sum()) <= 0.975
    missed = told.high < worth.sum()
    assert 0.01 < missed.mean() < 0.04
    usual = told._replace(high=2.0 * told.value - told.low)
    assert (usual.high < worth.sum()).mean() > 1.3 * missed.mean()


def share(told: sj.Estimates, true: Any) -> float:
    return float(((told.low <= true) & (true <= told.high)).mean())
