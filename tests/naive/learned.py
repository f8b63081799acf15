"""What Prospect learns of keys."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from naive.rows import STREAMS, Stored
from naive.weights import Weights
from shedjoin.window import TimeWindow

if TYPE_CHECKING:
    from naive.twin import Twin


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
        """Of a tuple of the stream: what is known of its key on the other stream, then on its own, then of its neighbours."""
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
