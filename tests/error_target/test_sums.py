"""What a pilot's results say of variances: at its own threshold as `estimate_total` says, in whatever pieces they come."""

from __future__ import annotations

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.error_target.sums import RATIOS, Sums
from shedjoin.estimates import _columns, _sums


def results(seed: int, rows: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Results in order of time: the weights of a row rise."""
    rng = np.random.default_rng(seed)
    row = rng.integers(0, 30, rows)
    weight = np.maximum(1.0, rng.lognormal(size=30)[row] * (1.0 + np.arange(rows) / 100.0))
    return weight, row, rng.normal(1.0, 2.0, rows), rng.integers(5, 8, rows)


@pytest.mark.parametrize("memories", [1, 2])
@pytest.mark.parametrize("pieces", [1, 7])
def test_the_same_as_estimates_at_the_pilots_own_threshold(memories: int, pieces: int) -> None:
    weight, row, value, group = results(pieces)
    sums = Sums(memories)
    for part in np.array_split(np.arange(row.size), pieces):
        sums.add(weight[part], row[part], value[part], group[part])
    sums.close()
    names, which = np.unique(group, return_inverse=True)
    expected = _sums(_columns(weight, row, value, which), names.size, value)
    assert sums.groups.group.tolist() == names.tolist()
    assert sums.groups.total == pytest.approx(expected.total)
    assert np.maximum(sums.groups.variance[:, :, 0].sum(axis=1), 0.0) == pytest.approx(expected.variance)
    of_rows = np.zeros((names.size, row.max() + 1))
    np.add.at(of_rows, (which, row), weight * value)
    assert sums.groups.whole == pytest.approx(np.abs(of_rows).sum(axis=1))
    assert sums.groups.square == pytest.approx((of_rows**2).sum(axis=1))
    assert sums.groups.variance[:, :, -1] == pytest.approx(0.0)


def test_rows_that_are_gone_are_forgotten() -> None:
    weight, row, value, group = results(3)
    sums = Sums(1)
    sums.add(weight, row, value, group)
    sums.close(np.arange(10))
    assert set(sums.open.row.tolist()) == set(range(10))
    assert sums.groups.whole.sum() > 0.0


def test_variances_between_two_ratios_are_on_a_line() -> None:
    weight, row, value, group = results(4)
    sums = Sums(1)
    sums.add(weight, row, np.abs(value), group)
    sums.close()
    between, _ = sums.groups.at(np.array([(RATIOS[3] + RATIOS[4]) / 2.0]))
    assert between == pytest.approx(sums.groups.variance[:, 0, 3:5].mean(axis=1))
    assert (np.diff(sums.groups.variance[:, 0], axis=1) <= 1e-9).all()


def test_a_pilot_foretells_the_variance_of_a_larger_memory() -> None:
    """On average over pilots; the truth is from joins with other random numbers."""
    rng, likely = np.random.default_rng(2), 1.0 / np.arange(1, 61)
    left, right = ({"key": rng.choice(60, 2500, p=likely / likely.sum())} for _ in range(2))
    spec = sj.JoinSpec(sj.TimeWindow(300), sj.Budget(tuples=100), sj.Sample())
    totals, told, ratios = [], [], []
    for seed in range(120):
        totals.append(
            spec.with_budget(sj.Budget(tuples=250)).build(seed=seed).push(left=left, right=right).weight.sum()
        )
        engine = spec.build(seed=1000 + seed)
        out = engine.push(left=left, right=right)
        stored = engine.inverses().inverse
        parts = np.linspace(1.0, 0.01, 200)
        ratios.append(parts[np.argmax([np.minimum(stored, 1.0 / part).sum() >= 250 for part in parts])])
        sums = Sums(1)
        sums.add(out.weight, out.stored, np.ones(len(out)), np.zeros(len(out), np.int64))
        told.append(sums.groups)
    at = np.mean(ratios)
    assert np.mean([one.at(np.array([at]))[0][0] for one in told]) == pytest.approx(np.var(totals), rel=0.4)
