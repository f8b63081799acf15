"""A budget in bytes is the memory of all shards together: their arrays, and the columns of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shards import Shards, Sides, cut, job

import shedjoin as sj
from shedjoin.engine import memory
from shedjoin.spark import payload, room
from shedjoin.spark.room import Room
from shedjoin.spark.shard_state import ShardState

WHOLE, SHARDS = 400_000, 2


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays begin small, so that they grow with a few hundred rows."""
    monkeypatch.setattr(memory, "LEAST", 64)
    monkeypatch.setattr(memory, "FIRST_ENTRIES", 64)
    for module in (payload, room):
        monkeypatch.setattr(module, "UNCLEARED", 4096)


def rows(seed: int) -> Sides:
    """Keys of many rows, then keys that come once, then those of many rows again."""
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        many, once = random.zipf(1.3, (2, 400)) % 60, random.integers(0, 2**40, 400)
        sides.append((np.concatenate([many[0], once, many[1]]), np.sort(random.integers(0, 9000, 1200))))
    return sides


@pytest.mark.parametrize("shares", ["adaptive", "equal"])
@pytest.mark.parametrize(
    "policy",
    [sj.Prospect(), pytest.param(sj.Prob(), marks=pytest.mark.small), sj.Prob(sj.InWindow()), sj.Rand()],
    ids=str,
)
def test_shards_stay_within_the_budget(policy: sj.Policy, shares: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of every micro-batch."""
    spec = sj.JoinSpec(sj.TimeWindow(8000), sj.Budget(bytes=WHOLE), policy)
    budget = Room(spec, SHARDS, recall=False).rows_budget()
    taken: dict[int, int] = {}
    save = ShardState.save

    def saved(state: ShardState, *args: Any, **more: Any) -> None:
        save(state, *args, **more)
        taken[state.number] = state.engine.nbytes + sum(one.nbytes for one in state.payloads)

    monkeypatch.setattr(ShardState, "save", saved)
    plain = {"bytes": WHOLE}
    shards = Shards(job(spec.with_budget(budget), SHARDS, asked=plain, shares=shares, recall=False))
    counts = []
    for batch in cut(rows(1), 9):
        counts += shards.batch(*batch)["metric"]
        assert sum(taken.values()) <= WHOLE
    assert sum(taken.values()) > WHOLE / 2
    assert sum(one["evicted"] for one in counts) > 200
    if policy.estimator is not None:
        assert sum(one["forgotten"] for one in counts) > 100


@pytest.mark.small
def test_too_little_for_the_arrays_is_refused() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(8000), sj.Budget(bytes=100_000), sj.Prob())
    with pytest.raises(
        sj.SpecError, match=r"budget: 100 kB are too few for 2 shards, each of which takes .* give .* or more"
    ):
        Room(spec, SHARDS, recall=True).rows_budget()


@pytest.mark.small
def test_a_row_counts_what_bytes_for_says() -> None:
    """So `shedjoin plan` and `shedjoin explain` count alike."""
    spec = sj.JoinSpec(sj.TimeWindow(8000), sj.Budget(bytes=1 << 40), sj.Prob())
    for tuples in (1000, 50_000, 10**6):
        asked = Room(spec, 3, recall=True).bytes_for(tuples, columns=40)
        budget = Room(spec.with_budget(sj.Budget(bytes=asked)), 3, recall=True).rows_budget()
        each = budget.row_bytes + budget.key_bytes + payload.COPIES * 40
        assert tuples <= budget.total / each + 1 < 1.01 * tuples + 2
