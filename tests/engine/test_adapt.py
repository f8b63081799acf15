"""How r is shared among windows, and among types of rows: laws for any numbers (gedik2007, Algorithms 4 and 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import shedjoin as sj

pytestmark = pytest.mark.small


def engine_of(windows: tuple[int, int], basic: int, types: int = 0) -> sj.Engine:
    """An engine that has seen tuples of both windows."""
    sizes = (sj.TimeWindow(windows[0]), sj.TimeWindow(windows[1]))
    engine = sj.JoinSpec(sizes, selective=sj.Selective(basic=basic, types=types)).build()
    engine._state["mean_window"][:2] = 1.0
    return engine


@settings(max_examples=60, deadline=None)
@given(r=st.floats(1e-4, 1.0), w0=st.integers(1, 10**6), w1=st.integers(1, 10**6), first=st.booleans())
def test_better_windows_get_as_much_as_can_be(r: float, w0: int, w1: int, first: bool) -> None:
    engine = engine_of((w0, w1), max(w0, w1))
    engine._state["mean_density"][:2] = (0.5, 0.25) if first else (0.25, 0.5)
    engine.set_fraction(r)
    r0, r1 = engine.fractions
    assert 0.0 <= r0 <= 1.0
    assert 0.0 <= r1 <= 1.0
    assert r0 * w0 + r1 * w1 == pytest.approx(r * (w0 + w1), rel=1e-9, abs=1e-9)
    better, other = (r0, r1) if first else (r1, r0)
    assert better == pytest.approx(1.0) or other == pytest.approx(0.0, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_types_are_packed_as_well_as_by_linear_programming(data: st.DataObject) -> None:
    kinds, basic = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([4, 8]))
    engine = engine_of((8, 8), basic, kinds)
    arrays, ages = engine._state.arrays, 2 * (8 // basic) + 1

    def numbers(*shape: int) -> Any:
        size = int(np.prod(shape))
        return np.array(data.draw(st.lists(st.floats(0.01, 1.0), min_size=size, max_size=size))).reshape(shape)

    density, share = numbers(2, ages), numbers(2, ages)
    share /= share.sum(1, keepdims=True)
    engine._state["mean_density"][:2] = (density * share).sum(1)
    arrays["age_density"][:], arrays["age_share"][:] = density.ravel(), share.ravel()
    arrays["age_rank"][:] = np.argsort(-density, axis=1).ravel()
    # What a comparison is worth already holds how productive its window is: ages differ from the mean alone.
    density /= (density * share).sum(1, keepdims=True)
    for name in ("kind_rows", "kind_sum", "kind_gain", "kind_seen"):
        arrays[name][:] = numbers(2 * kinds)
    r = data.draw(st.floats(0.01, 0.99))
    engine.set_fraction(r)
    worth, volume = (arrays[name].reshape(2, kinds) for name in ("kind_worth", "kind_volume"))
    fraction, budget = engine.type_fractions, r * 16
    assert (fraction <= 1.0 + 1e-9).all()
    assert (fraction * volume).sum() == pytest.approx(min(budget, volume.sum()), rel=1e-9)
    weights = volume[:, :, None] * share[:, None, :]
    gains = weights * worth[:, :, None] * density[:, None, :]
    best = linprog(-gains.ravel(), A_ub=[weights.ravel()], b_ub=[budget], bounds=(0, 1))
    brought = sum(
        volume[i, z] * worth[i, z] * brings(density[i], share[i], fraction[i, z]) for i in (0, 1) for z in range(kinds)
    )
    assert brought == pytest.approx(-best.fun, rel=1e-7, abs=1e-12)


def brings(density: Any, share: Any, fraction: float) -> float:
    """What comparisons with the best ages bring, up to a fraction of a window."""
    total = 0.0
    for age in np.argsort(-density):
        part = min(share[age], fraction)
        total, fraction = total + part * density[age], fraction - part
    return float(total)
