"""The estimators: how much a stream is expected to bring of a value."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from naive.arithmetic import GOLDEN, added, hash_of_set, mix
from naive.conditions import ROWS, Condition, Histogram, OnTheta, Value
from naive.rows import Stored
from shedjoin.engine.codes import KEY, PRODUCT
from shedjoin.engine.codes import Order as Numbers
from shedjoin.estimators import Decayed, Table
from shedjoin.policies import Policy
from shedjoin.window import TimeWindow

if TYPE_CHECKING:
    from naive.twin import Twin


def reads_sizes(order: Numbers) -> bool:
    """Whether priorities ask for a number of partners, and not only for something in proportion to it."""
    return order.organisation == KEY and order.combine != PRODUCT


#: Weights by (stream, value).
Counts = dict[tuple[int, Value], float]


class Weights:
    """What an estimator says. Policies that ask none expect nothing of any value."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.condition: Condition = twin.join.condition
        inner = getattr(self.condition, "inner", self.condition)
        self.histogram = Histogram() if isinstance(inner, OnTheta) else None

    def values(self, x: Stored) -> list[Value]:
        """The values by which a tuple is counted."""
        return self.condition.values(x.row) if self.histogram is None else [self.histogram.bucket(x.value)]

    #: Whether it knows keys of which nothing is stored, until it forgets them.
    remembers_keys = False

    @property
    def limit(self) -> int | None:
        """The most that it may remember beside what is stored."""
        return None if self.twin.budget is None else self.twin.budget.keys

    def known(self) -> dict[Value, float]:
        """The keys that it knows, and what each is worth."""
        return {}

    def drop(self, value: Value) -> None:
        """Forget a key."""

    def is_needed(self, value: Value) -> bool:
        """Whether a key cannot be forgotten, though nothing of it is stored."""
        return False

    def forget_keys(self, limit: int) -> int:
        """Forget keys of which nothing is stored until half of the limit are left; returns how many of those are known then."""
        there = {value for side in self.twin.stored for x in side for value in self.values(x)}
        known = {value: worth for value, worth in self.known().items() if value not in there and value != ROWS}
        free = [value for value in known if not self.is_needed(value)]
        gone = sorted(free, key=lambda value: (known[value], *place_of(value)))[: max(len(free) - limit // 2, 0)]
        for value in gone:
            self.drop(value)
        self.twin.counters["forgotten"] += len(gone)
        return len(known) - len(gone)

    def observe(self, rows: list[Stored]) -> None:
        """Step 5: the rows of this instant that have a value and were not late."""
        for x in rows:
            if self.histogram is not None:
                self.histogram.widen(x.value, self.rename)

    def rename(self, new: Callable[[Any], Any]) -> None:
        """Buckets of numbers have become wider."""

    def weight(self, stream: int, value: Value) -> float:
        """Where only the order matters: all weights may have a factor in common."""
        return 0.0

    def size(self, stream: int, value: Value) -> float:
        """Where the size matters, but not at once: what was read when a row of the value came last."""
        return self.weight(stream, value)

    def scale(self, factors: int) -> float:
        """The factor that turns a product of `factors` weights into a number of partners."""
        return 1.0

    def change(self, policy: Policy) -> None:
        """Another policy is about to ask, or the estimator gets other numbers."""

    def belong_to(self, twin: Twin, rows: Mapping[Stored, Stored]) -> None:
        """Of another join from now on, which has these rows in place of those that were seen."""
        self.twin = twin

    def chance(self, x: Stored) -> float:
        """The partners that a tuple can expect, or a number in proportion to them; a null expects none."""
        return 0.0 if self.condition.is_null(x.row) else self.condition.chance(x.row, self.weight, self.histogram)

    def read_chance(self, x: Stored) -> float:
        return 0.0 if self.condition.is_null(x.row) else self.condition.chance(x.row, self.size, self.histogram)

    def current(self, x: Stored) -> float:
        """The number of partners that a tuple can expect now."""
        return self.chance(x) * self.scale(self.condition.factors(x.stream))


def sums_of(counts: Counts, streams: Sequence[int]) -> dict[Value, float]:
    """For each value the sum over all streams."""
    return {value: sum(counts.get((stream, value), 0.0) for stream in streams) for _, value in counts}


def place_of(value: Any) -> tuple[int, float]:
    """The order of values of one worth: a value of a graph has its part with it; sets have the signed hash they are stored by."""
    part, number = value if isinstance(value, tuple) else (0, value)
    if isinstance(number, frozenset):
        code = hash_of_set(number)
        number = code - 2**64 if code >= 2**63 else code
    return part, number


def merged(counts: Counts, new: Callable[[Any], Any]) -> Counts:
    """Counts by new values, from the lowest on."""
    made: Counts = {}
    for (stream, value), count in sorted(counts.items(), key=lambda one: (one[0][0], one[0][1])):
        made[stream, new(value)] = made.get((stream, new(value)), 0.0) + count
    return made


class TableWeights(Weights):
    def __init__(self, twin: Twin, table: Table) -> None:
        super().__init__(twin)
        self.given = (table.left, table.right, *table.more)
        for key in itertools.chain(*self.given):
            if self.histogram is not None:
                self.histogram.widen(key, self.rename)

    def weight(self, stream: int, value: Value) -> float:
        if value == ROWS:
            return 1.0
        return added(share for key, share in self.given[stream].items() if self.is_about(key, value))

    def is_about(self, key: int, value: Value) -> bool:
        return self.condition.speaks_of(key, value) if self.histogram is None else self.histogram.bucket(key) == value


class CountedWeights(Weights, ABC):
    """The weight is the number of certain rows that have the value."""

    @abstractmethod
    def counted(self, stream: int) -> Sequence[Stored]:
        """The rows of a stream that count."""

    def weight(self, stream: int, value: Value) -> float:
        return float(sum(value in self.values(x) for x in self.counted(stream)))


class InMemoryWeights(CountedWeights):
    def counted(self, stream: int) -> Sequence[Stored]:
        return self.twin.stored[stream]


class InWindowWeights(Weights):
    def __init__(self, twin: Twin) -> None:
        super().__init__(twin)
        self.stamped: list[tuple[int, Stored, Value]] = []

    def observe(self, rows: list[Stored]) -> None:
        super().observe(rows)
        for x in rows:
            for value in sorted(self.values(x), key=lambda value: (value == ROWS, *place_of(value))):
                self.make_room(x.stream)
                self.stamped.append((self.twin.clock_of(x.stream), x, value))
        self.stamped = [one for one in self.stamped if self.counts(*one[:2])]

    def make_room(self, stream: int) -> None:
        mine = [one for one in self.stamped if one[1].stream == stream and self.counts(*one[:2])]
        for one in mine[: max(len(mine) - self.limit + 1, 0) if self.limit is not None else 0]:
            self.stamped.remove(one)
            self.twin.counters["forgotten"] += 1

    def belong_to(self, twin: Twin, rows: Mapping[Stored, Stored]) -> None:
        super().belong_to(twin, rows)
        self.stamped = [(stamp, rows[x], value) for stamp, x, value in self.stamped]

    def rename(self, new: Callable[[Any], Any]) -> None:
        self.stamped = [(stamp, x, new(value)) for stamp, x, value in self.stamped]

    def weight(self, stream: int, value: Value) -> float:
        return float(sum(x.stream == stream and one == value and self.counts(at, x) for at, x, one in self.stamped))

    def counts(self, stamp: int, x: Stored) -> bool:
        window = self.twin.windows[x.stream]
        if isinstance(window, TimeWindow):
            return self.twin.clock_of(x.stream) < stamp + window.range
        return x.place >= self.twin.arrived[x.stream] - window.rows


class HistoryWeights(Weights):
    remembers_keys = True

    def __init__(self, twin: Twin) -> None:
        super().__init__(twin)
        self.counts: Counts = {}

    def observe(self, rows: list[Stored]) -> None:
        super().observe(rows)
        for x in rows:
            for value in self.values(x):
                self.counts[x.stream, value] = self.counts.get((x.stream, value), 0.0) + 1.0

    def known(self) -> dict[Value, float]:
        return sums_of(self.counts, self.twin.streams)

    def drop(self, value: Value) -> None:
        self.counts = {of: count for of, count in self.counts.items() if of[1] != value}

    def rename(self, new: Callable[[Any], Any]) -> None:
        self.counts = merged(self.counts, new)

    def weight(self, stream: int, value: Value) -> float:
        return self.counts.get((stream, value), 0.0)


class DecayedWeights(Weights):
    remembers_keys = True

    def __init__(self, twin: Twin, half_life: float) -> None:
        super().__init__(twin)
        self.half_life = half_life
        self.first: int | None = None
        self.rescaled = 0
        self.rescale_at = 512 // max(1, *(self.condition.factors(stream) for stream in twin.streams))
        self.sums: Counts = {}
        self.read: Counts = {}

    def exponent(self, time: int) -> float:
        assert self.first is not None
        return (time - self.first) / self.half_life - self.rescale_at * self.rescaled

    def observe(self, rows: list[Stored]) -> None:
        super().observe(rows)
        while self.first is not None and self.exponent(self.twin.now) > self.rescale_at:
            self.rescaled += 1
            self.multiply(2.0**-self.rescale_at)
        for x in rows:
            self.add(x)
        for x, stream in itertools.product(rows, self.twin.streams):
            for value in self.values(x):
                self.read[stream, value] = self.sums.get((stream, value), 0.0) * self.scale(1)

    def multiply(self, factor: float) -> None:
        self.sums = {of: count * factor for of, count in self.sums.items()}
        self.twin.order.multiply_chances(factor)

    def add(self, x: Stored) -> None:
        stamp = self.twin.clock_of(x.stream)
        if self.first is None:
            self.first = self.twin.now
        for value in self.values(x):
            for stream in self.twin.streams:
                if (stream, value) in self.sums:
                    self.forget(stream, value)
            self.sums[x.stream, value] = self.sums.get((x.stream, value), 0.0) + math.exp2(self.exponent(stamp))

    def forget(self, stream: int, value: Value) -> None:
        """A weight that is next to nothing beside one row of now becomes nothing."""
        if self.is_next_to_nothing(stream, value):
            self.sums[stream, value] = 0.0

    def is_next_to_nothing(self, stream: int, value: Value) -> bool:
        clock = self.twin.clocks[stream]
        return clock is not None and self.sums[stream, value] < 2.0**-20 * math.exp2(self.exponent(clock))

    def known(self) -> dict[Value, float]:
        alive = {value for stream, value in self.sums if not self.is_next_to_nothing(stream, value)}
        known = sums_of(self.sums, self.twin.streams)
        return {value: worth for value, worth in known.items() if value in alive}

    def drop(self, value: Value) -> None:
        self.sums = {of: count for of, count in self.sums.items() if of[1] != value}
        self.read = {of: count for of, count in self.read.items() if of[1] != value}

    def rename(self, new: Callable[[Any], Any]) -> None:
        self.sums, self.read = merged(self.sums, new), merged(self.read, new)

    def change(self, policy: Policy) -> None:
        estimator, order = policy.estimator, self.twin.order
        assert isinstance(estimator, Decayed)
        other_scale = reads_sizes(policy.order()) != order.reads_sizes
        if self.first is not None and (estimator.half_life != self.half_life or other_scale):
            self.multiply(self.scale(1))
            self.first, self.rescaled = self.twin.now, 0
        self.half_life = estimator.half_life

    def weight(self, stream: int, value: Value) -> float:
        count = self.sums.get((stream, value), 0.0)
        if self.condition.alone and (count == 0.0 or self.is_next_to_nothing(stream, value)):
            return 0.0
        return count

    def size(self, stream: int, value: Value) -> float:
        return self.read.get((stream, value), 0.0)

    def scale(self, factors: int) -> float:
        return 1.0 if self.first is None else math.exp2(-factors * self.exponent(self.twin.now))


class CountMinWeights(Weights):
    def __init__(self, twin: Twin, width: int, depth: int) -> None:
        super().__init__(twin)
        self.width, self.depth = width, depth
        self.counters: dict[tuple[int, int, int, int], int] = defaultdict(int)
        self.rows: Counts = {}
        self.read: Counts = {}

    def cells(self, stream: int, value: Any) -> list[tuple[int, int, int, int]]:
        part, number = value if isinstance(value, tuple) else (0, value)
        if isinstance(number, frozenset):
            number = hash_of_set(number)
        return [(part, stream, d, mix(number + (d + 1) * GOLDEN) % self.width) for d in range(self.depth)]

    def observe(self, rows: list[Stored]) -> None:
        super().observe(rows)
        for x in rows:
            self.rows[x.stream, ROWS] = self.rows.get((x.stream, ROWS), 0.0) + 1.0
        counted = [(x.stream, value) for x in rows for value in self.values(x) if value != ROWS]
        for stream, value in counted:
            for cell in self.cells(stream, value):
                self.counters[cell] += 1
        for (_, value), stream in itertools.product(counted, self.twin.streams):
            self.read[stream, value] = float(min(self.counters[cell] for cell in self.cells(stream, value)))

    def weight(self, stream: int, value: Value) -> float:
        if value == ROWS:
            return self.rows.get((stream, ROWS), 0.0)
        if self.condition.alone:  # read when a tuple is weighed
            return float(min(self.counters[cell] for cell in self.cells(stream, value)))
        return self.read.get((stream, value), 0.0)


class WindowWeights(CountedWeights):
    """The histograms of dual windows: rows that were let in and that the windows will hold."""

    def __init__(self, twin: Twin, let_in: Sequence[Sequence[Stored]]) -> None:
        super().__init__(twin)
        self.let_in = let_in

    def counted(self, stream: int) -> Sequence[Stored]:
        return [x for x in self.let_in[stream] if not self.condition.is_null(x.row)]
