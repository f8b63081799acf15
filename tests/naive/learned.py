"""What Prospect learns of keys."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from naive.arithmetic import hash_of_set
from naive.rows import Stored
from naive.weights import Weights
from shedjoin.window import TimeWindow

if TYPE_CHECKING:
    from naive.twin import Twin


class LearnedWeights(Weights):
    """Prospect, as docs/prospect.md writes it."""

    remembers_keys = True
    AGAIN = (1 / 32, 1 / 8, 1 / 2)  # in windows
    FEATURES = range(11)
    FIRST_GUESS = (-math.log(1024), 1.0, *[0.0] * 6, *[0.25] * 3)

    def __init__(self, twin: Twin) -> None:
        super().__init__(twin)
        lengths = [window.range for window in twin.windows if isinstance(window, TimeWindow)]
        self.by_rows = not lengths
        self.span = float(max(lengths) if lengths else sum(window.range for window in twin.windows))
        self.streams = range(len(twin.windows))
        self.counted = [0 for _ in self.streams]
        self.until: int | None = None
        self.totals = [[0.0] * 4 for _ in self.streams]
        self.long_totals = [0.0 for _ in self.streams]
        self.counts: dict[tuple[int, int | None], list[float]] = {}
        self.last: dict[tuple[int, int | None], int] = {}
        #: Rows that came before there was anything to know of a key.
        self.before: dict[tuple[int, int | None], float] = {}
        #: (key, when, how often looked at again)
        self.late: list[list[list[Any]]] = [[] for _ in self.streams]
        self.coefficients = [list(self.FIRST_GUESS) for _ in self.streams]
        self.gradient = [[0.0] * 11 for _ in self.streams]
        self.curvature = [[[0.0] * 11 for _ in self.FEATURES] for _ in self.streams]
        self.neighbours = Neighbours(self.span, len(self.streams))
        self.looked: dict[int | None, int] = {}
        self.lessons = [0 for _ in self.streams]
        self.read: dict[tuple[int, int | None], float] = {}

    def key(self, x: Stored) -> Any:
        """The value that all streams share; None: it has none."""
        return None if self.condition.is_null(x.row) else self.values(x)[0]

    def following(self, stream: int) -> int:
        """The stream whose rows the tuples of a stream wait for."""
        return (stream + 1) % len(self.streams)

    def now(self) -> int:
        return sum(self.counted) if self.by_rows else self.twin.now

    def left_after(self, time: int) -> list[float]:
        """What is left of each count: all, then 2^(-time / half-life), from the slowest on by squaring."""
        left = [1.0, math.exp2(-time / (2.0 * self.span))]
        left.append(squared(left[-1], 3))
        left.append(squared(left[-1], 3))
        return left

    def faded(self, stream: int, key: int | None) -> list[float]:
        """A key's counts on a stream as they are now."""
        if (stream, key) not in self.counts:
            return [0.0] * 4
        left = self.left_after(self.now() - self.last[stream, key])
        return [count * part for count, part in zip(self.counts[stream, key], left, strict=True)]

    def log_shares(self, stream: int, key: int | None) -> list[float]:
        """Of s_0 x 1024 and of s_l / s_(l-1), each share being a fraction `above / below`."""
        counts, totals = self.faded(stream, key), self.totals[stream]
        above, below = counts[0] + 0.5, totals[0] - self.before.get((stream, key), 0.0) + 1.0
        logs = [math.log(above * 1024 / below)]
        for count, total in zip(counts[1:], totals[1:], strict=True):
            whole = total * above + 0.5 * below
            logs.append(math.log((count + 0.5) * below / whole))
            above, below = (count + 0.5) * above, whole
        return logs

    def features(self, stream: int, key: int | None) -> list[float]:
        """Of a tuple of the stream: its key on the following one, what is new on its own, then its neighbours."""
        other = self.following(stream)
        near = self.neighbours.features(other, self.neighbours.place(key))
        return [1.0, *self.log_shares(other, key), *self.log_shares(stream, key)[1:], *near]

    def look(self, key: int | None) -> None:
        self.looked[key] = self.neighbours.times
        for stream in self.streams:
            log_chance = dot(self.coefficients[stream][:8], self.features(stream, key)[:8])
            log_chance += self.neighbours.worth[stream][self.neighbours.place(key)]
            steps = math.floor(8 * max(min(log_chance, 0.0), -30.0) + 0.5)
            self.read[self.following(stream), key] = steps + 241.0 if len(self.streams) == 2 else math.exp(steps / 8.0)

    def is_stale(self, key: int | None) -> bool:
        return self.looked.get(key) != self.neighbours.times

    def observe(self, rows: list[Stored]) -> None:
        for x in rows:
            self.go_on()
            if self.counted[x.stream] < 8192 or self.counted[x.stream] % 32 == 0:
                self.learn((x.stream - 1) % len(self.streams), self.key(x))
            self.count(x.stream, self.key(x))
            if self.neighbours.speed:
                self.look_around()
        for x in rows:
            self.look(self.key(x))

    def competes(self, key: Any) -> bool:
        """Whether anything of a key competes for memory."""
        return any(self.key(x) == key for stream in self.streams for x in self.twin.competing(stream))

    def look_around(self) -> None:
        for late in self.late:
            if late:
                key = late[sum(self.counted) * 7919 % len(late)][0]
                if self.competes(key) and self.is_stale(key):
                    self.look(key)

    def go_on(self) -> None:
        now = self.now()
        if self.until is not None and now > self.until:
            left = self.left_after(now - self.until)
            for totals in self.totals:
                totals[:] = [total * part for total, part in zip(totals, left, strict=True)]
            left_of_long = math.exp2(-(now - self.until) / (16.0 * self.span))
            self.long_totals = [total * left_of_long for total in self.long_totals]
            self.neighbours.go_on(now - self.until, self.coefficients)
        self.until = now if self.until is None else max(self.until, now)
        for late in self.late:
            for time, part in enumerate(self.AGAIN):
                for one in late:
                    key, when, looked = one
                    if looked == time and now - when >= part * self.span:
                        one[2] += 1
                        if self.competes(key) and when == max(
                            self.last.get((stream, key), when) for stream in self.streams
                        ):
                            self.look(key)
            late[:] = [one for one in late if one[2] < 3]

    def learn(self, stream: int, key: int | None) -> None:
        late, other = self.late[stream], self.counted[self.following(stream)]
        if not late:
            return
        gradient, curvature = self.gradient[stream], self.curvature[stream]

        def rows_of(some: int | None) -> int:
            return sum(1 for one in late if one[0] == some)

        if rows_of(key):
            for d, feature in enumerate(self.features(stream, key)):
                gradient[d] += math.sqrt(rows_of(key)) * feature
        for draw in range(2):
            drawn = late[(2 * other + draw) * 7919 % len(late)][0]
            if draw == 0:
                self.neighbours.think_over(key, drawn)
            features = self.features(stream, drawn)
            expected = len(late) / 2 / math.sqrt(rows_of(drawn))
            expected *= math.exp(min(dot(self.coefficients[stream], features), 0.0))
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
        for d in self.FEATURES:
            gradient[d] -= 4.0 * (coefficients[d] - self.FIRST_GUESS[d])
        matrix = [[curvature[max(d, e)][min(d, e)] for e in self.FEATURES] for d in self.FEATURES]
        for d in self.FEATURES:
            matrix[d][d] += 100.0
        for d, step in enumerate(solved(matrix, gradient)):
            coefficients[d] += min(max(step, -0.1), 0.1)
            gradient[d] = 0.0
            curvature[d] = [value * 2.0 ** (-1.0 / 256) for value in curvature[d]]

    def count(self, stream: int, key: int | None) -> None:
        self.counted[stream] += 1
        if all(self.now() - self.last.get((i, key), -(2**62)) >= 320 * self.span for i in self.streams):
            for i in self.streams:
                self.counts.pop((i, key), None)
                self.before[i, key] = self.totals[i][0] - self.long_totals[i]
        self.long_totals[stream] += 1.0
        self.counts[stream, key] = [count + 1.0 for count in self.faded(stream, key)]
        self.totals[stream] = [total + 1.0 for total in self.totals[stream]]
        self.neighbours.count(stream, key)
        self.last[stream, key] = self.now()
        if self.limit is not None:
            self.drop_late_rows(stream, self.limit - 1)
        self.late[stream].append([key, self.now(), 0])

    def drop_late_rows(self, stream: int, most: int) -> None:
        """The oldest go."""
        while len(self.late[stream]) > most:
            self.late[stream].pop(0)
            self.twin.counters["forgotten"] += 1

    def forget_keys(self, limit: int) -> int:
        for stream in self.streams:
            self.drop_late_rows(stream, limit)
        return super().forget_keys(limit)

    def known(self) -> dict[Any, float]:
        last = {key: max(self.last.get((i, key), -(2**62)) for i in self.streams) for _, key in self.last}
        return {key: when for key, when in last.items() if self.is_needed(key) or self.now() - when < 320 * self.span}

    def is_needed(self, value: Any) -> bool:
        return any(one[0] == value for late in self.late for one in late)

    def drop(self, value: Any) -> None:
        for known in (self.counts, self.last, self.before, self.read):
            for stream in self.streams:
                known.pop((stream, value), None)
        self.looked.pop(value, None)

    def by_rates(self, stream: int, priority: float) -> float:
        """A priority as streams compare it."""
        rates = [totals[2] + 0.5 for totals in self.totals]
        if len(rates) > 2:
            return priority / rates[stream]
        return priority + (math.floor(8 * math.log(rates[1] / rates[0]) + 0.5) if stream == 0 else 0.0)

    def weight(self, stream: int, key: Any) -> float:
        return self.read.get((stream, key), 0.0)


def as_number(key: Any) -> float:
    """A key in the order of keys; a whole set has the signed hash that it is stored by."""
    if isinstance(key, tuple):  # of a join graph: its part and its value
        return float(key[1])
    if not isinstance(key, frozenset):
        return float(key)
    code = hash_of_set(key)
    return float(code - 2**64 if code >= 2**63 else code)


class Neighbours:
    """Counts of keys that lie near each other, on rings that turn."""

    def __init__(self, span: float, streams: int) -> None:
        self.span = span
        self.streams = range(streams)
        self.turns = 1 / 64
        self.apart: list[int] = []
        self.low, self.high = math.inf, -math.inf
        self.since = 0
        self.times = 0
        self.begin()

    def begin(self) -> None:
        self.speed = 0
        self.stepped = 0.0
        self.new: list[list[int]] = [[0] * 64 for _ in self.streams]
        self.totals = [0.0 for _ in self.streams]
        self.slow_totals = [0.0 for _ in self.streams]
        self.slow = [[0.0] * 64 for _ in self.streams]
        self.ratios = [[0.0] * 64 for _ in self.streams]
        self.worth = [[0.0] * 64 for _ in self.streams]
        #: By speed, in sixteenths of a place a step.
        self.rings = {speed: [[0.0] * 64 for _ in self.streams] for speed in range(-32, 33)}
        self.scores = dict.fromkeys(self.rings, 0.0)

    def place(self, key: int | None) -> int:
        assert key is not None
        turns = as_number(key) * self.turns
        return int((turns - math.floor(turns)) * 64) % 64

    def features(self, stream: int, place: int) -> list[float]:
        """What a stream has at the place before, at this one, and at the next."""
        return [self.ratios[stream][(place + beside) % 64] for beside in (-1, 0, 1)]

    def count(self, stream: int, key: int | None) -> None:
        assert key is not None
        self.low, self.high = min(self.low, as_number(key)), max(self.high, as_number(key))
        self.new[stream][self.place(key)] += 1

    def go_on(self, passed: int, coefficients: list[list[float]]) -> None:
        self.since += passed
        if self.since < self.span / 32 or sum(map(sum, self.new)) < 32:
            return
        steps = self.since / (self.span / 32)
        for speed in self.rings:
            self.scores[speed] *= math.exp2(-self.since / (2.0 * self.span))
            for stream in self.streams:
                self.scores[speed] += self.turn(stream, speed, steps)
        self.choose()
        self.stepped += steps
        left_of_slow = math.exp2(-self.since / (16.0 * self.span))
        for stream in self.streams:
            new = self.new[stream]
            self.totals[stream] = (self.totals[stream] + sum(new)) * self.left()
            self.slow_totals[stream] = (self.slow_totals[stream] + sum(new)) * left_of_slow
            self.slow[stream] = [some((c + n) * left_of_slow) for c, n in zip(self.slow[stream], new, strict=True)]
            self.ratios[stream] = [self.ratio(stream, place) for place in range(64)]
        self.new = [[0] * 64 for _ in self.streams]
        self.since = 0
        self.times += 1
        for stream in self.streams:
            following = (stream + 1) % len(self.streams)
            of_place = (self.features(following, place) for place in range(64))
            self.worth[stream] = [dot(coefficients[stream][8:], features) for features in of_place]

    def left(self) -> float:
        return math.exp2(-self.since / (0.5 * self.span))

    def turn(self, stream: int, speed: int, steps: float) -> float:
        """Count new rows on a ring, and say how well it foretold them."""
        ring, new = self.rings[speed][stream], self.new[stream]
        shift = math.floor(speed / 16 * (self.stepped + 0.5 * steps) + 0.5)
        hit = square = 0.0
        for place in range(64):
            here = (place - shift) % 64
            hit += new[place] * (ring[here] + 0.5)
            square += (ring[here] + 0.5) * (ring[here] + 0.5)
            ring[here] = some((ring[here] + new[place]) * self.left())
        whole = self.totals[stream] + 0.5 * 64
        return (2.0 * hit - sum(new) * (square / whole)) / whole

    def choose(self) -> None:
        best = self.speed
        for speed, score in self.scores.items():
            if score > self.scores[best]:
                best = speed
        better = self.scores[best] > 0.0 and self.scores[best] >= 1.1 * self.scores[0]
        self.speed = best if better else 0

    def ratio(self, stream: int, place: int) -> float:
        """The share of a place as the ring will stand, to its share of long."""
        if self.speed == 0:
            return 0.0
        turned = self.speed / 16 * (self.stepped + 0.5)
        shift, part = math.floor(turned), turned - math.floor(turned)
        ring = self.rings[self.speed][stream]
        count = (1.0 - part) * ring[(place - shift) % 64] + part * ring[(place - shift - 1) % 64]
        share = (count + 0.5) / (self.totals[stream] + 0.5 * 64)
        return math.log(share * (self.slow_totals[stream] + 0.5 * 64) / (self.slow[stream][place] + 0.5))

    def think_over(self, one: int | None, other: int | None) -> None:
        assert one is not None
        assert other is not None
        self.apart.append(math.frexp(abs(as_number(one) - as_number(other)))[1])
        if len(self.apart) < 256:
            return
        doublings = min(sum(self.apart) / len(self.apart) + 3.0, 68.0)
        self.apart = []
        most, keys, now = max(math.exp2(doublings), 64.0), max(self.high - self.low + 1.0, 64.0), 1.0 / self.turns
        if keys <= most:
            if keys > 1.02 * now or now > 1.1 * keys:
                self.turns = 1.0 / keys
                self.begin()
        elif most > 2.0**0.75 * now or now > 2.0**0.75 * most:
            self.turns = 1.0 / max(math.exp2(math.floor(doublings + 0.5)), 64.0)
            self.begin()


def some(count: float) -> float:
    """Next to nothing is nothing."""
    return count if count >= 2.0**-20 else 0.0


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
