"""Every dial with every other: the laws of the matrix, over combinations in which any two values meet.

`make matrix` holds them against all combinations. One of them: `python tests/run_matrix.py <name> --seed <number>`.
"""

from __future__ import annotations

from typing import Any

import pytest

from matrix import Combination, all_parts, covering, draw, named, parts_of
from matrix_laws import hold

SAMPLE = covering()
#: Of these, one in so many also runs without the compiler.
STEP = 3


def parameters() -> list[Any]:
    marked = [(one, pytest.mark.small if number % STEP == 0 else ()) for number, one in enumerate(SAMPLE)]
    return [pytest.param(one, marks=marks, id=str(one)) for one, marks in marked]


@pytest.mark.parametrize("combination", parameters())
def test_laws_hold(combination: Combination) -> None:
    hold(draw(combination, seed=0))


def test_every_pair_of_values_is_in_the_sample() -> None:
    """Other random tries find no pair that this sample lacks."""
    there = {part for one in SAMPLE for part in parts_of(one)}
    for seed in (1, 2, 3):
        assert {part for one in covering(seed=seed) for part in parts_of(one)} == there
    assert there < set(all_parts(2))


def test_a_name_says_every_value() -> None:
    assert [named(str(one)) for one in SAMPLE] == SAMPLE
