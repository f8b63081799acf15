"""What has no meaning: one list, whose sentences are the error messages and whose rows the matrix leaves out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import shedjoin as sj
from matrix import Combination
from shedjoin.meaning import GRAPH, KEY, MEANINGLESS, Dials, Meaningless, why_not
from shedjoin.recall import LiveRecall

pytestmark = pytest.mark.small
WINDOW, BUDGET = sj.TimeWindow(9), sj.Budget(tuples=30)
CPU, QUEUE, SELECTIVE = sj.VirtualCpu(4.0), sj.Queue(tuples=3), sj.Selective(basic=3)
#: For each sentence, the dials of a join that it is about, and the join's settings as a user writes them.
EXAMPLES: list[tuple[Dials, dict[str, Any]]] = [
    (Dials(streams=3, condition="overlap"), dict(window=dict.fromkeys("abc", WINDOW), on=sj.Overlap("x"))),
    (Dials(budget=True), dict(budget=BUDGET, policy=sj.KeepAll())),
    (
        Dials(condition="overlap", budget=True, policy="prospect"),
        dict(on=sj.Overlap("x"), budget=BUDGET, policy=sj.Prospect()),
    ),
    (
        Dials(budget=True, policy="sample", estimator="history", how="left_outer"),
        dict(budget=BUDGET, policy=sj.Sample(), how="left"),
    ),
    (
        Dials(budget=True, policy="sample", estimator="history", selective=True),
        dict(budget=BUDGET, policy=sj.Sample(), selective=SELECTIVE),
    ),
    (
        Dials(condition="same_set", budget=True, policy="prob", estimator="table"),
        dict(on=sj.SameSet("x"), budget=BUDGET, policy=sj.Prob(sj.Table({}, {}))),
    ),
    (
        Dials(condition="theta", budget=True, policy="prob", estimator="count_min"),
        dict(on=sj.Theta("x", "<"), budget=BUDGET, policy=sj.Prob(sj.CountMin(8, 2))),
    ),
    (Dials(lazy=True, selective=True), dict(evaluate_every=2, selective=SELECTIVE)),
    (
        Dials(lazy=True, budget=True, policy="dgl", estimator="history", follows_results=True),
        dict(evaluate_every=2, budget=BUDGET, policy=sj.Dgl()),
    ),
    (Dials(queue="random"), dict(queue=QUEUE)),
    (Dials(cpu="deadline"), dict(cpu=sj.Deadline(1.0))),
    (Dials(cpu="virtual", queue="integrated"), dict(cpu=CPU, queue=sj.Queue(integrated=True, drop="semantic"))),
    (
        Dials(cpu="virtual", queue="integrated", budget=True, policy="simp_prob", estimator="met", follows_results=True),
        dict(
            cpu=CPU, queue=sj.Queue(integrated=True, drop="semantic"), budget=BUDGET,
            policy=sj.SimpProb(sj.Met()),
        ),
    ),
    (
        Dials(cpu="virtual", queue="integrated", budget=True, policy="age", follows_results=True),
        dict(cpu=CPU, queue=sj.Queue(integrated=True, drop="semantic"), budget=BUDGET, policy=sj.Age()),
    ),
    (
        Dials(windows=frozenset({"time", "row"}), dual=True),
        dict(window=(WINDOW, sj.RowWindow(9)), dual=sj.Dual()),
    ),
    (Dials(streams=3, dual=True, best_speed=True), dict(window=dict.fromkeys("abc", WINDOW), dual=sj.Dual())),
    (Dials(streams=3, how="full_outer"), dict(window=dict.fromkeys("abc", WINDOW), how="full")),
    (
        Dials(windows=frozenset({"row"}), dual=True, how="left_outer"),
        dict(window=sj.RowWindow(9), dual=sj.Dual(front=0.3), how="left"),
    ),
    (Dials(how="left_semi", recall=True), dict(how="semi")),
    (Dials(how="left_anti", what_if=True), dict(how="anti", what_if=sj.WhatIf())),
    (Dials(budget=True, policy="replay", what_if=True), dict(budget=BUDGET, policy=sj.Replay([], []), what_if=sj.WhatIf())),
]  # fmt: skip
EVERY_REASON = pytest.mark.parametrize(
    ("reason", "dials", "settings"),
    [(reason, *example) for reason, example in zip(MEANINGLESS, EXAMPLES, strict=True)],
    ids=[reason.sentence for reason in MEANINGLESS],
)


@EVERY_REASON
def test_the_sentence_is_the_error(reason: Meaningless, dials: Dials, settings: dict[str, Any]) -> None:
    assert why_not(dials) == reason
    owner = LiveRecall if dials.recall else sj.JoinSpec
    given: Any = {"spec": sj.JoinSpec(WINDOW, **settings)} if dials.recall else {"window": WINDOW, **settings}
    with pytest.raises(sj.SpecError) as raised:
        owner(**given)
    assert str(raised.value) == f"{owner.__name__}.{reason.argument}: {reason.sentence}"


def test_sentences_are_sentences() -> None:
    sentences = [reason.sentence for reason in MEANINGLESS]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in sentences)


def test_a_running_join_that_keeps_all_takes_no_budget() -> None:
    with pytest.raises(sj.SpecError, match=r"^budget: KeepAll\(\) keeps everything and .* call set_policy first"):
        sj.JoinSpec(WINDOW).build().set_budget(BUDGET)


def test_settings_that_go_together() -> None:
    assert why_not(Dials()) is None
    assert why_not(Dials(condition=GRAPH, streams=5, budget=True, policy="prob", lazy=True)) is None
    assert why_not(Dials(condition=KEY, budget=True, policy="prospect", lazy=True)) is None


def test_prospect_learns_from_a_key_however_it_is_stored() -> None:
    spec = sj.JoinSpec(WINDOW, BUDGET, sj.Prospect())
    for settings in (dict(index="scan"), dict(evaluate_every=3), dict(order=("right", "left"))):
        assert replace(spec, **settings).policy == sj.Prospect()
    assert sj.JoinSpec(dict.fromkeys("abc", WINDOW), BUDGET, sj.Prospect()).policy == sj.Prospect()
    with pytest.raises(sj.SpecError, match="Prospect"):
        sj.JoinSpec({"a": WINDOW, "b": WINDOW}, BUDGET, sj.Prospect(), on=("a.x = b.x", "a.y < b.y"))


#: Combinations of the matrix, one for each sentence. It never draws a queue or a deadline without its other half, or a best
#: speed of three streams. Other memories are a law of it, and no dial.
LEFT_OUT = [
    Combination(3, "overlap"),
    Combination(also="budget change"),
    Combination(2, "residual", budget="tuples", allocation="fixed", policy="prospect"),
    Combination(budget="tuples", allocation="fixed", policy="sample", estimator="history", how="left_outer"),
    Combination(budget="tuples", allocation="fixed", policy="sample", estimator="history", cpu="queue"),
    Combination(2, "same_set", budget="tuples", allocation="fixed", policy="prob", estimator="table"),
    Combination(2, "theta", budget="bytes", allocation="variable", policy="prob", estimator="count_min"),
    Combination(cpu="queue", also="lazy evaluation"),
    Combination(budget="tuples", allocation="fixed", policy="life", estimator="met", also="lazy evaluation"),
    Combination(policy="prob", estimator="history", cpu="integrated queue", also="budget change"),
    Combination(budget="tuples", allocation="fixed", policy="prob", estimator="met", cpu="integrated queue"),
    Combination(budget="tuples", allocation="fixed", policy="age", cpu="integrated queue"),
    Combination(window="mixed", cpu="dual"),
    Combination(3, how="left_anti"),
    Combination(window="row", how="left_outer", cpu="dual"),
    Combination(how="left_semi", also="live recall"),
]


def test_the_matrix_leaves_out_what_the_list_says() -> None:
    outside = (
        Dials(queue="random"),
        Dials(cpu="deadline"),
        Dials(streams=3, dual=True, best_speed=True),
        Dials(how="left_semi", what_if=True),
        Dials(budget=True, policy="replay", what_if=True),
    )
    never = [why_not(dials) for dials in outside]
    assert [one.why_not for one in LEFT_OUT] == [reason for reason in MEANINGLESS if reason not in never]
    assert Combination().why_not is None
