"""The timeline of a window against a sorted list."""

from __future__ import annotations

from random import Random
from typing import Any

import numba
import numpy as np
import pytest

import shedjoin as sj
from shedjoin.engine import selection
from shedjoin.engine.engine import Engine
from shedjoin.engine.jit import OPTIONS
from shedjoin.engine.linked import KERNEL
from shedjoin.engine.structures import timeline
from shedjoin.engine.structures.timeline import FAR

pytestmark = pytest.mark.small


@numba.njit(**OPTIONS, **KERNEL)
def enter(how, state, x, stream, ts, seq):  # type: ignore[no-untyped-def]
    timeline.enter(how[0], state[0], x, stream, ts, seq)


@numba.njit(**OPTIONS, **KERNEL)
def leave(how, state, stream, ts, seq):  # type: ignore[no-untyped-def]
    timeline.leave(how[0], state[0], stream, ts, seq)


@numba.njit(**OPTIONS, **KERNEL)
def lower(how, state, stream, ts, seq):  # type: ignore[no-untyped-def]
    return timeline.lower(how[0], state[0], stream, ts, seq)


@numba.njit(**OPTIONS, **KERNEL)
def count(state, stream, first, end, until):  # type: ignore[no-untyped-def]
    return timeline.count(state[0], stream, first, end, until)


@numba.njit(**OPTIONS, **KERNEL)
def nth_last(state, stream, end, number, until):  # type: ignore[no-untyped-def]
    return timeline.nth_last(state[0], stream, end, number, until)


class Line:
    """The kernels' timeline of one stream and a plain list of (ts, seq)."""

    def __init__(self, random: Random, stream: int) -> None:
        windows = {"a": sj.TimeWindow(50), "b": sj.RowWindow(50), "c": sj.TimeWindow(9)}
        engine = Engine(sj.JoinSpec(windows, selective=sj.Selective(basic=5)).plan(), 0)
        self.how, self.handle = engine._cfg, engine._state
        self.random, self.stream, self.by_rows = random, stream, stream == 1
        self.stored: list[tuple[int, int]] = []
        self.rows = self.time = 0

    @property
    def st(self) -> Any:
        return self.handle.for_kernel()

    def place(self, tuple_: tuple[int, int]) -> tuple[int, int]:
        return (0, tuple_[1]) if self.by_rows else tuple_

    def add(self, disorder: int) -> None:
        self.time += self.random.choice((0, 0, 1, 2))
        ts = self.time - (self.random.randrange(disorder) if disorder and self.random.random() < 0.3 else 0)
        if self.handle["line_to"][self.stream] == self.handle["timeline_room"]:
            selection.grow_timeline(self.how, self.handle, 1)
        enter(self.how, self.st, self.rows, self.stream, ts, self.rows)
        self.stored.append((ts, self.rows))
        self.stored.sort(key=self.place)
        self.rows += 1

    def remove(self, at: int) -> None:
        ts, seq = self.stored.pop(at)
        leave(self.how, self.st, self.stream, ts, seq)

    def check(self) -> None:
        random, end = self.random, int(self.handle["line_to"][self.stream])
        edges = sorted((random.randrange(-2, self.time + 3), random.randrange(-1, self.rows + 2)) for _ in range(2))
        if self.by_rows:
            edges = sorted((0, seq) for _, seq in edges)
        (first, last), (low, high) = (lower(self.how, self.st, self.stream, *edge) for edge in edges), edges
        for until in (FAR, random.randrange(self.time + 2)):
            inside = [one for one in self.stored if low <= self.place(one) < high and one[0] < until]
            assert count(self.st, self.stream, first, last, until) == len(inside)
            if inside:
                number = random.randrange(1, len(inside) + 1)
                e = self.handle.arrays["timeline"][self.stream, nth_last(self.st, self.stream, last, number, until)]
                assert (e["ts"], e["seq"]) == inside[-number]
                assert e["item"] == e["seq"]
        whole = lower(self.how, self.st, self.stream, -FAR, -FAR)
        assert count(self.st, self.stream, whole, end, FAR) == len(self.stored)


@pytest.mark.parametrize("stream", [0, 1, 2])
@pytest.mark.parametrize("disorder", [0, 3, 60])
def test_a_timeline_is_a_sorted_list(stream: int, disorder: int) -> None:
    random = Random(f"{stream} {disorder}")
    line = Line(random, stream)
    for number in range(2500):
        line.add(disorder)
        kept = 40 if number < 1200 else 200
        while len(line.stored) > kept:  # the oldest, or any
            line.remove(0 if random.random() < 0.7 else random.randrange(len(line.stored)))
        if number % 5 == 0:
            line.check()
    while line.stored:
        line.remove(random.randrange(len(line.stored)))
        line.check()
    for _ in range(20):
        line.add(disorder)
        line.check()


def test_a_timeline_grows() -> None:
    line = Line(Random(1), 0)
    for _ in range(3000):
        line.add(4)
    line.check()
    assert line.handle.arrays["timeline"].shape[1] == 4096
    for _ in range(2990):
        line.remove(0)
    for _ in range(1500):
        line.add(4)
    line.check()
    assert line.handle.arrays["timeline"].shape[1] == 4096, "gaps are closed first"


def test_times_that_rise_are_known_to() -> None:
    line = Line(Random(2), 1)
    torn = line.handle.record["line_torn"][0]
    for ts, seq in ((5, 0), (7, 1), (6, 2), (8, 3)):
        enter(line.how, line.st, seq, 1, ts, seq)
    assert torn[1] == 2
    selection.grow_timeline(line.how, line.handle, 1)
    assert torn[1] == 2
    for ts, seq in ((5, 0), (7, 1)):
        leave(line.how, line.st, 1, ts, seq)
    assert line.handle["line_from"][1] == 2
    selection.grow_timeline(line.how, line.handle, 1)
    assert torn[1] == 0
    assert np.diff(line.handle.arrays["timeline"]["seq"][1, :2]).tolist() == [1]
