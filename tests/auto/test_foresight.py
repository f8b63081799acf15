"""A join that tries other memories beside itself: what the curve says, that the join is as it was, and what lasts."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.auto.frequent import Frequent
from shedjoin.auto.strata import Strata
from shedjoin.engine import host_copy, snapshot
from shedjoin.what_if import FACTORS, curve_of, read, what_if_of, written

#: Miniatures of all rows.
ALL = sj.WhatIf(tuples=10_000, memory=1e6)
#: Miniatures of some rows, however small the budget is.
SOME = sj.WhatIf(tuples=60, memory=1e6)


def tables(rows: int, names: tuple[str, ...] = ("left", "right"), keys: int = 40, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: {"key": (rng.zipf(1.6, rows) * 7 + rng.integers(0, 3, rows)) % keys} for name in names}


def spec_of(what_if: sj.WhatIf | None = ALL, tuples: int = 60, **others: Any) -> sj.JoinSpec:
    return sj.JoinSpec(
        **{"window": sj.TimeWindow(100), "budget": sj.Budget(tuples=tuples), "what_if": what_if} | others
    )


def cut(batch: sj.Batch, parts: int) -> list[sj.Batch]:
    borders = np.flatnonzero(np.diff(batch.ts)) + 1
    ends = sorted({0, len(batch), *borders[:: max(borders.size // parts, 1)].tolist()})
    return [batch.take(slice(a, b)) for a, b in itertools.pairwise(ends)]


JOINS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "two streams": ({}, ("left", "right")),
    "fixed shares": ({"budget": sj.Budget(tuples=60, shares=(3, 1))}, ("left", "right")),
    "bytes": ({"budget": sj.Budget(bytes=60 * sj.ROW_BYTES)}, ("left", "right")),
    "what rows take": (
        {"budget": sj.Budget(bytes=60 * sj.ROW_BYTES, row_bytes=40, key_bytes=30, keys=20)},
        ("left", "right"),
    ),
    "row windows": ({"window": sj.RowWindow(90)}, ("left", "right")),
    "interval": ({"window": None, "between": (-40, 90)}, ("left", "right")),
    "outer": ({"how": "full_outer"}, ("left", "right")),
    "three streams": ({"window": dict.fromkeys("abc", sj.TimeWindow(60))}, ("a", "b", "c")),
    "a join graph": (
        {"window": {"a": sj.TimeWindow(60), "b": sj.TimeWindow(60)}, "on": ("a.key = b.key", "a.key < b.key")},
        ("a", "b"),
    ),
    "a band": ({"on": sj.Band("key", within=1.0)}, ("left", "right")),
    "auto": ({"policy": sj.Auto(memory=16.0, every=200, stretches=2)}, ("left", "right")),
    "matches": ({"matches": (1, None)}, ("left", "right")),
}


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("what_if", [ALL, SOME], ids=["all", "some"])
def test_the_join_is_as_it_was_and_nothing_depends_on_cuts_and_restarts(
    join: str, what_if: sj.WhatIf, tmp_path: Path
) -> None:
    others, names = JOINS[join]
    rows = tables(700, names)
    alone = spec_of(None, **others).build(seed=2)
    expected = alone.push(rows)
    spec = spec_of(what_if, **others)
    whole = spec.build(seed=2)
    assert np.array_equal(whole.push(rows).rows, expected.rows)
    engine = spec.build(seed=2)
    batch = engine.batch(rows)
    for number, part in enumerate(cut(batch, 9)):
        if number % 3 == 1:
            engine = spec.resume(engine.snapshot())
        if number % 3 == 2:
            host_copy.write_copy(engine, tmp_path)
            engine = spec.build()
            host_copy.read_copy(engine, tmp_path)
        engine.push(part)
    assert engine.foreseeing.to_bytes() == whole.foreseeing.to_bytes()
    assert engine.what_if_sums() == whole.what_if_sums()
    assert spec_of(None, **others).resume(engine.snapshot()).columns().keys() == alone.columns().keys()


@pytest.mark.parametrize(
    "join", ["two streams", "fixed shares", "bytes", "what rows take", "row windows", "three streams", "a band"]
)
def test_miniatures_of_all_rows_are_the_joins_themselves(join: str) -> None:
    others, names = JOINS[join]
    spec = spec_of(**others)
    engine = spec.build(seed=5)
    batch = engine.batch(tables(900, names, seed=4))
    engine.push(batch)
    foresight, sums = engine.foreseeing, engine.what_if_sums()
    begin = -(-foresight.every // len(names)) * len(names)  # a row of each stream comes at once
    end = foresight.due - foresight.every
    start = end - sums["rows"]
    assert begin < start < end
    found = np.array(sums["sums"][0]).sum(axis=1)

    def results(budget: sj.Budget | None) -> int:
        """Of a join that has seen as little as the miniatures have, and over the same rows."""
        policy = None if budget is None else spec.policy
        one = replace(spec, budget=budget, policy=policy, what_if=None).engine(seed=5, emit=False)
        one.push(batch.take(slice(begin, start)))
        before = one.counters["results"]
        one.push(batch.take(slice(start, end)))
        return one.counters["results"] - before

    def times(factor: float) -> sj.Budget:
        return spec.budget.with_total(round(spec.budget.total * factor))

    assert found[-1] == results(None)
    assert found[: len(FACTORS)].tolist() == [results(times(factor)) for factor in FACTORS]
    curve = engine.what_if()
    assert all(point.low <= point.recall <= point.high for point in curve.recall.values())
    assert curve.recall[4.0].recall >= curve.recall[0.25].recall


def test_the_limits_cover_what_other_memories_deliver() -> None:
    rng = np.random.default_rng(3)
    keys = {name: {"key": rng.zipf(1.5, 12_000) % 3000} for name in ("left", "right")}
    spec = sj.JoinSpec(sj.TimeWindow(1500), sj.Budget(tuples=600), what_if=sj.WhatIf(tuples=200, memory=16.0))
    engine = spec.build()
    batch = engine.batch(keys)
    engine.push(batch)
    foresight, sums = engine.foreseeing, engine.what_if_sums()
    assert foresight.strata.frequent.size > 5
    assert foresight.strata.thin < 1.0
    assert foresight.tuples <= 16 * 600
    end = foresight.due - foresight.every

    def results(budget: sj.Budget | None) -> int:
        one = sj.JoinSpec(sj.TimeWindow(1500), budget).engine(emit=False)
        one.push(batch.take(slice(0, end - sums["rows"])))
        before = one.counters["results"]
        one.push(batch.take(slice(end - sums["rows"], end)))
        return one.counters["results"] - before

    whole, curve = results(None), engine.what_if()
    assert curve.rows == sums["rows"]
    measured = {factor: results(sj.Budget(tuples=round(600 * factor))) / whole for factor in FACTORS}
    covered = [curve.recall[factor].low <= share <= curve.recall[factor].high for factor, share in measured.items()]
    assert sum(covered) >= len(FACTORS) - 1
    assert all(abs(curve.recall[factor].recall - share) < 0.1 for factor, share in measured.items())
    assert "Rand()" in curve.others
    assert curve.others["Rand()"].recall < curve.recall[1.0].recall
    assert curve.best in curve.policies
    again = curve_of(read([written(sums), None]))
    assert again.recall[2.0].recall == pytest.approx(curve.recall[2.0].recall, rel=1e-4)


def test_budgets_and_policies_change_for_miniatures_too() -> None:
    spec = spec_of(SOME, tuples=64)
    engine = spec.build()
    engine.push(tables(1500))
    assert engine.what_if() is not None
    engine.set_budget(sj.Budget(tuples=60))  # nearly the same
    assert engine.what_if() is not None
    engine.set_budget(sj.Budget(tuples=32))
    assert engine.what_if() is None
    small = [sum(one.residents) for one in engine.foreseeing._engines[: len(FACTORS)]]
    caps = [round(32 * factor * engine.foreseeing.strata.share) for factor in FACTORS]
    assert all(
        held <= max(cap, 2) or engine.foreseeing.strata.frequent.size for held, cap in zip(small, caps, strict=True)
    )
    engine.set_policy(sj.Rand())
    assert engine.foreseeing.policy == sj.Rand()
    assert sj.Rand() not in engine.foreseeing._rivals
    more = {name: {**table, "ts": np.arange(1500) + 1500} for name, table in tables(1500, seed=1).items()}
    other = sj.JoinSpec(window=sj.TimeWindow(100), budget=sj.Budget(tuples=32), policy=sj.Rand(), what_if=SOME)
    again = other.resume(engine.snapshot())
    engine.push(more)
    again.push(more)
    assert engine.what_if_sums() == again.what_if_sums()
    assert engine.what_if().policy == "Rand()"
    engine.set_budget(None)
    assert not engine.foreseeing.runs


@pytest.mark.small
def test_without_a_curve_there_is_a_reason() -> None:
    with pytest.raises(sj.SpecError, match="tries other memories"):
        spec_of(None).build().what_if()
    too_small = spec_of(sj.WhatIf()).build()
    assert too_small.what_if() is None
    assert "too small" in too_small.foreseeing.why
    with pytest.raises(sj.SpecError, match=r"WhatIf\.every"):
        sj.WhatIf(every=-1)
    assert "no window has passed" in spec_of().build().foreseeing.why
    counted = spec_of(window=sj.RowWindow(50), counted_elsewhere=True, policy=sj.Prob()).build()
    assert "does not see how many rows" in counted.foreseeing.why


def test_importance_has_a_curve_of_its_own_where_it_differs() -> None:
    rows = tables(900)
    rows["left"]["importance"] = 1.0 + np.arange(900) % 5
    engine = spec_of(importance="sum").build()
    engine.push(rows)
    curve = engine.what_if()
    assert curve.importance is not None
    assert curve.importance[1.0] != curve.recall[1.0]
    alike = spec_of().build()
    alike.push(tables(900))
    assert alike.what_if().importance is None


@pytest.mark.small
def test_frequent_keys_are_found_in_bounded_memory() -> None:
    frequent = Frequent()
    rng = np.random.default_rng(0)
    for stretch in range(20):
        keys = np.where(rng.random(5000) < 0.3, 7, rng.integers(100, 10**6, 5000))
        frequent.see(keys, stretch * 5000)
        frequent.forget()
    keys, share = frequent.above(0.01)
    assert keys.tolist() == [7]
    assert 0.25 < share < 0.35
    assert frequent.keys.size <= 512
    strata = Strata.of(np.array([0, 0]), 0.05, frequent, 0)
    assert strata.frequent.tolist() == [7]
    assert strata.thin * (share + strata.part * (1 - share)) == pytest.approx(0.05)


@pytest.mark.small
@pytest.mark.parametrize("settings", [{"tuples": 3}, {"tuples": 1.5}, {"memory": 0}, {"memory": True}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(sj.SpecError, match=r"WhatIf\."):
        sj.WhatIf(**settings)


@pytest.mark.small
def test_settings_are_plain_data() -> None:
    spec = spec_of(SOME)
    assert sj.JoinSpec.from_dict(spec.to_dict()) == spec
    assert what_if_of(True) == sj.WhatIf()
    assert what_if_of(False) is None
    with pytest.raises(sj.SpecError, match="what_if must be True, False"):
        what_if_of("yes")
    with pytest.raises(sj.SpecError, match="a WhatIf or None"):
        sj.JoinSpec(sj.TimeWindow(3), what_if=True)
    for how in ("left_semi", "left_anti"):
        with pytest.raises(sj.SpecError, match="what_if"):
            spec_of(how=how)


def test_what_was_made_up_is_refused() -> None:
    engine = spec_of().build()
    engine.push(tables(500))
    signature, extra, columns = snapshot.unpack(engine.foreseeing.to_bytes())
    forged: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"found": "x"}, {}),
        ({"budget": {"tuples": -1}}, {}),
        ({}, {"frequent counts": columns["frequent counts"][:-1]}),
        ({}, {"raw": np.zeros(3)}),
        ({}, {"stretches": np.zeros(7)}),
        ({}, {"miniature 0": np.zeros(5, np.int8)}),
    ]
    for more, others in forged:
        with pytest.raises(sj.ShedjoinError):
            spec_of().build().foreseeing.load(snapshot.pack({**columns, **others}, signature, {**extra, **more}))
