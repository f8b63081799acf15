"""The join itself, step by step as docs/semantics.md has it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from naive.arithmetic import Generator, exp, log, power
from naive.estimators import weights_of
from naive.learned import LearnedWeights
from naive.rows import EVICTED, LATE, SCHEDULE, STREAMS, Border, Output, Record, Row, Stored, Windows, in_time, instants
from shedjoin.budget import Budget
from shedjoin.policies import (
    Additive,
    Cumulative,
    Dgl,
    DimpProb,
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
from shedjoin.window import RowWindow, TimeWindow


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
        self.lift, self.lift_tick = 0.0, 0
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
                    x.priority -= self.lift
                self.lift, self.lift_tick = 0.0, self.tick
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
            self.set_lift()
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
        before = x.priority - (self.lift + math.log(self.loss))
        value = x.importance if is_new else exp(before)
        if gains:
            value = value + self.gain_of(x)
        return (log(value) if value > 0 else before) + self.lift

    def set_lift(self) -> None:
        self.lift = (self.lift_tick - self.tick) * math.log(self.loss)

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
                product = gain * power(x.importance, a) * power(self.size(x), b) * power(share, c)
                return 0.0 if math.isnan(product) else product
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
        return float(self.end(x) - self.base(x.stream)) / self.windows[x.stream].size  # a float before it is divided


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
