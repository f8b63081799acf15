"""A budget that counts rows and keys by what they take bounds the memory of the arrays, whatever comes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.engine import growth, loop, memory, stored
from shedjoin.engine.engine import Engine
from shedjoin.engine.footprint import Footprint, empty_bytes, within

WHOLE = 1 << 17
#: What a join takes is known without its kernels: `explain` looks at joins that it does not run.
PROGRAM = """
import shedjoin as sj
from shedjoin.engine.footprint import empty_bytes

window = sj.TimeWindow(10)
specs = [sj.JoinSpec(window, on=sj.Band("x", within=1.0)), sj.JoinSpec(window, selective=sj.Selective(basic=2, rate=False))]
print([empty_bytes(spec.plan()) > 1000 for spec in specs])
"""
POLICIES = {
    "prospect": sj.Prospect(),
    "prob by history": sj.Prob(sj.History()),
    "prob by window": sj.Prob(sj.InWindow()),
    "life, decayed": sj.Life(sj.Decayed(500.0)),
    "rand": sj.Rand(),
    "age": sj.Age(),
    "dgl": sj.Dgl(),
    "sample": sj.Sample(sj.History()),
    "additive": sj.Additive(estimator=sj.InMemory()),
}
JOINS: dict[str, dict[str, Any]] = {
    "two streams": {"window": sj.TimeWindow(8000)},
    "late rows": {"window": sj.TimeWindow(8000), "lateness": 50},
    "never expires": {"window": sj.TimeWindow(8000), "lateness": sj.UNLIMITED},
    "outer": {"window": sj.TimeWindow(8000), "how": "left_outer"},
    "three streams": {"window": {name: sj.TimeWindow(8000) for name in "abc"}},
    "graph": {"window": {name: sj.TimeWindow(8000) for name in "abc"}, "on": ("a.x = b.x", "b.y = c.y")},
}


def pushes(spec: sj.JoinSpec, seed: int) -> Any:
    """Keys of many rows, then keys that come once, then both; some rows are older than those before."""
    random = np.random.default_rng(seed)
    names, now = spec.names, 0
    columns = ("x", "y") if "graph" in str(spec.on) or isinstance(spec.on, tuple) else ("key",)
    for kind in ("many", "once", "both", "many"):
        for _ in range(3):
            tables = {}
            for name in names:
                size = int(random.integers(20, 160))
                many, once = random.zipf(1.2, size) % 50, random.integers(0, 2**40, size)
                key = {"many": many, "once": once, "both": np.where(random.random(size) < 0.5, many, once)}[kind]
                ts = now + np.sort(random.integers(0, 1000, size)) - 40 * (random.random(size) < 0.1)
                tables[name] = dict.fromkeys(columns, key) | {
                    "ts": ts, "bytes": random.integers(1, 200, size), "importance": random.random(size) + 0.5,
                }  # fmt: skip
            now += 1000
            yield tables


def combinations() -> list[Any]:
    chosen = [("two streams", policy) for policy in POLICIES]
    chosen += [(join, policy) for join in JOINS for policy in ("prospect", "prob by history")]
    small = {("late rows", "prob by history"), ("two streams", "rand"), ("graph", "prob by history")}
    return [
        pytest.param(join, policy, id=f"{join}, {policy}", marks=pytest.mark.small if (join, policy) in small else ())
        for join, policy in dict.fromkeys(chosen)
        if (join, policy) != ("graph", "prospect")
    ]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays begin small, so that they grow with a few hundred rows."""
    for module in (memory, growth):
        monkeypatch.setattr(module, "LEAST", 64)
        monkeypatch.setattr(module, "FIRST_ENTRIES", 64)


@pytest.mark.parametrize(("join", "policy"), combinations())
def test_arrays_stay_within_the_budget(join: str, policy: str) -> None:
    spec = sj.JoinSpec(**JOINS[join], policy=POLICIES[policy], budget=sj.Budget(bytes=WHOLE))
    footprint = Footprint.of(spec.plan())
    budget = within(sj.Budget(bytes=WHOLE), footprint)
    engine = replace(spec, budget=budget).build(seed=1)
    most = empty_bytes(spec.plan()) + WHOLE
    for tables in pushes(spec, seed=7):
        engine.push(tables)
        assert engine.nbytes + stored.own_bytes(engine._state) <= most
    assert engine.counters["evicted"] > 100
    assert sum(engine.used) > 0.9 * budget.total


def idle_keys(engine: Any) -> int:
    """Keys that the estimator knows and no stored row has."""
    cfg, state = engine._cfg, engine._state
    loop.forget(cfg, state)
    values = memory.in_use(state, "free_keys", "free_key_count")
    groups = values[:, None] * engine.plan.streams + np.arange(engine.plan.streams)
    return int((state.arrays["buckets"]["count"][groups].sum(axis=1) == 0).sum())


@pytest.mark.small
@pytest.mark.parametrize("policy", ["prob by history", "prob by window", "life, decayed", "prospect"])
def test_estimators_remember_no_more_than_they_may(policy: str) -> None:
    spec = sj.JoinSpec(sj.TimeWindow(8000), sj.Budget(tuples=50, keys=10), POLICIES[policy])
    engine = spec.build()
    for tables in pushes(spec, seed=3):
        engine.push(tables)
        assert idle_keys(engine) <= {"prospect": 30, "prob by window": 20}.get(policy, 10)
        assert max(engine._state["seen_size"]) <= 10
    assert engine.counters["forgotten"] > 1000


@pytest.mark.parametrize("policy", POLICIES)
def test_arrays_that_are_made_anew_change_nothing(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = sj.Budget(bytes=60_000, row_bytes=200, key_bytes=100, keys=20)
    spec = sj.JoinSpec(sj.TimeWindow(8000), budget, POLICIES[policy])

    def run() -> list[Any]:
        engine = spec.build(seed=2)
        outs = [engine.push(tables) for tables in pushes(spec, seed=5)]
        return [*(out.rows.tolist() for out in outs), *(out.shed.seq.tolist() for out in outs), engine.counters]

    expected = run()
    monkeypatch.setattr(Engine, "_most_bytes", lambda engine: 0)
    assert run() == expected


def test_it_needs_no_kernels() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout == "[True, True]\n", done.stderr
