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
    outs = []
    border = min(int(left["ts"][ROWS // 2]), int(right["ts"][ROWS // 2]))
    for early in (True, False):
        parts = []
        for side in (left, right):
            mine = np.flatnonzero((side["ts"] < border) == early)
            parts.append({"x": [side["x"][i] for i in mine], "ts": side["ts"][mine]})
        outs.append(engine.push(left=parts[0], right=parts[1]))
        engine = sj.JoinSpec(sj.TimeWindow(window), on=predicate).resume(engine.snapshot())
    met, partners = (np.concatenate([getattr(out, side) for out in outs]) for side in ("left", "right"))
    for i in range(0, ROWS, 25):
        close = np.flatnonzero(np.abs(right["ts"] - left["ts"][i]) < window)
        wanted = [int(j) for j in close if fits(predicate, left["x"][i], right["x"][j])]
        assert sorted(partners[met == i].tolist()) == wanted


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


def test_rows_with_too_few_items_meet_nobody() -> None:
    """Also where items are frequent and counted by bitmaps, whose counts have few bits."""
    engine = sj.JoinSpec(sj.TimeWindow(10_000), on=sj.Overlap("x", at_least=8)).build()
    many = {"x": [list(range(12))] * 700, "ts": np.arange(700)}
    engine.push(left=many)
    few = {"x": [[1, 2, 3, 4, 5], list(range(8)), list(range(7))], "ts": [700, 701, 702]}
    assert np.bincount(engine.push(right=few).right, minlength=3).tolist() == [0, 700, 0]


def test_rounds_of_many_instants() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(50), on=sj.Band("x", within=0.5))
    rows = {"x": [float(place % 7) for place in range(400)], "ts": np.arange(400)}
    at_once = spec.build().push(left=rows, right=rows)
    lazy = sj.JoinSpec(sj.TimeWindow(50), on=sj.Band("x", within=0.5), evaluate_every=300).build()
    out = sj.Output.joined([lazy.push(left=rows, right=rows), lazy.flush()])
    assert pairs(out) == pairs(at_once)


@pytest.mark.parametrize(
    "on", [sj.Overlap("x", at_least=1), ("left.x = right.x", "left.y <= right.y")], ids=["items", "graph"]
)
def test_a_policy_that_asks_no_estimator_may_follow(on: Any) -> None:
    window = (
        sj.TimeWindow(100) if isinstance(on, sj.Predicate) else dict.fromkeys(("left", "right"), sj.TimeWindow(100))
    )
    spec = sj.JoinSpec(window, sj.Budget(tuples=20), sj.Prob(sj.History()), on=on)
    engine = spec.build()
    values: dict[str, Any] = {"x": [[place % 9, place % 5] for place in range(60)]}
    if not isinstance(on, sj.Predicate):
        values = {"x": [place % 9 for place in range(60)], "y": [place % 5 for place in range(60)]}
    engine.push(left=values, right=values)
    engine.set_policy(sj.Rand())
    later = {**values, "ts": list(range(60, 120))}
    out = engine.push(left=later, right=later)
    assert sum(engine.residents) == 20
    assert len(out.shed) > 0
