"""Dual windows: exact without shedding, the share shed is k_r, and the best speed is where the formula says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shedjoin as sj
from shedjoin.cpu.dual_speed import Numbers, _kept, best_speed, partners, rear_share

CPU = sj.VirtualCpu(capacity=1.0, probe=10.0, comparison=0.0, update=2.5)


def output_at(rows: float, distributions: list[Numbers], probes: float, updates: float) -> float:
    """Results in a time unit when so many rows enter and rear-shedding keeps up: the curve whose top is V_opt."""
    shed = np.array([rear_share(rows, probes, updates)])
    kept = sum(share * _kept(one, shed) for share, one in zip((0.5, 0.5), distributions, strict=True))
    speed = min(rows, probes * updates / probes if shed[0] == 1.0 else rows)
    return float(speed * np.asarray(kept)[0])


@st.composite
def keyed(draw: st.DrawFn) -> list[dict[str, Any]]:
    sides = []
    for _ in range(2):
        count = draw(st.integers(0, 25))
        steps = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
        keys = draw(st.lists(st.one_of(st.integers(-1, 2), st.none()), min_size=count, max_size=count))
        sides.append(
            {
                "key": np.array(keys, dtype=object) if count else np.empty(0, np.int64),
                "ts": np.cumsum(steps, dtype=np.int64),
            }
        )
    return sides


def found(*outs: sj.Output) -> list[tuple[int, int]]:
    return sorted(pair for out in outs for pair in zip(out.left.tolist(), out.right.tolist(), strict=True))


@pytest.mark.small
@settings(max_examples=40, deadline=None)
@given(data=st.data(), sides=keyed())
def test_exact_without_shedding_and_never_more(data: st.DataObject, sides: list[dict[str, Any]]) -> None:
    kind = data.draw(st.sampled_from([sj.RowWindow, sj.TimeWindow]))
    window = (kind(data.draw(st.integers(1, 6))), kind(data.draw(st.integers(1, 6))))
    left, right = ({"key": side["key"].tolist(), "ts": side["ts"]} for side in sides)
    exact = found(sj.JoinSpec(window=window).build().push(left=left, right=right))
    rear = data.draw(st.sampled_from([False, 0.0, 0.5, 1.0]))
    engine = sj.DualJoin(window, rear=rear, front=False).build(seed=5)
    outs = [engine.push(left=left, right=right), engine.flush()]
    pairs = found(*outs)
    assert Counter(pairs) <= Counter(exact)
    assert sum(len(out.shed) for out in outs) == engine.counters["unprobed"]
    if not rear:
        assert pairs == exact
    if rear == 1.0:
        assert pairs == []


def zipf_keys(rows: int, seed: int, skew: float = 1.0, domain: int = 50) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(seed)
    chance = 1.0 / np.arange(1, domain + 1) ** skew
    chance /= chance.sum()
    return [rng.choice(domain, rows, p=chance) for _ in range(2)], chance


@pytest.mark.parametrize("share", [0.2, 0.6, 0.9])
@pytest.mark.parametrize("skew", [0.0, 1.0])
def test_the_share_shed_is_k_r(share: float, skew: float) -> None:
    (left, right), _ = zipf_keys(8000, 1, skew)
    engine = sj.DualJoin(sj.RowWindow(200), rear=share, front=False).engine(2, emit=False)
    engine.push(left={"key": left}, right={"key": right})
    engine.flush()
    shed = engine.counters["unprobed"] / 16000
    assert shed == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 16000) + 0.01)


@pytest.mark.small
def test_k_r_at_its_limits() -> None:
    assert rear_share(rows=50.0, probes=100.0, updates=400.0) == 0.0
    assert rear_share(rows=80.0, probes=100.0, updates=400.0) == 0.0  # 1/80 = 1/100 + 1/400: no shedding yet
    assert rear_share(rows=400.0, probes=100.0, updates=400.0) == 1.0


@pytest.mark.small
@pytest.mark.parametrize("timed", [False, True])
def test_partner_numbers_are_those_of_a_simulation(timed: bool) -> None:
    rng = np.random.default_rng(0)
    own, other = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    chances = partners(own, other, 6, timed=timed)
    assert chances.sum() == pytest.approx(1.0)
    rows = 40_000
    mine = rng.choice(3, rows, p=own)
    counts = rng.poisson(6, rows) if timed else np.full(rows, 6)
    met = rng.binomial(counts, other[mine])
    seen = np.bincount(met, minlength=chances.size)[: chances.size] / rows
    assert np.abs(seen - chances).max() < 0.01


@pytest.mark.small
@given(a=st.floats(0.01, 5.0), domain=st.integers(2, 60), rows=st.integers(1, 120))
def test_no_speed_beats_the_best(a: float, domain: int, rows: int) -> None:
    chances = partners(np.ones(domain), np.ones(domain), rows)
    best = best_speed([chances, chances], probes=100.0, updates=100.0 / a)
    for speed in np.linspace(1.0, 100.0 / a, 40):
        assert output_at(float(speed), [chances, chances], 100.0, 100.0 / a) <= best.output * (1 + 1e-9)
    assert output_at(best.rows, [chances, chances], 100.0, 100.0 / a) == pytest.approx(best.output, rel=1e-6)


TICKS = 1000


def output_rate(
    speed: float, *, front: bool, skew: float, seed: int, rows: int = 12_000, window: int = 200, **more: Any
) -> tuple[float, sj.Engine]:
    """Results in a time unit of 1000 ticks, at so many rows of both streams in a time unit."""
    (left, right), chance = zipf_keys(rows, seed, skew)
    ts = (np.arange(rows) * 2 * TICKS / speed).astype(np.int64)
    cpu = sj.VirtualCpu(capacity=1.0, probe=TICKS / 100.0, comparison=0.0, update=TICKS / 400.0)
    join = sj.DualJoin(
        sj.RowWindow(window), cpu=cpu, front=front, queue=150, period=500, distribution=(chance, chance), **more
    )
    warmup = int(ts[rows // 3])
    engine = join.engine(seed, warmup=warmup, emit=False)
    engine.push(left={"key": left, "ts": ts}, right={"key": right, "ts": ts})
    reached = max(clock for clock in engine.clocks if clock is not None)
    return engine.counters["matches"] / ((reached - warmup) / TICKS), engine


@pytest.mark.parametrize("skew", [0.0, 1.0])
def test_the_best_speed_measured_is_the_best_speed_computed(skew: float) -> None:
    """Rear-shedding alone at speeds 3% apart, up to 6% from V_opt (the curve is flat at its top)."""
    _, chance = zipf_keys(1, 0, skew)
    cpu = sj.VirtualCpu(capacity=1.0, probe=TICKS / 100.0, comparison=0.0, update=TICKS / 400.0)
    best = sj.best_speed(sj.DualJoin(sj.RowWindow(200), cpu=cpu), (chance, chance)).rows * TICKS
    speeds = best * 1.03 ** np.arange(-2, 3)
    rates = [
        np.mean([output_rate(speed, front=False, skew=skew, seed=seed)[0] for seed in (1, 2, 3)]) for speed in speeds
    ]
    chances = partners(chance, chance, 200)
    curve = [output_at(speed, [chances, chances], 100.0, 400.0) for speed in speeds]
    # The measured curve is the computed one times a straight line: the line takes out what chance does to single speeds.
    slope, level = np.polyfit(np.log(speeds / best), np.array(rates) / curve, 1)
    assert level == pytest.approx(1.0, abs=0.05)
    fine = best * np.exp(np.linspace(-0.2, 0.2, 401))
    fitted = [
        output_at(v, [chances, chances], 100.0, 400.0) * (level + slope * np.log(v / best)) for v in fine.tolist()
    ]
    assert fine[int(np.argmax(fitted))] == pytest.approx(best, rel=0.03)


def test_dual_is_flat_where_rear_alone_falls_to_nothing() -> None:
    dual = [output_rate(speed, front=True, skew=1.0, seed=4)[0] for speed in (200.0, 400.0, 800.0)]
    rear = [output_rate(speed, front=False, skew=1.0, seed=4)[0] for speed in (200.0, 400.0, 800.0)]
    assert min(dual) > 0.9 * max(dual)
    assert rear[1] < 0.1 * dual[1]
    assert rear[2] < 0.1 * dual[2]


def test_streams_of_different_speeds() -> None:
    """Three rows of one stream for each of the other, windows in proportion: the shares are kept and the CPU keeps up."""
    (many, few), chance = zipf_keys(9000, 6)
    few = few[:3000]
    ts = np.arange(9000) * 5
    cpu = sj.VirtualCpu(capacity=1.0, probe=10.0, comparison=0.0, update=2.5)  # 400 ticks bring 80 + 27 rows
    join = sj.DualJoin(
        (sj.RowWindow(300), sj.RowWindow(100)),
        cpu=cpu,
        front=True,
        queue=250,
        period=2000,
        distribution=(chance, chance),
    )
    engine = join.engine(1, emit=False)
    engine.push(left={"key": many, "ts": ts}, right={"key": few, "ts": ts[::3]})
    rear, front = engine.shares
    best = sj.best_speed(join, (chance, chance), rates=(3.0, 1.0))
    assert front == pytest.approx(1.0 - best.rows / (4 / 15), abs=0.01)
    assert rear == pytest.approx(best.shed, abs=0.01)
    assert engine.counters["dropped"] / 12_000 == pytest.approx(front, abs=0.05)


def test_learned_distribution_is_near_the_true_one() -> None:
    (left, right), chance = zipf_keys(12_000, 7)
    ts = (np.arange(12_000) * 2 * TICKS / 600.0).astype(np.int64)
    cpu = sj.VirtualCpu(capacity=1.0, probe=10.0, comparison=0.0, update=2.5)
    fronts = []
    for distribution in (None, (chance, chance)):
        engine = sj.DualJoin(sj.RowWindow(200), cpu=cpu, queue=150, period=500, distribution=distribution).engine(
            1, emit=False
        )
        engine.push(left={"key": left, "ts": ts}, right={"key": right, "ts": ts})
        fronts.append(engine.shares[1])
    assert fronts[0] == pytest.approx(fronts[1], abs=0.05)


@pytest.mark.small
def test_a_table_says_who_goes_from_a_full_queue() -> None:
    """Least likely in the other stream first; keys that are in no table first of all."""
    cpu = sj.VirtualCpu(
        capacity=1e-9, probe=1.0, comparison=0.0, update=1.0
    )  # the first row keeps the CPU busy for good
    table = sj.Table({1: 0.5, 2: 0.5}, {1: 0.9, 2: 0.1, 3: 0.3})
    join = sj.DualJoin(sj.RowWindow(1), cpu=cpu, rear=False, front=False, queue=3, drop=table, period=10**6)
    engine = join.build()
    engine.push(left={"key": [1] * 4, "ts": [0, 1, 2, 3]})
    keys = [2, 3, 7, 1, 1, 2, 1, 1]
    gone = []
    for at, key in enumerate(keys, start=10):
        gone += engine.push(left={"key": [key], "ts": [at]}).shed.seq.tolist()
        engine = join.resume(engine.snapshot())  # rows that wait are weighed again
    # Rows 4 and 9 (key 2), 5 (3) and 6 (7) go, and all but three of those with key 1.
    assert set(gone) >= {4, 5, 6, 9}
    assert len(gone) == 12 - 3 - 3  # three were processed before the first of them had to be paid for


@pytest.mark.small
@pytest.mark.parametrize("drop", ["semantic", sj.Table([1.0], [1.0])])
def test_two_streams_in_step_lose_rows_of_both(drop: Any) -> None:
    """Where all rows are equal, half of them dropped, none of the streams is let in alone."""
    cpu = sj.VirtualCpu(capacity=1.0, probe=1.0, comparison=0.0, update=1.0)
    join = sj.DualJoin(sj.RowWindow(5), cpu=cpu, rear=False, front=False, queue=3, drop=drop, period=10**6)
    rows = {"key": [0] * 300, "ts": np.arange(300) * 2}
    out = join.build(seed=2).push(left=rows, right=rows)
    gone = np.bincount(out.shed.stream, minlength=2)
    assert gone.sum() > 250
    assert gone.min() > 100


def test_speeds_do_not_depend_on_the_unit_of_time() -> None:
    """A time window and a CPU that are the same in another unit shed the same."""
    (left, right), chance = zipf_keys(3000, 8, skew=0.0)
    shares = []
    for unit in (1, 1000):
        ts = np.arange(3000) * 8 * unit
        cpu = sj.VirtualCpu(capacity=1.0 / unit, probe=10.0, comparison=0.0, update=2.5)
        window = sj.TimeWindow(800 * unit)
        join = sj.DualJoin(window, cpu=cpu, queue=150, period=500 * unit, distribution=(chance, chance))
        engine = join.engine(1, emit=False)
        engine.push(left={"key": left, "ts": ts}, right={"key": right, "ts": ts})
        shares.append(engine.shares)
    assert shares[1] == pytest.approx(shares[0], abs=1e-6)
    assert shares[0][1] > 0.1


@pytest.mark.small
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"window": (sj.RowWindow(1), sj.TimeWindow(1))}, ["dual", "one kind"]),
        ({"cpu": 5}, ["cpu", "VirtualCpu"]),
        ({"cpu": sj.VirtualCpu(1.0)}, ["cpu", "probe", "update"]),
        ({"queue": 3}, ["queue", "VirtualCpu"]),
        ({"rear": 1.5}, ["rear", "1.5"]),
        ({"front": "yes"}, ["front", "yes"]),
        ({"queue": 0}, ["Queue", "0"]),
        ({"cpu": CPU, "queue": 3, "drop": "oldest"}, ["drop", "random, semantic"]),
        ({"cpu": CPU, "queue": 3, "drop": sj.Table([1.0], [1.0], more=([1.0],))}, ["Table of 3 streams"]),
        ({"period": 0}, ["period", "0"]),
        ({"importance": "median"}, ["importance", "median"]),
        ({"distribution": ([1.0], [1.0, 2.0])}, ["partners", "same values"]),
    ],
)
def test_what_makes_no_sense_is_refused(more: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(sj.SpecError) as caught:
        sj.DualJoin(**{"window": sj.RowWindow(3), **more})
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [{"distribution": 5}, {"distribution": ([float("nan")], [1.0])}, {"queue": 2**70}, {"period": 2**70}],
)
def test_settings_of_dual_windows_are_checked(wrong):
    with pytest.raises(sj.SpecError):
        sj.DualJoin(sj.RowWindow(20), cpu=sj.VirtualCpu(capacity=1.0, probe=10.0, comparison=0.0, update=2.5), **wrong)


@pytest.mark.parametrize("wrong", [(5,), (([1.0], [1.0]), 5), (([1.0], [1.0]), (1,)), (([1.0], [1.0]), (0, 0))])
def test_the_best_speed_is_asked_for_two_streams(wrong):
    join = sj.DualJoin(sj.RowWindow(20), cpu=sj.VirtualCpu(capacity=1.0, probe=10.0, comparison=0.0, update=2.5))
    with pytest.raises(sj.SpecError):
        sj.best_speed(join, *wrong)
