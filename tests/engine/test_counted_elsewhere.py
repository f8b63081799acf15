"""Row windows over several engines: each gets the rows of its keys, and together they give the results of one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from counted import drawn, one_engine, parts
from shedjoin.engine import codes
from shedjoin.row_numbers import RowNumbers

T, R = sj.TimeWindow, sj.RowWindow
CASES = 16
WINDOWS = [(R(3), R(3)), (R(1), R(7)), (R(4), T(6)), (T(5), R(2)), (R(3), R(2), R(5)), (T(4), R(3), R(2))]
EVERY_WINDOW = pytest.mark.parametrize("windows", WINDOWS, ids=str)


@EVERY_WINDOW
@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "disorder"])
def test_several_engines_give_what_one_gives(windows: Any, in_order: bool) -> None:
    draw = np.random.default_rng(len(str(windows)) + 7 * in_order)
    some = late = 0
    for _ in range(CASES):
        case = drawn(draw, windows, in_order=in_order)
        expected, whole = one_engine(case)
        counted = replace(case.spec, counted_elsewhere=True)
        engines, found = [counted.build() for _ in range(case.engines)], []
        for batches, clocks, arrived in parts(case):
            for place, batch in enumerate(batches):
                out = engines[place].push(batch, clocks=clocks, arrived=arrived)
                found += [tuple(row) for row in out.rows.tolist()]
                if draw.random() < 0.3:
                    engines[place] = counted.resume(engines[place].snapshot())
            assert all(list(engine.arrived) == arrived for engine in engines)
        assert sorted(found) == expected
        assert sum(engine.counters["late"] for engine in engines) == whole.counters["late"]
        if whole.counters[
            "rows"
        ]:  # what is stored by row windows is the same in all; by time some wait for others' clocks
            for stream, window in enumerate(windows):
                live = np.sort(np.concatenate([engine.live(stream) for engine in engines]))
                if isinstance(window, R):
                    assert live.tolist() == whole.live(stream).tolist()
        some, late = some + len(expected), late + whole.counters["late"]
    assert some > CASES // 2
    assert late > 0 or not in_order


POLICIES = [
    sj.Rand(),
    sj.Life(),
    sj.Prob(),
    sj.Prob(estimator=sj.InWindow()),
    sj.Life(estimator=sj.InWindow()),
    sj.DimpProb(),
    sj.SimpProb(),
    sj.Dgl(),
    sj.Simp(),
]


@EVERY_WINDOW
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_one_engine_that_gets_all_rows_and_their_numbers_sheds_as_always(windows: Any, policy: Any) -> None:
    draw = np.random.default_rng(1)
    shed = 0
    for _ in range(CASES // 8):
        case = drawn(draw, windows, in_order=True, budget=sj.Budget(tuples=int(draw.integers(2, 8)) * 3), policy=policy)
        plain, counted = case.spec.build(seed=3), replace(case.spec, counted_elsewhere=True).build(seed=3)
        for batch in case.pushes:
            before, after = plain.push(batch), counted.push(batch.numbered(counted.arrived))
            assert sorted(map(tuple, after.rows.tolist())) == sorted(map(tuple, before.rows.tolist()))
            assert after.shed.to_arrow().equals(before.shed.to_arrow())
            shed += len(after.shed)
    assert shed > 0


@EVERY_WINDOW
def test_budgets_of_several_engines_hold_and_the_shed_log_explains_what_is_missing(windows: Any) -> None:
    draw, streams = np.random.default_rng(5), len(windows)
    lost = 0
    for _ in range(CASES):
        case = drawn(draw, windows, in_order=True)
        expected, _ = one_engine(case)
        budget = sj.Budget(tuples=streams, allocation="variable")
        spec = replace(case.spec, counted_elsewhere=True, budget=budget, policy=None)
        assert spec.policy == sj.Prob()
        engines, found, left = [spec.build() for _ in range(case.engines)], [], {}
        for batches, clocks, arrived in parts(case):
            for engine, batch in zip(engines, batches, strict=True):
                out = engine.push(batch, clocks=clocks, arrived=arrived)
                found += [tuple(row) for row in out.rows.tolist()]
                assert sum(engine.residents) <= streams
                log = out.shed.records()
                log = log[log["why"] != codes.LATE]  # what late rows missed, the one engine missed too
                left |= {(int(one["stream"]), int(one["seq"])): one["seen"] for one in log}
        missing = [
            row
            for row in expected
            if any(
                row[other] >= left[one, row[one]][other]
                for one in range(streams)
                for other in range(streams)
                if one != other and (one, row[one]) in left
            )
        ]
        assert sorted(found + missing) == expected
        lost += len(missing)
    assert lost > 0


def test_a_row_expires_when_rows_came_elsewhere_only() -> None:
    engine = sj.JoinSpec(R(2), counted_elsewhere=True).build()
    engine.push(sj.Batch.of({"key": [1]}).numbered())
    assert engine.residents == (1, 0)
    engine.push(arrived=(2, 0))
    assert engine.residents == (1, 0)
    engine.push(arrived=(3, 5))
    assert (engine.residents, engine.arrived) == ((0, 0), (3, 5))
    engine.push(arrived=(1, 1))  # what was told before holds
    assert engine.arrived == (3, 5)


def test_numbers_that_do_not_fit_are_refused() -> None:
    counted, plain = sj.JoinSpec(R(2), counted_elsewhere=True).build(), sj.JoinSpec(R(2)).build()
    batch = sj.Batch.of({"key": [1, 1], "ts": [0, 1]})
    with pytest.raises(sj.InputError, match=r"see Batch\.numbered"):
        counted.push(batch)
    with pytest.raises(sj.InputError, match="this one numbers its own rows"):
        plain.push(batch.numbered())
    with pytest.raises(sj.InputError, match="arrived is for joins with"):
        plain.push(arrived=(1, 1))
    for arrived in ((1,), (1, -1), (1, 2.5), "12"):
        with pytest.raises(sj.InputError, match="arrived must be how many rows of each of left, right"):
            counted.push(arrived=arrived)  # type: ignore[arg-type]
    good = batch.numbered().numbers
    assert good is not None
    for seq, told in (
        ([1, 0], good.arrived),
        ([0, 2], good.arrived),
        ([-1, 1], good.arrived),
        ([0, 1], good.arrived[::-1].copy()),
        ([1, 1], good.arrived + 1),
    ):
        with pytest.raises(sj.InputError, match=r"Batch\.numbers must go on from"):
            counted.push(replace(batch, numbers=RowNumbers(np.array(seq), told)))
    with pytest.raises(sj.InputError, match="counts 3 streams, but this join has 2"):
        counted.push(batch.numbered((0, 0, 0)))
    with pytest.raises(sj.InputError, match="start must have a number for each stream"):
        batch.numbered(())
    with pytest.raises(sj.InputError, match=r"RowNumbers\.seq must be a flat array"):
        RowNumbers(np.zeros(2), good.arrived)  # type: ignore[arg-type]
    with pytest.raises(sj.InputError, match=r"RowNumbers\.arrived has 2 rows where seq has 3"):
        RowNumbers(np.arange(3), good.arrived)
    with pytest.raises(sj.InputError, match=r"Batch\.numbers has 1 rows"):
        replace(batch, numbers=good.take(slice(1)))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"window": T(5)}, "is for row windows"),
        ({"window": R(5), "evaluate_every": 3}, "evaluate_every must be 0"),
        ({"window": R(5), "budget": sj.Budget(tuples=4), "policy": sj.Prospect()}, r"must not be Prospect\(\)"),
        ({"window": R(5), "counted_elsewhere": 1}, "must be True or False"),
    ],
    ids=lambda one: "" if isinstance(one, str) else str(one),
)
def test_joins_that_cannot_be_counted_elsewhere(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(sj.SpecError, match=words):
        sj.JoinSpec(**{"counted_elsewhere": True, **wrong})


def test_the_setting_is_part_of_the_join() -> None:
    spec = sj.JoinSpec((R(2), T(3)), counted_elsewhere=True)
    assert sj.JoinSpec.from_dict(spec.to_dict()) == spec
    with pytest.raises(sj.SnapshotError, match="another counted_elsewhere"):
        sj.JoinSpec((R(2), T(3))).resume(spec.build().snapshot())
