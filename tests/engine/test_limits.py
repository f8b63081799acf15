"""Numbers at the ends of what is allowed: importances that floats can hold in priorities, and the latest times."""

from __future__ import annotations

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.batch import LARGEST, LATEST, SMALLEST

pytestmark = pytest.mark.small


@pytest.mark.parametrize("importance", [LARGEST * 1.01, SMALLEST / 1.01, 5e-324, 1e308])
def test_importances_that_priorities_cannot_hold_are_refused(importance: float) -> None:
    rows = {"key": [1, 1], "importance": [1.0, importance]}
    words = r"(a|left)\.importance must lie from 1e-100 to 1e\+100, but row 1 has"
    with pytest.raises(sj.InputError, match=words):
        sj.Batch.of(rows, None)
    many = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(3)), on="key").build()
    with pytest.raises(sj.InputError, match=words):
        many.push({"a": rows})


@pytest.mark.parametrize("loss", [0.99, 1e-3])
def test_dgl_orders_the_extremes(loss: float) -> None:
    """However long ago a tuple came: its priority, a log, is finite."""
    spec = sj.JoinSpec(sj.TimeWindow(1000), budget=sj.Budget(tuples=4), policy=sj.Dgl(loss=loss))
    engine = spec.build()
    for step in range(150):
        worth = [SMALLEST, 1.0, LARGEST]
        engine.push(sj.Batch.of({"key": [step] * 3, "ts": [step] * 3, "importance": worth}, None))
        live = engine.live(0).tolist()
        assert live[-1] == 3 * step + 2  # of one instant the most important stays
        engine = spec.resume(engine.snapshot())
    assert np.isfinite(engine._state.arrays["prio"]).all()


def test_a_gain_that_floats_cannot_hold_is_a_number() -> None:
    """The largest importance to the power of 4 is infinite; times no partners expected, it is no gain at all."""
    policy = sj.Cumulative(importance=4.0, estimator=sj.Table({1: 1}, {1: 1}))
    spec = sj.JoinSpec(sj.TimeWindow(100), sj.Budget(tuples=6, allocation="variable"), policy)
    engine = spec.build()
    left = {"key": [7, 7, 8, 9, 1, 2, 3, 4], "ts": range(8), "importance": [LARGEST, 1e90, *[1.0] * 6]}
    engine.push(left=left, right={"key": [7, 7, 8, 9, 1, 1, 1, 1], "ts": range(8)})
    assert engine.live(0).tolist()[:2] == [0, 1]  # by far the most important: they stay
    assert spec.resume(engine.snapshot()).live(0).tolist() == engine.live(0).tolist()


def test_life_at_the_end_of_time() -> None:
    """Ends beyond 2**53 are rounded; who is nearer to its end by more than that still goes first, and the cap holds."""
    spec = sj.JoinSpec(sj.TimeWindow(50), budget=sj.Budget(tuples=4), policy=sj.Life(sj.History()))
    engine = spec.build()
    ts = np.arange(LATEST - 40, LATEST + 1, 4)
    side = {"key": np.ones(ts.size, np.int64), "ts": ts}
    engine.push(sj.Batch.of(side, side))
    assert engine.live(0).tolist() == engine.live(1).tolist() == [ts.size - 2, ts.size - 1]
