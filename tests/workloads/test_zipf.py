"""Streams with Zipf keys: the same seed, the same streams; and the distributions they promise, within statistical error."""

from __future__ import annotations

import numpy as np
import pytest

from shedjoin.errors import SpecError
from shedjoin.workloads import IMPORTANCE, RANKS, zipf, zipf_probabilities

#: Standard errors that a frequency may lie off: about one draw in 15,000 would, by chance, and seeds are fixed.
SIGMAS = 4.0


def test_the_seed_decides() -> None:
    one, same, other = (zipf(500, seed=seed, ranks="uncorrelated", importance="pareto") for seed in (3, 3, 4))
    for stream in range(2):
        for name, values in one.streams[stream].items():
            assert np.array_equal(values, same.streams[stream][name])
            assert name == "ts" or not np.array_equal(values, other.streams[stream][name])


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("ranks", RANKS)
def test_keys_come_as_often_as_the_table_says(skew: float, ranks: str) -> None:
    rows = 40_000
    workload = zipf(rows, seed=11, domain=20, skew=skew, ranks=ranks)
    assert workload.probabilities is not None
    for stream, p in zip(workload.streams, workload.probabilities, strict=True):
        assert p.sum() == pytest.approx(1.0)
        share = np.bincount(stream["key"], minlength=20) / rows
        assert np.all(np.abs(share - p) <= SIGMAS * np.sqrt(p * (1 - p) / rows))


def test_ranks_relate_the_popularity_orders() -> None:
    tables = {ranks: zipf(1, seed=5, domain=200, ranks=ranks).probabilities for ranks in RANKS}

    def correlation(ranks: str) -> float:
        left, right = (np.argsort(np.argsort(p)) for p in tables[ranks] or ())
        return float(np.corrcoef(left, right)[0, 1])

    assert correlation("correlated") == pytest.approx(1.0)
    assert correlation("anti") == pytest.approx(-1.0)
    assert abs(correlation("uncorrelated")) < SIGMAS / np.sqrt(200)


def test_streams_may_differ_in_skew() -> None:
    workload = zipf(1, seed=0, domain=10, skew=(1.0, 0.0))
    assert workload.probabilities is not None
    np.testing.assert_allclose(workload.probabilities[0], zipf_probabilities(10, 1.0))
    np.testing.assert_allclose(workload.probabilities[1], 0.1)


def test_importance_leaves_the_keys_as_they_were() -> None:
    plain, worthy = (zipf(300, seed=9, importance=name) for name in ("one", "rare_high"))
    assert np.array_equal(plain.left["key"], worthy.left["key"])
    assert np.array_equal(plain.right["key"], worthy.right["key"])
    assert np.all(plain.left["importance"] == 1)


@pytest.mark.parametrize("name", IMPORTANCE)
def test_importance_is_positive_and_bounded(name: str) -> None:
    values = IMPORTANCE[name](np.random.default_rng(2), 20_000)
    assert values.min() > 0
    assert values.max() <= 100


def test_high_importance_is_rare() -> None:
    values = IMPORTANCE["rare_high"](np.random.default_rng(2), 40_000)
    assert np.mean(values >= 50) == pytest.approx(0.05, abs=SIGMAS * np.sqrt(0.05 * 0.95 / 40_000))
    assert not np.any((values > 10) & (values < 50))
    pareto = IMPORTANCE["pareto"](np.random.default_rng(2), 40_000)
    above = 10**-1.5  # P(X > 10) of a Pareto with exponent 1.5
    assert np.mean(pareto > 10) == pytest.approx(above, abs=SIGMAS * np.sqrt(above / 40_000))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: zipf(5, seed=0, ranks="sideways"), "ranks must be one of correlated, uncorrelated, anti"),
        (lambda: zipf(5, seed=0, importance="much"), "importance must be one of one, rare_high, pareto"),
        (lambda: zipf(1.5, seed=0), "rows must be a whole number of at least 0, not 1.5"),
        (lambda: zipf(5, seed=0, skew=(1.0, 1.0, 1.0)), "skew must be one number, or one for each of the two streams"),
        (lambda: zipf(5, seed=0, skew=-1.0), "skew must be at least 0, not -1.0"),
        (lambda: zipf(5, seed=-1), "seed must be a whole number of at least 0, not -1"),
    ],
)
def test_bad_arguments_are_named(make: object, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        make()  # type: ignore[operator]
