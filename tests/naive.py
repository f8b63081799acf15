"""The slow, obvious twin of the engine: docs/semantics.md in plain Python, step by step, with scans for everything.

Nothing is kept that can be worked out again. Numbers are Python's ints and floats, and every formula has the operations
of the page in the order of the page, so that ties and near ties fall as they do in a compiled kernel.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from shedjoin.batch import ROW_BYTES
from shedjoin.budget import Budget
from shedjoin.estimators import CountMin, Decayed, Estimator, History, InMemory, InWindow, Table
from shedjoin.policies import (
    Additive,
    Cumulative,
    Dgl,
    DimpProb,
    KeepAll,
    Life,
    Multiplicative,
    Policy,
    Prob,
    Prospect,
    Rand,
    Replay,
    Simp,
    SimpProb,
)
from shedjoin.spec import JoinSpec
from shedjoin.window import RowWindow, TimeWindow, Window

STREAMS = (0, 1)
WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
EVICTED, LATE, SCHEDULE = "evicted", "late", "schedule"

Windows = tuple[Window, Window]


class Row(NamedTuple):
    """What arrives."""

    stream: int
    key: int | None
    ts: int
    importance: float = 1.0
    bytes: int = ROW_BYTES


@dataclass(eq=False, slots=True)
class Stored:
    """A row that has its numbers, and what step 6 gave it. Compared by identity: duplicates are different tuples."""

    row: Row
    seq: int
    arrival: int
    priority: float = math.nan

    @property
    def stream(self) -> int:
        return self.row.stream

    @property
    def key(self) -> int | None:
        return self.row.key

    @property
    def ts(self) -> int:
        return self.row.ts

    @property
    def importance(self) -> float:
        return self.row.importance


class Record(NamedTuple):
    """One line of the shed log."""

    stream: int
    seq: int
    ts: int
    key: int | None
    when: int
    tick: int
    why: str
    seen: tuple[int, int]


class Border(NamedTuple):
    """What was stored at the end of an instant, per stream."""

    ts: int
    tuples: tuple[int, int]
    bytes: tuple[int, int]


@dataclass(slots=True)
class Output:
    """What one push gave. `pairs`, `importance` and `produced` run in parallel."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    importance: list[float] = field(default_factory=list)
    produced: list[int] = field(default_factory=list)
    shed: list[Record] = field(default_factory=list)
    borders: list[Border] = field(default_factory=list)


# ---------------------------------------------------------------------------------------------- rows in, in their order


def instants(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Maximal runs of equal `ts`, stream 0 before stream 1 inside each."""
    for _, run in itertools.groupby(rows, key=lambda row: row.ts):
        yield sorted(run, key=lambda row: row.stream)


def interleave(left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    """Two tables as one sequence: by each stream's running maximum of `ts`, stream 0 first on equal values."""
    placed = [
        (clock, row)
        for side in (left, right)
        for clock, row in zip(itertools.accumulate((row.ts for row in side), max), side, strict=True)
    ]
    return [row for _, row in sorted(placed, key=lambda one: one[0])]


def cut(rows: Sequence[Row], at: Iterable[int]) -> list[list[Row]]:
    """The rows as pushes that begin at the given places."""
    borders = [0, *sorted(at), len(rows)]
    return [list(rows[start:end]) for start, end in itertools.pairwise(borders)]


def instant_borders(rows: Sequence[Row]) -> list[int]:
    """The places at which a cut divides no instant."""
    return [place for place in range(1, len(rows)) if rows[place].ts != rows[place - 1].ts]


# ------------------------------------------------------------------------------------------------- arithmetic like C's


def log(x: float) -> float:
    return -math.inf if x == 0 else math.log(x)


def divide(x: float, y: float) -> float:
    if y == 0:
        return math.nan if x == 0 else math.inf
    return x / y


def power(x: float, y: float) -> float:
    if x == 0 and y < 0:
        return math.inf
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.inf


def mix(z: int) -> int:
    """splitmix64's finaliser."""
    z &= WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


class Generator:
    """xorshift64, started by splitmix64."""

    def __init__(self, seed: int) -> None:
        self.state = mix(seed + GOLDEN) or 1

    def draw(self) -> int:
        x = self.state
        x ^= (x << 13) & WORD
        x ^= x >> 7
        x ^= (x << 17) & WORD
        self.state = x
        return x

    def below(self, n: int) -> int:
        return math.floor((self.draw() >> 11) * 2.0**-53 * n)


# --------------------------------------------------------------------------------------------------------- estimators


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


class LearnedWeights(Weights):
    """Prospect, as docs/prospect.md writes it."""

    HALF_LIVES = (16.0, 1 / 2, 1 / 8, 1 / 32)  # in windows
    AGAIN = (1 / 32, 1 / 8, 1 / 2)
    FEATURES = range(15)
    FIRST_GUESS = (-math.log(1024), 1.0, *[0.0] * 13)

    def __init__(self, twin: Twin) -> None:
        super().__init__(twin)
        lengths = [window.length for window in twin.windows if isinstance(window, TimeWindow)]
        self.by_rows = not lengths
        self.span = float(max(lengths) if lengths else sum(window.size for window in twin.windows))
        self.counted = [0, 0]
        self.until: int | None = None
        self.totals = [[0.0] * 4, [0.0] * 4]
        self.counts: dict[tuple[int, int | None], list[float]] = {}
        self.last: dict[tuple[int, int | None], int] = {}
        #: (key, when, how often looked at again)
        self.late: list[list[list[Any]]] = [[], []]
        self.coefficients = [list(self.FIRST_GUESS), list(self.FIRST_GUESS)]
        self.gradient = [[0.0] * 15, [0.0] * 15]
        self.curvature = [[[0.0] * 15 for _ in self.FEATURES] for _ in STREAMS]
        self.neighbours = Neighbours(self.span)
        self.looked: dict[int | None, int] = {}
        self.lessons = [0, 0]
        self.partners = [0, 0]
        self.read: dict[tuple[int, int | None], float] = {}

    def now(self) -> int:
        return sum(self.counted) if self.by_rows else self.twin.now

    def left_after(self, time: int) -> list[float]:
        """What is left of each count: 2^(-time / half-life), from the slowest on by squaring."""
        slow = math.exp2(-time / (16.0 * self.span))
        left = [slow, squared(slow, 5)]
        left.append(squared(left[-1], 2))
        left.append(squared(left[-1], 2))
        return left

    def faded(self, stream: int, key: int | None) -> list[float]:
        """A key's counts on a stream as they are now; next to nothing is nothing."""
        if (stream, key) not in self.counts:
            return [0.0] * 4
        left = self.left_after(self.now() - self.last[stream, key])
        counts = [count * part for count, part in zip(self.counts[stream, key], left, strict=True)]
        return counts if counts[0] >= 2.0**-20 else [0.0] * 4

    def log_shares(self, stream: int, key: int | None) -> list[float]:
        """Of s_0 x 1024 and of s_l / s_(l-1), each share being a fraction `above / below`."""
        counts, totals = self.faded(stream, key), self.totals[stream]
        above, below = counts[0] + 0.5, totals[0] + 1.0
        logs = [math.log(above * 1024 / below)]
        for count, total in zip(counts[1:], totals[1:], strict=True):
            whole = total * above + 0.5 * below
            logs.append(math.log((count + 0.5) * below / whole))
            above, below = (count + 0.5) * above, whole
        return logs

    def features(self, stream: int, key: int | None) -> list[float]:
        """Of a tuple of the stream: what is known of its key on the other stream, then on its own."""
        near = self.neighbours.features(1 - stream, self.neighbours.place(key))
        return [1.0, *self.log_shares(1 - stream, key), *self.log_shares(stream, key), *near]

    def look(self, key: int | None) -> None:
        self.looked[key] = self.neighbours.times
        for stream in STREAMS:
            log_chance = dot(self.coefficients[stream][:9], self.features(stream, key)[:9])
            log_chance += self.neighbours.scores[stream][self.neighbours.place(key)]
            self.read[1 - stream, key] = math.floor(8 * max(min(log_chance, 0.0), -30.0) + 0.5) + 241.0

    def is_stale(self, key: int | None) -> bool:
        return self.looked[key] != self.neighbours.times

    def observe(self, rows: list[Stored]) -> None:
        for x in rows:
            self.go_on()
            if self.counted[x.stream] < 8192 or self.counted[x.stream] % 64 == 0:
                self.learn(1 - x.stream, x.key)
            self.count(x.stream, x.key)
        for x in rows:
            self.look(x.key)

    def go_on(self) -> None:
        now = self.now()
        if self.until is not None and now > self.until:
            left = self.left_after(now - self.until)
            for totals in self.totals:
                totals[:] = [total * part for total, part in zip(totals, left, strict=True)]
            self.neighbours.go_on(now - self.until, self.coefficients)
        self.until = now if self.until is None else max(self.until, now)
        for late in self.late:
            for time, part in enumerate(self.AGAIN):
                for one in late:
                    key, when, looked = one
                    if looked == time and now - when >= part * self.span:
                        one[2] += 1
                        if when == max(self.last.get((stream, key), when) for stream in STREAMS):
                            self.look(key)
            late[:] = [one for one in late if one[2] < 3]

    def learn(self, stream: int, key: int | None) -> None:
        late, other = self.late[stream], self.counted[1 - stream]
        if not late:
            return
        gradient, curvature = self.gradient[stream], self.curvature[stream]
        met = sum(1 for one in late if one[0] == key)
        self.partners[stream] += met
        if met:
            for d, feature in enumerate(self.features(stream, key)):
                gradient[d] += met * feature
        for draw in range(2):
            drawn = late[(2 * other + draw) * 7919 % len(late)][0]
            if draw == 0:
                self.neighbours.think_over(key, drawn)
            features = self.features(stream, drawn)
            expected = len(late) / 2 * math.exp(min(dot(self.coefficients[stream], features), 0.0))
            for d in self.FEATURES:
                part = expected * features[d]
                gradient[d] -= part
                for e in range(d + 1):
                    curvature[d][e] += part * features[e]
        self.lessons[stream] += 1
        if self.lessons[stream] % 64 == 0:
            self.step(stream)

    def step(self, stream: int) -> None:
        coefficients, gradient, curvature = self.coefficients[stream], self.gradient[stream], self.curvature[stream]
        pull = 4.0 + 3.0 * (self.partners[stream] / 64)
        self.partners[stream] = 0
        for d in self.FEATURES:
            gradient[d] -= pull * (coefficients[d] - self.FIRST_GUESS[d])
        matrix = [[curvature[max(d, e)][min(d, e)] for e in self.FEATURES] for d in self.FEATURES]
        for d in self.FEATURES:
            matrix[d][d] += 100.0
        for d, step in enumerate(solved(matrix, gradient)):
            coefficients[d] += min(max(step, -0.1), 0.1)
            gradient[d] = 0.0
            curvature[d] = [value * 2.0 ** (-1.0 / 64) for value in curvature[d]]

    def count(self, stream: int, key: int | None) -> None:
        self.counted[stream] += 1
        self.counts[stream, key] = [count + 1.0 for count in self.faded(stream, key)]
        self.totals[stream] = [total + 1.0 for total in self.totals[stream]]
        self.neighbours.count(stream, key)
        self.last[stream, key] = self.now()
        self.late[stream].append([key, self.now(), 0])

    def steps_between(self) -> int:
        left, right = (totals[2] + 0.5 for totals in self.totals)
        return math.floor(8 * math.log(right / left) + 0.5)

    def weight(self, stream: int, key: int) -> float:
        return self.read.get((stream, key), 0.0)


class Neighbours:
    """Counts of keys that lie near each other, on a ring of places."""

    def __init__(self, span: float) -> None:
        self.span = span
        self.width = 0
        self.apart: list[int] = []
        self.since = 0
        self.times = 0
        self.begin()

    def begin(self) -> None:
        self.totals = [[0.0] * 3, [0.0] * 3]
        self.counts = [[[0.0] * 3 for _ in range(64)] for _ in STREAMS]
        self.ratios = [[[0.0] * 2 for _ in range(64)] for _ in STREAMS]
        self.scores = [[0.0] * 64, [0.0] * 64]

    def place(self, key: int | None) -> int:
        assert key is not None
        return (key >> self.width) % 64

    def features(self, stream: int, place: int) -> list[float]:
        """What a stream has at the place before, at this one, and at the next."""
        return [ratio for beside in (-1, 0, 1) for ratio in self.ratios[stream][(place + beside) % 64]]

    def count(self, stream: int, key: int | None) -> None:
        for counts in (self.counts[stream][self.place(key)], self.totals[stream]):
            counts[:] = [count + 1.0 for count in counts]

    def go_on(self, passed: int, coefficients: list[list[float]]) -> None:
        self.since += passed
        if self.since < self.span / 32:
            return
        left = [math.exp2(-self.since / (0.5 * self.span))]
        left.append(squared(left[-1], 2))
        left.append(squared(left[-1], 2))
        self.since = 0
        self.times += 1
        for stream in STREAMS:
            for counts in (self.totals[stream], *self.counts[stream]):
                counts[:] = [count * part for count, part in zip(counts, left, strict=True)]
            self.ratios[stream] = [self.ratios_of(stream, counts) for counts in self.counts[stream]]
        for stream in STREAMS:
            for place in range(64):
                self.scores[stream][place] = dot(coefficients[stream][9:], self.features(1 - stream, place))

    def ratios_of(self, stream: int, counts: list[float]) -> list[float]:
        totals = self.totals[stream]
        slow = (counts[0] + 0.5) / (totals[0] + 0.5 * 64)
        fast = (counts[1] + 0.5) / (totals[1] + 0.5 / slow)
        fastest = (counts[2] + 0.5) / (totals[2] + 0.5 / fast)
        return [math.log(fast / slow), math.log(fastest / fast)]

    def think_over(self, one: int | None, other: int | None) -> None:
        assert one is not None
        assert other is not None
        self.apart.append(math.frexp(abs(float(one) - float(other)))[1])
        if len(self.apart) < 256:
            return
        width = min(max(sum(self.apart) / len(self.apart) - 3.0, 0.0), 62.0)
        self.apart = []
        if abs(width - self.width) > 0.75:
            self.width = math.floor(width + 0.5)
            self.begin()


def dot(coefficients: Sequence[float], features: Sequence[float]) -> float:
    total = 0.0
    for coefficient, feature in zip(coefficients, features, strict=True):
        total += coefficient * feature
    return total


def squared(x: float, times: int) -> float:
    for _ in range(times):
        x = x * x
    return x


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Elimination without pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for i, j in itertools.combinations(range(size), 2):
        factor = rows[j][i] / rows[i][i]
        rows[j][i:] = [mine - factor * theirs for mine, theirs in zip(rows[j][i:], rows[i][i:], strict=True)]
    x = [0.0] * size
    for i in reversed(range(size)):
        value = rows[i][size]
        for j in range(i + 1, size):
            value -= rows[i][j] * x[j]
        x[i] = value / rows[i][i]
    return x


def weights_of(twin: Twin, estimator: Estimator | None) -> Weights:
    if isinstance(twin.policy, Prospect):
        return LearnedWeights(twin)
    match estimator:
        case None:
            return Weights(twin)
        case Table():
            return TableWeights(twin, estimator)
        case InMemory():
            return InMemoryWeights(twin)
        case History():
            return HistoryWeights(twin)
        case InWindow():
            return InWindowWeights(twin)
        case Decayed():
            return DecayedWeights(twin, estimator.half_life)
        case CountMin():
            return CountMinWeights(twin, estimator.width, estimator.depth)
    raise TypeError(f"the twin does not know {estimator!r}")


# ------------------------------------------------------------------------------------------------------------ the join


class Twin:
    """One join that goes on from push to push."""

    def __init__(self, spec: JoinSpec, seed: int = 0) -> None:
        assert spec.policy is not None
        self.policy: Policy = spec.policy
        self.windows: Windows = spec.windows
        self.budget: Budget | None = spec.budget
        self.output_importance = spec.importance
        self.lateness, self.max_skew = spec.lateness, spec.max_skew
        self.clocks: list[int | None] = [None, None]
        self.arrived = [0, 0]
        self.tick = -1
        self.scale, self.scale_tick = 1.0, 0
        self.stored: tuple[list[Stored], list[Stored]] = ([], [])
        self.weights = weights_of(self, self.policy.estimator)
        self.generator = Generator(seed)
        self.counters = dict.fromkeys(("rows", "null", "late", "results", "expired", "evicted", "scheduled"), 0)
        self.out = Output()

    def push(self, rows: Iterable[Row], clocks: Sequence[int | None] | None = None) -> Output:
        self.out = Output()
        for instant in instants(rows):
            self.process(instant)
        if clocks is not None:
            self.hear(clocks)
        return self.out

    def hear(self, told: Sequence[int | None]) -> None:
        """Clocks from elsewhere, after the rows of a push."""
        for stream, clock in enumerate(told):
            if clock is not None:
                mine = self.clocks[stream]
                self.clocks[stream] = clock if mine is None else max(mine, clock)
        if self.clocks != [None, None]:
            self.expire()

    def set_budget(self, budget: Budget) -> Output:
        self.out = Output()
        self.budget = budget
        self.compete()
        return self.out

    def set_policy(self, policy: Policy) -> None:
        changed, self.policy = policy != self.policy, policy
        if not changed:
            return
        if policy.estimator is not None:
            self.weights.change(policy.estimator)
        if isinstance(policy, Cumulative | Dgl):
            if self.tick >= 0:
                for x in (*self.stored[0], *self.stored[1]):
                    x.priority = divide(x.priority, self.scale)
                self.scale, self.scale_tick = 1.0, self.tick
            return
        if isinstance(policy, Simp | SimpProb) or getattr(policy, "update", None) == "arrival":
            self.weights.read_all()
        for x in (*self.stored[0], *self.stored[1]):
            x.priority = self.at_arrival(x)

    # ------------------------------------------------------------------------------------------------ what is stored

    @property
    def residents(self) -> tuple[int, int]:
        return len(self.stored[0]), len(self.stored[1])

    @property
    def bytes(self) -> tuple[int, int]:
        left, right = (sum(x.row.bytes for x in side) for side in self.stored)
        return left, right

    @property
    def used(self) -> tuple[int, int]:
        """What counts against the budget, per stream."""
        return self.bytes if self.budget is not None and self.budget.unit == "bytes" else self.residents

    def store(self, x: Stored) -> None:
        self.stored[x.stream].append(x)

    def remove(self, x: Stored) -> None:
        """The last takes the place of the one removed; only `Rand` sees the difference."""
        side = self.stored[x.stream]
        last = side.pop()
        if last is not x:
            side[side.index(x)] = last

    # --------------------------------------------------------------------------------------------------------- clocks

    @property
    def now(self) -> int:
        return max(clock for clock in self.clocks if clock is not None)

    def clock_of(self, stream: int) -> int:
        clock = self.clocks[stream]
        assert clock is not None
        return clock

    def effective_clock(self, stream: int) -> int | None:
        clock = self.clocks[stream]
        if self.max_skew is None or self.clocks == [None, None]:
            return clock
        floor = self.now - self.max_skew
        return floor if clock is None else max(clock, floor)

    def horizon(self, stream: int) -> int | None:
        clock = self.effective_clock(1 - stream)
        return None if clock is None else clock - self.lateness

    # ---------------------------------------------------------------------------------------- one instant, step by step

    def process(self, rows: list[Row]) -> None:
        time = rows[0].ts
        self.tick += 1
        if isinstance(self.policy, Cumulative | Dgl):
            self.set_scale()
        effective = [self.effective_clock(stream) for stream in STREAMS]
        numbered = [self.number(row) for row in rows]
        late = [x for x in numbered if self.is_late(x, effective[x.stream])]  # 1
        on_time = [x for x in numbered if x not in late]
        for stream in {x.stream for x in on_time}:  # 2
            clock = self.clocks[stream]
            self.clocks[stream] = time if clock is None else max(clock, time)
        for x in late:
            self.log(x, LATE)
        self.expire()  # 3
        new = [x for x in on_time if x.key is not None]
        productive = [x for row in new for x in self.probe_and_store(row)]  # 4
        self.weights.observe(new)  # 5
        self.set_priorities(new, productive)  # 6
        self.expire()  # 7
        self.compete()  # 8
        self.counters["null"] += len(on_time) - len(new)
        self.out.borders.append(Border(time, self.residents, self.bytes))

    def number(self, row: Row) -> Stored:
        x = Stored(row, seq=self.arrived[row.stream], arrival=sum(self.arrived))
        self.arrived[row.stream] += 1
        self.counters["rows"] += 1
        return x

    def is_late(self, x: Stored, effective_clock: int | None) -> bool:
        return effective_clock is not None and x.ts < effective_clock - self.lateness

    def expire(self) -> None:
        for stream in STREAMS:
            gone = [x for x in self.stored[stream] if self.is_expired(x)]
            by_time = isinstance(self.windows[stream], TimeWindow)
            for x in sorted(gone, key=lambda x: (x.ts, x.arrival) if by_time else (x.seq, 0)):
                self.remove(x)
                self.counters["expired"] += 1

    def is_expired(self, x: Stored) -> bool:
        window = self.windows[x.stream]
        if isinstance(window, RowWindow):
            return x.seq < self.arrived[x.stream] - window.rows
        horizon = self.horizon(x.stream)
        return horizon is not None and x.ts + window.length <= horizon

    def probe_and_store(self, x: Stored) -> list[Stored]:
        """Who took part in an output: the row and all it met, or nobody."""
        met = [y for y in self.stored[1 - x.stream] if y.key == x.key and in_time(self.windows, x.row, y.row)]
        for y in met:
            left, right = sorted((x, y), key=lambda one: one.stream)
            self.out.pairs.append((left.seq, right.seq))
            self.out.importance.append(combine(self.output_importance, left.importance, right.importance))
            self.out.produced.append(max(left.ts, right.ts))
            self.counters["results"] += 1
        self.store(x)
        return [x, *met] if met else []

    def set_priorities(self, new: list[Stored], productive: list[Stored]) -> None:
        if isinstance(self.policy, Cumulative | Dgl):
            for x in {*new, *productive}:
                x.priority = self.accumulate(x, is_new=x in new, gains=x in productive)
        else:
            for x in new:
                x.priority = self.at_arrival(x)

    def compete(self) -> None:
        if isinstance(self.policy, Replay):
            due = [x for side in self.stored for x in side if self.until(x) <= self.now]
            for x in sorted(due, key=lambda x: (self.until(x), x.arrival)):
                self.shed(x, SCHEDULE)
        for group, cap in self.groups():
            while sum(self.used[stream] for stream in group) > cap:
                self.shed(self.lowest(group), EVICTED)

    def groups(self) -> list[tuple[tuple[int, ...], int]]:
        """The streams of each memory group, and its cap."""
        if self.budget is None:
            return []
        if self.budget.allocation == "variable":
            return [(STREAMS, self.budget.total)]
        shares = [Fraction(str(share)) for share in self.budget.shares or (1, 1)]
        return [((i,), math.floor(self.budget.total * shares[i] / sum(shares))) for i in STREAMS]

    def shed(self, x: Stored, why: str) -> None:
        self.remove(x)
        self.log(x, why)

    def log(self, x: Stored, why: str) -> None:
        seen = (self.arrived[0], self.arrived[1])
        self.out.shed.append(Record(x.stream, x.seq, x.ts, x.key, self.now, self.tick, why, seen))
        self.counters["scheduled" if why == SCHEDULE else why] += 1

    # ------------------------------------------------------------------------------------------------- who is lowest

    def lowest(self, group: tuple[int, ...]) -> Stored:
        if isinstance(self.policy, Rand):
            everyone = [x for stream in group for x in self.stored[stream]]
            return everyone[self.generator.below(len(everyone))]
        if isinstance(self.weights, LearnedWeights):
            for stream in group:
                for _ in range(2):
                    if self.stored[stream] and self.weights.is_stale(self.offer(stream).key):
                        self.weights.look(self.offer(stream).key)
        offers = [self.offer(stream) for stream in group if self.stored[stream]]
        return min(offers, key=lambda x: (self.between_streams(x), x.arrival))

    def offer(self, stream: int) -> Stored:
        """What a stream would give up first."""
        return min(self.stored[stream], key=lambda x: (self.within_stream(x), self.rank(x), x.arrival))

    def between_streams(self, x: Stored) -> float:
        if isinstance(self.weights, LearnedWeights):
            return self.within_stream(x) + (self.weights.steps_between() if x.stream == 0 else 0.0)
        return self.within_stream(x) - self.common(x.stream)

    def within_stream(self, x: Stored) -> float:
        """The priority, less the term that all tuples of the stream share."""
        match self.policy:
            case Prob() | Prospect():
                return self.weight(x)
            case Life():
                return self.weight(x) * float(self.end(x) - self.base(x.stream))
            case DimpProb():
                return x.importance * self.weight(x)
            case Additive(update="always", matches=b):
                return self.rank(x) + b * self.size(x)
            case Multiplicative(update="always", matches=b):
                return self.rank(x) + times_log(b, self.size(x))
            case Replay():
                return float(self.until(x))
        return x.priority

    def common(self, stream: int) -> float:
        match self.policy:
            case Additive(update="always", life=c) | Multiplicative(update="always", life=c):
                return c * (self.base(stream) / self.windows[stream].size)
        return 0.0

    def rank(self, x: Stored) -> float:
        match self.policy:
            case Prob() | Prospect() | Replay():
                return 0.0
            case Life():
                return float(self.end(x))
            case Additive(update="always", importance=a, life=c):
                return a * x.importance + c * (self.end(x) / self.windows[x.stream].size)
            case Multiplicative(update="always", importance=a, life=c):
                return a * log(x.importance) + c * (self.end(x) / self.windows[x.stream].size)
        return x.importance

    def at_arrival(self, x: Stored) -> float:
        """The priority that step 6 fixes; NaN for policies that look anew each time."""
        match self.policy:
            case Simp():
                return x.importance
            case SimpProb():
                return x.importance * self.size(x)
            case Additive(update="arrival", importance=a, matches=b, life=c):
                return a * x.importance + b * self.size(x) + c * self.share(x)
            case Multiplicative(update="arrival", importance=a, matches=b, life=c):
                return a * log(x.importance) + times_log(b, self.size(x)) + c * self.share(x)
        return math.nan

    def accumulate(self, x: Stored, *, is_new: bool, gains: bool) -> float:
        """The new v of a tuple that arrived or took part in an output in this instant."""
        value = x.importance if is_new else divide(x.priority, self.scale * self.loss)
        if gains:
            value = value + self.gain_of(x)
        return value * self.scale

    def set_scale(self) -> None:
        exponent = (self.scale_tick - self.tick) * math.log(self.loss)
        if exponent > 300:
            for side in self.stored:
                for x in side:
                    x.priority *= math.exp(-exponent)
            self.scale_tick, exponent = self.tick, 0.0
        self.scale = math.exp(exponent)

    @property
    def loss(self) -> float:
        assert isinstance(self.policy, Cumulative | Dgl)
        return self.policy.loss

    def gain_of(self, x: Stored) -> float:
        share = self.share(x)
        if share <= 0:
            return 0.0  # it arrived outside its window and goes in step 7, whatever its priority
        match self.policy:
            case Cumulative(importance=a, matches=b, life=c, gain=gain):
                return gain * power(x.importance, a) * power(self.size(x), b) * power(share, c)
            case Dgl(gain=gain):
                return gain * x.importance * self.size(x) * share
        raise TypeError(f"{self.policy!r} does not gain")

    def until(self, x: Stored) -> int:
        assert isinstance(self.policy, Replay)
        return (self.policy.left, self.policy.right)[x.stream][x.seq]

    # ---------------------------------------------------------------------------------- what priorities are made of

    def weight(self, x: Stored) -> float:
        assert x.key is not None
        return self.weights.weight(1 - x.stream, x.key)

    def size(self, x: Stored) -> float:
        assert x.key is not None
        return self.weights.size(1 - x.stream, x.key)

    def end(self, x: Stored) -> int:
        window = self.windows[x.stream]
        return x.ts + window.length if isinstance(window, TimeWindow) else x.seq + window.rows + 1

    def base(self, stream: int) -> int:
        if isinstance(self.windows[stream], RowWindow):
            return self.arrived[stream]
        horizon = self.horizon(stream)
        return self.clock_of(stream) if horizon is None else horizon

    def share(self, x: Stored) -> float:
        return (self.end(x) - self.base(x.stream)) / self.windows[x.stream].size


def times_log(b: float, m: float) -> float:
    """b * log(m) as `Multiplicative` means it."""
    if b == 0:
        return 0.0
    return -math.inf if m == 0 else b * math.log(m)


def combine(how: str, left: float, right: float) -> float:
    """The importance of an output."""
    return {
        "min": min(left, right),
        "max": max(left, right),
        "sum": left + right,
        "product": left * right,
        "mean": (left + right) / 2,
    }[how]


# ------------------------------------------------------------------------------------ the exact join, by brute force


def in_time(windows: Windows, x: Row, y: Row) -> bool:
    """Whether the older one by `ts` still is in its time window; row windows set no condition here.

    On equal times both orders allow the pair, so it does not matter which is called older.
    """
    older, newer = (x, y) if x.ts <= y.ts else (y, x)
    window = windows[older.stream]
    return not isinstance(window, TimeWindow) or newer.ts - older.ts < window.length


class Placed(NamedTuple):
    """A row with its numbers, its instant, and how many rows of each stream had arrived by the end of that."""

    row: Row
    seq: int
    arrival: int
    instant: int
    arrived: tuple[int, int]


def place(pushes: Iterable[Sequence[Row]]) -> list[Placed]:
    placed: list[Placed] = []
    count = [0, 0]
    for tick, instant in enumerate(one for rows in pushes for one in instants(rows)):
        numbered = []
        for row in instant:
            numbered.append((row, count[row.stream], sum(count)))
            count[row.stream] += 1
        placed += [Placed(row, seq, arrival, tick, (count[0], count[1])) for row, seq, arrival in numbered]
    return placed


def in_rows(windows: Windows, x: Placed, y: Placed) -> bool:
    """Whether the older one by arrival was still in its row window; time windows set no condition here."""
    older, newer = (x, y) if x.arrival < y.arrival else (y, x)
    window = windows[older.row.stream]
    if not isinstance(window, RowWindow) or older.instant == newer.instant:
        return True
    return older.seq >= newer.arrived[older.row.stream] - window.rows


def _exact(pushes: Iterable[Sequence[Row]], windows: Windows) -> list[tuple[Placed, Placed]]:
    placed = place(pushes)
    sides = [[x for x in placed if x.row.stream == stream and x.row.key is not None] for stream in STREAMS]
    return [
        (r, s)
        for r, s in itertools.product(*sides)
        if r.row.key == s.row.key and in_time(windows, r.row, s.row) and in_rows(windows, r, s)
    ]


def exact_pairs(pushes: Iterable[Sequence[Row]], windows: Windows) -> list[tuple[int, int]]:
    """The exact join, late rows included, as (left seq, right seq)."""
    return [(r.seq, s.seq) for r, s in _exact(pushes, windows)]


def missing_pairs(log: Iterable[Record], pushes: Iterable[Sequence[Row]], windows: Windows) -> list[tuple[int, int]]:
    """What the shed log says is not in the output: those of the exact join that lost a row in time."""
    records = {(record.stream, record.seq): record for record in log}
    return [(r.seq, s.seq) for r, s in _exact(pushes, windows) if _is_missing(records, r, s)]


def _is_missing(records: dict[tuple[int, int], Record], r: Placed, s: Placed) -> bool:
    mine = [records.get((x.row.stream, x.seq)) for x in (r, s)]
    if any(record is not None and record.why == LATE for record in mine):
        return True
    older, newer = sorted((r, s), key=lambda x: x.arrival)
    record = records.get((older.row.stream, older.seq))
    return record is not None and newer.seq >= record.seen[newer.row.stream]


def exact_needs(spec: JoinSpec, pushes: Iterable[Sequence[Row]]) -> Border:
    """The most that the exact join stores of each stream at an instant border (the time says nothing)."""
    exact = Twin(JoinSpec(spec.window, policy=KeepAll(), lateness=spec.lateness, max_skew=spec.max_skew))
    borders = [Border(0, (0, 0), (0, 0)), *(border for rows in pushes for border in exact.push(rows).borders)]
    tuples, sizes = (
        [max(side) for side in zip(*column, strict=True)] for column in list(zip(*borders, strict=True))[1:]
    )
    return Border(0, (tuples[0], tuples[1]), (sizes[0], sizes[1]))
