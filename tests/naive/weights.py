"""The estimators: how likely the partners of a key are."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING

from naive.arithmetic import GOLDEN, mix
from naive.rows import STREAMS, Row, Stored
from shedjoin.estimators import Decayed, Estimator, Table
from shedjoin.window import TimeWindow

if TYPE_CHECKING:
    from naive.twin import Twin


class Weights:
    """What an estimator says. `size` is read where the size of m matters, `weight` where only the order does."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin

    def observe(self, rows: list[Stored]) -> None:
        """Step 5: the rows of this instant that have a key and were not late."""

    def weight(self, stream: int, key: int) -> float:
        """Policies that ask no estimator expect nothing of any key."""
        return 0.0

    def size(self, stream: int, key: int) -> float:
        return self.weight(stream, key)

    def change(self, estimator: Estimator) -> None:
        """The estimator gets other numbers."""

    def read_all(self) -> None:
        """Read the sizes of all keys as they are now."""


class TableWeights(Weights):
    def __init__(self, twin: Twin, table: Table) -> None:
        super().__init__(twin)
        self.given = (table.left, table.right)

    def weight(self, stream: int, key: int) -> float:
        return self.given[stream].get(key, 0.0)


class InMemoryWeights(Weights):
    def weight(self, stream: int, key: int) -> float:
        return float(sum(1 for x in self.twin.stored[stream] if x.key == key))


class HistoryWeights(Weights):
    def __init__(self, twin: Twin) -> None:
        super().__init__(twin)
        self.rows: list[Row] = []

    def observe(self, rows: list[Stored]) -> None:
        self.rows += [x.row for x in rows]

    def weight(self, stream: int, key: int) -> float:
        return float(sum(1 for row in self.rows if row.stream == stream and row.key == key))


class InWindowWeights(Weights):
    def __init__(self, twin: Twin) -> None:
        super().__init__(twin)
        self.stamped: list[tuple[int, Stored]] = []

    def observe(self, rows: list[Stored]) -> None:
        self.stamped += [(self.twin.clock_of(x.stream), x) for x in rows]

    def counts(self, stamp: int, x: Stored) -> bool:
        window = self.twin.windows[x.stream]
        if isinstance(window, TimeWindow):
            return self.twin.clock_of(x.stream) < stamp + window.length
        return x.seq >= self.twin.arrived[x.stream] - window.rows

    def weight(self, stream: int, key: int) -> float:
        of_key = [(stamp, x) for stamp, x in self.stamped if x.stream == stream and x.key == key]
        return float(sum(1 for stamp, x in of_key if self.counts(stamp, x)))


class DecayedWeights(Weights):
    def __init__(self, twin: Twin, half_life: float) -> None:
        super().__init__(twin)
        self.half_life = half_life
        self.first: int | None = None
        self.rescaled = 0
        self.sums: dict[tuple[int, int | None], float] = {}
        self.read: dict[tuple[int, int | None], float] = {}

    def exponent(self, time: int) -> float:
        assert self.first is not None
        return (time - self.first) / self.half_life - 512 * self.rescaled

    def observe(self, rows: list[Stored]) -> None:
        while self.first is not None and self.exponent(self.twin.now) > 512:
            self.rescaled += 1
            self.sums = {of: value * 2.0**-512 for of, value in self.sums.items()}
        for x in rows:
            self.add(x)
        for x, stream in itertools.product(rows, STREAMS):
            scale = math.exp2(-self.exponent(self.twin.now))
            self.read[stream, x.key] = self.sums.get((stream, x.key), 0.0) * scale

    def add(self, x: Stored) -> None:
        stamp = self.twin.clock_of(x.stream)
        if self.first is None:
            self.first = self.twin.now
        for stream in STREAMS:
            if (stream, x.key) in self.sums:
                self.forget(stream, x.key)
        self.sums[x.stream, x.key] = self.sums.get((x.stream, x.key), 0.0) + math.exp2(self.exponent(stamp))

    def forget(self, stream: int, key: int | None) -> None:
        """A weight that is next to nothing beside one row of now becomes nothing."""
        if self.sums[stream, key] < 2.0**-20 * math.exp2(self.exponent(self.twin.clock_of(stream))):
            self.sums[stream, key] = 0.0

    def change(self, estimator: Estimator) -> None:
        assert isinstance(estimator, Decayed)
        if self.first is not None and estimator.half_life != self.half_life:
            left = math.exp2(-self.exponent(self.twin.now))
            self.sums = {of: value * left for of, value in self.sums.items()}
            self.first, self.rescaled = self.twin.now, 0
        self.half_life = estimator.half_life

    def read_all(self) -> None:
        if self.first is not None:
            scale = math.exp2(-self.exponent(self.twin.now))
            self.read = {of: value * scale for of, value in self.sums.items()}

    def weight(self, stream: int, key: int) -> float:
        return self.sums.get((stream, key), 0.0)

    def size(self, stream: int, key: int) -> float:
        return self.read.get((stream, key), 0.0)


class CountMinWeights(Weights):
    def __init__(self, twin: Twin, width: int, depth: int) -> None:
        super().__init__(twin)
        self.width, self.depth = width, depth
        self.counters: dict[tuple[int, int, int], int] = defaultdict(int)
        self.read: dict[tuple[int, int | None], float] = {}

    def cells(self, stream: int, key: int) -> list[tuple[int, int, int]]:
        return [(stream, d, mix(key + (d + 1) * GOLDEN) % self.width) for d in range(self.depth)]

    def observe(self, rows: list[Stored]) -> None:
        keys = [x.key for x in rows if x.key is not None]
        for x, key in zip(rows, keys, strict=True):
            for cell in self.cells(x.stream, key):
                self.counters[cell] += 1
        for key, stream in itertools.product(keys, STREAMS):
            self.read[stream, key] = float(min(self.counters[cell] for cell in self.cells(stream, key)))

    def weight(self, stream: int, key: int) -> float:
        return self.read.get((stream, key), 0.0)
