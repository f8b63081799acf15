"""Admission: when a row has its turn. At once, from a queue in front of a slow CPU, or through the aux-window."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from naive.aux_window import AuxWindow
from naive.rows import DROPPED, EVICTED, Row, Stored, instants, remove
from naive.weights import InMemoryWeights, TableWeights, Weights
from shedjoin.estimators import Table

if TYPE_CHECKING:
    from naive.twin import Twin

#: A push is run in about this many parts, and r is looked at after each.
PARTS = 16


class Admission:
    """Rows on their way to their turn."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.arrivals = [0 for _ in twin.streams]
        self.instant = -1
        #: The rows that wait, first come first served; and those of each stream, as lots are drawn from them.
        self.line: list[Stored] = []
        self.waiting: list[list[Stored]] = [[] for _ in twin.streams]
        self.cpu_free = -math.inf
        #: The time of the row that arrived last.
        self.now = 0
        self.aux = AuxWindow(twin) if twin.join.dual is not None else None
        #: Clocks that were told, each with the number of the first row that came after.
        self.told: list[tuple[int, Sequence[int | None]]] = []
        self.script: Iterator[float] | None = None
        self.part = self.spent = 0

    def push(self, rows: list[Row], clocks: Sequence[int | None] | None, script: Iterator[float] | None) -> None:
        self.script, self.part, self.spent = script, max(1, -(-len(rows) // PARTS)), 0
        for instant in instants(rows):
            numbered = self.number(instant)
            if self.twin.join.cpu is None and self.aux is None:
                for x in numbered:
                    self.come(x)
                self.twin.turn(numbered)
                self.twin.close()
            else:
                for x in numbered:
                    self.work_until(x.ts)
                    self.come(x)
                    self.enter_queue(x)
                    if self.twin.join.cpu is None:
                        self.work_until(math.inf)
        self.part = 0  # the rows of the push are through: r is looked at once more, at the end
        if clocks is not None:
            self.told.append((sum(self.arrivals), clocks))
            if self.aux is not None:
                self.aux.let_go(max((clock for clock in clocks if clock is not None), default=-math.inf))
            self.tell()
        self.look()

    def number(self, instant: list[Row]) -> list[Stored]:
        """Rows get their numbers when they arrive, and know how many came with them."""
        self.instant += 1
        made, before = [], tuple(self.arrivals)
        for row in instant:
            seq = self.arrivals[row.stream]
            made.append(Stored(row, seq, sum(self.arrivals), self.instant, (), place=seq, before=before))
            self.arrivals[row.stream] += 1
            self.twin.counters["rows"] += 1
        for x in made:
            x.through = tuple(self.arrivals)
        return made

    @property
    def next_instant(self) -> int | None:
        """The instant of the row whose turn is next, if one waits."""
        waiting = [*(self.aux.line if self.aux is not None else ()), *self.line]
        return waiting[0].instant if waiting else None

    def come(self, x: Stored) -> None:
        if self.twin.selection is not None:
            self.twin.selection.come(x)

    # --------------------------------------------------------------------------------------------------------- the CPU

    def work_until(self, time: float) -> None:
        """The first in line has its turn while the CPU is free before this time."""
        cpu = self.twin.join.cpu
        while self.line and (cpu is None or self.cpu_free < time):
            x = self.line[0]
            self.leave_queue(x)
            before = self.twin.worked
            if self.aux is not None:
                self.aux.enter(x)
            else:
                self.twin.turn([x])
            if self.twin.selection is not None:
                self.twin.selection.fetched += 1
            if cpu is not None:
                self.cpu_free = max(self.cpu_free, float(x.ts)) + (self.twin.worked - before) / cpu.capacity
            self.tell()

    def flush(self) -> None:
        self.work_until(math.inf)
        if self.aux is not None:
            self.aux.flush()
        self.tell()

    def tell(self) -> None:
        """Clocks that were told hold when all rows that came before have had their turn."""
        coming = [x.arrival for x in (*self.line, *(self.aux.line if self.aux is not None else ()))]
        while self.told and self.told[0][0] <= min(coming, default=math.inf):
            self.twin.hear(self.told.pop(0)[1])

    # ------------------------------------------------------------------------------------------------------- the queue

    def enter_queue(self, x: Stored) -> None:
        """Front shedding by lot, then the queue, which may be full."""
        queue = self.twin.join.queue
        self.now = x.ts
        if self.aux is not None and self.aux.is_dropped(x):
            self.twin.log(x, DROPPED, when=x.ts)
            return
        self.line.append(x)
        self.waiting[x.stream].append(x)
        if queue is None:
            return
        if queue.integrated:
            self.twin.order.weigh(x)
            x.priority = self.twin.order.at_arrival(x)
            for group, cap in self.twin.groups():
                while self.twin.is_over(group, cap):
                    self.twin.shed(self.twin.order.lowest(group), EVICTED)
            return
        if queue.drop != "random":
            x.priority = x.importance * self.partners_of(x)
        if self.is_full(x.stream):
            self.drop(self.victim(x.stream))

    def partners_of(self, x: Stored) -> float:
        """What the queue knows: the tuples in memory, or the histograms of dual windows."""
        table = self.twin.join.queue.drop if self.twin.join.queue is not None else None
        weights: Weights = InMemoryWeights(self.twin) if self.aux is None else self.aux.weights
        if isinstance(table, Table):
            weights = TableWeights(self.twin, table)
        weights.histogram = self.twin.weights.histogram
        return weights.chance(x)

    def is_full(self, stream: int) -> bool:
        """Whether the queue of a stream is too long: in rows, or in time."""
        queue = self.twin.join.queue
        assert queue is not None
        if queue.tuples is not None:
            return len(self.waiting[stream]) > queue.tuples
        assert queue.span is not None
        mine = [x for x in self.line if x.stream == stream]
        return bool(mine) and self.line[-1].ts - mine[0].ts >= queue.span

    def victim(self, stream: int) -> Stored:
        queue = self.twin.join.queue
        assert queue is not None
        if queue.drop != "random":
            return min(self.waiting[stream], key=lambda x: (x.priority, -x.arrival))
        return self.waiting[stream][self.twin.generator.below(len(self.waiting[stream]))]

    def drop(self, x: Stored) -> None:
        self.leave_queue(x)
        self.twin.log(x, DROPPED, when=self.now)

    def leave_queue(self, x: Stored) -> None:
        self.line.remove(x)
        remove(self.waiting[x.stream], x)

    # ------------------------------------------------------------------------------------------------- deadlines: r

    def spend(self) -> None:
        """A row has had its turn: after each part of a push, r is looked at."""
        self.spent += 1
        if self.spent == self.part:
            self.spent = 0
            self.look()

    def look(self) -> None:
        if self.twin.selection is not None and self.script is not None:
            self.twin.selection.set_fraction(next(self.script, self.twin.selection.fraction))
