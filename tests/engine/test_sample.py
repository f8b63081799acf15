"""Sample: results have the weights that the twin gives them, and weighted sums are unbiased."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from naive import Join, Row, Twin, cut
from naive.conditions import Key
from naive.order import Order
from shedjoin.engine import growth

ESTIMATORS: list[sj.Estimator] = [
    sj.History(), sj.InWindow(), sj.Decayed(5.0), sj.CountMin(8, 2), sj.InMemory(), sj.Met(),
]  # fmt: skip


def draw_rows(random: Random, streams: int, size: int = 60) -> list[Row]:
    time, rows = 0, []
    for _ in range(size):
        time += random.choice((0, 0, 1, 1, 2))
        key, worth, weight = random.choice((0, 0, 1, 2, 3, 4, 5, None)), random.choice((1.0, 2.0, 0.5)), 250
        rows.append(Row(random.randrange(streams), key, time, worth, random.choice((100, 192, weight))))
    return rows


def draw_spec(random: Random, streams: int) -> sj.JoinSpec:
    more = [{0: 0.3, 1: 0.1} for _ in range(streams - 2)]
    estimator = random.choice([*ESTIMATORS, sj.Table({0: 0.5, 1: 0.2}, {0: 0.1, 2: 0.7}, more)])
    amount: dict[str, Any] = random.choice(
        ({"tuples": random.randrange(4, 12)}, {"bytes": random.randrange(1500, 3000)})
    )
    budget = sj.Budget(**amount, allocation=random.choice(("fixed", "variable")))
    policy = sj.Sample(estimator, random.choice((1.0, 0.5, 0.0)), random.choice((0.0, 0.0, 0.5, 0.3)))
    window = random.choice((sj.TimeWindow(15), sj.RowWindow(9)))
    windows = window if streams == 2 else dict.fromkeys("abc", window)
    if streams == 2 and random.random() < 0.3:
        policy = replace(policy, estimator=random.choice((sj.History(), sj.InWindow(), sj.InMemory())))
        return sj.JoinSpec(window, budget, policy, on=sj.Band("key", within=1.0), evaluate_every=0)
    return sj.JoinSpec(windows, budget, policy, evaluate_every=0)


def batch_of(engine: sj.Engine, rows: list[Row]) -> sj.Batch:
    return engine.rows(
        {
            "stream": [row.stream for row in rows],
            "key": [row.value for row in rows],
            "ts": [row.ts for row in rows],
            "importance": [row.importance for row in rows],
            "bytes": [row.bytes for row in rows],
        }
    )


def twin_of(spec: sj.JoinSpec, seed: int) -> Twin:
    join = Join.of(spec)
    return Twin(replace(join, condition=join.condition if join.condition.alone else Key(len(spec.names))), seed)


@pytest.mark.small
@pytest.mark.parametrize("seed", range(40))
def test_weights_are_those_of_the_twin_also_after_a_stop(seed: int) -> None:
    random = Random(seed)
    streams = random.choice((2, 2, 3))
    spec, rows = draw_spec(random, streams), draw_rows(random, streams)
    engine, twin = spec.build(seed=seed), twin_of(spec, seed)
    for part in cut(rows, [20, 40]):
        if seed % 2:
            engine = spec.resume(engine.snapshot())
        out, expected = engine.push(batch_of(engine, part)), twin.push(part)
        got = sorted((*map(int, row), weight) for row, weight in zip(out.rows, out.weight.tolist(), strict=True))
        assert got == sorted((*result.rows, result.weight) for result in expected.results)


@pytest.mark.small
@pytest.mark.parametrize("keep", [0.0, 0.5])
def test_a_row_is_there_with_the_probability_that_its_results_say(keep: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the lots of the others are: as its own goes from 0 to 1, a row is there in that part of the cases.

    Its weight is the same in all of them, for it does not depend on the own lot. That makes sums unbiased.
    """
    left, own, steps = (1, 1, 2, 1), 1, 20
    rows = [
        *(Row(0, key, ts) for ts, key in enumerate(left)),
        *(Row(1, key, 4 + ts) for ts, key in enumerate((1, 2, 1))),
    ]
    policy = sj.Sample(sj.Table({1: 0.5, 2: 0.5}, {1: 0.6, 2: 0.2}), keep=keep)
    spec = sj.JoinSpec(sj.TimeWindow(20), sj.Budget(tuples=4, allocation="fixed"), policy)
    seen = set()
    for others in itertools.product((0.15, 0.5, 0.85), repeat=len(left) - 1):
        found: dict[int, list[float]] = {0: [], 2: []}  # the weights of its results, by their right row
        for step in range(steps):
            lots = [*others[:own], (step + 0.5) / steps, *others[own:]]
            monkeypatch.setattr(Order, "lot", lambda _, x, lots=lots: lots[x.seq] if x.stream == 0 else 0.5)
            for result in twin_of(spec, 0).push(rows).results:
                if result.rows[0] == own:
                    found[result.rows[1]].append(result.weight)
        for weights in found.values():
            assert len(set(weights)) == 1
            assert len(weights) / steps == pytest.approx(1 / weights[0], abs=1 / steps)
            seen.add(weights[0])
    assert len(seen) > 3, "lots decide"


WORKLOADS = {
    "like ranks": (1.0, False, 1.0, 0.0),
    "other ranks": (1.0, True, 1.0, 0.0),
    "uniform": (0.0, False, 1.0, 0.0),
    "roots": (1.0, True, 0.5, 0.0),
    "half kept": (1.0, True, 1.0, 0.5),
}


def zipf(rng: np.random.Generator, size: int, skew: float, permute: bool) -> np.ndarray[Any, Any]:
    likely = 1.0 / np.arange(1, 41) ** skew
    names = rng.permutation(40) if permute else np.arange(40)
    return names[rng.choice(40, size, p=likely / likely.sum())]


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
@pytest.mark.parametrize("estimator", [sj.History(), sj.InMemory()], ids=repr)
def test_counts_by_group_are_unbiased(workload: tuple[float, bool, float, float], estimator: sj.Estimator) -> None:
    """Over many seeds: the mean of each count is the true count, and errors are as large as is said."""
    skew, permute, power, keep = workload
    rng = np.random.default_rng(5)
    left, right = {"key": zipf(rng, 1500, skew, False)}, {"key": zipf(rng, 1500, skew, permute)}
    window = sj.TimeWindow(150)
    true = sj.JoinSpec(window).build().push(left=left, right=right)
    groups = np.arange(2)
    exact = np.bincount(left["key"][true.left] % 2, minlength=2)
    spec = sj.JoinSpec(window, sj.Budget(tuples=120), sj.Sample(estimator, power, keep))
    errors, sizes = [], []
    for seed in range(100):
        out = spec.build(seed=seed).push(left=left, right=right)
        told = sj.estimate_total(out.weight, out.stored, by=left["key"][out.left] % 2)
        assert told.group.tolist() == groups.tolist()
        errors.append(told.value - exact)
        sizes.append((told.high - told.low) / (2 * 1.959964))
    apart = np.mean(errors, axis=0) / (np.std(errors, axis=0) / np.sqrt(len(errors)))
    assert (np.abs(apart) < 4.0).all(), f"{apart} standard errors off"
    said = np.sqrt(np.nanmean(np.square(sizes), axis=0))
    assert said == pytest.approx(np.std(errors, axis=0), rel=0.35)


@pytest.mark.small
def test_other_policies_have_no_weights() -> None:
    out = sj.JoinSpec(sj.TimeWindow(5), sj.Budget(tuples=4)).build().push(left={"key": [1]}, right={"key": [1]})
    with pytest.raises(sj.InputError, match=r"weights with policy=Sample\(\) only"):
        _ = out.weight


@pytest.mark.small
def test_a_simulation_has_the_weights_of_an_engine() -> None:
    left, right = {"key": [1, 2, 1, 2, 3, 1]}, {"key": [2, 1, 1, 1, 2, 3]}
    spec = sj.JoinSpec(sj.TimeWindow(5), sj.Budget(tuples=4), sj.Sample())
    out, run = spec.build(seed=3).push(left=left, right=right), sj.simulate(spec, left, right, seed=3).output()
    assert (run.weight.tolist(), run.stored.tolist()) == (out.weight.tolist(), out.stored.tolist())
    assert max(run.weight) > 1.0


@pytest.mark.small
def test_results_of_many_streams_have_several_older_rows() -> None:
    spec = sj.JoinSpec(dict.fromkeys("abc", sj.TimeWindow(5)), sj.Budget(tuples=6), sj.Sample())
    out = spec.build().push(a={"key": [1]}, b={"key": [1]}, c={"key": [1]})
    assert out.weight.tolist() == [1.0]
    with pytest.raises(sj.InputError, match="several older rows"):
        _ = out.stored


@pytest.mark.small
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"power": -1.0}, "power must be from 0 to 2, not -1"),
        ({"power": float("nan")}, "power must be a finite number"),
        ({"keep": 1.0}, "keep must be from 0 to below 1, not 1"),
    ],
)
def test_numbers_out_of_range_are_refused(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(sj.SpecError, match=sentence):
        sj.Sample(**settings)


@pytest.mark.small
def test_a_slow_cpu_is_refused() -> None:
    with pytest.raises(sj.SpecError, match="not that a slow CPU compared it"):
        sj.JoinSpec(sj.TimeWindow(5), sj.Budget(tuples=4), sj.Sample(), cpu=sj.VirtualCpu(1.0))


@pytest.mark.small
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"how": "left"}, "rows without a partner have no weight"),
        ({"selective": sj.Selective(basic=2)}, "not that a slow CPU compared it"),
    ],
)
def test_a_running_join_is_refused_it_as_well(settings: dict[str, Any], sentence: str) -> None:
    engine = sj.JoinSpec(sj.TimeWindow(5), sj.Budget(tuples=4), sj.Prob(), **settings).build()
    with pytest.raises(sj.SpecError, match=sentence):
        engine.set_policy(sj.Sample())


@pytest.mark.small
def test_thresholds_outgrow_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ever lower thresholds, none of which is forgotten while the first tuple is there: the room for them grows."""
    grown = []
    grow = growth.grow_thresholds
    monkeypatch.setattr(growth, "grow_thresholds", lambda state: grown.append(1) or grow(state))
    keys = list(range(60))
    likely = {key: 0.5 * 0.25**key for key in keys} | {60: 0.9}
    spec = sj.JoinSpec(sj.TimeWindow(1000), sj.Budget(tuples=2), sj.Sample(sj.Table(likely, likely)))
    engine = spec.build(seed=3)
    engine.push(left={"key": [60]})
    out = engine.push(left={"key": keys, "ts": range(1, 61)})
    assert len(out.shed) == 59
    assert grown
    assert engine.push(right={"key": [60], "ts": [61]}).weight.tolist() == [1.0]


@pytest.mark.small
@pytest.mark.parametrize("window", [sj.TimeWindow(15), sj.RowWindow(15)])
@pytest.mark.parametrize("resumed", [False, True])
def test_after_a_change_weights_begin_when_the_rows_of_before_have_expired(window: sj.Window, resumed: bool) -> None:
    rng = np.random.default_rng(8)
    left, right = ({"key": rng.integers(0, 4, 90)} for _ in range(2))
    budget = sj.Budget(tuples=12)
    before, after = (sj.JoinSpec(window, budget, policy, lateness=0) for policy in (sj.Prob(), sj.Sample()))
    begun = []
    for seed in range(3):
        engine = before.build(seed=seed)
        for row in range(90):
            if row == 40:
                assert not engine.weights_hold
                engine.set_policy(sj.Sample())
            if row == 44 and resumed:
                engine = after.resume(engine.snapshot())
            one = {name: {"key": table["key"][row : row + 1]} for name, table in (("left", left), ("right", right))}
            holds, out = engine.weights_hold, engine.push(one)
            if not holds:
                with pytest.raises(sj.InputError, match="after all rows of before have expired"):
                    _ = out.weight
            else:
                begun.append(row)
                assert out.weight.size == len(out)
    assert min(begun) == 40 + 15
    unlost = before.build()
    unlost.push(left={"key": [1]}, right={"key": [1]})
    unlost.set_policy(sj.Sample())
    assert unlost.weights_hold, "nothing was shed"
