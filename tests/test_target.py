"""A target in place of a budget: memory follows recall, within its limit, and the same after a stop."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.recall import LiveRecall

ROWS, EACH, WINDOW = 8000, 100, 400


def run(
    target: Any, *, stop: int | None = None, limit: int = 800, skew: float = 1.0
) -> tuple[list[int], list[float], bool]:
    """The budget after each push, recall over the last third, and whether the limit stopped it."""
    rng = np.random.default_rng(1)
    likely = 1.0 / np.arange(1, 201) ** skew
    left, right = (rng.choice(200, ROWS, p=likely / likely.sum()) for _ in range(2))
    spec = sj.JoinSpec(sj.TimeWindow(WINDOW), sj.Budget(tuples=limit))
    engine, live, control = spec.build(seed=1), LiveRecall(spec, seed=1), sj.TargetControl(target, spec)
    exact = sj.JoinSpec(sj.TimeWindow(WINDOW)).build()
    budgets, found, true = [], 0, 0
    for push, start in enumerate(range(0, ROWS, EACH)):
        ts = np.arange(start, start + EACH)
        sides = {"left": {"key": left[ts], "ts": ts}, "right": {"key": right[ts], "ts": ts}}
        batch = engine.batch(sides)
        out = engine.push(batch)
        live.follow(batch, out)
        control.follow(engine, live)
        budgets.append(engine.budget.total)
        whole = exact.push(**sides)
        if start > ROWS * 2 // 3:
            found, true = found + len(out), true + len(whole)
        if push == stop:
            saved, about, known = engine.snapshot(), live.to_bytes(), json.dumps(control.to_dict())
            engine = spec.with_budget(engine.budget).resume(saved)
            live, control = LiveRecall(spec, seed=1), sj.TargetControl(target, spec)
            live.load(about)
            control.load(json.loads(known))
    return budgets, [found / true], control.limited


def test_memory_shrinks_to_what_the_target_takes_and_a_stop_changes_nothing() -> None:
    budgets, (recall,), limited = run("90% recall")
    assert budgets[0] == 800
    assert budgets[-1] < 600
    assert 0.87 < recall < 0.96
    assert not limited
    assert run("90% recall", stop=30)[0] == budgets


def test_more_recall_takes_more_memory() -> None:
    assert np.mean(run(0.95)[0][40:]) > 1.2 * np.mean(run({"recall": 0.7})[0][40:])


def test_the_limit_is_told_when_it_stops_memory() -> None:
    budgets, (recall,), limited = run("90% recall", limit=200, skew=0.0)
    assert set(budgets) == {200}
    assert recall < 0.5
    assert limited


@pytest.mark.parametrize("wrong", ["much", "0% recall", "100%", 1.5, True, {"precision": 0.9}, None])
def test_what_is_no_target_is_refused(wrong: Any) -> None:
    with pytest.raises(sj.SpecError, match="target must be a share of results such as '95% recall'"):
        sj.Target.of(wrong)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "memory needs an upper limit"),
        ({"budget": sj.Budget(tuples=9), "policy": sj.Sample()}, r"would bias the weights of Sample\(\)"),
        ({"budget": sj.Budget(tuples=9), "how": "left_semi"}, "live recall counts pairs"),
    ],
)
def test_joins_that_cannot_follow_a_target_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(sj.SpecError, match=sentence):
        sj.TargetControl("95% recall", sj.JoinSpec(sj.TimeWindow(5), **settings))
