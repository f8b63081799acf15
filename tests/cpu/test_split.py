"""SplitJoin: several engines, each row stored in one and compared with all, give every pair once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shedjoin as sj
from predicate_strategies import PREDICATES, exact_pairs, pairs, streams, table

pytestmark = pytest.mark.small


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_parts_together_give_every_pair_once(data: st.DataObject) -> None:
    predicate = data.draw(st.sampled_from([one for one in PREDICATES if not isinstance(one, sj.Equal | sj.SameSet)]))
    left, right = data.draw(streams(predicate.kind))
    parts = data.draw(st.integers(1, 4))
    join = sj.PredicateJoin(sj.TimeWindow(5), predicate)
    engines = [join.build(part=(k, parts)) for k in range(parts)]
    cut = data.draw(st.integers(-3, 20))
    outs = []
    for early in (True, False):
        some = {
            name: table([row for row in rows if (row[0] < cut) == early])
            for name, rows in (("left", left), ("right", right))
        }
        outs += [engine.push(**some) for engine in engines]
        engines = [join.resume(engine.snapshot(), part=(k, parts)) for k, engine in enumerate(engines)]
    assert pairs(*outs) == exact_pairs(predicate, (5, 5), left, right)
    assert {engine.counters["rows"] for engine in engines} == {len(left) + len(right)}
    nulls = sum(value is None for _, value in left + right)
    assert sum(engine.counters["null"] for engine in engines) == nulls
    assert {engine.arrived for engine in engines} == {(len(left), len(right))}


def test_a_late_row_is_logged_by_one_part() -> None:
    join = sj.PredicateJoin(sj.TimeWindow(5), sj.Band("x", 1.0))
    for k in range(3):
        engine = join.build(part=(k, 3))
        engine.push(left={"ts": [100], "x": [1.0]})
        out = engine.push(left={"ts": [3, 4], "x": [1.0, 2.0]})
        assert out.shed.seq.tolist() == [number for number in (1, 2) if number % 3 == k]


@pytest.mark.parametrize("part", [(2, 2), (0, 0), (-1, 2), (0,), (0.0, 1), "0/2"])
def test_a_part_is_one_of_several(part: object) -> None:
    with pytest.raises(sj.SpecError, match=r"part must be \(which, of how many\)"):
        sj.PredicateJoin(sj.TimeWindow(5), sj.Subset("x")).build(part=part)  # type: ignore[arg-type]


def test_another_part_does_not_take_over() -> None:
    join = sj.PredicateJoin(sj.TimeWindow(5), sj.Subset("x"))
    saved = join.build(part=(0, 2)).snapshot()
    with pytest.raises(sj.SnapshotError, match="another part"):
        join.resume(saved, part=(1, 2))
