"""Durations, budgets, windows and policies in words: round trips, and one sentence for what makes no sense."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shedjoin as sj
from shedjoin import parse
from shedjoin.policies import POLICIES

BELOW = 2**50 - 1


@given(st.integers(0, BELOW))
def test_durations_round_trip(microseconds: int) -> None:
    text = parse.format_duration(microseconds)
    assert parse.parse_duration(text, argument="x") == microseconds
    assert parse.parse_duration(timedelta(microseconds=microseconds), argument="x") == microseconds
    assert parse.parse_duration(microseconds, argument="x") == microseconds


PLURALS = st.sampled_from([*parse.UNITS, *(f"{unit}s" for unit in parse.UNITS)])


@given(st.lists(st.tuples(st.integers(0, 99), PLURALS), min_size=1, max_size=4), st.sampled_from((" ", "  ", ", ")))
def test_durations_add_up(parts: list[tuple[int, str]], between: str) -> None:
    text = between.join(f"{amount} {unit}" for amount, unit in parts)
    assert parse.parse_duration(text.upper(), argument="x") == parse.parse_duration(text, argument="x")
    assert parse.parse_duration(text, argument="x") == sum(
        amount * parse.UNITS[unit.removesuffix("s")] for amount, unit in parts
    )


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("10 minutes", 600_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1h30m", 5_400_000_000),
        ("1.5 hours", 5_400_000_000),
        ("250 ms", 250_000),
        ("250ms", 250_000),
        ("2 days", 172_800_000_000),
        ("90 secs", 90_000_000),
        ("5 mins", 300_000_000),
        ("1 hour and 1 second", 3_601_000_000),
        ("10_000 us", 10_000),
        (" 7 µs ", 7),
        ("0 seconds", 0),
    ],
)
def test_durations_as_people_write_them(text: str, microseconds: int) -> None:
    assert parse.parse_duration(text, argument="x") == microseconds


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("", "lateness must be a duration such as '10 minutes'"),
        ("   ", "must be a duration"),
        ("ten minutes", "not 'ten minutes'"),
        ("10", "must be a duration"),
        ("-10 minutes", "must be a duration"),
        ("10 minutes later", "must be a duration"),
        ("10 parsecs", "has no unit 'parsecs'"),
        ("2 months", "months and years have no fixed length"),
        ("0.1 us", "whole number of microseconds"),
        ("36 years", "has no unit 'years'"),
        ("99999 weeks", "below 2**50 microseconds"),
        (-1, "at least 0"),
        (timedelta(seconds=-1), "at least 0"),
        (True, "not True"),
        (1.5, "not 1.5"),
        (None, "not None"),
    ],
)
def test_bad_durations_get_one_sentence(value: Any, sentence: str) -> None:
    with pytest.raises(sj.SpecError) as problem:
        parse.parse_duration(value, argument="lateness")
    assert sentence in str(problem.value)
    assert str(problem.value).startswith("lateness ")
    assert "\n" not in str(problem.value)


BUDGETS = st.builds(sj.Budget, tuples=st.integers(1, 2**30 - 1)) | st.builds(sj.Budget, bytes=st.integers(1, 2**61))


@given(BUDGETS, st.sampled_from(("fixed", "variable")))
def test_budgets_round_trip(budget: sj.Budget, allocation: str) -> None:
    made = parse.parse_budget(parse.format_budget(budget), allocation=allocation)
    assert made == sj.Budget(tuples=budget.tuples, bytes=budget.bytes, allocation=allocation)
    assert parse.parse_budget(budget) is budget
    assert parse.parse_budget({budget.unit: budget.total}) == budget


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("200k tuples", sj.Budget(tuples=200_000)),
        (200, sj.Budget(tuples=200)),
        ("1.5M tuples", sj.Budget(tuples=1_500_000)),
        ("1 tuple", sj.Budget(tuples=1)),
        ("3 rows", sj.Budget(tuples=3)),
        ("512 MB", sj.Budget(bytes=512_000_000)),
        ("512mb", sj.Budget(bytes=512_000_000)),
        ("2 GiB", sj.Budget(bytes=2**31)),
        ("64_000_000 bytes", sj.Budget(bytes=64_000_000)),
        ("100 KiB", sj.Budget(bytes=102_400)),
        ("7 B", sj.Budget(bytes=7)),
    ],
)
def test_budgets_as_people_write_them(text: str, budget: sj.Budget) -> None:
    assert parse.parse_budget(text) == budget


def test_what_is_said_beside_a_budget_counts() -> None:
    assert parse.parse_budget(None, allocation="variable") is None
    assert parse.parse_budget("9 tuples", shares=[2, 1]) == sj.Budget(tuples=9, shares=(2, 1))
    assert parse.parse_budget(sj.Budget(tuples=9), allocation="variable") == sj.Budget(9, allocation="variable")
    assert parse.parse_budget({"tuples": 9, "shares": [2, 1]}) == sj.Budget(tuples=9, shares=(2, 1))
    assert parse.parse_budget(sj.Budget(tuples=9), allocation="fixed") == sj.Budget(9, allocation="fixed")
    with pytest.raises(sj.SpecError, match="give only one"):
        parse.parse_budget({"tuples": 9, "allocation": "variable"}, allocation="fixed")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("200k", "must be an amount of tuples or bytes"),
        (200.5, "must be an amount of tuples or bytes"),
        (True, "must be an amount of tuples or bytes"),
        ("many tuples", "not 'many tuples'"),
        ("-5 tuples", "not '-5 tuples'"),
        ("0.5 tuples", "must be a whole number"),
        ("0 tuples", "at least 1 and below 2**30, not 0"),
        ("5 Mi tuples", "not '5 Mi tuples'"),
        ({"rows": 5}, "has no setting 'rows'"),
        ({"tuples": 5, "bytes": 6}, "either tuples or bytes"),
    ],
)
def test_bad_budgets_get_one_sentence(value: Any, sentence: str) -> None:
    with pytest.raises(sj.SpecError) as problem:
        parse.parse_budget(value, argument="join.budget")
    assert sentence in str(problem.value)
    assert str(problem.value).startswith("join.budget")
    assert "\n" not in str(problem.value)


WINDOWS = st.builds(sj.TimeWindow, st.integers(1, BELOW)) | st.builds(sj.RowWindow, st.integers(1, BELOW))


@given(WINDOWS, WINDOWS)
def test_windows_round_trip(left: sj.TimeWindow | sj.RowWindow, right: sj.TimeWindow | sj.RowWindow) -> None:
    assert parse.parse_window(parse.format_window(left)) == left
    assert parse.parse_window({left.kind: left.size}) == left
    pair = parse.parse_window([parse.format_window(left), right])
    assert pair == (left if left == right else (left, right))


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("0 seconds", "join.window must be longer than 0"),
        ("0 rows", "join.window: RowWindow.rows must be at least 1"),
        (("1 hour", "1 hour", "1 hour"), "one window or a pair"),
        (("1 hour", "soon"), "join.window[1] must be a duration"),
        ({"time": "1 hour", "row": 3}, "{'time': length} or {'row': rows}"),
        ({"rows": 3}, "{'time': length} or {'row': rows}"),
        (None, "join.window must be a duration"),
    ],
)
def test_bad_windows_get_one_sentence(value: Any, sentence: str) -> None:
    with pytest.raises(sj.SpecError) as problem:
        parse.parse_window(value, argument="join.window")
    assert sentence in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "replay"])
def test_every_policy_has_its_name(name: str) -> None:
    policy = parse.parse_policy(name)
    assert type(policy) is POLICIES[name]
    assert parse.parse_policy(name.upper()) == policy
    assert parse.parse_policy(policy) is policy


def test_policies_take_their_parameters() -> None:
    assert parse.parse_policy(None) is None
    assert parse.parse_policy({"name": "dgl", "gain": 2, "loss": 0.5}) == sj.Dgl(gain=2, loss=0.5)
    decayed = {"name": "decayed", "half_life": "10 minutes"}
    assert parse.parse_policy({"name": "life", "estimator": decayed}) == sj.Life(estimator=sj.Decayed(600_000_000))
    assert decayed["half_life"] == "10 minutes"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("best", "policy must be one of additive, age, auto"),
        (3, "policy must be a policy, its name, or a table"),
        ({"loss": 0.5}, "policy must be one of"),
        ({"name": "prob", "speed": 3}, "policy: Prob has no setting 'speed'"),
        ({"name": "prob", "estimator": {"name": "decayed", "half_life": "soon"}}, "policy.estimator.half_life must be"),
        ({"name": "prob", "estimator": "guess"}, "estimator must be one of"),
    ],
)
def test_bad_policies_get_one_sentence(value: Any, sentence: str) -> None:
    with pytest.raises(sj.SpecError) as problem:
        parse.parse_policy(value)
    assert sentence in str(problem.value)
    assert "\n" not in str(problem.value)
