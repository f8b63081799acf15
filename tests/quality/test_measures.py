"""Set-theoretic measures against Counters."""

from __future__ import annotations

from collections import Counter
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shedjoin import quality
from shedjoin.errors import InputError, SpecError

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20)


def columns(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


@given(ROWS, ROWS)
def test_every_measure_is_its_formula_over_multisets(
    exact: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    y, x = Counter(exact), Counter(other)
    common, union = (x & y).total(), (x | y).total()
    sizes = x.total(), y.total()
    pair = columns(exact), columns(other)
    assert quality.symmetric_difference(*pair) == ((x - y) + (y - x)).total()
    assert quality.matching(*pair) == common
    assert quality.dice(*pair) == (2 * common / sum(sizes) if sum(sizes) else 1.0)
    assert quality.jaccard(*pair) == (common / union if union else 1.0)
    assert quality.cosine(*pair) == (common / sqrt(sum(sizes)) if sum(sizes) else 0.0)
    usual = common / sqrt(sizes[0] * sizes[1]) if all(sizes) else float(sizes == (0, 0))
    assert quality.cosine(*pair, which="usual") == usual
    assert quality.overlap(*pair) == (common / min(sizes) if min(sizes) else 1.0)
    summary = quality.compare(*pair)
    lost = y - x
    assert (summary.exact, summary.approximate) == (y.total(), x.total())
    assert (summary.missing, summary.extra) == (lost.total(), (x - y).total())
    assert summary.arm == len({left for left, _ in lost}) + len({right for _, right in lost})
    assert summary.symmetric_difference == quality.symmetric_difference(*pair)
    assert summary.cosine_usual == usual


@given(ROWS, st.data())
def test_a_subset_is_judged_by_what_is_missing(exact: list[tuple[int, int]], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(exact), max_size=len(exact)))
    part = [row for row, keep in zip(exact, kept, strict=True) if keep]
    pair = columns(exact), columns(part)
    assert quality.max_subset(*pair) == len(exact) - len(part) == quality.symmetric_difference(*pair)
    assert quality.overlap(*pair) == 1.0


def test_das2003_figure_2() -> None:
    exact = ([0, 1, 1, 2, 2, 3, 3], [2, 2, 3, 2, 3, 1, 4])
    optimum = ([0, 2, 2, 3, 3], [2, 2, 3, 1, 4])
    summary = quality.compare(exact, optimum)
    assert (summary.exact, summary.approximate, summary.missing) == (7, 5, 2)
    assert (summary.incomplete_left, summary.incomplete_right, summary.arm) == (1, 2, 3)  # r(1); s(2) and s(3)
    assert summary.dice == 10 / 12
    assert summary.jaccard == summary.recall == 5 / 7
    assert summary.cosine == 5 / sqrt(12)
    assert quality.arm(exact, optimum) == 3
    assert summary.to_dict()["arm"] == 3


def test_an_answer_that_is_no_subset_has_no_max_subset() -> None:
    with pytest.raises(InputError, match="1 results that exact has not"):
        quality.max_subset(([1], [1]), ([2], [2]))


@pytest.mark.parametrize("pairs", [([1, 2], [1]), ([1.5], [1]), [1, 2, 3], ([[1]], [[1]])])
def test_what_is_not_two_columns_of_row_numbers_is_refused(pairs: object) -> None:
    with pytest.raises(InputError, match="exact"):
        quality.compare(pairs, ([1], [1]))  # type: ignore[arg-type]


def test_an_unknown_cosine_is_refused() -> None:
    with pytest.raises(SpecError, match="printed, usual"):
        quality.cosine(([1], [1]), ([1], [1]), which="ochiai")
