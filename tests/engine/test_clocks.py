"""Clocks that an engine is told: the same as the slow twin, and what they are for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

import shedjoin as sj
from naive import Row, Twin
from strategies import REPRESENTATIVES, Case, Chooser, batch, cases_of, for_all, told


def clocks_for(case: Case, choices: list[tuple[int, int]]) -> list[list[int | None] | None]:
    """Clocks to tell with each push: nothing, one or both streams', before, at or after the rows' times."""
    last = max((row.ts for row in case.rows), default=0)
    steps: tuple[int | None, ...] = (None, -40, 0, 3, 60)
    clocks: list[list[int | None] | None] = []
    for number, rows in enumerate(case.pushes):
        last = max((row.ts for row in rows), default=last)
        picked = [steps[choice] for choice in choices[number % len(choices)]]
        clocks.append(None if picked == [None, None] else [None if step is None else last + step for step in picked])
    return clocks


@pytest.mark.small
@pytest.mark.parametrize("chooser", [*REPRESENTATIVES, Chooser("prob", "in_window")], ids=str)
def test_told_clocks_agree_with_the_twin(chooser: Chooser) -> None:
    def check(drawn: tuple[Case, list[tuple[int, int]]]) -> None:
        case, choices = drawn
        twin, engine = Twin(case.spec, case.seed), case.spec.build(seed=case.seed)
        for rows, clocks in zip(case.pushes, clocks_for(case, choices), strict=True):
            mine = told(engine, engine.push(batch(rows), clocks=clocks))
            theirs = twin.push(rows, clocks)
            assert mine.residents == twin.residents
            assert [(left, right) for left, right, _ in mine.results] == sorted(theirs.pairs)
            assert mine.shed == theirs.shed
            assert list(engine.clocks) == twin.clocks
        assert {name: engine.counters[name] for name in twin.counters} == twin.counters

    step = st.tuples(st.integers(0, 4), st.integers(0, 4))
    for_all(st.tuples(cases_of(chooser), st.lists(step, min_size=1, max_size=5)), check, label=chooser, examples=12)


@pytest.mark.small
def test_a_stream_that_is_seen_elsewhere_lets_tuples_expire() -> None:
    engine = sj.JoinSpec(sj.TimeWindow(10)).build()
    engine.push(batch([Row(0, 1, 0), Row(0, 1, 5)]))
    assert engine.residents == (2, 0)  # nothing is known of the other stream
    out = engine.push(batch([]), clocks=(None, 12))
    assert (out.stats["expired"], engine.residents, engine.clocks) == (1, (1, 0), (5, 12))
    assert engine.push(batch([Row(1, 1, 11)])).stats["late"] == 1  # it is behind what was told


@pytest.mark.small
@pytest.mark.parametrize("clocks", [(1,), (1, 2, 3), (1.5, 2), ("1", 2), (True, None), (2**53 + 1, None)], ids=str)
def test_clocks_that_are_none_are_refused(clocks: Any) -> None:
    engine = sj.JoinSpec(sj.TimeWindow(10)).build()
    with pytest.raises(sj.InputError, match="clocks must be times within"):
        engine.push(batch([]), clocks=clocks)
