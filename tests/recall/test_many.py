"""Recall of n-way joins while they run: exact while all keys have room, within its limits when they are sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from naive import Row, without_limits
from shedjoin.recall import MultiRecall, combine, many
from strategies import columns_of

NAMES = ("a", "b", "c")
LENGTHS = (9, 14, 6)


def spec(**more: Any) -> sj.JoinSpec:
    windows = {name: sj.TimeWindow(length) for name, length in zip(NAMES, LENGTHS, strict=True)}
    given = {"budget": sj.Budget(tuples=12), "policy": sj.Rand(), "lateness": 3}
    return sj.MultiJoinSpec(windows=windows, on="x", **{**given, **more})


def pushes(seed: int, size: int, keys: int = 4) -> list[list[Row]]:
    """Rows of three streams, one of them ahead of the others, out of order beyond the lateness now and then."""
    random = np.random.default_rng(seed)
    made: list[list[Row]] = [[] for _ in range(5)]
    for number in range(size):
        stream = int(random.integers(3))
        ts = number // 2 + 12 * (stream == 2) - int(random.choice([0, 0, 0, 2, 8]))
        key = None if random.random() < 0.05 else int(random.integers(keys))
        made[5 * number // size].append(Row(stream, {"x": key}, ts, float(random.choice([1.0, 2.5, 0.5]))))
    return made


@pytest.mark.small
@pytest.mark.parametrize("importance", ["min", "max", "sum", "product", "mean"])
@pytest.mark.parametrize("max_skew", [None, 5])
def test_while_there_is_room_recall_is_exact(importance: str, max_skew: int | None) -> None:
    how = spec(importance=importance, max_skew=max_skew)
    engine, live = how.build(), MultiRecall(how)
    rows = pushes(1, 120)
    for push in rows:
        batch = engine.rows(columns_of(push))
        live.follow(batch, engine.push(batch))
        again = MultiRecall(how)
        again.load(live.to_bytes())
        live = again
    everything = how.with_budget(None)
    whole = sj.JoinSpec(**_fields(everything)).build()
    for push in rows:
        whole.push(whole.rows(columns_of(push)))
    now = live.estimate()
    assert now.results + now.missing == whole.counters["results"] == len(without_limits(how, rows)) > now.results > 0
    assert now.low == now.recall == now.high
    assert now.importance == pytest.approx(engine.matched_importance / whole.matched_importance)
    assert now.late == engine.counters["late"] > 0
    assert live.remembered < 60  # rows are removed when no later row can join them


def _fields(one: sj.JoinSpec) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("window", "on", "importance", "lateness", "max_skew")}


def test_a_sample_of_keys_knows_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys, one with a tenth of all rows, and room for a third of the rows: limits cover the truth, the mean is right."""
    how = sj.MultiJoinSpec(
        windows=dict.fromkeys(NAMES, sj.TimeWindow(400)), on="x", budget=sj.Budget(tuples=300), policy=sj.Rand()
    )
    random = np.random.default_rng(3)
    tables = []
    for _ in range(6):
        key = random.integers(0, 150, (3, 200))
        key[random.random((3, 200)) < 0.1] = 500
        tables.append({name: {"x": one} for name, one in zip(NAMES, key, strict=True)})
    outs = []
    engine = how.build()
    for table in tables:
        batch = engine.batch(table)
        outs.append((batch, engine.push(batch)))
    truth = MultiRecall(how)
    for batch, out in outs:
        truth.follow(batch, out)
    wanted = truth.estimate()
    assert wanted.low == wanted.high
    inside, missing = 0, []
    for seed in range(40):
        live = MultiRecall(how, seed=seed, rows=250)
        for batch, out in outs:
            live.follow(batch, out)
        now = live.estimate()
        assert live.remembered <= 500
        assert now.results == wanted.results
        assert now.low < now.recall < now.high
        inside += now.low <= wanted.recall <= now.high
        missing.append(now.missing)
    assert inside >= 38
    assert np.mean(missing) == pytest.approx(wanted.missing, rel=0.12)
    few = [MultiRecall(how, seed=seed, rows=60) for seed in range(10)]  # too few for the key with most rows
    for live in few:
        for batch, out in outs:
            live.follow(batch, out)
        again = MultiRecall(how, seed=few.index(live), rows=60)
        again.load(live.to_bytes())
        now = again.estimate()
        assert now == live.estimate()
        assert now.low <= wanted.recall <= now.high  # the limits allow for keys outside the sample
        assert now.importance_low <= wanted.importance <= now.importance_high
    parts = [MultiRecall(how, seed=seed, rows=250) for seed in (1, 2)]
    for batch, out in outs:
        parts[0].follow(batch, out)
    assert combine([part.sums() for part in parts]).recall == parts[0].estimate().recall
    monkeypatch.setattr(many, "WORK", 900)
    short = MultiRecall(how)
    for batch, out in outs:
        short.follow(batch, out)
    assert short.remembered < truth.remembered


def test_what_cannot_be_estimated_is_said() -> None:
    graph = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(3)), on=("a.x = b.x", "b.y = c.y"))
    with pytest.raises(sj.SpecError, match="must join on one column within time windows for MultiRecall"):
        MultiRecall(graph)
    with pytest.raises(sj.SpecError, match="must have evaluate_every=0 for MultiRecall, not 3"):
        MultiRecall(spec(evaluate_every=3))
    saved = MultiRecall(spec()).to_bytes()
    with pytest.raises(sj.SnapshotError, match="damaged"):
        MultiRecall(spec()).load(saved[:-1] + b"?")
    with pytest.raises(sj.SnapshotError, match="another setting of lateness"):
        MultiRecall(spec(lateness=4)).load(saved)


def test_a_key_with_very_many_rows_in_one_push_is_counted() -> None:
    """More rows than could be compared with each other, one stream behind the others: still exact."""
    random = np.random.default_rng(4)
    how = sj.MultiJoinSpec(
        windows=dict.fromkeys(NAMES, sj.TimeWindow(8)),
        on="x",
        budget=sj.Budget(tuples=9),
        policy=sj.Rand(),
        lateness=30,
    )
    tables = []
    for start in (0, 7000):
        stream, ts = random.integers(0, 3, 14_000), start + np.arange(14_000) // 2
        ts = ts + 20 * (stream == 1)  # ahead of the others
        importance = random.choice([1.0, 2.5, 0.5], 14_000)
        tables.append({"stream": stream, "x": np.zeros(14_000, np.int64), "ts": ts, "importance": importance})
    engine, live = how.build(), MultiRecall(how)
    whole = sj.JoinSpec(**_fields(how)).build()
    for table in tables:
        batch = engine.rows(table)
        live.follow(batch, engine.push(batch))
        whole.push(whole.rows(table))
    now = live.estimate()
    assert now.results + now.missing == whole.counters["results"] > 20 * now.results
    assert now.low == now.recall == now.high
    assert now.importance == pytest.approx(engine.matched_importance / whole.matched_importance)
