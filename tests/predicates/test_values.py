"""Columns of numbers, values, sets and weighted sets are read from what users have; what cannot be read gets a clear word."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import shedjoin as sj
from predicate_strategies import pairs

pytestmark = pytest.mark.small

ROWS = [[1, 2, 3], [], None, [7, 7, 5]]
WEIGHTS = [{1: 2.0, 4: 0.5}, {}, None, {7: 1.0}]


def one_join(predicate: sj.Predicate, left: Any, right: Any) -> list[tuple[int, int]]:
    join = sj.PredicateJoin(sj.TimeWindow(100), predicate)
    return pairs(join.build().push(left=left, right=right))


@pytest.mark.parametrize(
    "column",
    [
        ROWS,
        [None if row is None else set(row) for row in ROWS],
        pa.array(ROWS),
        pa.chunked_array([pa.array(ROWS[:1]), pa.array(ROWS[1:], pa.list_(pa.int64()))]),
        pa.array(ROWS, pa.large_list(pa.int32())),
        pa.array([[9], *ROWS]).slice(1),
        pd.Series(ROWS),
    ],
    ids=["lists", "sets", "arrow", "chunks", "large", "sliced", "pandas"],
)
def test_sets_may_come_in_many_forms(column: Any) -> None:
    assert one_join(sj.SameSet("x"), {"x": column}, {"x": [[3, 2, 1], [5, 7], []]}) == [(0, 0), (1, 2), (3, 1)]


@pytest.mark.parametrize(
    "column",
    [
        WEIGHTS,
        pa.array([None if row is None else list(row.items()) for row in WEIGHTS], pa.map_(pa.int64(), pa.float64())),
        pa.array(
            [None if row is None else [{"item": k, "w": v} for k, v in row.items()] for row in WEIGHTS],
            pa.list_(pa.struct([("item", pa.int64()), ("w", pa.float32())])),
        ),
        [None if row is None else list(row.items()) for row in WEIGHTS],
    ],
    ids=["dicts", "map", "structs", "pairs"],
)
def test_weights_may_come_in_many_forms(column: Any) -> None:
    other = {"x": sj.Sets([0, 2, 3], [4, 1, 7], [2.0, 0.25, 3.0])}
    assert one_join(sj.InnerProduct("x", at_least=1.5), {"x": column}, other) == [(0, 0), (3, 1)]


def test_text_is_hashed_alike_in_both_streams() -> None:
    left, right = {"words": [["oil", "gas"], ["tin"]]}, {"terms": pa.array([["gas", "oil", "tin"], None])}
    assert one_join(sj.Overlap(("words", "terms"), at_least=2), left, right) == [(0, 0)]
    assert one_join(sj.Equal(("a", "b")), {"a": ["x", None, "y"]}, {"b": ["y", "x", None]}) == [(0, 1), (2, 0)]


@pytest.mark.parametrize(
    ("predicate", "column", "words"),
    [
        (sj.Band("x", 1), ["a"], ["left.x", "numbers", "string"]),
        (sj.Band("x", 1), [float("inf")], ["left.x", "finite", "row 0"]),
        (sj.Equal("x"), [1.5], ["left.x", "whole numbers or text", "double"]),
        (sj.Overlap("x"), [1, 2], ["left.x", "not"]),
        (sj.Overlap("x"), pa.array([1, 2]), ["left.x", "lists of items", "int64"]),
        (sj.Overlap("x"), pa.array([[1, None]]), ["left.x", "no null"]),
        (sj.InnerProduct("x", 1.0), pa.array([[1]]), ["left.x", "weights"]),
        (sj.InnerProduct("x", 1.0), sj.Sets([0, 1], [1]), ["left.x", "weights"]),
        (sj.InnerProduct("x", 1.0), sj.Sets([0, 2], [1, 1], [1.0, 2.0]), ["left.x", "each item once", "row 0"]),
        (sj.InnerProduct("x", 1.0), [{1: float("nan")}], ["left.x", "finite weights"]),
    ],
)
def test_what_cannot_be_read_is_named(predicate: sj.Predicate, column: Any, words: list[str]) -> None:
    with pytest.raises(sj.InputError) as caught:
        sj.PredicateJoin(sj.TimeWindow(3), predicate).build().push(left={"x": column})
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sj.Band("x", within=-1), ["Band.within", "at least 0", "-1"]),
        (lambda: sj.Band("", within=1), ["Band.column", "''"]),
        (lambda: sj.Theta("x", "=="), ["Theta.operator", "Equal"]),
        (lambda: sj.Theta("x", "~"), ["Theta.operator", "<="]),
        (lambda: sj.Overlap("x", at_least=0), ["Overlap.at_least", "0"]),
        (lambda: sj.Overlap(("x",)), ["Overlap.column", "pair"]),  # type: ignore[arg-type]
        (lambda: sj.InnerProduct("x", at_least=0), ["InnerProduct.at_least", "above 0"]),
        (lambda: sj.Sets([0, 3], [1]), ["Sets.offsets", "1"]),
        (lambda: sj.Sets([0, 1], [1], [1.0, 2.0]), ["Sets.weights", "2"]),
    ],
)
def test_predicates_are_checked_when_made(make: Any, words: list[str]) -> None:
    with pytest.raises(sj.ShedjoinError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(sj.InputError, match="left needs a column 'words'; it has ts"):
        sj.PredicateJoin(sj.TimeWindow(3), sj.Overlap("words")).build().push(left={"ts": [1]})
