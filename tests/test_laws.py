"""Laws that hold for every policy, estimator, allocation and window."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from naive import Row, exact, exact_needs, instant_borders, missing, numbers, place
from strategies import (
    EVERY_CHOOSER,
    HALVES,
    REPRESENTATIVES,
    WINDOWS,
    Case,
    Chooser,
    Told,
    batch,
    cases,
    choosers,
    for_all,
    go_on,
    long_case,
    pairs_of,
    punctual_cases,
    results_of,
    run_engine,
    shed_by,
)

#: For each allocation and window: the simplest input there is, and one drawn at random.
EXAMPLES = 2


@dataclass
class Example:
    """A case, with what several laws ask of it worked out once."""

    case: Case

    @cached_property
    def history(self) -> list[Told]:
        return run_engine(self.case)

    @cached_property
    def exact(self) -> Counter[tuple[int, int]]:
        return Counter(numbers(exact(self.case.spec, self.case.pushes)))

    @cached_property
    def by_instants(self) -> list[Told]:
        """Every instant in a push of its own."""
        return run_engine(self.case.cut_at_instants())

    def choose(self) -> Random:
        return Random(f"{self.case.seed} {len(self.case.rows)}")


def the_cap_holds_at_every_instant_border(example: Example) -> None:
    budget = example.case.spec.budget
    assert budget is not None
    caps = budget.caps(2)
    for number, told in enumerate(example.by_instants):
        used = (sum(told.used),) if budget.allocation == "variable" else told.used
        assert all(mine <= cap for mine, cap in zip(used, caps, strict=True)), (number, used, caps)


def the_output_is_part_of_the_exact_join(example: Example) -> None:
    assert Counter(pairs_of(example.history)) <= example.exact


def shed_log_and_inputs_give_the_missing_pairs(example: Example) -> None:
    case = example.case
    lost = numbers(missing(case.spec, case.pushes, shed_by(example.history)))
    assert Counter(lost) + Counter(pairs_of(example.history)) == example.exact


def the_shed_log_has_the_keys_of_its_rows(example: Example) -> None:
    case = example.case
    keys = {(x.stream, x.seq): x.value or 0 for x in place(case.pushes)}  # null is written as 0
    engine = case.spec.build(seed=case.seed)
    for rows in case.pushes:
        log = engine.push(batch(rows)).shed
        assert log.key.tolist() == [keys[number] for number in zip(log.stream.tolist(), log.seq.tolist(), strict=True)]


def the_same_seed_gives_the_same_output(example: Example) -> None:
    assert run_engine(example.case) == example.history


def cutting_at_instant_borders_changes_nothing(example: Example) -> None:
    borders = instant_borders(example.case.rows)
    some = sorted(example.choose().sample(borders, len(borders) // 2))
    whole, parts = (run_engine(replace(example.case, cuts=cuts)) for cuts in ([], some))
    for other in (parts, example.by_instants):
        assert results_of(other) == results_of(whole)
        assert shed_by(other) == shed_by(whole)
        assert other[-1].residents == whole[-1].residents


def a_snapshot_between_pushes_changes_nothing(example: Example) -> None:
    """The engine is replaced by its own snapshot before some push."""
    pushes = len(example.case.pushes)
    some = example.choose().randrange(min(1, pushes - 1), pushes)
    assert resumed(example.case, [some]) == example.history


def enough_memory_gives_the_exact_join(example: Example) -> None:
    """Enough is what the exact join stores at instant borders: not a tuple more."""
    case = example.case
    assert case.spec.budget is not None
    enough = replace(case, spec=never_scheduled(case).with_budget(enough_for(case, case.spec.budget)))
    history = run_engine(enough)
    exact = replace(case.spec, budget=None, policy=None)
    assert results_of(history) == results_of(run_engine(replace(case, spec=exact)))
    assert {record.why for record in shed_by(history)} <= {"late"}


#: All of them are held against every example: to draw one takes longer than to hold a law against it.
LAWS: tuple[Callable[[Example], None], ...] = (
    the_cap_holds_at_every_instant_border,
    the_output_is_part_of_the_exact_join,
    shed_log_and_inputs_give_the_missing_pairs,
    the_shed_log_has_the_keys_of_its_rows,
    the_same_seed_gives_the_same_output,
    cutting_at_instant_borders_changes_nothing,
    a_snapshot_between_pushes_changes_nothing,
    enough_memory_gives_the_exact_join,
)


@pytest.mark.parametrize("chooser", choosers(REPRESENTATIVES))
def test_every_law_holds_for_every_allocation_and_window(chooser: Chooser) -> None:
    """(The combinations of the other half, and every policy with every estimator, are compared with the twin.)"""

    def check(case: Case) -> None:
        example = Example(case)
        for law in LAWS:
            law(example)

    for combination in HALVES[1]:
        if combination.chooser == chooser:
            for_all(cases(combination), check, label=f"laws {combination}", examples=EXAMPLES)


@EVERY_CHOOSER
def test_a_snapshot_before_every_push_of_a_long_run_changes_nothing(chooser: Chooser) -> None:
    long = long_case(chooser, 9)
    assert resumed(long, range(len(long.pushes))) == run_engine(long)


def resumed(case: Case, before: Container[int]) -> list[Told]:
    """What is told when the engine is replaced by its own snapshot before these pushes."""
    engine = case.spec.build(seed=case.seed)
    history: list[Told] = []
    for number in range(len(case.pushes)):
        if number in before:
            engine = case.spec.resume(engine.snapshot())
        history += go_on(engine, case, number, number + 1)
    return history


IN_ANOTHER_PROCESS = """
import pickle, sys
from strategies import go_on
cases = pickle.load(sys.stdin.buffer)
told = [go_on(case.spec.resume(snapshot), case, first) for case, snapshot, first in cases]
sys.stdout.buffer.write(pickle.dumps(told))
"""


@pytest.mark.small
def test_a_snapshot_goes_on_in_another_process() -> None:
    stopped: list[tuple[Case, bytes, int]] = []
    expected: list[list[Told]] = []
    for chooser in REPRESENTATIVES:
        case = long_case(chooser, 5)
        engine = case.spec.build(seed=case.seed)
        first = len(case.pushes) // 2
        go_on(engine, case, 0, first)
        stopped.append((case, engine.snapshot(), first))
        expected.append(go_on(engine, case, first))
    assert in_another_process(stopped) == expected


def in_another_process(stopped: list[tuple[Case, bytes, int]]) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        input=pickle.dumps(stopped),
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        check=True,
    )
    return pickle.loads(done.stdout)


def enough_for(case: Case, like: sj.Budget) -> sj.Budget:
    needs = exact_needs(case.spec, case.pushes)
    least, used = (1, needs.tuples) if like.unit == "tuples" else (sj.ROW_BYTES, needs.bytes)
    total = sum(max(least, side) for side in used) if like.allocation == "variable" else 2 * max(least, *used)
    if like.unit == "tuples":
        return sj.Budget(tuples=total, allocation=like.allocation)
    return sj.Budget(bytes=total, allocation=like.allocation)


def never_scheduled(case: Case) -> sj.JoinSpec:
    if not isinstance(case.spec.policy, sj.Replay):
        return case.spec
    forever = sj.Replay([2**53] * len(case.side(0)), [2**53] * len(case.side(1)))
    return replace(case.spec, policy=forever)


@pytest.mark.small
@pytest.mark.parametrize("window", WINDOWS)
def test_without_a_budget_arrival_order_does_not_matter(window: str) -> None:
    """However late within the lateness, and however far ahead one stream is: the output is the exact join."""

    def check(case: Case) -> None:
        history = run_engine(case)
        assert shed_by(history) == []
        assert pairs_of(history) == sorted(numbers(exact(case.spec, case.pushes)))

    for_all(punctual_cases(window), check, label=f"order {window}", examples=100)


@pytest.mark.small
def test_without_a_budget_the_output_is_the_batch_join() -> None:
    """For time windows it knows no arrival order at all: here it is worked out from keys and times alone."""

    def check(case: Case) -> None:
        length = case.spec.windows[0].size
        left, right = case.side(0), case.side(1)
        batch = [(r, s) for r, one in enumerate(left) for s, other in enumerate(right) if can_meet(one, other, length)]
        assert pairs_of(run_engine(case)) == sorted(batch)
        one_after_the_other = replace(case, rows=[*right, *left], cuts=[len(right)])
        assert pairs_of(run_engine(one_after_the_other)) == sorted(batch)

    for_all(punctual_cases("time"), check, label="batch", examples=150)


def can_meet(r: Row, s: Row, length: int) -> bool:
    return r.value is not None and r.value == s.value and abs(r.ts - s.ts) < length


@pytest.mark.small
def test_a_silence_of_any_length_is_over_at_once() -> None:
    """Decayed folds its counts at every 512 half-lives: of a silence of 2^54 units, one by one, that would take for ever."""
    spec = sj.JoinSpec(sj.TimeWindow(5), sj.Budget(tuples=4), sj.Prob(sj.Decayed(0.01)))
    engine = spec.build()
    engine.push(left={"key": [1, 2], "ts": [-(2**53), 1 - 2**53]}, right={"key": [1, 2], "ts": [-(2**53), 1 - 2**53]})
    engine.push(left={"key": [3, 3], "ts": [2**53 - 1, 2**53]}, right={"key": [3], "ts": [2**53]})
    weights = spec.resume(engine.snapshot())._state.arrays["buckets"]["weight"]
    assert np.count_nonzero(weights) == 2  # of the key 3, on both streams
