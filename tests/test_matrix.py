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
STEP = 5


#: Broke a law once, with the seed of its input: a late row that missed one of which nothing was certain when it expired; and
#: decayed counts that a policy reads as they are, and the next one with a factor in common.
MENDED = (
    ("2-key-time-full_outer-tuples-fixed-rand-live_recall", 0),
    ("2-band-mixed-tuples-variable-multiplicative_always-decayed-deadline-policy_change", 128),
    ("2-band-where-interval-full_outer-bytes-variable-auto-dual-policy_change", 0),
    ("2-band-interval-tuples-variable-age_weighed-history-policy_change", 0),
)


def parameters() -> list[Any]:
    marked = [(one, pytest.mark.small if number % STEP == 0 else ()) for number, one in enumerate(SAMPLE)]
    return [pytest.param(one, marks=marks, id=str(one)) for one, marks in marked]


@pytest.mark.parametrize("combination", parameters())
def test_laws_hold(combination: Combination) -> None:
    hold(draw(combination, seed=0))


@pytest.mark.small
@pytest.mark.parametrize(("name", "seed"), MENDED)
def test_what_was_mended_stays_so(name: str, seed: int) -> None:
    hold(draw(named(name), seed))


def test_every_pair_of_values_is_in_the_sample() -> None:
    """Another seed finds no pair that this sample lacks."""
    there = {part for one in SAMPLE for part in parts_of(one)}
    assert {part for one in covering(seed=1) for part in parts_of(one)} == there
    assert there < set(all_parts(2))


def test_a_name_says_every_value() -> None:
    assert [named(str(one)) for one in SAMPLE] == SAMPLE
