"""Random windows, budgets, estimators and policies."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from naive import Row
from shedjoin.budget import Budget
from shedjoin.estimators import CountMin, Decayed, Estimator, History, InMemory, InWindow, Table
from shedjoin.policies import Policy, Replay
from shedjoin.window import RowWindow, TimeWindow, Window
from strategies.combinations import Chooser
from strategies.policies import VARIANTS, values
from strategies.rows import Draw

#: Around 0, on either side of it, at one end of it, and a single distance.
INTERVALS = ((-2, 7), (0, 5), (0, 0), (2, 8), (3, 3), (-6, -1), (-4, 0), (-20, 3), (1, 400))


@cache
def windows(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """A window for both streams, or one each; or an interval, of which two different windows are a case."""
    if kind == "interval":
        return st.builds(lambda between: {"between": between}, st.sampled_from(INTERVALS)) | windows("time_time")
    time: st.SearchStrategy[Window] = st.builds(TimeWindow, st.sampled_from((1, 2, 3, 5, 8, 20, 500)))
    row: st.SearchStrategy[Window] = st.builds(RowWindow, st.sampled_from((1, 2, 3, 5, 8, 20)))
    sides = [{"time": time, "row": row}[side] for side in kind.split("_")]
    return st.builds(lambda window: {"window": window}, sides[0] if len(sides) == 1 else st.tuples(*sides))


@cache
def budgets(allocation: str | None) -> st.SearchStrategy[Budget | None]:
    """In tuples or in bytes; equal and unequal shares."""
    if allocation is None:
        return st.none()
    if allocation == "variable":
        return st.one_of(
            st.builds(Budget, tuples=st.integers(2, 12), allocation=st.just(allocation)),
            st.builds(Budget, bytes=st.integers(384, 2000), allocation=st.just(allocation)),
        )
    return st.one_of(
        st.builds(Budget, tuples=st.integers(2, 12)),
        st.builds(Budget, tuples=st.integers(4, 16), shares=st.sampled_from(((3, 1), (1.0, 2.5)))),
        st.builds(Budget, bytes=st.integers(384, 2000)),
        st.builds(Budget, bytes=st.integers(800, 2000), shares=st.just((1, 3))),
    )


@cache
def estimators(name: str | None) -> st.SearchStrategy[Estimator]:
    side = st.dictionaries(st.sampled_from((-1, 0, 1, 2, 3, 5)), st.sampled_from((0.0, 0.1, 0.3, 0.5, 2.0)), max_size=5)
    return {
        "table": st.builds(Table, side, side),
        "in_memory": st.just(InMemory()),
        "history": st.just(History()),
        "in_window": st.just(InWindow()),
        "decayed": st.builds(Decayed, st.sampled_from((0.01, 0.5, 1.0, 3.0, 10.0, 1000.0))),
        "count_min": st.builds(CountMin, st.sampled_from((1, 2, 4, 64)), st.sampled_from((1, 2, 4))),
    }[name or "history"]


@cache
def policies(chooser: Chooser) -> st.SearchStrategy[Policy]:
    """The policy with parameters of its own. (`Replay` is made from the rows it is for, see `schedules`.)"""
    variant = VARIANTS[chooser.policy]
    settings: dict[str, st.SearchStrategy[Any]] = {name: st.sampled_from(values(name)) for name in variant.numbers}
    settings |= {name: st.just(word) for name, word in variant.words.items()}
    if variant.is_weighed:
        settings["estimator"] = estimators(chooser.estimator)
    return st.builds(variant.kind, **settings)


@st.composite
def schedules(draw: Draw, rows: list[Row]) -> Replay:
    """Rows that leave before they came, at once, soon, late or never."""
    stays = draw(st.binary(min_size=len(rows), max_size=len(rows)))
    until = [row.ts + (-2, 0, 0, 1, 2, 3, 5, 8, 20, 10**6)[stay % 10] for row, stay in zip(rows, stays, strict=True)]
    left, right = ([u for u, row in zip(until, rows, strict=True) if row.stream == stream] for stream in (0, 1))
    return Replay(left, right)
