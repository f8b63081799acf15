"""Random rows, full of ties and trouble: few keys, few importances and rows of equal time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

from naive import Row
from strategies.combinations import INTERPRETED

LONGEST_INPUT = 24 if INTERPRETED else 64
Draw = Callable[[st.SearchStrategy[Any]], Any]


class Shape(NamedTuple):
    """What kind of input it is; the rows themselves are drawn one by one."""

    streams: tuple[int, ...]  # which streams rows are drawn from: an empty one, a rare one, both alike
    block: int  # so many rows in a row come from one stream
    own_time: bool  # streams go through time each for itself, so that one runs ahead
    ahead: int  # and stream 1 starts so far ahead
    start: int
    steps: tuple[int, ...]  # how time goes on from row to row
    lags: tuple[int, ...]  # how far a row lies behind the time of its stream
    keys: tuple[int | None, ...]
    importances: tuple[float, ...]
    sizes: tuple[int, ...]


STREAM_MIXES = ((0, 1), (0, 1), (0, 1), (0, 0, 0, 0, 0, 1), (0, 1, 1, 1, 1, 1), (0,), (1,))
STEPS = ((0, 1), (0, 0, 0, 1), (1,), (0, 1, 2, 5), (0, 0, 1, 40), (0, 300))
LAGS = ((0,), (0,), (0, 0, 0, 1, 2), (0, 1, 2, 3, 4, 5, 6), (0, 0, 3, 60))
FAR = 2**63 - 1
KEYS = (
    (1, 2, 3),
    (1,),
    (1, 1, 1, 2, 2, 3, None),
    tuple(range(12)),
    (-FAR - 1, FAR, 0, -1, None),
    (0, 0, 0, 1, 2, 3, 4, 5),
)
IMPORTANCES = (
    (1.0,),
    (1.0, 2.0),
    (1.0, 1.0, 1.0, 5.0),
    (0.1, 0.3, 0.7, 1.0, 2.5),
    (1e-9, 1.0, 1e9),
    (1e-100, 1.0, 1e100),
)
SIZES = ((192,), (1, 100, 192, 250), (64, 128))
LENGTHS = st.integers(0, LONGEST_INPUT)
STARTS = (0, 0, 0, 7, -50, 10**6, -(2**40))


SHAPES = st.builds(
    Shape,
    streams=st.sampled_from(STREAM_MIXES),
    block=st.sampled_from((1, 1, 1, 6)),
    own_time=st.booleans(),
    ahead=st.sampled_from((0, 0, 0, 4, 100)),
    start=st.sampled_from(STARTS),
    steps=st.sampled_from(STEPS),
    lags=st.sampled_from(LAGS),
    keys=st.sampled_from(KEYS),
    importances=st.sampled_from(IMPORTANCES),
    sizes=st.sampled_from(SIZES),
)


def _choose(number: int, *options: tuple[Any, ...]) -> tuple[Any, ...]:
    """Take one of each, as the digits of the number say."""
    chosen = []
    for option in options:
        number, at = divmod(number, len(option))
        chosen.append(option[at])
    return tuple(chosen)


def lay_out(shape: Shape, numbers: list[int]) -> list[Row]:
    """Rows in order of arrival from one number each."""
    times = [shape.start, shape.start + shape.ahead]
    rows: list[Row] = []
    stream = 0
    for place, number in enumerate(numbers):
        drawn, step, lag, key, importance, size = _choose(
            number, shape.streams, shape.steps, shape.lags, shape.keys, shape.importances, shape.sizes
        )
        stream = drawn if place % shape.block == 0 else stream
        moved = (stream,) if shape.own_time else (0, 1)
        for one in moved:
            times[one] += step
        rows.append(Row(stream, key, times[stream] - lag, importance, size))
    return rows


@st.composite
def inputs(draw: Draw) -> list[Row]:
    """Rows of both streams in order of arrival."""
    shape = draw(SHAPES)
    length = draw(LENGTHS)
    # Three bytes a row in a single draw: hypothesis would take longer over the draws than both joins over the rows.
    numbers = draw(st.binary(min_size=3 * length, max_size=3 * length))
    return lay_out(shape, [int.from_bytes(numbers[3 * row : 3 * row + 3], "big") for row in range(length)])


@cache
def places(count: int) -> st.SearchStrategy[list[int]]:
    """Some of `count` places; now and then all of them, which takes as many pushes as rows."""
    some = st.lists(st.integers(0, max(count - 1, 0)), max_size=min(count, 6), unique=True)
    return st.integers(0, 7).flatmap(lambda dice: st.just(list(range(count))) if dice == 7 else some)
