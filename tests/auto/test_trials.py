"""A join that tries policies beside itself: what it goes over to, what it remembers, and what that may cost."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.auto.judge import better
from shedjoin.auto.miniature import LEAST
from shedjoin.engine import host_copy, snapshot

WINDOW = sj.TimeWindow(40)
#: Miniatures of all rows, looked at often.
ALL = sj.Auto(memory=16.0, every=40, stretches=4)


def clicks(rows: int, seed: int = 0) -> dict[str, Any]:
    """Every left row has a key of its own; of some, a right row follows after a while. PROB keeps the wrong ones."""
    rng = np.random.default_rng(seed)
    keys = rng.permutation(10 * rows)[:rows]
    there = rng.random(rows) < 0.5
    later = np.arange(rows)[there] + rng.integers(1, 30, there.sum())
    order = np.argsort(later, kind="stable")
    return {"left": {"key": keys, "ts": np.arange(rows)}, "right": {"key": keys[there][order], "ts": later[order]}}


def spec_of(policy: sj.Policy, tuples: int = 16) -> sj.JoinSpec:
    return sj.JoinSpec(WINDOW, sj.Budget(tuples=tuples), policy)


def cut(batch: sj.Batch, parts: int) -> list[sj.Batch]:
    """In parts, at borders of instants."""
    borders = np.flatnonzero(np.diff(batch.ts)) + 1
    ends = sorted({0, len(batch), *borders[:: max(borders.size // parts, 1)].tolist()})
    return [batch.take(slice(a, b)) for a, b in itertools.pairwise(ends)]


def test_it_goes_over_to_what_finds_more_and_says_so() -> None:
    tables = clicks(600)
    engine = spec_of(ALL).build()
    engine.push(**tables)
    trying = engine.trying
    assert trying is not None
    assert trying.changes
    assert trying.changes[-1].policy == trying.now != trying.first == sj.Prospect()
    assert all(one.rows % 40 < 3 and one.gain >= ALL.gain for one in trying.changes[:1])
    assert "more than" in trying.why
    first = spec_of(sj.Prospect()).build()
    assert "nothing is compared yet" in spec_of(ALL).build().trying.why
    assert "too small" in spec_of(sj.Auto()).build().trying.why
    first.push(**tables)
    assert engine.counters["results"] > first.counters["results"]


def test_a_miniature_of_all_rows_is_the_join_itself() -> None:
    """So the candidate in use has found what the join has found."""
    engine = spec_of(replace(ALL, gain=1e9)).build()
    for part in cut(engine.batch(clicks(300)), 7):
        engine.push(part)
    trying = engine.trying
    assert not trying.changes
    found = dict(zip(trying.candidates, np.array(trying._totals), strict=True))
    alone = spec_of(sj.Prospect()).build()
    alone.push(alone.batch(clicks(300)).take(slice(0, trying.rows - sum(map(len, trying._waiting)))))
    assert found[sj.Prospect()] == alone.counters["results"]


@pytest.mark.parametrize("way", ["cut", "resumed", "copied"])
def test_nothing_depends_on_cuts_and_restarts(way: str, tmp_path: Path) -> None:
    spec, tables = spec_of(ALL), clicks(400)
    whole = spec.build(seed=3)
    expected = whole.push(**tables)
    engine, outs = spec.build(seed=3), []
    for part in cut(engine.batch(tables), 13):
        if way == "resumed":
            engine = spec.resume(engine.snapshot())
        if way == "copied":
            host_copy.write_copy(engine, tmp_path)
            engine = spec.build()
            host_copy.read_copy(engine, tmp_path)
        outs.append(engine.push(part))
    out = sj.Output.joined(outs)
    assert whole.trying.changes
    assert engine.trying.changes == whole.trying.changes
    assert np.array_equal(out.rows, expected.rows)
    assert np.array_equal(out.shed.records(), expected.shed.records())
    assert engine.snapshot() == whole.snapshot()


@pytest.mark.small
def test_a_join_by_one_policy_goes_on_from_trials_and_back() -> None:
    tables = clicks(400)
    engine = spec_of(ALL).build()
    engine.push(**tables)
    by_hand = spec_of(sj.Rand()).resume(engine.snapshot())
    assert by_hand.trying is None
    again = spec_of(ALL).resume(by_hand.snapshot())
    assert (again.trying.now, again.trying.changes) == (sj.Prospect(), [])
    engine.set_policy(sj.Rand())
    assert engine.trying is None
    with pytest.raises(sj.SpecError, match="tries policies from its beginning on"):
        engine.set_policy(ALL)


def test_budgets_change_for_miniatures_too() -> None:
    tables = clicks(300)
    engine = spec_of(ALL, 32).build()
    engine.push(**tables)
    seen = engine.trying._seen
    engine.set_budget(sj.Budget(tuples=16))
    assert engine.trying._seen == seen
    assert all(sum(one.residents) <= 16 for one in engine.trying._engines)
    again = spec_of(ALL).resume(engine.snapshot())
    more = {name: {**table, "ts": table["ts"] + 300} for name, table in clicks(300, seed=1).items()}
    engine.push(**more)
    again.push(**more)
    assert again.snapshot() == engine.snapshot()
    engine.set_budget(sj.Budget(tuples=200))  # what was learned with little says nothing of this
    assert engine.trying._seen == 0
    engine.set_budget(None)
    assert not engine.trying.runs


@pytest.mark.parametrize("tuples", [8, 200, 2000, 20_000])
def test_trying_takes_a_part_of_the_memory(tuples: int) -> None:
    """At most a tenth by default; where that is too little to say anything, nothing is tried."""
    spec = sj.JoinSpec(sj.TimeWindow(10**6), sj.Budget(tuples=tuples), sj.Auto())
    engine = spec.engine(emit=False)
    trying = engine.trying
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 5000, (2, 2100))
    engine.push(left={"key": keys[0]}, right={"key": keys[1]})
    assert trying.tuples <= tuples / 10
    assert trying.runs == (tuples >= 10 * LEAST * 3)
    assert len(trying.candidates) * trying.rate <= 0.1


def test_importance_is_what_counts_where_it_differs() -> None:
    tables = clicks(300)
    tables["left"]["importance"] = 1.0 + np.arange(300) % 7
    engine = spec_of(ALL).build()
    engine.push(**tables)
    assert sj.DimpProb() in engine.trying.candidates
    assert engine.trying._totals[0] != int(engine.trying._totals[0]) or max(engine.trying._totals) > 50


@pytest.mark.small
def test_the_judge() -> None:
    ahead = [[10.0, 12.0, 9.0]] * 4
    assert better(ahead, 0, gain=0.05, least=4) == 1
    assert better(ahead, 0, gain=0.3, least=4) is None  # not by as much as asked
    assert better(ahead, 0, gain=0.05, least=5) is None  # not for as long
    assert better(ahead, 1, gain=0.05, least=4) is None
    assert better([[10.0, 10.1]] * 4, 1, gain=0.05, least=4) is None
    assert better([[10.1, 10.0]] * 4, 1, gain=0.05, least=4) == 0  # the way back needs no gain
    assert better([[10.0, 20.0], [10.0, 3.0], [10.0, 20.0], [10.0, 2.0]], 0, gain=0.05, least=4) is None  # noise
    assert better([[10.0, 30.0], [10.0, 29.0], [10.0, 9.0], [10.0, 9.0]], 0, gain=0.05, least=4) is None  # not lately


@pytest.mark.small
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"memory": 0}, "Auto.memory must be a finite number above 0"),
        ({"gain": -1}, "Auto.gain must be a finite number above -1"),
        ({"every": -1}, "Auto.every must be a whole number of at least 0"),
        ({"stretches": 0}, "Auto.stretches must be a whole number of at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(sj.SpecError, match=reason):
        sj.Auto(**settings)


def test_nothing_is_tried_where_rows_are_counted_elsewhere() -> None:
    spec = sj.JoinSpec(sj.RowWindow(50), sj.Budget(tuples=20), ALL, counted_elsewhere=True)
    trying = spec.build().trying
    assert trying.why == "nothing is tried: a shard does not see how many rows its windows of rows span"
    assert trying.candidates == []


def test_trials_that_were_made_up_are_refused() -> None:
    spec = spec_of(ALL)
    engine = spec.build()
    engine.push(**clicks(60))
    saved = engine.trying.to_bytes()
    signature, extra, columns = snapshot.unpack(saved)
    forged: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"now": "Nobody()"}, {}),
        ({"scores": [[1.0]]}, {}),
        ({"totals": "x"}, {}),
        ({}, {"row importance": np.full_like(columns["row importance"], np.nan)}),
        ({}, {"row ts": columns["row ts"][:-1]}),
    ]
    for more, others in forged:
        with pytest.raises(sj.ShedjoinError):
            spec.build().trying.load(snapshot.pack({**columns, **others}, signature, {**extra, **more}))
