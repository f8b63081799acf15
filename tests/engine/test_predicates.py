"""Joins on predicates with more tuples than the matrix draws: lists, bitmaps and pools grow, and scans find the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from naive import fits

ROWS = 1500
PREDICATES: list[tuple[sj.Predicate, str]] = [
    (sj.Overlap("x", at_least=2), "sets"),
    (sj.Subset("x"), "sets"),
    (sj.Superset("x"), "sets"),
    (sj.InnerProduct("x", at_least=1.5), "weights"),
    (sj.SameSet("x"), "sets"),
    (sj.Band("x", within=0.25), "numbers"),
    (sj.Theta("x", "<", offset=-80.0), "numbers"),
    (sj.Equal("x"), "words"),
]


def column(kind: str, random: np.random.Generator, rows: int) -> list[Any]:
    if kind == "numbers":
        return [float(number) for number in random.normal(0.0, 30.0, rows)]
    if kind == "words":
        return [f"word {number}" for number in random.integers(0, 200, rows)]
    sets = [sorted({int(item) for item in random.zipf(1.6, random.integers(0, 6)) if item < 500}) for _ in range(rows)]
    if kind == "sets":
        return sets
    return [{item: float(random.choice([0.5, 1.0, -0.5])) for item in one} for one in sets]


def table(kind: str, seed: int, rows: int = ROWS) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {"x": column(kind, random, rows), "ts": np.sort(random.integers(0, rows, rows))}


def pairs(out: sj.Output) -> set[tuple[int, int]]:
    return set(zip(out.left.tolist(), out.right.tolist(), strict=True))


@pytest.mark.parametrize(("predicate", "kind"), PREDICATES, ids=lambda one: getattr(one, "name", one))
def test_exact_results(predicate: sj.Predicate, kind: str) -> None:
    """The pairs that fit and whose times are less than the window apart. Windows hold 1200 tuples: items get bitmaps."""
    left, right = table(kind, 1), table(kind, 2)
    window = 1200
    engine = sj.JoinSpec(sj.TimeWindow(window), on=predicate).build()
    found: set[tuple[int, int]] = set()
    border = min(int(left["ts"][ROWS // 2]), int(right["ts"][ROWS // 2]))
    for early in (True, False):
        parts = []
        for side in (left, right):
            mine = np.flatnonzero((side["ts"] < border) == early)
            parts.append({"x": [side["x"][i] for i in mine], "ts": side["ts"][mine]})
        found |= pairs(engine.push(left=parts[0], right=parts[1]))
        engine = sj.JoinSpec(sj.TimeWindow(window), on=predicate).resume(engine.snapshot())
    sample = range(0, ROWS, 25)
    for i in sample:
        close = np.flatnonzero(np.abs(right["ts"] - left["ts"][i]) < window)
        wanted = {(i, int(j)) for j in close if fits(predicate, left["x"][i], right["x"][j])}
        assert {pair for pair in found if pair[0] == i} == wanted


@pytest.mark.parametrize(("predicate", "kind"), PREDICATES, ids=lambda one: getattr(one, "name", one))
@pytest.mark.parametrize("policy", [sj.Rand(), sj.Prob(sj.InWindow()), sj.SimpProb(sj.Met())], ids=lambda one: one.name)
def test_lists_and_scans_agree_within_a_budget(predicate: sj.Predicate, kind: str, policy: sj.Policy) -> None:
    left, right = table(kind, 3, 900), table(kind, 4, 900)
    outs = []
    for index in ("auto", "scan"):
        spec = sj.JoinSpec(
            (sj.TimeWindow(700), sj.RowWindow(600)),
            on=predicate,
            budget=sj.Budget(tuples=300),
            policy=policy,
            index=index,
        )
        outs.append(spec.build(seed=5).push(left=left, right=right))
    assert pairs(outs[0]) == pairs(outs[1])
    assert outs[0].shed.seq.tolist() == outs[1].shed.seq.tolist()


def test_what_cannot_be_read_is_said() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(10), on=sj.Overlap("words", at_least=2))
    with pytest.raises(sj.InputError, match=r"left needs a column 'words'; it has word"):
        spec.build().push(left={"word": [[1]]})
    with pytest.raises(sj.InputError, match=r"Batch.values must have what the join's predicate compares"):
        spec.build().push(sj.Batch.of({"key": [1]}))
    with pytest.raises(sj.SpecError, match=r"A predicate compares two streams"):
        sj.JoinSpec({name: sj.TimeWindow(5) for name in "abc"}, on=sj.Band("x", within=1.0))
    with pytest.raises(sj.SpecError, match=r"JoinSpec.index must be 'auto' or 'scan' with a predicate, not 7"):
        sj.JoinSpec(sj.TimeWindow(5), on=sj.Band("x", within=1.0), index=7)


def test_plain_data() -> None:
    for predicate, _ in PREDICATES:
        spec = sj.JoinSpec(sj.TimeWindow(10), on=predicate, budget=sj.Budget(tuples=5))
        assert sj.JoinSpec.from_dict(spec.to_dict()) == spec
    with pytest.raises(sj.SpecError, match=r"on.name must be one of equal, band"):
        sj.JoinSpec.from_dict({"window": {"time": 5}, "on": {"name": "near"}})
