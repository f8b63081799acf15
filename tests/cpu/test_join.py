"""PredicateJoin as a description: checked when made, plain data and back; snapshots that are damaged are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.engine import snapshot as snapshots

pytestmark = pytest.mark.small

TIME = sj.TimeWindow(5)
SETS = sj.Overlap("x", at_least=2)
FULL = sj.PredicateJoin(
    (TIME, sj.TimeWindow(7)),
    sj.Overlap(("a", "b"), at_least=2),
    selective=sj.Selective(basic=2, types=2),
    cpu=sj.VirtualCpu(capacity=3.5),
    queue=sj.Queue(tuples=9),
    budget=sj.Budget(tuples=8),
    policy=sj.Rand(),
    importance="max",
    lateness=1,
    max_skew=4,
)


@pytest.mark.parametrize(
    "join",
    [
        FULL,
        sj.PredicateJoin(TIME, sj.Theta("x", "<", offset=2.0)),
        sj.PredicateJoin(TIME, SETS, cpu=sj.Deadline(2.0), selective=sj.Selective(basic=1)),
        sj.PredicateJoin(TIME, SETS, index="scan"),
    ],
)
def test_plain_data_and_back(join: sj.PredicateJoin) -> None:
    assert sj.PredicateJoin.from_dict(json.loads(json.dumps(join.to_dict()))) == join


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"window": sj.RowWindow(3)}, ["window", "TimeWindow", "RowWindow"]),
        ({"predicate": "overlap"}, ["predicate", "Overlap", "'overlap'"]),
        ({"index": "tree"}, ["index", "scan, lists", "'tree'"]),
        ({"predicate": sj.Theta("x", "<"), "index": "lists"}, ["index", "scan", "Theta"]),
        ({"selective": 0.5}, ["selective", "0.5"]),
        ({"queue": sj.Queue(tuples=3)}, ["queue", "VirtualCpu"]),
        ({"cpu": sj.Deadline(1.0)}, ["Deadline", "selective"]),
        ({"policy": sj.Rand()}, ["policy", "budget"]),
        ({"budget": sj.Budget(tuples=4), "policy": sj.Prob()}, ["policy", "Rand()", "Prob"]),
        ({"budget": sj.Budget(bytes=4000)}, ["budget", "tuples"]),
        ({"lateness": -1}, ["lateness", "-1"]),
        ({"importance": "median"}, ["importance", "median"]),
        (
            {"cpu": sj.VirtualCpu(1.0), "queue": sj.Queue(integrated=True, drop="semantic")},
            ["integrated", "budget"],
        ),
        (
            {"cpu": sj.VirtualCpu(1.0), "index": "scan", "queue": sj.Queue(tuples=2, drop="semantic")},
            ["semantic", "index"],
        ),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(sj.SpecError) as caught:
        sj.PredicateJoin(**{"window": TIME, "predicate": SETS, **settings})
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sj.Selective(basic=0), ["Selective.basic", "0"]),
        (lambda: sj.Selective(basic=1, sample=0.0), ["Selective.sample", "above 0"]),
        (lambda: sj.Selective(basic=1, boost=1.0), ["Selective.boost", "above 1"]),
        (lambda: sj.Selective(basic=1, fraction=2.0), ["Selective.fraction", "at most 1"]),
        (lambda: sj.Selective(basic=1, rate=1), ["Selective.rate", "True or False"]),  # type: ignore[arg-type]
        (lambda: sj.VirtualCpu(0.0), ["VirtualCpu.capacity", "above 0"]),
        (lambda: sj.VirtualCpu(1.0, probe=-1.0), ["VirtualCpu.probe", "-1"]),
        (lambda: sj.Queue(), ["exactly one", "tuples, span"]),
        (lambda: sj.Queue(tuples=3, drop="oldest"), ["Queue.drop", "random, semantic"]),
        (lambda: sj.Queue(integrated=True), ["Queue.drop", "semantic"]),
        (lambda: sj.Deadline(0), ["Deadline.seconds", "above 0"]),
    ],
)
def test_settings_are_checked_when_made(make: Any, words: list[str]) -> None:
    with pytest.raises(sj.SpecError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_job_files_with_mistakes() -> None:
    for data, words in (
        ({"window": {"time": 3}}, "needs a predicate"),
        ({"window": {"rows": 3}, "predicate": {"name": "equal", "column": "x"}}, "no setting 'rows'"),
        ({"window": {"time": 3}, "predicate": {"name": "near"}}, "predicate must be"),
        ({"window": {"time": 3}, "predicate": {"name": "equal"}}, "does not take these settings"),
        ({"window": {"time": 3}, "predicate": {"name": "equal", "column": "x"}, "speed": 1}, "no setting 'speed'"),
    ):
        with pytest.raises(sj.SpecError, match=words):
            sj.PredicateJoin.from_dict(data)


def run_some(join: sj.PredicateJoin) -> sj.PredicateEngine:
    engine = join.build(seed=1)
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 2, 30)
    left, right = ({name: [set(rng.integers(0, 6, 3).tolist()) for _ in range(30)], "kind": kinds} for name in "ab")
    engine.push(left=left, right=right)
    return engine


def test_a_snapshot_of_another_join_is_refused() -> None:
    saved = run_some(FULL).snapshot()
    other = sj.PredicateJoin.from_dict({**FULL.to_dict(), "lateness": 2})
    with pytest.raises(sj.SnapshotError, match="another lateness"):
        other.resume(saved)
    with pytest.raises(sj.SnapshotError, match="checksum"):
        FULL.resume(saved[:-40] + b"x" + saved[-39:])
    assert FULL.with_budget(sj.Budget(tuples=6)).resume(saved).budget == sj.Budget(tuples=6)


@pytest.mark.parametrize(
    "forge",
    [
        lambda a, _: a["e_slot"].__setitem__(slice(None), 10**6),
        lambda a, _: a["members"].__setitem__((0, 0), 0),
        lambda a, _: a["item_at"].__setitem__(a["members"][0, 0], 10**6),
        lambda a, _: a["item_len"].__setitem__(a["members"][0, 0], -1),
        lambda a, _: a["l_start"].__setitem__(0, 10**6),
        lambda a, _: a["l_count"].__setitem__(slice(None), 10**6),
        lambda a, _: a["t_tag"].__setitem__(slice(None), 1),
        lambda a, _: a["age_rank"].__setitem__((0, 0), 99),
        lambda a, _: a["kind"].__setitem__(a["members"][0, 0], 99),
        lambda a, _: a["count"].__setitem__(1, 3),
        lambda _, r: r["free_count"].__setitem__((0, 0), 0),
        lambda _, r: r.__setitem__("entry_top", 10**9),
        lambda _, r: r.__setitem__("random", 0),
        lambda _, r: r.__setitem__("fraction", 7.0),
    ],
)
def test_a_forged_state_is_refused(forge: Any) -> None:
    """Right in its checksum, wrong inside."""
    engine = run_some(FULL)
    forge(engine._state.arrays, engine._state.record)
    with pytest.raises(sj.SnapshotError, match="hang together"):
        FULL.resume(engine.snapshot())


def test_forged_rows_in_the_queue_are_refused() -> None:
    engine = run_some(FULL)
    assert sum(engine.queued) > 0
    signature = FULL.plan().signature()
    from shedjoin.cpu import audit

    good = audit.write_waiting(engine._waiting, engine._places, engine._prio)
    for part, value in (
        ("stream", [0]),
        ("offsets", [5] * 9),
        ("kind", [9] * len(good["kind"])),
        ("places", [[0]] * 3),
    ):
        saved = snapshots.encode(engine._state, signature, {"waiting": {**good, part: value}})
        with pytest.raises(sj.SnapshotError):
            FULL.resume(saved)
    with pytest.raises(sj.SnapshotError, match="wait cannot be read"):
        FULL.resume(snapshots.encode(engine._state, signature, {"waiting": None}))


def test_pushes_with_mistakes() -> None:
    engine = FULL.build()
    with pytest.raises(sj.InputError, match="kind must be from 0 to 1"):
        engine.push(left={"a": [[1]], "kind": [2]})
    with pytest.raises(sj.InputError, match="clocks must be times"):
        engine.push(clocks=(1,))
    with pytest.raises(sj.InputError, match="either rows or tables"):
        engine.push(sj.Rows.none(), left={"a": [[1]]})
    with pytest.raises(sj.SpecError, match="budget"):
        engine.set_budget(None)
    with pytest.raises(sj.SpecError, match="no fraction"):
        sj.PredicateJoin(TIME, SETS).build().set_fraction(0.5)


def test_output_in_pieces() -> None:
    rows = sj.Rows.of(SETS, {"x": [[1, 2]] * 9, "ts": [0] * 9}, {"x": [[2, 1]] * 7, "ts": [1] * 7})
    engine = sj.PredicateJoin(TIME, SETS).build()
    pieces = engine.chunks(rows, limit=10)
    first = next(pieces)
    with pytest.raises(sj.InputError, match="take all pieces"):
        engine.snapshot()
    rest = list(pieces)
    sizes = [len(piece) for piece in (first, *rest)]
    assert max(sizes) <= 10
    assert sum(sizes) == 63
    assert sum(piece.stats["results"] for piece in (first, *rest)) == 63
    assert engine.counters["results"] == 63
    with pytest.raises(sj.SpecError, match="limit"):
        engine.chunks(rows, limit=0)


def test_told_clocks_let_tuples_expire() -> None:
    engine = sj.PredicateJoin(TIME, SETS).build()
    engine.push(left={"x": [[1, 2]], "ts": [10]})
    engine.push(clocks=(None, 14))
    assert engine.residents == (1, 0)
    engine.push(clocks=(None, 15))
    assert engine.residents == (0, 0)
    out = engine.push(right={"x": [[1, 2]], "ts": [9]})
    assert [sj.WHY[code] for code in out.shed.why] == ["late"]


@pytest.mark.small
def test_a_policy_with_settings_that_would_be_lost_is_refused() -> None:
    with pytest.raises(sj.SpecError, match=r"SimpProb\(\) without settings"):
        sj.PredicateJoin(sj.TimeWindow(5), sj.Equal("x"), budget=sj.Budget(tuples=4), policy=sj.SimpProb(sj.InWindow()))
