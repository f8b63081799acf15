"""What of a policy may change while a join runs, and what is refused."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shedjoin as sj

pytestmark = pytest.mark.small

WINDOW, BUDGET = sj.TimeWindow(9), sj.Budget(tuples=4)
REFUSED: dict[str, tuple[Any, Any, str]] = {
    "schedule": (sj.Replay([1], [1]), sj.Replay([2], [1]), "another schedule"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_not_change_is_refused(name: str) -> None:
    before, after, reason = REFUSED[name]
    spec = sj.JoinSpec(WINDOW, BUDGET, before)
    engine = spec.build()
    engine.push(left={"key": [1], "ts": [0]})
    saved = engine.snapshot()
    with pytest.raises(sj.SnapshotError, match=f"the policy cannot change like this while the join runs: .*{reason}"):
        engine.set_policy(after)
    assert engine.snapshot() == saved
    with pytest.raises(sj.SnapshotError, match=f"the policy cannot change like this while the join runs: .*{reason}"):
        replace(spec, policy=after).resume(saved)


ALLOWED: dict[str, tuple[Any, Any]] = {
    "policy": (sj.Prob(), sj.Life()),
    "order inside a key": (sj.Prob(sj.InMemory()), sj.DimpProb(sj.InMemory())),
    "update": (sj.Additive(update="always"), sj.Additive(update="arrival")),
    "no estimator": (sj.Prob(sj.InWindow()), sj.Rand()),
    "cumulative": (sj.Prob(sj.InMemory()), sj.Dgl()),
    "age": (sj.Prob(), sj.Age(sj.History())),
    "from age": (sj.Age(), sj.Life()),
    "estimator": (sj.Prob(sj.History()), sj.Prob(sj.InWindow())),
    "sketch": (sj.Prob(sj.CountMin(8, 2)), sj.Prob(sj.CountMin(8, 3))),
    "table": (sj.Prob(sj.Table({1: 0.5}, {})), sj.Prob(sj.Table({}, {}))),
    "prospect": (sj.Prob(), sj.Prospect()),
    "from prospect": (sj.Prospect(), sj.Life(sj.Decayed(5.0))),
    "met": (sj.Prob(), sj.SimpProb(sj.Met())),
    "from met": (sj.SimpProb(sj.Met()), sj.Prospect()),
    "from met, no estimator": (sj.SimpProb(sj.Met()), sj.Rand()),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_a_policy_goes_on_with_what_is_stored_and_known(name: str) -> None:
    """Another policy while running, and another policy at resumption, come to the same."""
    before, after = ALLOWED[name]
    spec = sj.JoinSpec(WINDOW, BUDGET, before)
    engine = spec.build()
    keys, times = [1, 2, 1, 3, 2, 1], [0, 0, 1, 1, 2, 2]
    engine.push(left={"key": keys, "ts": times}, right={"key": keys[::-1], "ts": times})
    stored = [engine.live(stream).tolist() for stream in (0, 1)]
    again = replace(spec, policy=after).resume(engine.snapshot())
    engine.set_policy(after)
    assert [engine.live(stream).tolist() for stream in (0, 1)] == stored
    assert "met" in name or engine.snapshot() == again.snapshot()  # by Met() tuples are stored in another way
    more = {"key": keys, "ts": [time + 3 for time in times]}
    outs = [one.push(left=more, right=more) for one in (engine, again)]
    assert np.array_equal(outs[0].rows, outs[1].rows)
    assert np.array_equal(outs[0].shed.records(), outs[1].shed.records())
    assert sum(engine.residents) <= 4


WAITING: dict[str, Any] = {"cpu": sj.VirtualCpu(1.0), "queue": sj.Queue(tuples=2)}


def test_rows_that_wait_cannot_be_shown_to_another_estimator() -> None:
    engine = sj.JoinSpec(WINDOW, BUDGET, sj.Prob(), **WAITING).build()
    with pytest.raises(sj.SnapshotError, match="has not seen the rows that wait for the CPU"):
        engine.set_policy(sj.Prob(sj.InWindow()))


def test_a_join_that_kept_everything_gets_a_budget() -> None:
    """Its policy first, so that there is an order; what it then knows is what is stored."""
    engine = sj.JoinSpec(WINDOW).build()
    engine.push(left={"key": [1, 2, 2, 3], "ts": [0, 0, 1, 2]}, right={"key": [3, 3, 2], "ts": [0, 1, 2]})
    with pytest.raises(sj.SpecError, match="set_policy"):
        engine.set_budget(BUDGET)
    engine.set_policy(sj.Prob())
    out = engine.set_budget(BUDGET)
    assert out.shed.key.tolist() == [
        1,
        2,
        3,
    ]  # no partner is stored of 1; one each of the others, of which older ones go
    assert engine.live("left").tolist() == [2, 3]
    assert engine.set_budget(None).shed.records().size == 0
    engine.push(left={"key": [7] * 9, "ts": [3] * 9})
    assert sum(engine.residents) == 13


def test_a_snapshot_without_a_budget_goes_on_with_one() -> None:
    spec = sj.JoinSpec(WINDOW)
    engine = spec.build()
    engine.push(left={"key": [1, 2, 2, 3], "ts": [0, 0, 1, 2]}, right={"key": [3, 3, 2], "ts": [0, 1, 2]})
    again = spec.with_budget(BUDGET).resume(engine.snapshot())
    assert sum(again.residents) == 4
    assert len(again.push().shed) == 3


FORGED = (
    [],
    None,
    "prob",
    [3, 1, "x", 1, 0, 0, 1],
    [3, 1, 10**400, 1, 0, 0, 1],
    [3, 1, float("nan"), 1, 0, 0, 1],
    [3, 1],
)


@pytest.mark.parametrize("numbers", FORGED, ids=str)
def test_made_up_numbers_are_refused(numbers: Any) -> None:
    spec = sj.JoinSpec(WINDOW, BUDGET, sj.Additive(1.0, 1.0, 1.0, "always", sj.Decayed(3.0)))
    saved = spec.build().snapshot()
    for name in ("policy", "estimator"):
        with pytest.raises((sj.SnapshotError, sj.SpecError), match=r"says of its|is not finite|must have finite"):
            spec.resume(forged(saved, name, numbers))


def forged(saved: bytes, name: str, value: Any) -> bytes:
    """The snapshot with something else in its signature, and a checksum that fits."""
    frame = struct.Struct("<8sIQ")
    mark, version, length = frame.unpack_from(saved)
    header = json.loads(saved[frame.size : frame.size + length])
    header["signature"][name] = value
    text = json.dumps(header).encode()
    body = frame.pack(mark, version, len(text)) + text + saved[frame.size + length : -32]
    return body + hashlib.blake2b(body, digest_size=32).digest()


def test_half_lives_hold_from_the_change_on() -> None:
    """Key 1 was twice as frequent, long ago. With a short memory from now on it still counts as it did at the change."""
    spec = sj.JoinSpec(sj.TimeWindow(1000), sj.Budget(tuples=2), sj.Prob(sj.Decayed(1000.0)))
    engine = spec.build()
    engine.push(right={"key": [1, 1, 2], "ts": [0, 0, 0]})
    engine.set_policy(sj.Prob(sj.Decayed(1.0)))
    engine.push(left={"key": [1], "ts": [1]})
    out = engine.push(left={"key": [2], "ts": [2]})  # room for one: both have decayed alike
    assert [(key, ts) for key, ts in zip(out.shed.key, out.shed.ts, strict=True)] == [(2, 2)]
    engine.push(right={"key": [2], "ts": [12]})  # one row of now is more than two of ten half-lives ago
    out = engine.push(left={"key": [2], "ts": [12]})
    assert out.shed.key.tolist() == [1]


def test_a_policy_with_other_numbers_needs_an_idle_engine() -> None:
    engine = sj.JoinSpec(WINDOW, BUDGET, sj.Dgl()).build()
    pieces = engine.chunks(sj.Batch.of({"key": [1] * 3, "ts": [0, 1, 2]}, {"key": [1], "ts": [0]}), limit=1)
    next(pieces)
    with pytest.raises(sj.InputError, match="in the middle of a push"):
        engine.set_policy(sj.Dgl(gain=2.0))


@pytest.mark.parametrize("policy", ["prob", None, {"name": "prob"}, sj.Prob])
def test_what_is_no_policy_is_refused(policy: Any) -> None:
    engine = sj.JoinSpec(WINDOW, BUDGET, sj.Prob()).build()
    with pytest.raises(sj.SpecError, match=r"policy must be a policy such as Prob\(\), not "):
        engine.set_policy(policy)


def test_peaks_can_be_forgotten() -> None:
    engine = sj.JoinSpec(sj.TimeWindow(3)).build()
    engine.push(left={"key": [1] * 9, "ts": [0] * 9}, right={"key": [1], "ts": [0]})
    engine.push(left={"key": [2], "ts": [100]}, right={"key": [2], "ts": [100]})
    assert engine.counters["peak_tuples"] == 10
    engine.forget_peaks()
    assert engine.counters["peak_tuples"] == sum(engine.residents) == 2
    engine.push(left={"key": [2], "ts": [101]})
    assert engine.counters["peak_tuples"] == 3


MEANINGLESS: dict[str, tuple[sj.JoinSpec, Any, str]] = {
    "a graph": (sj.JoinSpec(WINDOW, on=("left.x < right.x",)), sj.Prospect(), "learns from a key"),
    "sets": (sj.JoinSpec(WINDOW, on=sj.SameSet("x")), sj.Prob(sj.Table({}, {})), "compares whole sets"),
    "rounds": (sj.JoinSpec(WINDOW, evaluate_every=2), sj.Dgl(), "need the results of each instant"),
    "counts": (
        sj.JoinSpec((sj.RowWindow(3), sj.RowWindow(3)), counted_elsewhere=True), sj.Prospect(), "rows that went elsewhere",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANINGLESS)
def test_a_policy_without_a_meaning_is_refused(name: str) -> None:
    spec, policy, reason = MEANINGLESS[name]
    engine = spec.build()
    saved = engine.snapshot()
    with pytest.raises(sj.SpecError, match=reason):
        engine.set_policy(policy)
    assert engine.snapshot() == saved
