"""Conditions of `JoinSpec`: what is read, what is refused, and three truth values in tests of two."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest

import shedjoin as sj
from naive import Row, draw_tree, text, truth
from shedjoin.engine.graph import APART, AT_LEAST, AT_MOST, BAND, EQUAL, LESS, MORE, SET, UNEQUAL, UNSET
from shedjoin.engine.stages import probe_many
from shedjoin.engine.stages.probe import BLOCK
from shedjoin.engine.where import MOST_COLUMNS, OPPOSITE, parse_where

pytestmark = pytest.mark.small
#: As plain Python.
holds = getattr(probe_many.holds, "py_func", probe_many.holds)
NAMES = ("left", "right")
WINDOW = sj.TimeWindow(5)
BAD = [
    ("left.x <", "where ends too early"),
    ("left.x < 5", "where cannot be read from '5' on"),
    ("left.x < right.y right.z", "where cannot be read from 'right.z' on"),
    ("left.x ~ right.y", "where cannot be read from '~ right.y' on"),
    ("other.x < right.y", "where speaks of a stream 'other'; the streams are left, right"),
    ("|left.x - right.y| <= 4611686018427387904", r"where has a band of 4611686018427387904: it must be below 2\*\*62"),
    ("|left.x - right.y| <= right.z", "where cannot be read"),
    ("(" * 101 + "left.x" + ")" * 101, "where is nested more than 100 times"),
    (" AND ".join(f"left.x{n}" for n in range(MOST_COLUMNS + 1)), "where looks at 63 columns of left"),
    ("", "where must be a condition such as"),
    (3, "where must be a condition such as"),
]


@pytest.mark.parametrize(("where", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_conditions_get_a_sentence(where: Any, said: str) -> None:
    with pytest.raises(sj.SpecError, match=said):
        sj.JoinSpec(WINDOW, where=where)


def test_a_condition_is_part_of_the_spec() -> None:
    spec = sj.JoinSpec(WINDOW, where="left.x < right.y or not (left.f is true)")
    assert sj.JoinSpec.from_dict(spec.to_dict()) == spec
    engine = spec.build()
    rows = {"left": {"key": [1], "x": [1], "f": [False]}, "right": {"key": [1], "y": [None]}}
    assert engine.push(rows).rows.tolist() == [[0, 0]]
    with pytest.raises(sj.SnapshotError):
        sj.JoinSpec(WINDOW, where="left.x < right.y").resume(engine.snapshot())
    with pytest.raises(sj.InputError, match="left needs a column 'x'"):
        engine.push(left={"key": [1], "f": [True]})
    within = sj.JoinSpec(WINDOW, sj.Budget(tuples=3), where="left.x")
    with pytest.raises(sj.SpecError, match="an optimum counts partners by their keys"):
        sj.optimum(within, {"key": [1], "x": [1]}, {"key": [1]})


@pytest.mark.parametrize("on", ["key", sj.Band("x", within=1), ("left.key = right.key", "left.x <= right.x")], ids=str)
def test_a_given_order_changes_nothing(on: Any) -> None:
    """Whichever window is looked into first."""
    left = {"key": [1, 1, 2], "x": [1, 2, 3], "p": [1, 5, None]}
    right = {"key": [1, 2, 1], "x": [2, 3, 1], "p": [3, 2, 4]}
    other_first = {"left": ("right", "left"), "right": ("left", "right")}
    said = []
    for order in ("auto", ("right", "left"), other_first):
        engine = sj.JoinSpec(WINDOW, on=on, where="left.p < right.p", order=order).build()
        said.append(sorted(map(tuple, engine.push(left=left, right=right).rows)))
    assert said[0] == said[1] == said[2] != []


@pytest.mark.parametrize("streams", [2, 3])
def test_random_conditions(streams: int) -> None:
    """Each result of all rows that meet is one for which the condition is true."""
    draw, names = Random(streams), "abc"[:streams]
    values = [{"p": p, "q": q} for p, q in itertools.product((0, 1, None), repeat=2)]
    for _ in range(40):
        tree = draw_tree(draw, streams, ("p", "q"))
        spec = sj.JoinSpec(dict.fromkeys(names, WINDOW), where=text(tree, names))
        table = {"key": [1] * 9, "ts": [0] * 9, "p": [one["p"] for one in values], "q": [one["q"] for one in values]}
        found = set(map(tuple, spec.build().push(dict.fromkeys(names, table)).rows.tolist()))
        rows = [[Row(stream, 1, 0, more=one) for one in values] for stream in range(streams)]
        assert found == {
            which
            for which in itertools.product(range(9), repeat=streams)
            if truth(tree, [rows[stream][place] for stream, place in enumerate(which)]) is True
        }, text(tree, names)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_key_has_more_tuples_than_are_tested_at_once(ahead: bool) -> None:
    """Blocks of tuples are tested before pairs are looked at: whole ones and the last, and those that are too new."""
    draw, size = Random(ahead), 2 * BLOCK + 7
    sides = [
        {"key": [1] * size, "ts": list(range(size)), **{name: draw.choices((None, 0, 1, 2), k=size) for name in "pq"}}
        for _ in NAMES
    ]
    trees = [draw_tree(draw, 2, ("p", "q")) for _ in range(2)]
    for where in (
        "left.p < right.p",
        "left.p >= right.p AND left.q != right.q",
        *(text(tree, NAMES) for tree in trees),
    ):
        engine = sj.JoinSpec(sj.TimeWindow(100), where=where).build()
        pushes = ({"right": sides[1]}, {"left": sides[0]}) if ahead else (dict(zip(NAMES, sides, strict=True)),)
        found = {tuple(pair) for push in pushes for pair in engine.push(**push).rows.tolist()}
        one = sj.JoinSpec(sj.TimeWindow(1000), where=where)  # of two rows alone: the twin of the test above knows these
        values = sorted({(p, q) for side in sides for p, q in zip(side["p"], side["q"], strict=True)}, key=str)
        table = {"key": [1] * len(values), "p": [p for p, _ in values], "q": [q for _, q in values]}
        passing = {(values[a], values[b]) for a, b in one.build().push(left=table, right=table).rows.tolist()}
        (left, right) = (list(zip(side["p"], side["q"], strict=True)) for side in sides)
        assert found == {
            (a, b)
            for a in range(size)
            for b in range(max(0, a - 99), min(size, a + 100))
            if (left[a], right[b]) in passing
        }, where


def test_every_test_has_an_opposite() -> None:
    numbers = (-(2**63), -5, -1, 0, 1, 2, 7, 2**63 - 1)
    for op, mine, other, number in itertools.product(
        (EQUAL, LESS, AT_MOST, MORE, AT_LEAST, UNEQUAL, SET, UNSET), numbers, numbers, (-1, 1, 4)
    ):
        assert holds(op, mine, other, number) != holds(OPPOSITE[op], mine, other, number)
    for mine, other in itertools.product(range(-4, 5), repeat=2):
        assert holds(BAND, mine, other, 2) == (abs(mine - other) <= 2) != holds(APART, mine, other, 2)


def test_conjuncts_of_one_comparison_are_strict() -> None:
    where = parse_where("left.a < right.b AND (left.c OR left.a) AND left.d AND left.e <=> right.e", NAMES)
    assert {name for _, name in where.strict} == {"a", "b", "d"}
