"""An estimate that begins while a join runs is of results whose rows all came since."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.recall import LiveRecall

W = sj.TimeWindow(30)
JOINS: dict[str, dict[str, Any]] = {
    "PairRecall": {"window": W},
    "PairRecall of rows": {"window": sj.RowWindow(25)},
    "MultiRecall": {"window": dict.fromkeys("abc", W), "on": "key"},
    "SampledRecall": {"window": W, "on": sj.Band("key", within=1.0)},
    "SampledRecall of rows": {"window": sj.RowWindow(25), "on": sj.Band("key", within=1.0)},
    "SampledRecall of rounds": {"window": W, "evaluate_every": 12},
}
PUSHES, ROWS = 6, 40


def pushes(names: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    return [
        {
            name: {
                "key": [min(random.randrange(12), random.randrange(12)) for _ in range(ROWS)],
                "ts": sorted(random.randrange(place * ROWS, (place + 1) * ROWS) for _ in range(ROWS)),
            }
            for name in names
        }
        for place in range(PUSHES)
    ]


@pytest.mark.small
@pytest.mark.parametrize("name", JOINS)
def test_it_is_of_later_rows_alone(name: str) -> None:
    """All rows fit into the sample, so it is exact; saved and loaded as well."""
    exact = sj.JoinSpec(**JOINS[name], lateness=2)
    spec = sj.JoinSpec(**JOINS[name], lateness=2, budget=sj.Budget(tuples=30), policy=sj.Rand())
    engine, whole = spec.build(seed=3), exact.build()
    live: LiveRecall | None = None
    since = np.zeros(len(spec.names), np.int64)
    delivered, true = 0, 0
    for place, tables in enumerate(pushes(spec.names, 1)):
        if place == 2:
            live = LiveRecall(spec)
            assert type(live).__name__ == name.split()[0]
            live.start_at(engine.arrived, engine.clocks)
            since = np.array(engine.arrived)
        if place == 4:
            assert live is not None
            live = LiveRecall.from_bytes(spec, live.to_bytes())
        batch = engine.batch(tables)
        out, all_of = engine.push(batch), whole.push(whole.batch(tables))
        if live is not None:
            live.follow(batch, out)
            delivered += int((out.rows >= since).all(axis=1).sum())
            true += int((all_of.rows >= since).all(axis=1).sum())
    assert live is not None
    last, rest = engine.flush(), whole.flush()
    live.follow(sj.Batch.of(), last)
    delivered += int((last.rows >= since).all(axis=1).sum())
    true += int((rest.rows >= since).all(axis=1).sum())
    now = live.estimate()
    assert 0 < delivered < true
    assert now.results == delivered
    assert now.missing == pytest.approx(true - delivered)
    assert now.low == pytest.approx(now.high)
    assert now.recall == pytest.approx(delivered / true)
