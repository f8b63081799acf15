"""Plans: laws of the curve, the recommendation put to the test, samples, early ends, and what is refused."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.parse import format_bytes
from shedjoin.planner import CANDIDATES
from shedjoin.planner.result import OPT, spread_of

WINDOW = 60
TARGET = 0.8
OBJECTIVES = ("matches", "importance")


def streams(importance: bool, rows: int = 900) -> tuple[dict[str, Any], dict[str, Any]]:
    """Zipf keys, other ones popular on each side; the right stream is twice as fast."""
    draw = np.random.default_rng(11)
    popularity = 1 / np.arange(1, 26)
    sides = []
    for rate in (1, 2):
        key = draw.permutation(25)[draw.choice(25, rate * rows, p=popularity / popularity.sum())]
        side = {"key": key, "ts": np.arange(rate * rows) // rate}
        sides.append({**side, "importance": 1.0 + draw.integers(0, 5, rate * rows)} if importance else side)
    return sides[0], sides[1]


@pytest.fixture(scope="module", params=OBJECTIVES)
def made(request: pytest.FixtureRequest) -> tuple[sj.Plan, dict[str, Any], dict[str, Any]]:
    left, right = streams(request.param == "importance")
    return sj.plan(left, right, window=WINDOW, target=TARGET), left, right


Made = tuple[sj.Plan, dict[str, Any], dict[str, Any]]


def points(plan: sj.Plan, policy: str, allocation: str) -> list[Any]:
    return [point for point in plan.curve if (point.policy, point.allocation) == (policy, allocation)]


def test_importance_is_counted_where_rows_differ_in_it(made: Made) -> None:
    plan, left, _ = made
    assert plan.objective == ("importance" if "importance" in left else "matches")
    tried = {point.policy for point in plan.curve} - {OPT}
    assert tried == {one.name for one in CANDIDATES if plan.objective == "importance" or not one.weighs}


@pytest.mark.parametrize("allocation", ["fixed", "variable"])
def test_the_optimum_rises_with_memory_and_is_above_every_policy(made: Made, allocation: str) -> None:
    plan, _, _ = made
    best = points(plan, OPT, allocation)
    for one, two in pairwise(best):
        assert one.share <= two.share
        assert one.bound <= two.bound
    limits = {point.memory: (point.share, point.bound) for point in best}
    compared = 0
    for point in plan.curve:
        if point.policy != OPT and point.allocation == allocation and point.memory in limits:
            low, high = limits[point.memory]
            assert point.share <= low <= high
            compared += 1
    assert compared >= 5 * 7


@pytest.mark.parametrize("allocation", ["fixed", "variable"])
def test_what_is_said_of_the_optimum_is_true(made: Made, allocation: str) -> None:
    plan, left, right = made
    whole = plan.need.matches if plan.objective == "matches" else plan.need.importance
    for point in points(plan, OPT, allocation)[::2]:
        spec = sj.JoinSpec(sj.TimeWindow(WINDOW), sj.Budget(tuples=point.memory, allocation=allocation))
        value = sj.optimum(spec, left, right, warmup=WINDOW, objective=plan.objective).value
        assert point.share - 1e-9 <= value / whole <= point.bound + 1e-9
        assert point.bound - point.share <= 0.01 + 1e-9


def test_nothing_is_shed_at_what_exact_needs(made: Made) -> None:
    plan, left, right = made
    exact = sj.simulate(sj.JoinSpec(sj.TimeWindow(WINDOW)), left, right, warmup=WINDOW)
    assert (plan.need.matches, plan.need.tuples) == (exact.matches, exact.peak_tuples)
    for allocation, memory in (("fixed", plan.need.tuples_fixed), ("variable", plan.need.tuples)):
        budget = sj.Budget(tuples=memory, allocation=allocation)
        for policy in (sj.Rand(), sj.Prob(), sj.Life()):
            run = sj.simulate(sj.JoinSpec(sj.TimeWindow(WINDOW), budget, policy), left, right, warmup=WINDOW)
            assert (run.matches, len(run.shed)) == (exact.matches, 0)
        short = sj.Budget(tuples=memory - 2, allocation=allocation)
        assert len(sj.simulate(sj.JoinSpec(sj.TimeWindow(WINDOW), short, sj.Rand()), left, right).shed) > 0


@pytest.mark.parametrize(
    "window",
    [{"window": sj.RowWindow(50)}, {"window": (sj.TimeWindow(30), sj.RowWindow(80))}, {"between": (5, 40)}],
    ids=["rows", "both", "interval"],
)
def test_other_windows(window: dict[str, Any]) -> None:
    left, right = streams(importance=False, rows=300)
    plan = sj.plan(left, right, **window, target=0.7, policies=["rand", "prob"])
    for allocation, memory in (("fixed", plan.need.tuples_fixed), ("variable", plan.need.tuples)):
        spec = sj.JoinSpec(**window, budget=sj.Budget(tuples=memory, allocation=allocation), policy=sj.Rand())
        assert len(sj.simulate(spec, left, right).shed) == 0
    assert 0.7 <= plan.recommendation.share < 1
    assert all(point.share <= (point.bound or 1) for point in plan.curve)


def test_the_recommendation_reaches_the_target(made: Made) -> None:
    plan, left, right = made
    said = plan.recommendation
    run = sj.simulate(said.spec, left, right, warmup=WINDOW)
    whole, got = (
        (plan.need.matches, run.matches) if plan.objective == "matches" else (plan.need.importance, run.importance)
    )
    assert said.share == pytest.approx(got / whole)
    assert said.share >= TARGET
    assert run.peak_tuples <= said.tuples < plan.need.tuples
    assert said.bytes == run.counters["peak_bytes"]
    below = [point for point in points(plan, said.name, said.allocation) if point.memory < said.tuples]
    assert below[-1].share < TARGET
    assert below[-1].memory >= min(said.tuples / 1.03, said.tuples - 2)
    others = [point for point in plan.curve if point.policy != OPT and point.share >= TARGET]
    assert min(point.memory for point in others) == said.tuples


def test_foreknowledge_needs_as_much_as_is_said(made: Made) -> None:
    plan, left, right = made
    least = plan.recommendation.at_least
    assert least is not None
    assert 4 < least <= plan.recommendation.tuples
    whole = plan.need.matches if plan.objective == "matches" else plan.need.importance
    for allocation in ("fixed", "variable"):
        spec = sj.JoinSpec(sj.TimeWindow(WINDOW), sj.Budget(tuples=least - 1, allocation=allocation))
        assert sj.optimum(spec, left, right, warmup=WINDOW, objective=plan.objective).value < TARGET * whole


def test_words_say_what_is_needed(made: Made) -> None:
    plan, _, _ = made
    said = plan.recommendation
    counted = "results" if plan.objective == "matches" else "importance"
    for part in (
        f"For 0.8 of the {counted}, run {said.policy!r} within {said.tuples:,} tuples ({format_bytes(said.bytes)})",
        f"allocation={said.allocation!r}",
        f"it gets {said.share:.1%} (from {said.lowest:.1%} to {said.highest:.1%} in its 8 blocks)",
        f"An exact join needs {plan.need.tuples:,} tuples ({format_bytes(plan.need.bytes)})",
        f"With less than {said.at_least:,} tuples no policy could",
    ):
        assert part in said.text
    printed = str(plan)
    assert printed.endswith(said.text)
    assert str(said) == said.text
    assert printed.count("<-") == 1
    lines = [line for line in printed.splitlines() if line.startswith(f"{said.name} ") and line.endswith("<-")]
    assert f"{said.tuples:,} <-" in lines[0]
    assert len([line for line in printed.splitlines() if line.startswith("OPT")]) == 2


def test_blocks_say_how_much_the_share_varies() -> None:
    found = spread_of([9.0, 5.0, 0.0], [10.0, 10.0, 0.0])
    assert found == pytest.approx({"spread": math.sqrt(0.08), "lowest": 0.5, "highest": 0.9})
    assert spread_of([9.0], [10.0]) == {}


def test_a_sample_is_the_end_of_both_streams() -> None:
    left, right = streams(importance=False)
    quick: dict[str, Any] = dict(window=WINDOW, policies=["prob"], optimum=False, target=0.7)
    cut = [{name: column[side["ts"] >= 500] for name, column in side.items()} for side in (left, right)]
    wanted = sj.plan(*cut, **quick)
    assert wanted.windows == pytest.approx(400 / WINDOW)
    for sample in (sj.TimeWindow(400), "400 us", 1200, "1199 rows"):
        assert sj.plan(left, right, sample=sample, **quick) == wanted
    assert sj.plan(left, right, **quick) != wanted


def test_rows_are_taken_in_the_order_of_time() -> None:
    left, right = streams(importance=False, rows=300)
    draw = np.random.default_rng(3)
    order = np.concatenate([at + draw.permutation(1) for at in range(300)])
    draw.shuffle(order)
    mixed = {name: column[order] for name, column in left.items()}
    quick: dict[str, Any] = dict(window=WINDOW, policies=["life"], optimum=False)
    assert sj.plan(mixed, right, **quick) == sj.plan(left, right, **quick)


def test_policies_and_memories_of_ones_own() -> None:
    left, right = streams(importance=False, rows=300)
    decayed = sj.Prob(sj.Decayed(50))
    plan = sj.plan(
        left, right, window="60 us", policies=["rand", decayed], memory=[20, 50], allocations=["fixed"], optimum=False
    )
    assert {(point.policy, point.allocation) for point in plan.curve} == {("rand", "fixed"), (repr(decayed), "fixed")}
    assert {20, 50} <= {point.memory for point in plan.curve}
    assert plan.recommendation.at_least is None


def test_the_least_memory_there_can_be() -> None:
    """Halving ends at one tuple a stream."""
    rows = {"key": [1] * 60}
    made = sj.plan(rows, rows, window=10, target=0.01, policies=["prob"], memory=[3], optimum=False)
    assert made.recommendation.tuples in (2, 3)


def test_where_no_policy_saves_memory_exact_is_recommended() -> None:
    left, right = streams(importance=False, rows=200)
    plan = sj.plan(left, right, window=WINDOW, target=1.0, policies=["rand"])
    said = plan.recommendation
    assert (said.policy, said.name, said.tuples) == (None, "EXACT", plan.need.tuples)
    assert said.spec == sj.JoinSpec(sj.TimeWindow(WINDOW))
    assert "run the exact join: no policy reaches it with less memory" in said.text
    assert "only 3.3 windows long" in said.text


@pytest.mark.parametrize(("stage", "optima"), [("policies", False), ("target", False), ("optimum", True)])
def test_work_that_is_stopped_says_what_it_has(stage: str, optima: bool) -> None:
    left, right = streams(importance=False, rows=300)

    def stop(now: str, done: int, total: int) -> None:
        if now == stage and done >= 1:
            raise KeyboardInterrupt

    plan = sj.plan(left, right, window=WINDOW, target=0.7, policies=["prob", "rand"], progress=stop)
    assert not plan.complete
    assert "ended early" in plan.recommendation.text
    assert any(point.policy == OPT for point in plan.curve) == optima
    assert plan.recommendation.share >= 0.7
    assert str(plan)


def test_a_time_limit_ends_the_work() -> None:
    left, right = streams(importance=False, rows=300)
    plan = sj.plan(left, right, window=WINDOW, time_limit=0)
    assert not plan.complete
    assert {point.share for point in plan.curve} == {1.0}
    assert plan.recommendation.name == "EXACT"
    said = plan.recommendation.text
    assert "nothing that needs less was found so far" in said
    assert "ended early: which policy reaches it is not known yet" in said
    assert "no policy reaches it" not in said


def test_progress_is_told() -> None:
    left, right = streams(importance=False, rows=200)
    heard = []
    sj.plan(left, right, window=WINDOW, policies=["rand"], progress=lambda *now: heard.append(now))
    stages = [stage for stage, _, _ in heard]
    assert list(dict.fromkeys(stages))[:3] == ["exact", "policies", "target"]
    assert "optimum" in stages
    assert all(done <= total for _, done, total in heard)


def test_the_curve_is_drawn(made: Made, tmp_path: Path) -> None:
    plan, _, _ = made
    paths = plan.plot(tmp_path / "plan.png", tmp_path / "plan.svg")
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    text = paths[1].read_text()
    assert text.startswith("<?xml")
    assert text.rstrip().endswith("</svg>")
    with pytest.raises(sj.SpecError, match=r"ends in .png or .svg, not 'plan.gif'"):
        plan.plot(tmp_path / "plan.gif")
    with pytest.raises(sj.SpecError, match="plot needs a path"):
        plan.plot()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            dict(window=300),
            r"the window is 300 long in the unit of ts, but the sample is 100 long: .* take a longer sample",
        ),
        (dict(window="400 rows"), r"the window is 400 rows, but the sample has 100 of left"),
        (dict(sample=20), r"the window is 20 long in the unit of ts, but the sample is 10 long"),
        (dict(sample=("1 hour", "2 hours")), "sample must be one length"),
        (dict(sample=0), "sample must have at least one row"),
        (dict(sample="soon"), "sample must be a duration"),
        (dict(target=95), "target must be a share of the exact join, above 0 and at most 1, such as 0.95, not 95"),
        (dict(objective="profit"), "objective must be one of matches, importance, not 'profit'"),
        (dict(allocations="fixed"), "allocations must be a list of fixed and variable, not 'fixed'"),
        (dict(within=1), "within must be a share"),
        (dict(time_limit="soon"), "time_limit must be a number of seconds"),
        (dict(policies="prob"), "policies must be a list"),
        (dict(policies=[]), "at least one policy"),
        (dict(policies=["luck"]), r"policies\[0\]"),
        (dict(policies=["keep_all"]), r"policies\[0\] must be a policy that sheds"),
        (dict(memory=[1]), "memory must have whole numbers of at least 2"),
        (dict(memory=500), "memory must be a list"),
        (dict(warmup=1000), "warmup is 1000, but the sample ends at 99"),
        (dict(warmup=1.5), "warmup must be a whole number"),
        (dict(right={"key": []}), "right has no rows"),
        (dict(right={"key": [1] * 3, "ts": [0, 1, 2]}, sample=30), "right has no rows in the last 30"),
        (dict(right={"key": [9] * 100}), "has no results after the warm-up"),
    ],
)
def test_refusals(arguments: dict[str, Any], sentence: str) -> None:
    rows = {"key": np.arange(100) % 7}
    given: dict[str, Any] = dict(left=rows, right=rows, window=20, optimum=False)
    with pytest.raises(sj.ShedjoinError, match=sentence):
        sj.plan(**{**given, **arguments})
