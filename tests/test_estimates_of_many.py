"""Estimates of joins of three and more streams: variances are unbiased, and intervals hold."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin import estimates


def all_runs(rows: int, when: list[tuple[float, ...]]) -> list[tuple[float, np.ndarray[Any, Any]]]:
    """Every outcome of rows that leave memory one after the other, with its probability: how long each row stays.

    `when[row]` has the probability that the row is still there at each time; it falls.
    """
    stays = [[*(p - q for p, q in itertools.pairwise((1.0, *chances))), chances[-1]] for chances in when]
    outcomes = itertools.product(*(range(len(one)) for one in stays))
    return [
        (float(np.prod([stays[row][stay] for row, stay in enumerate(outcome)])), np.array(outcome))
        for outcome in outcomes
    ]


def test_the_variance_is_unbiased_over_all_outcomes() -> None:
    """Results of a row of each of two streams, at three times; their newest rows are of a third stream."""
    when = [(0.9, 0.5, 0.2), (1.0, 0.6, 0.6), (0.7, 0.7, 0.1), (0.8, 0.3, 0.3)]  # rows 0 and 1 of a, 2 and 3 of b
    results = [(0, 2, 0, 1.0), (0, 3, 0, 2.0), (0, 2, 1, -1.0), (1, 2, 1, 3.0), (1, 3, 2, 1.5), (0, 3, 2, 1.0)]
    value, variance, square = 0.0, 0.0, 0.0
    for probability, stay in all_runs(4, when):
        seen = [one for one in results if stay[one[0]] > one[2] and stay[one[1]] > one[2]]
        inverse = np.array([[1 / when[a][t], 1 / when[b][t], 1.0] for a, b, t, _ in seen]).reshape(-1, 3)
        rows = np.array([[a, b, number] for number, (a, b, _, _) in enumerate(seen)], np.int64).reshape(-1, 3)
        y = np.array([one[3] for one in seen])
        total = float((inverse.prod(axis=1) * y).sum())
        value, square = value + probability * total, square + probability * total**2
        variance += probability * plain_variance(inverse, rows, y)
    assert value == pytest.approx(sum(one[3] for one in results))
    assert variance == pytest.approx(square - value**2)


def plain_variance(inverse: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """That of the estimate, before negative ones are cut off: pair by pair, and by the package, which must agree."""
    share, total = inverse.prod(axis=1) * y, 0.0
    for one, other in itertools.product(range(len(y)), repeat=2):
        common = [s for s in range(3) if rows[one, s] == rows[other, s]]
        total += (
            share[one] * share[other] * (1.0 - np.prod([1 / min(inverse[one, s], inverse[other, s]) for s in common]))
        )
    columns = estimates._columns(inverse, rows, y, None)
    assert estimates._sums(columns, 1, columns.value).variance == pytest.approx(max(total, 0.0), abs=1e-9)
    return float(total)


def streams(count: int, rows: int, keys: int) -> dict[str, dict[str, Any]]:
    rng, likely = np.random.default_rng(3), 1.0 / np.arange(1, keys + 1)
    return {name: {"key": rng.choice(keys, rows, p=likely / likely.sum())} for name in "abcdefgh"[:count]}


def test_intervals_of_three_streams_hold() -> None:
    tables = streams(3, 400, 80)
    windows = dict.fromkeys("abc", sj.TimeWindow(40))
    true = sj.JoinSpec(windows).build().push(tables)
    exact = np.bincount(tables["a"]["key"][true["a"]] % 2)
    spec = sj.JoinSpec(windows, sj.Budget(tuples=75), sj.Sample())
    held, errors, said = [], [], []
    for seed in range(80):
        out = spec.build(seed=seed).push(tables)
        assert out.inverse.prod(axis=1) == pytest.approx(out.weight)
        told = sj.estimate_total(out.inverse, out.rows, by=tables["a"]["key"][out["a"]] % 2)
        held += ((told.low <= exact) & (exact <= told.high))[~np.isnan(told.low)].tolist()
        errors.append(told.value - exact)
        said.append((told.high - told.low) ** 2 / 80.0)  # Chebyshev: the square root of 20 on each side
    assert len(held) > 100
    assert np.mean(held) > 0.9
    assert np.sqrt(np.nanmean(said, axis=0)) == pytest.approx(np.std(errors, axis=0), rel=0.3)
    apart = np.mean(errors, axis=0) / (np.std(errors, axis=0) / np.sqrt(len(errors)))
    assert (np.abs(apart) < 4.0).all()


def test_the_bound_for_very_many_streams_is_not_below_the_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = streams(4, 200, 20)
    spec = sj.JoinSpec(dict.fromkeys("abcd", sj.TimeWindow(15)), sj.Budget(tuples=30), sj.Sample())
    out = spec.build(seed=1).push(tables)
    exact = sj.estimate_total(out.inverse, out.rows, out.importance)
    monkeypatch.setattr(estimates, "MOST_STREAMS", 3)
    bound = sj.estimate_total(out.inverse, out.rows, out.importance)
    assert bound.value == exact.value
    assert bound.high[0] > exact.high[0]


@pytest.mark.small
def test_what_belongs_to_another_number_of_streams_is_refused() -> None:
    one = {"key": [1]}
    many = sj.JoinSpec(dict.fromkeys("abc", sj.TimeWindow(5)), sj.Budget(tuples=6), sj.Sample()).build()
    out = many.push(a=one, b=one, c=one)
    assert (out.inverse.tolist(), out.weight.tolist()) == ([[1.0, 1.0, 1.0]], [1.0])
    with pytest.raises(sj.InputError, match="Give `inverse` and `rows`"):
        _ = out.stored
    with pytest.raises(sj.InputError, match="results of more have several"):
        sj.estimate_distinct(out.inverse, out.rows)
    with pytest.raises(sj.InputError, match="columns of one length"):
        sj.estimate_total(out.inverse, out.rows[:, :2])
    two = sj.JoinSpec(sj.TimeWindow(5), sj.Budget(tuples=6), sj.Sample()).build().push(left=one, right=one)
    with pytest.raises(sj.InputError, match="has one older row"):
        _ = two.inverse
