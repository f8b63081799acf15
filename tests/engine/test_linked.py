"""Functions that only kernels call are compiled once, to be linked; by a numba that was not tried, as it always does."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from shedjoin.engine import linked
from shedjoin.engine.jit import kernel


def compiled() -> tuple[Any, Any]:
    """A part that is called with a constant, a narrow and a wide number and a truth; and what calls it."""

    @kernel
    def part(number, sign):
        return -number * 3 if sign else number * 3

    @numba.njit
    def whole(narrow, wide):
        return part(7, True) + part(narrow[0], False) + part(wide[0], wide[0] > 0)

    return part, whole


ARGS = (np.array([2**30], np.int32), np.array([2**40]))
WANTED = -21 + 3 * 2**30 - 3 * 2**40


def test_a_part_is_compiled_once_and_python_cannot_call_it() -> None:
    part, whole = compiled()
    assert whole(*ARGS) == WANTED
    assert part.signatures == [(numba.int64, numba.boolean)]
    with pytest.raises(TypeError, match="part is a part of kernels, and only they can call it"):
        part(1, True)


def test_a_numba_that_was_not_tried_compiles_as_it_always_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked, "TRIED", ("0.0.",))
    part, whole = compiled()
    assert whole(*ARGS) == WANTED
    assert len(part.signatures) == 3
    assert part(1, True) == -3


def test_the_numba_that_is_installed_was_tried() -> None:
    assert linked.known(), f"try numba {numba.__version__}, then name it in linked.TRIED"
