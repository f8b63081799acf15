"""Join types and `matches`: what the matrix does not draw. (That every combination holds its laws is in test_matrix.py.)"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest

import shedjoin as sj
from matrix import CHOOSERS, LIMITS, Combination, draw
from matrix_laws import (
    Trial,
    results_are_part_of_the_exact_join,
    sure_recall_is_sure,
    the_engine_does_what_the_twin_does,
    the_logs_say_what_is_missing,
)
from naive.rows import Row
from shedjoin.engine import plan
from shedjoin.join_type import TYPES
from shedjoin.recall import LiveRecall

OTHERS = [how for how in TYPES if how != "inner"]
WINDOW = sj.TimeWindow(10)


def tables(seed: int, size: int = 120, keys: int = 12) -> dict[str, dict[str, list[Any]]]:
    random = Random(seed)
    return {
        side: {
            "key": [random.choice((None, *range(keys))) for _ in range(size)],
            "ts": sorted(random.randrange(size) for _ in range(size)),
            "importance": [random.choice((1.0, 2.0)) for _ in range(size)],
        }
        for side in ("left", "right")
    }


def rows_of(out: sj.Output) -> list[tuple[int, ...]]:
    return sorted(map(tuple, out.rows.tolist()))


def by_hand(how: str, left: dict[str, list[Any]], right: dict[str, list[Any]]) -> list[tuple[int, int]]:
    pairs = [
        (i, j)
        for i, (a, t) in enumerate(zip(left["key"], left["ts"], strict=True))
        for j, (b, u) in enumerate(zip(right["key"], right["ts"], strict=True))
        if a is not None and a == b and abs(t - u) < WINDOW.length
    ]
    found = [{pair[side] for pair in pairs} for side in (0, 1)]
    lefts = [(i, -1) for i in range(len(left["key"])) if i not in found[0]]
    rights = [(-1, j) for j in range(len(right["key"])) if j not in found[1]]
    return {
        "inner": pairs,
        "left_semi": [(i, -1) for i in found[0]],
        "left_anti": lefts,
        "left_outer": pairs + lefts,
        "right_outer": pairs + rights,
        "full_outer": pairs + lefts + rights,
    }[how]


@pytest.mark.small
@pytest.mark.parametrize("how", TYPES)
def test_an_exact_join_gives_the_rows_of_its_type(how: str) -> None:
    both = tables(1)
    spec = sj.JoinSpec(WINDOW, how=how)
    engine = spec.build()
    assert rows_of(sj.Output.joined([engine.push(both), engine.end()])) == sorted(by_hand(how, **both))
    run = sj.simulate(spec, both["left"], both["right"])
    assert run.matches == len(by_hand(how, **both)) == run.results
    assert sorted(zip(*(column.tolist() for column in run.pairs()), strict=True)) == sorted(by_hand(how, **both))


@pytest.mark.small
@pytest.mark.parametrize("how", OTHERS)
def test_with_a_budget_results_and_what_is_missing_are_the_exact_join(how: str) -> None:
    both = tables(2)
    run = sj.simulate(sj.JoinSpec(WINDOW, sj.Budget(tuples=8), how=how), both["left"], both["right"])
    given = list(zip(*(column.tolist() for column in run.pairs()), strict=True))
    missing = sj.quality.missing_results(run.shed, both["left"], both["right"], run.spec)
    rest = list(zip(*(column.tolist() for column in missing), strict=True))
    assert sorted(given + rest) == sorted(by_hand(how, **both))
    assert given
    assert rest
    assert run.counters["certain"] > 0
    assert run.counters["unknown"] > 0
    since = sj.quality.missing_results(run.shed, both["left"], both["right"], run.spec, warmup=60)
    assert 0 < since[0].size < len(rest)
    assert sj.quality.missing_counts(run.shed, both["left"], both["right"], run.spec).sum() == len(rest)


@pytest.mark.small
@pytest.mark.parametrize("how", TYPES)
def test_with_any_policy_and_memory_nothing_given_is_false(how: str) -> None:
    """The twin decides which rows are certain, too; what is given and what the logs say is missing are the exact join."""
    policies = [(policy, estimator) for policy, estimator in CHOOSERS if estimator in (None, "in_window", "met")]
    kinds = [(budget, allocation) for budget, allocation in LIMITS if budget is not None]
    windows = ("time", "interval", "row")
    made = [
        Combination(2, "key", None, windows[number % 3], how, *kinds[number % len(kinds)], policy, estimator)
        for number, (policy, estimator) in enumerate(policies)
    ]
    told = [one for one in made if one.why_not is None]
    assert len({one.policy for one in told}) >= (9 if how == "inner" else 8)
    for seed, combination in enumerate(told):
        trial = Trial(draw(combination, seed))  # the case says how much memory there is
        the_engine_does_what_the_twin_does(trial)
        results_are_part_of_the_exact_join(trial)
        the_logs_say_what_is_missing(trial)
        sure_recall_is_sure(trial)


@pytest.mark.small
@pytest.mark.parametrize("how", OTHERS)
def test_sure_recall_says_most_of_what_was_delivered(how: str) -> None:
    both = tables(2)
    engine = sj.JoinSpec(WINDOW, sj.Budget(tuples=12), how=how).build()
    given = rows_of(sj.Output.joined([engine.push(both), engine.end()]))
    delivered = sum(-1 in row for row in given)
    share = delivered / sum(-1 in row for row in by_hand(how, **both))
    assert engine.alone == delivered
    assert engine.sure_recall is not None
    assert 0.4 * share < engine.sure_recall <= share < 1


@pytest.mark.small
@pytest.mark.parametrize("how", OTHERS)
@pytest.mark.parametrize("condition", ["key", "graph", "band", "overlap"])
def test_rows_that_were_dropped_before_they_came_leave_doubts(how: str, condition: str) -> None:
    unknown = 0
    for streams in (2, 3) if how in ("left_semi", "left_outer") and condition in ("key", "graph") else (2,):
        for seed, (window, budget) in enumerate(product(("time", "row"), (None, "tuples"))):
            memory = (budget, "variable", "rand") if budget else (None, None, "keep_all")
            case = draw(Combination(streams, condition, None, window, how, *memory), seed)
            random = Random(seed)
            pushes = [
                [row._replace(dropped=_is_there(row) and random.random() < 0.2) for row in push] for push in case.pushes
            ]
            trial = Trial(replace(case, pushes=pushes))
            the_engine_does_what_the_twin_does(trial)
            results_are_part_of_the_exact_join(trial)
            unknown += trial.run.engine.counters["unknown"]
    assert unknown > 0


def _is_there(row: Row) -> bool:
    return row.value is not None and None not in (row.value.values() if isinstance(row.value, dict) else ())


@pytest.mark.small
@pytest.mark.parametrize("how", OTHERS)
def test_results_come_in_pieces_of_any_size(how: str) -> None:
    both, spec = tables(3, size=60), sj.JoinSpec(WINDOW, sj.Budget(tuples=20), how=how)
    whole, engine = spec.build(), spec.build()
    pieces = list(engine.chunks(engine.batch(both), limit=1))
    out, joined = whole.push(both), sj.Output.joined(pieces)
    assert all(len(piece) <= 1 for piece in pieces)
    assert joined.rows.tolist() == out.rows.tolist()
    assert [row.tolist() for row in joined.shed.seen] == [row.tolist() for row in out.shed.seen]
    assert joined.shed.to_arrow().equals(out.shed.to_arrow())


@pytest.mark.small
@pytest.mark.parametrize("streams", [2, 3])
@pytest.mark.parametrize("cells", [1, 2, 16])
def test_rows_are_unknown_and_never_wrong_where_filters_are_small(
    streams: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values share cells: the engine does what the twin does, and nothing given is false."""
    monkeypatch.setattr(plan, "FEWEST_CELLS", cells)
    monkeypatch.setattr(plan, "MOST_CELLS", cells)
    for how in OTHERS if streams == 2 else ["left_semi", "left_outer"]:
        combination = Combination(streams, "key", None, "time", how, "tuples", "variable", "rand")
        for seed in range(3):
            trial = Trial(draw(combination, seed))
            the_engine_does_what_the_twin_does(trial)
            the_logs_say_what_is_missing(trial)


@pytest.mark.small
def test_a_filter_that_is_twice_as_large_makes_fewer_rows_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    both, unknown = tables(4, size=300, keys=100), []
    for cells in (1, 64, 4096):
        monkeypatch.setattr(plan, "FEWEST_CELLS", cells)
        monkeypatch.setattr(plan, "MOST_CELLS", cells)
        run = sj.simulate(sj.JoinSpec(WINDOW, sj.Budget(tuples=12), how="left_outer"), both["left"], both["right"])
        unknown.append(run.counters["unknown"])
    assert unknown[0] > unknown[1] > unknown[2]


@pytest.mark.small
@pytest.mark.parametrize("how", ["inner", "left_outer", "full_outer", "left_anti"])
def test_rows_that_leave_after_their_only_partner_change_nothing_but_the_memory(how: str) -> None:
    """Orders and payments: each order is paid once at most."""
    random = Random(5)
    orders = {"key": list(range(100)), "ts": list(range(100))}
    paid = sorted((order + random.randrange(30), order) for order in random.sample(range(100), 80))
    payments = {"key": [order for _, order in paid], "ts": [ts for ts, _ in paid]}
    window = sj.TimeWindow(40)
    runs = [
        sj.simulate(sj.JoinSpec(window, how=how, matches=matches), orders, payments)
        for matches in (None, (1, None), (1, 1))
    ]
    results = [sorted(zip(*(column.tolist() for column in run.pairs()), strict=True)) for run in runs]
    assert results[0] == results[1] == results[2]
    assert runs[0].peak_tuples > runs[1].peak_tuples > runs[2].peak_tuples or how == "left_anti"
    assert runs[2].counters["satisfied"] >= 80


@pytest.mark.small
def test_spark_calls_types_by_several_names() -> None:
    names = {
        "LEFT": "left_outer", "leftouter": "left_outer", "left_outer": "left_outer", "right": "right_outer",
        "outer": "full_outer", "full": "full_outer", "FullOuter": "full_outer", "semi": "left_semi",
        "left_semi": "left_semi", "leftsemi": "left_semi", "anti": "left_anti", "leftanti": "left_anti", "inner": "inner",
    }  # fmt: skip
    for name, how in names.items():
        assert sj.JoinSpec(WINDOW, how=name).how == how


@pytest.mark.small
@pytest.mark.parametrize("how", TYPES)
def test_a_spec_goes_to_plain_data_and_back(how: str) -> None:
    spec = sj.JoinSpec(WINDOW, how=how, matches=(1, None))
    assert sj.JoinSpec.from_dict(spec.to_dict()) == spec


SAME = ("left.key = right.key",)


@pytest.mark.small
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            dict(how="sideways"),
            "JoinSpec.how must be one of inner, left_semi, left_anti, left_outer, right_outer, full_outer",
        ),
        (dict(how=3), "JoinSpec.how must be one of"),
        (
            dict(matches=(0, None)),
            "JoinSpec.matches must have one number from 1 on, or None (in a job file 0), for each of 2 streams",
        ),
        (dict(matches=1), "JoinSpec.matches must have one number"),
        (dict(matches=(1, 2, 3)), "JoinSpec.matches must have one number"),
        (
            dict(window=dict.fromkeys("abc", WINDOW), how="full"),
            "A join of three and more streams is inner, left_semi or left_outer",
        ),
        (
            dict(window=sj.RowWindow(4), how="left", dual=sj.Dual(front=False)),
            "Dual windows of rows count released rows",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(sj.SpecError, match=re.escape(sentence)):
        sj.JoinSpec(**{"window": WINDOW, **settings})


@pytest.mark.small
def test_what_knows_pairs_alone_refuses_other_types() -> None:
    both = tables(6)
    spec = sj.JoinSpec(WINDOW, sj.Budget(tuples=8), how="left")
    with pytest.raises(sj.SpecError, match="an optimum is for inner joins"):
        sj.optimum(spec, both["left"], both["right"])
    with pytest.raises(sj.SpecError, match="compares pairs of rows"):
        sj.quality.distances_from_run(sj.simulate(spec, both["left"], both["right"]))
    with pytest.raises(sj.SpecError, match="Live recall counts pairs"):
        LiveRecall(sj.JoinSpec(WINDOW, how="left_semi"))
    band = sj.JoinSpec(WINDOW, on=sj.Band("x", within=1.0), how="left")
    with pytest.raises(sj.SpecError, match=re.escape("part must be (0, 1) with how='left_outer'")):
        band.build(part=(0, 2))


def _values(kind: str, random: Random) -> Any:
    if kind in ("band", "theta"):
        return None if random.random() < 0.1 else random.random() * 500
    if kind == "inner":
        return {item: random.random() for item in random.sample(range(100), 2)}
    return set(random.sample(range(60 if kind == "overlap" else 30), random.choice((0, 1, 2, 2, 3))))


PREDICATES: dict[str, sj.Predicate] = {
    "band": sj.Band("x", within=1.0),
    "overlap": sj.Overlap("x", at_least=2),
    "subset": sj.Subset("x"),
    "superset": sj.Superset("x"),
    "inner": sj.InnerProduct("x", at_least=0.5),
    "theta": sj.Theta("x", "<"),
}


@pytest.mark.small
@pytest.mark.parametrize("window", [sj.TimeWindow(20), sj.RowWindow(20)], ids=str)
@pytest.mark.parametrize("kind", PREDICATES)
def test_shed_rows_leave_no_doubt_about_rows_of_other_values(kind: str, window: sj.Window) -> None:
    """Rows are certain although others were shed, and none of them has a partner. (Of Theta half of all numbers are partners.)"""
    random = Random(kind)
    both = {side: {"x": [_values(kind, random) for _ in range(150)], "ts": range(150)} for side in ("left", "right")}
    exact = sj.JoinSpec(window, on=PREDICATES[kind], how="full_outer").build()
    whole = rows_of(sj.Output.joined([exact.push(exact.batch(both)), exact.end()]))
    held = sj.JoinSpec(window, sj.Budget(tuples=24), sj.Rand(), on=PREDICATES[kind], how="full_outer").build()
    given = rows_of(sj.Output.joined([held.push(held.batch(both)), held.end()]))
    assert set(given) <= set(whole)
    assert held.counters["evicted"] > 50
    alone = [row for row in given if -1 in row]
    nulls = sum(value is None for side in both.values() for value in side["x"])
    assert len(alone) == held.counters["certain"]
    if kind != "theta":
        assert len(alone) - nulls > 0.1 * (sum(-1 in row for row in whole) - nulls)
    assert held.counters["unknown"] > 0


@pytest.mark.small
def test_a_snapshot_of_another_type_is_refused() -> None:
    saved = sj.JoinSpec(WINDOW, how="left").build().snapshot()
    with pytest.raises(sj.SnapshotError, match="another how"):
        sj.JoinSpec(WINDOW).resume(saved)
    with pytest.raises(sj.SnapshotError, match="another matches"):
        sj.JoinSpec(WINDOW, how="left", matches=(1, None)).resume(saved)
