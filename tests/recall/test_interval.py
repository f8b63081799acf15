"""The interval of live recall covers the truth, and its memory is bounded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recall_runs import BUSY, Pushed, followed, run, run_busy, zipf

import shedjoin as sj
from shedjoin.recall import pairs
from shedjoin.recall.estimate import LIVE_COLUMNS, combine
from shedjoin.recall.gamma import gamma_cdf, gamma_quantile
from shedjoin.recall.pairs import PairRecall
from shedjoin.recall.sample import state

small = pytest.mark.small


@pytest.fixture(scope="module")
def busy() -> Pushed:
    return run_busy()


WORKLOADS = {
    "rand, related": (sj.Rand(), 1.0, False),
    "prob, related": (sj.Prob(), 1.0, False),
    "life, unrelated": (sj.Life(), 1.0, True),
    "rand, unrelated, steep": (sj.Rand(), 1.5, True),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_interval_covers_the_truth(name: str) -> None:
    """A hundred samples of one run, each far too small for all rows: at 95%, at least 93 cover the truth.

    benchmarks/live_recall.py does the same with more streams, and with other data for each sample.
    """
    policy, skew, unrelated = WORKLOADS[name]
    batch = zipf(10_000, seed=11, skew=skew, keys=500)
    if unrelated:
        order = np.random.default_rng(1).permutation(500)
        batch = sj.Batch(batch.stream, np.where(batch.stream == 1, order[batch.key], batch.key), *batch.fields()[2:])
    spec = sj.JoinSpec(window=sj.TimeWindow(1000), budget=sj.Budget(tuples=500), policy=policy, importance="sum")
    pushed = run(spec, [batch])
    missing, missing_importance = pushed.truth(spec)
    delivered = len(pushed.pushes[0][1])
    share = delivered / (delivered + missing)
    total = float(pushed.pushes[0][1].importance.sum())
    importance_share = total / (total + missing_importance)
    hits = importance_hits = 0
    guesses = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "START_CREDIT", 1)
        for seed in range(100):
            now = followed(pushed, spec, seed=seed, rows=512).estimate()
            hits += now.low <= share <= now.high
            importance_hits += now.importance_low <= importance_share <= now.importance_high
            guesses.append(now.missing)
            assert now.low < now.recall < now.high
    assert hits >= 93
    assert importance_hits >= 93
    error = np.std(guesses) / 10
    assert abs(np.mean(guesses) - missing) < 4 * error, "the estimate is biased"
    assert error > 0


def test_counts_of_one_key_do_not_overflow() -> None:
    """All rows of one stream have one key: its count is halved in time, again and again."""
    size = 200_000
    batch = sj.Batch.of({"key": np.zeros(size, dtype=np.int64)}, {"key": np.ones(10, dtype=np.int64)})
    live = followed(run(BUSY, [batch]), BUSY)
    most = int(live._sample.key_counts.max())
    assert 2**14 < most < 2**16
    assert abs(most - live._state["counted"][0]) < 2 * state.LONGEST_BLOCK


def test_memory_is_bounded(busy: Pushed) -> None:
    live = PairRecall(BUSY, rows=32)
    for batch, out in busy.pushes:
        live.follow(batch, out)
    assert 0 < live.remembered <= 32
    assert len(live.to_bytes()) < 5000
    assert live.estimate().low < live.estimate().high


@small
def test_quantiles_of_gamma() -> None:
    """Against exact values: shape 1 is exponential, and the distribution function undoes the quantile."""
    for probability in (0.005, 0.025, 0.5, 0.975, 0.995):
        assert gamma_quantile(1.0, probability) == pytest.approx(-math.log1p(-probability), rel=1e-9)
        for shape in (0.01, 0.3, 2.5, 40.0, 999.0):
            assert gamma_cdf(shape, gamma_quantile(shape, probability)) == pytest.approx(probability, rel=1e-6)
        assert gamma_quantile(1e3, probability) == pytest.approx(gamma_quantile(999.999, probability), rel=1e-5)
    assert gamma_quantile(0.0, 0.5) == 0.0


@small
def test_a_sample_that_found_nothing_claims_no_certainty() -> None:
    sums = dict.fromkeys(LIVE_COLUMNS, 0.0) | {"live_results": 100.0, "live_importance": 100.0}
    sums |= {"live_shed": 50.0, "live_unit": 50.0 * 9}
    now = combine([sums])
    assert (now.recall, now.high) == (1.0, 1.0)
    assert now.low == pytest.approx(100 / (100 + 9 * gamma_quantile(1.0, 0.9875)))
