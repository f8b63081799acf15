"""Small random streams for joins on any predicate. Domains are small: ties and repeated items are where indexes differ."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import shedjoin as sj
from naive import Join, Row, exact, interleave, numbers, on

NUMBERS = st.one_of(
    st.integers(-6, 6).map(float), st.sampled_from([0.5, -0.5, 0.1, 0.3, 1e15, 1e15 + 2, -1e300]), st.none()
)
VALUES = st.one_of(st.integers(-3, 3), st.sampled_from([2**62, -(2**62)]), st.none())
SETS = st.one_of(st.sets(st.integers(-2, 5), max_size=5), st.none())
WEIGHTED = st.one_of(
    st.dictionaries(st.integers(-2, 4), st.sampled_from([0.5, 1.0, -1.0, 0.1, 3.0]), max_size=4), st.none()
)
KINDS = {"number": NUMBERS, "value": VALUES, "set": SETS, "weighted": WEIGHTED}

PREDICATES = (
    sj.Equal("x"),
    sj.Band("x", within=0.0),
    sj.Band("x", within=0.3),
    sj.Band("x", within=2.0),
    sj.Theta("x", "<"),
    sj.Theta("x", "<=", offset=-1.0),
    sj.Theta("x", ">"),
    sj.Theta("x", ">=", offset=0.5),
    sj.Theta("x", "!="),
    sj.SameSet("x"),
    sj.Subset("x"),
    sj.Superset("x"),
    sj.Overlap("x", at_least=1),
    sj.Overlap("x", at_least=3),
    sj.InnerProduct("x", at_least=1.0),
    sj.InnerProduct("x", at_least=0.3),
)


@st.composite
def streams(draw: st.DrawFn, kind: str, *, rows: int = 14, disorder: int = 0) -> list[list[tuple[int, Any]]]:
    """Two streams of (ts, value), in order of time up to `disorder`."""
    made = []
    for _ in range(2):
        count = draw(st.integers(0, rows))
        steps = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
        back = draw(st.lists(st.integers(0, disorder), min_size=count, max_size=count))
        values = draw(st.lists(KINDS[kind], min_size=count, max_size=count))
        clock, stream = draw(st.integers(-3, 3)), []
        for step, lag, value in zip(steps, back, values, strict=True):
            clock += step
            stream.append((clock - lag, value))
        made.append(stream)
    return made


def table(stream: list[tuple[int, Any]], **more: Any) -> dict[str, Any]:
    return {"ts": [ts for ts, _ in stream], "x": [value for _, value in stream], **more}


def pairs(*outputs: sj.Output) -> list[tuple[int, int]]:
    return sorted(pair for out in outputs for pair in zip(out.left.tolist(), out.right.tolist(), strict=True))


def rows_of(left: list[tuple[int, Any]], right: list[tuple[int, Any]]) -> list[Row]:
    """Two streams of (ts, value) as they arrive."""
    return interleave(*([Row(stream, value, ts) for ts, value in side] for stream, side in enumerate((left, right))))


def exact_pairs(
    predicate: sj.Predicate, windows: tuple[int, int], left: list[tuple[int, Any]], right: list[tuple[int, Any]]
) -> list[tuple[int, ...]]:
    """All pairs of row numbers that the windows and the predicate allow."""
    join = Join((sj.TimeWindow(windows[0]), sj.TimeWindow(windows[1])), on(predicate))
    return sorted(numbers(exact(join, [rows_of(left, right)])))
