"""An error target: memory follows the error of sums, intervals hold it, and sums stay unbiased."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import shedjoin as sj

KEYS, GROUPS = 200, 4


class Held(NamedTuple):
    """The budget after each push, half-widths by window and group (NaN: no interval), the control, the estimated total."""

    budgets: list[int]
    errors: np.ndarray[Any, Any]
    control: sj.ErrorControl
    total: float


def streams(rows: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng, likely = np.random.default_rng(1), 1.0 / np.arange(1, KEYS + 1)
    left, right = (rng.choice(KEYS, rows, p=likely / likely.sum()) for _ in range(2))
    return left, right


def run(
    within: Any,
    *,
    rows: int = 8000,
    window: int = 400,
    limit: sj.Budget | None = None,
    seed: int = 0,
    pilot: int | None = None,
    stop: int | None = None,
    keep: float = 0.0,
) -> Held:
    """Four pushes a window. `pilot`: the seed of the control, if not that of the join."""
    left, right = streams(rows)
    spec = sj.JoinSpec(sj.TimeWindow(window), limit or sj.Budget(tuples=2 * window), sj.Sample(keep=keep))
    control = sj.ErrorControl(within, spec, seed=seed if pilot is None else pilot)
    engine = spec.with_budget(control.budget).build(seed=seed)
    budgets, found = [], []
    for push, start in enumerate(range(0, rows, window // 4)):
        ts = np.arange(start, min(start + window // 4, rows))
        batch = engine.batch({"left": {"key": left[ts], "ts": ts}, "right": {"key": right[ts], "ts": ts}})
        out = engine.push(batch)
        found.append((out.weight, out.stored, left[out.left] % GROUPS))
        control.follow(engine, batch, group=lambda out: left[out.left] % GROUPS)
        budgets.append(engine.budget.total)
        if push == stop:
            saved, known = engine.snapshot(), control.to_bytes()
            engine = spec.with_budget(control.budget).resume(saved)
            control = sj.ErrorControl(within, spec, seed=99)
            control.load(known)
    errors = []
    for first in range(0, len(found), 4):
        weight, stored, group = (np.concatenate(column) for column in zip(*found[first : first + 4], strict=True))
        told = sj.estimate_total(weight, stored, by=group)
        errors.append(np.full(GROUPS, np.nan))
        errors[-1][told.group] = (told.high - told.low) / 2.0 / told.value
    return Held(budgets, np.array(errors), control, float(sum(weight.sum() for weight, _, _ in found)))


@pytest.mark.parametrize("keep", [0.0, 0.3])
def test_intervals_are_as_narrow_as_the_target_and_memory_is_given_back(keep: float) -> None:
    held = run(0.05, rows=40_000, window=2000, keep=keep)
    errors = held.errors[8:]
    assert np.isfinite(errors).mean() > 0.9
    assert (errors[np.isfinite(errors)] <= 0.05).mean() >= 0.9
    assert max(held.budgets[32:]) < 0.8 * 4000
    assert not held.control.limited
    assert held.control.groups == GROUPS
    assert held.control.error is not None
    assert held.control.error < 0.05


def test_a_wider_interval_takes_less_memory() -> None:
    wide, narrow = (np.mean(run(within).budgets[20:]) for within in (0.3, 0.05))
    assert wide < 0.9 * narrow


@pytest.mark.parametrize(
    "limit",
    [
        sj.Budget(tuples=160),
        sj.Budget(tuples=160, allocation="fixed"),
        sj.Budget(bytes=160 * 192),
        sj.Budget(bytes=160 * 292, row_bytes=100),
    ],
)
def test_the_limit_is_told_when_it_stops_memory(limit: sj.Budget) -> None:
    held = run(0.01, limit=limit)
    most = held.control.budget.total
    assert most == int(limit.total * 7 / 8)
    assert set(held.budgets) == {most}
    assert held.control.limited
    assert held.control.error > 0.01


def test_sums_are_unbiased_while_memory_follows_the_error() -> None:
    left, right = streams(3000)
    exact = len(sj.JoinSpec(sj.TimeWindow(300)).build().push(left={"key": left}, right={"key": right}))
    runs = [run(0.1, rows=3000, window=300, limit=sj.Budget(tuples=300), seed=seed) for seed in range(100)]
    assert len({tuple(one.budgets) for one in runs}) > 20, "memory moves, in each run in another way"
    totals = np.array([one.total for one in runs])
    assert abs(totals.mean() - exact) < 4.0 * totals.std() / np.sqrt(totals.size)


def test_memory_does_not_depend_on_the_joins_own_random_numbers() -> None:
    assert run(0.1, seed=1, pilot=7).budgets == run(0.1, seed=2, pilot=7).budgets != run(0.1, seed=1, pilot=8).budgets


@pytest.mark.parametrize("stop", [3, 17, 30])
def test_a_stop_changes_nothing(stop: int) -> None:
    assert run(0.1, stop=stop).budgets == run(0.1).budgets


def test_stored_tuples_have_the_probabilities_of_their_results() -> None:
    left, right = streams(2000)
    for keep in (0.0, 0.5):
        spec = sj.JoinSpec(sj.TimeWindow(500), sj.Budget(tuples=200), sj.Sample(keep=keep))
        engine = spec.build(seed=4)
        engine.push(left={"key": left}, right={"key": right})
        stored = engine.inverses()
        out = engine.push(left={"key": np.arange(KEYS), "ts": np.full(KEYS, 2000)})
        mine = np.sort(stored.inverse[stored.stream == 1])
        assert np.sort(out.weight) == pytest.approx(mine[: len(out)] if len(out) < mine.size else mine)
        assert len(out) > 50


@pytest.mark.parametrize(
    ("target", "settings", "sentence"),
    [
        (0.0, {}, "within must be above 0 and below 1"),
        ({"within": True}, {}, "within must be above 0 and below 1"),
        ({"by": "x"}, {}, "error must be a table such as"),
        ({"within": 0.1, "most": 1}, {}, "error must be a table such as"),
        ({"within": 0.1, "by": 3}, {}, "by must be a column's name"),
        ({"within": 0.1, "sum": ""}, {}, "sum must be a column's name"),
        ({"within": 0.1, "level": 2.0}, {}, "level must be above 0 and below 1"),
        (0.1, {"budget": None, "policy": None}, "memory needs an upper limit"),
        (0.1, {"policy": sj.Prob()}, r"only results of Sample\(\) have a known error"),
        (0.1, {"budget": sj.Budget(tuples=4)}, "leaves it no room"),
        (0.1, {"window": dict.fromkeys("abc", sj.TimeWindow(9))}, "of joins of two streams, not of 3"),
    ],
)
def test_what_has_no_error_to_follow_is_refused(target: Any, settings: dict[str, Any], sentence: str) -> None:
    given = {"window": sj.TimeWindow(9), "budget": sj.Budget(tuples=99), "policy": sj.Sample()} | settings
    with pytest.raises((sj.SpecError, sj.InputError), match=sentence):
        sj.ErrorControl(target, sj.JoinSpec(**given))


def test_damaged_bytes_are_refused() -> None:
    control = run(0.1, rows=800).control
    with pytest.raises(sj.SnapshotError, match="damaged"):
        control.load(control.to_bytes()[:-1] + b"x")
    fixed = sj.JoinSpec(sj.TimeWindow(400), sj.Budget(tuples=800, allocation="fixed"), sj.Sample())
    with pytest.raises(sj.SnapshotError, match="another allocation"):
        sj.ErrorControl(0.1, fixed).load(control.to_bytes())
