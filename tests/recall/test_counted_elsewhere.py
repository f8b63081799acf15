"""Live recall of engines that each get a part of the rows of a join with row windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from counted import drawn, one_engine, parts
from shedjoin.recall import LiveRecall, combine
from strategies.combinations import INTERPRETED

T, R = sj.TimeWindow, sj.RowWindow
CASES = 12 if INTERPRETED else 60


@pytest.mark.small
@pytest.mark.parametrize("windows", [(R(4), R(6)), (R(5), T(9)), (T(7), R(4))], ids=str)
def test_a_sample_of_all_rows_counts_exactly_what_is_missing(windows: Any) -> None:
    draw = np.random.default_rng(2)
    lost = 0
    for _ in range(CASES):
        case = drawn(draw, windows, in_order=True)
        expected, _ = one_engine(case)
        budget = sj.Budget(tuples=2, allocation="variable")
        spec = replace(case.spec, counted_elsewhere=True, budget=budget, policy=sj.Rand())
        engines = [spec.build(seed) for seed in range(case.engines)]
        lives = [LiveRecall(spec, seed) for seed in range(case.engines)]
        for batches, clocks, arrived in parts(case):
            for place, batch in enumerate(batches):
                live = lives[place]
                live.follow(batch, engines[place].push(batch, clocks=clocks, arrived=arrived))
                if draw.random() < 0.3:  # between two pushes, budgets may change and estimates be saved
                    change = engines[place].set_budget(
                        sj.Budget(tuples=int(draw.integers(2, 4)), allocation="variable")
                    )
                    live.follow(sj.Batch.of(), change)
                    lives[place] = LiveRecall.from_bytes(spec, live.to_bytes(), place)
        now = combine([live.sums() for live in lives], 0.95)
        assert (now.results + now.missing, now.low) == (len(expected), now.high)
        lost += int(now.missing)
    assert lost > 0


@pytest.mark.small
def test_an_estimate_that_counts_its_own_rows_is_another_one() -> None:
    plain = sj.JoinSpec(R(3), sj.Budget(tuples=2), sj.Rand())
    with pytest.raises(sj.SnapshotError, match="another setting of counted_elsewhere"):
        LiveRecall.from_bytes(replace(plain, counted_elsewhere=True), LiveRecall(plain).to_bytes())
