"""The lazily sorted heap against a list that is searched from end to end."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import strategies as st

import shedjoin as sj
from shedjoin.engine.engine import Engine
from shedjoin.engine.handle import Handle
from shedjoin.engine.jit import OPTIONS
from shedjoin.engine.linked import KERNEL
from shedjoin.engine.structures import heap, lazy_heap
from strategies import for_all

ROOM = 700


@numba.njit(**OPTIONS, **KERNEL)
def push(state, stream, prio, rank, arrival, x):  # type: ignore[no-untyped-def]
    lazy_heap.push(state[0], stream, prio, rank, arrival, x)


@numba.njit(**OPTIONS, **KERNEL)
def remove(state, stream, x):  # type: ignore[no-untyped-def]
    lazy_heap.remove(state[0], stream, x)


@numba.njit(**OPTIONS, **KERNEL)
def move(state, stream, prio, x):  # type: ignore[no-untyped-def]
    lazy_heap.move(state[0], stream, prio, x)


@numba.njit(**OPTIONS, **KERNEL)
def lead(state, stream, cumulative):  # type: ignore[no-untyped-def]
    lazy_heap.lead(state[0], stream, cumulative)


class Queue:
    """The kernels' queue and a plain one: item -> (priority, rank, arrival). The kernels need not be told of a rise."""

    def __init__(self, random: Random, cumulative: bool) -> None:
        policy = sj.Dgl() if cumulative else sj.Simp()
        plan = sj.JoinSpec(window=sj.TimeWindow(5), budget=sj.Budget(tuples=ROOM), policy=policy).plan()
        self.handle: Handle = Engine(plan, 0)._state
        self.st: Any = self.handle.for_kernel()
        self.random, self.cumulative, self.stream = random, cumulative, random.randrange(2)
        self.waiting: dict[int, tuple[float, float, int]] = {}
        self.arrivals = 0
        self.priorities = [-math.inf, 0.0, 1.5, 2.0, math.inf] if random.random() < 0.3 else None

    def priority(self, least: float = 0.0) -> float:
        if self.priorities:
            return max(least, self.random.choice(self.priorities))
        return least + self.random.expovariate(1.0) + (self.arrivals / 100 if self.cumulative else 0.0)

    def set(self, x: int, prio: float) -> None:
        self.waiting[x] = (prio, *self.waiting[x][1:])
        if self.cumulative:
            self.handle.arrays["prio"][x] = prio

    def push(self, prio: float | None = None) -> None:
        x = self.random.choice([x for x in range(ROOM) if x not in self.waiting])
        prio, rank = self.priority() if prio is None else prio, float(self.random.randrange(3))
        self.waiting[x] = (prio, rank, self.arrivals)
        self.set(x, prio)
        push(self.st, self.stream, prio, rank, self.arrivals, x)
        self.arrivals += 1

    def remove(self) -> None:
        x = self.random.choice(list(self.waiting))
        remove(self.st, self.stream, x)
        del self.waiting[x]

    def move(self) -> None:
        x = self.random.choice(list(self.waiting))
        prio = self.priority()
        self.set(x, prio)
        move(self.st, self.stream, prio, x)

    def rise(self) -> None:
        """Only of cumulative priorities: the queue finds out by itself."""
        x = self.random.choice(list(self.waiting))
        if self.cumulative:
            self.set(x, self.priority(self.waiting[x][0]))

    def pop(self) -> None:
        lead(self.st, self.stream, self.cumulative)
        top = self.handle.arrays["heap"][self.stream, heap.TOP]
        lowest = min(self.waiting, key=lambda x: self.waiting[x])
        assert (top["item"], top["prio"], top["rank"], top["arrival"]) == (lowest, *self.waiting[lowest])
        remove(self.st, self.stream, lowest)
        del self.waiting[lowest]

    @property
    def bound(self) -> float:
        return float(self.handle["bound"][self.stream])

    def check(self) -> None:
        size, ordered = int(self.handle["heap_size"][self.stream]), int(self.handle["sorted"][self.stream])
        place = self.handle.arrays["place"]
        there = self.handle.arrays["heap"][self.stream, heap.TOP : heap.TOP + size]
        assert sorted(there["item"]) == sorted(self.waiting)
        assert np.array_equal(place[there["item"]], np.arange(heap.TOP, heap.TOP + size))
        assert np.count_nonzero(place != -1) == size
        assert np.array_equal(there["prio"] <= self.bound, np.arange(size) < ordered)
        entries = [tuple(entry)[:3] for entry in there[:ordered].tolist()]
        assert all(entries[(child - 1) >> 2] <= entries[child] for child in range(1, ordered))
        if self.cumulative:  # priorities rise without the heap being told
            assert (there["prio"] <= self.handle.arrays["prio"][there["item"]]).all()


@pytest.mark.small
@pytest.mark.parametrize("cumulative", [False, True])
def test_the_lowest_leads_whatever_happens_to_the_others(cumulative: bool) -> None:
    def check(seed: int) -> None:
        queue = Queue(Random(seed), cumulative)
        work = [queue.push, queue.remove, queue.move, queue.rise, queue.pop]
        for weights in ((9, 1, 1, 2, 1), (2, 1, 1, 2, 2), (1, 1, 1, 4, 9), (9, 1, 1, 2, 4)):
            for step in queue.random.choices(work, weights, k=250):
                if len(queue.waiting) < ROOM if step == queue.push else queue.waiting:
                    step()
            queue.check()

    for_all(st.integers(0, 2**32), check, label=f"lazy heap {cumulative}", examples=12)


@pytest.mark.small
@pytest.mark.parametrize(
    "priority",
    [
        lambda number, random: float(number),
        lambda number, random: random.random(),
        lambda number, random: random.random() + number / 100,
        lambda number, random: float(number % 16),
        lambda number, random: 1.0,
    ],
    ids=["rising", "random", "random and rising", "in turn", "equal"],
)
def test_a_sweep_sorts_many_at_once(priority: Callable[[int, Random], float]) -> None:
    """A sweep of the queue is shared by many: on average few entries are read for each that leaves."""
    queue = Queue(Random(5), False)
    swept, steps = 0, 600
    for number in range(600 + steps):
        queue.push(priority(number, queue.random))
        if number >= 600:
            before = queue.bound
            queue.pop()
            swept += 600 if queue.bound != before else 0
    assert swept < 25 * steps
