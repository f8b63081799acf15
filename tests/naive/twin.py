"""The join itself, step by step as docs/semantics.md and decision 017 have it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import shedjoin as sj
from naive.admission import Admission
from naive.arithmetic import Generator, combine, product
from naive.conditions import one_of_each
from naive.join import Join, Spec, has_another_estimator, weights_of
from naive.order import Order
from naive.rows import (
    DROPPED,
    EVICTED,
    FIRST,
    LAST,
    LATE,
    PARTIAL,
    SCHEDULE,
    UNKNOWN,
    UNPROBED,
    Border,
    LeftOut,
    Output,
    Record,
    Result,
    Row,
    Stored,
    in_time,
    place_in_window,
    remove,
)
from naive.selection import Selection, left_out
from naive.unmatched import Unmatched
from shedjoin.budget import Budget
from shedjoin.join_type import TYPES
from shedjoin.policies import Policy, Prospect, Replay
from shedjoin.window import RowWindow, TimeWindow

COUNTERS = ("rows", "null", "late", "results", "expired", "evicted", "scheduled", "satisfied", "certain", "unknown")
Clocks = Sequence[int | None]


class Twin:
    """One join that goes on from push to push."""

    def __init__(self, spec: Spec | Join, seed: int = 0) -> None:
        self.join = join = Join.of(spec)
        self.streams, self.windows = join.streams, join.windows
        self.policy: Policy = join.policy
        self.budget: Budget | None = join.budget
        self.clocks: list[int | None] = [None for _ in self.streams]
        #: How many rows of each stream had arrived by the end of the instant at hand: what row windows count from.
        self.arrived = [0 for _ in self.streams]
        #: The row number after the last row of each stream that had its turn.
        self.taken = [0 for _ in self.streams]
        self.tick = -1
        #: Tuples of each stream with a time up to this have expired.
        self.expired = [FIRST for _ in self.streams]
        #: The time of the instant that is open, and which rows came together with the row at hand.
        self.time: int | None = None
        self.instant: int | None = None
        self.fresh: list[Stored] = []
        self.productive: list[Stored] = []
        self.stored: tuple[list[Stored], ...] = tuple([] for _ in self.streams)
        self.waiting_results: list[Result] = []
        self.last_evaluation = self.last_expiry = FIRST
        self.worked = 0.0
        self.order = Order(self)
        self.weights = weights_of(self, self.policy.estimator)
        self.selection = Selection(self) if join.selective is not None else None
        self.admission = Admission(self)
        self.generator = Generator(seed)
        self.salt = self.generator.state
        #: Evictions: their number, the priority of the tuple, and the streams that share its memory.
        self.thresholds: list[tuple[int, float, tuple[int, ...]]] = []
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.more_counters = dict.fromkeys(
            (DROPPED, "probed", PARTIAL, "sampled", UNPROBED, "compared", "looked_up"), 0
        )
        self.unmatched = Unmatched(self)
        self.out = Output()

    def push(
        self,
        rows: Iterable[Row],
        clocks: Clocks | None = None,
        *,
        flush: bool = False,
        script: Iterable[float] | None = None,
    ) -> Output:
        """Rows, then clocks. `script`: a deadline says what r becomes after each part of the push, and after its end."""
        self.out = Output()
        self.admission.push(list(rows), clocks, None if script is None else iter(script))
        if flush:
            self.finish()
        return self.out

    def flush(self) -> Output:
        """Let all that waits have its turn, and give all results."""
        self.out = Output()
        self.finish()
        return self.out

    def end(self) -> Output:
        """The input is over, and so are all windows: as `Engine.end`, which has nothing to say where partners are not counted."""
        self.out = Output()
        self.finish()
        if self.join.how.judged or any(self.join.matches or ()):
            self.expire(everything=True)
        return self.out

    def finish(self) -> None:
        self.admission.flush()
        self.close()
        self.evaluate()

    def set_budget(self, budget: Budget | None) -> Output:
        self.out = Output()
        self.close()
        self.evaluate()
        self.budget = budget
        self.unmatched.change(budget)
        if self.join.expire_every and self.is_crammed():
            self.expire()
        self.compete()
        return self.out

    def set_policy(self, policy: Policy) -> Output:
        self.out = Output()
        self.close()
        before, anew = self.policy, has_another_estimator(self.policy, policy)
        if policy != before and not anew and policy.estimator is not None:
            self.weights.change(policy)  # what tuples were weighed by is still as the policy before has it
        self.policy = policy
        if policy != before:
            if anew:
                self.begin_anew()
            elif policy.estimator is None and isinstance(before, Prospect):
                self.weights = weights_of(self, None)
            self.order.change(before)
        return self.out

    def begin_anew(self) -> None:
        """Another estimator knows what it would know if the stored tuples, in the order of arrival, had been all rows."""
        keeping = replace(
            self.join, policy=self.policy, budget=None, lateness=sj.UNLIMITED, max_skew=None, evaluate_every=0,
            expire_every=0, selective=None, how=TYPES["inner"], matches=None,
        )  # fmt: skip
        stored = sorted(itertools.chain(*self.stored), key=lambda x: x.arrival)
        other = Twin(keeping)
        other.push([x.row for x in stored], self.clocks)
        known = {id(x.row): x for x in stored}  # rows of one instant may have arrived in another order
        again = {y: known[id(y.row)] for y in itertools.chain(*other.stored)}
        for y, x in again.items():
            x.chance, x.met = y.chance, y.met
        self.weights = other.weights
        self.weights.belong_to(self, again)

    # ------------------------------------------------------------------------------------------------ what is stored

    @property
    def residents(self) -> tuple[int, ...]:
        return tuple(len(side) for side in self.stored)

    @property
    def bytes(self) -> tuple[int, ...]:
        return tuple(sum(x.row.bytes for x in side) for side in self.stored)

    @property
    def used(self) -> tuple[int, ...]:
        """What counts against the budget, per stream."""
        return self.bytes if self.budget is not None and self.budget.unit == "bytes" else self.residents

    def competing(self, stream: int) -> list[Stored]:
        """What may have to go when memory is short: an integrated queue shares it."""
        queue = self.join.queue
        waiting = self.admission.waiting[stream] if queue is not None and queue.integrated else []
        return [*self.stored[stream], *waiting]

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
        if self.join.max_skew is None or not any(clock is not None for clock in self.clocks):
            return clock
        floor = self.now - self.join.max_skew
        return floor if clock is None else max(clock, floor)

    def horizon(self, stream: int) -> int | None:
        """How far the other streams have come."""
        others = [self.effective_clock(other) for other in self.streams if other != stream]
        known = [clock for clock in others if clock is not None]
        return min(known) - self.join.lateness if len(known) == len(others) else None

    def hear(self, told: Clocks) -> None:
        """Clocks from elsewhere."""
        times = [time for time in (*self.clocks, *told) if time is not None]
        if not times:
            return
        self.do_rounds(max(times))
        for stream, clock in enumerate(told):
            if clock is not None:
                self.move_clock(stream, clock)
        self.order.follow_time()
        if not self.join.expire_every:
            self.expire()

    def move_clock(self, stream: int, time: int) -> None:
        clock = self.clocks[stream]
        self.clocks[stream] = time if clock is None else max(clock, time)

    # ---------------------------------------------------------------------------------------- one instant, step by step

    def turn(self, rows: list[Stored]) -> None:
        """Rows have their turn: all of an instant, or, where rows wait for the CPU, a single one."""
        time = rows[0].ts
        if self.time != time:
            self.close()
        self.instant = rows[0].instant
        effective = [self.effective_clock(stream) for stream in self.streams]
        late = [x for x in rows if self.is_late(x, effective[x.stream])]  # 1
        if self.time is None:
            self.open(time, late)
        elif late:
            self.expire_before_late_rows()
        came = tuple(self.taken)
        for x in rows:
            self.taken[x.stream] = x.seq + 1
            self.arrived = [max(before, now) for before, now in zip(self.arrived, x.through, strict=True)]
            self.move_clock(x.stream, time)  # 2
        self.order.follow_time()
        if not self.join.expire_every:
            self.expire()  # 3
        for x in late:
            self.log_late(x, came)
        for x in rows:  # 4
            self.meet(x)
            self.admission.spend()

    def open(self, time: int, late: list[Stored]) -> None:
        self.do_rounds(max(time, *(clock for clock in self.clocks if clock is not None), FIRST))
        waits = self.join.cpu is not None or self.join.dual is not None
        if late and not waits:
            self.expire_before_late_rows()
        self.time = time
        self.tick += 1
        self.order.begin_instant()
        if late and waits:
            self.expire_before_late_rows()

    def expire_before_late_rows(self) -> None:
        """The log says what had expired before them."""
        if self.join.evaluate_every:
            self.evaluate()
        if self.join.expire_every:
            self.expire()

    def close(self) -> None:
        """All rows of an instant have had their turn."""
        if self.time is None:
            return
        time, self.time, self.instant = self.time, None, None
        self.weights.observe(self.fresh)  # 5
        there = [x for x in self.fresh if x in self.stored[x.stream]]
        self.order.settle(there, [x for x in self.productive if x in self.stored[x.stream]])  # 6
        self.fresh, self.productive = [], []
        if not self.join.evaluate_every:
            self.unmatched.let_satisfied_go()
        if not self.join.expire_every:
            self.expire()  # 7
        elif self.is_crammed():
            self.evaluate()
            self.expire()
        self.compete()  # 8
        self.out.borders.append(Border(time, self.residents, self.bytes))

    def is_late(self, x: Stored, effective_clock: int | None) -> bool:
        return effective_clock is not None and x.ts < effective_clock - self.join.lateness

    def expire(self, everything: bool = False) -> None:
        for stream in self.streams:
            window, horizon = self.windows[stream], self.horizon(stream)
            if isinstance(window, TimeWindow) and horizon is not None:
                self.expired[stream] = horizon - window.length
            gone = [x for x in self.stored[stream] if everything or self.is_expired(x)]
            for x in sorted(gone, key=lambda x: place_in_window(self.windows, x)):
                self.unmatched.expire(x)
                remove(self.stored[stream], x)
                self.counters["expired"] += 1

    def is_expired(self, x: Stored) -> bool:
        window = self.windows[x.stream]
        if isinstance(window, RowWindow):  # rows of its instant may still wait: those always meet it
            return not self.in_rows(x) and x.instant != self.admission.next_instant
        horizon = self.horizon(x.stream)
        return horizon is not None and x.ts + window.length <= horizon

    def in_rows(self, x: Stored) -> bool:
        """Whether it is in its row window; rows of the instant at hand are."""
        window = self.windows[x.stream]
        if isinstance(window, TimeWindow) or x.instant == self.instant:
            return True
        return x.place >= self.arrived[x.stream] - window.rows

    def meet(self, x: Stored) -> None:
        """A row probes the other windows and is stored."""
        cpu = self.join.cpu
        self.worked += cpu.update if cpu is not None else 0.0
        if self.join.condition.is_null(x.row):
            self.counters["null"] += 1
            self.unmatched.give(x)
            return
        if x.row.dropped:
            self.counters["null"] += 1
            self.unmatched.note(x, DROPPED)
            return
        if x.probes:
            self.probe(x)
        else:
            self.log(x, UNPROBED)
            others = [other for other in self.streams if other != x.stream]
            self.out.left_out += [LeftOut(x.stream, x.seq, other, FIRST, 0, LAST, 0) for other in others]
        self.stored[x.stream].append(x)
        self.unmatched.enter(x)
        self.fresh.append(x)

    def probe(self, x: Stored) -> None:
        windows = [self.window_of(x, stream) for stream in self.streams]
        parts = windows if self.selection is None else self.selection.parts(x, windows)
        found = self.results_with(x, parts)
        x.met = len(found)
        self.productive += [y for result in found for y in result]
        self.give(self.unmatched.meet(x, found))
        self.count_work(x, parts)
        if self.selection is not None and self.selection.is_sample:
            self.selection.learn(x, windows, found)
            self.more_counters["sampled"] += 1
        left = [one for w, part in zip(windows, parts, strict=True) for one in left_out(self, x, w, part)]
        if left:
            self.log(x, PARTIAL)
            self.out.left_out += left

    def window_of(self, x: Stored, stream: int) -> list[Stored]:
        """The tuples of another stream that a row may meet, oldest first."""
        if stream == x.stream:
            return [x]
        there = [y for y in self.stored[stream] if self.in_rows(y) and in_time(self.windows, x.row, y.row)]
        return sorted(there, key=lambda y: place_in_window(self.windows, y))

    def results_with(self, x: Stored, parts: Sequence[Sequence[Stored]]) -> list[tuple[Stored, ...]]:
        def goes(a: Stored, b: Stored) -> bool:
            first, second = (a, b) if a.stream < b.stream else (b, a)
            return self.join.condition.holds(first.row, second.row) and in_time(self.windows, a.row, b.row)

        from_row_on = sorted(self.streams, key=lambda stream: (stream != x.stream, stream))
        found = one_of_each([parts[stream] for stream in from_row_on], goes)
        results = [tuple(sorted(result, key=lambda y: y.stream)) for result in found]
        return [result for result in results if self.join.condition.passes([y.row for y in result])]

    def result_of(self, members: Sequence[Stored], newest: Stored) -> Result:
        importance = combine(self.join.importance, [x.importance for x in members])
        weight = product(self.order.inverse(x) for x in members if x is not newest)
        return Result(tuple(x.seq for x in members), importance, max(x.ts for x in members), weight)

    def count_work(self, x: Stored, parts: Sequence[Sequence[Stored]]) -> None:
        compared = looked_up = 0
        for stream, part in enumerate(parts):
            if stream != x.stream:
                rows = [y.row for y in part]
                scan = self.join.index == "scan"
                entries, lists = (len(rows), 0) if scan else self.join.condition.looked(x.row, rows)
                compared, looked_up = compared + entries, looked_up + lists
        self.more_counters["probed"] += 1
        self.more_counters["compared"] += compared
        self.more_counters["looked_up"] += looked_up
        cpu = self.join.cpu
        if cpu is not None:
            self.worked += cpu.probe + cpu.comparison * compared + cpu.lookup * looked_up

    # ----------------------------------------------------------------------------------------------- lazy evaluation

    def give(self, results: list[Result]) -> None:
        """Results are out at once, or with their round: what waits for it is joined as if at once."""
        if self.join.evaluate_every:
            self.waiting_results += results
        else:
            self.out.results += results
            self.counters["results"] += len(results)

    def evaluate(self) -> None:
        self.out.results += self.waiting_results
        self.counters["results"] += len(self.waiting_results)
        self.waiting_results = []
        self.unmatched.let_satisfied_go()

    def do_rounds(self, time: int) -> None:
        """What is due when a time belongs to another round than the last."""
        if self.join.evaluate_every:
            if time // self.join.evaluate_every > self.last_evaluation:
                self.evaluate()
            self.last_evaluation = max(self.last_evaluation, time // self.join.evaluate_every)
        if self.join.expire_every and time // self.join.expire_every > self.last_expiry:
            self.expire()
            self.last_expiry = time // self.join.expire_every

    def is_crammed(self) -> bool:
        """Whether something has to be given up."""
        return bool(self.due()) or any(self.is_over(group, cap) for group, cap in self.groups())

    # ---------------------------------------------------------------------------------------------------- competition

    def compete(self) -> None:
        for x in self.due():
            self.shed(x, SCHEDULE)
        for group, cap in self.groups():
            self.order.divide(group, cap)
            while self.is_over(group, cap):
                lowest = self.order.lowest(group)
                self.thresholds.append((self.counters[EVICTED], lowest.priority, group))
                self.shed(lowest, EVICTED)

    def due(self) -> list[Stored]:
        """Replay: those whose time has come."""
        if not isinstance(self.policy, Replay):
            return []
        due = [x for side in self.stored for x in side if self.order.until(x) <= self.now]
        return sorted(due, key=lambda x: (self.order.until(x), x.arrival))

    def is_over(self, group: tuple[int, ...], cap: int) -> bool:
        return self.size_of([x for stream in group for x in self.competing(stream)]) > cap

    def size_of(self, tuples: Sequence[Stored]) -> int:
        """How much of a budget they take."""
        assert self.budget is not None
        return len(tuples) if self.budget.unit == "tuples" else sum(x.row.bytes for x in tuples)

    def groups(self) -> list[tuple[tuple[int, ...], int]]:
        """The streams of each memory group, and its cap."""
        if self.budget is None:
            return []
        if self.budget.allocation == "variable":
            return [(tuple(self.streams), self.budget.total)]
        shares = [Fraction(str(share)) for share in self.budget.shares or [1 for _ in self.streams]]
        return [((i,), math.floor(self.budget.total * shares[i] / sum(shares))) for i in self.streams]

    def shed(self, x: Stored, why: str) -> None:
        """A tuple leaves memory, or, with an integrated queue, the queue."""
        if x in self.stored[x.stream]:
            remove(self.stored[x.stream], x)
            self.log(x, why)
        else:
            self.admission.drop(x)

    def log(self, x: Stored, why: str, when: int | None = None) -> None:
        nothing = (FIRST,) * len(self.taken)
        self.record(x, why, self.now if when is None else when, tuple(self.taken), nothing)
        self.unmatched.note(x, why)
        counters = self.more_counters if why in self.more_counters else self.counters
        if why != UNKNOWN:
            counters["scheduled" if why == SCHEDULE else why] += 1

    def log_late(self, x: Stored, came: tuple[int, ...]) -> None:
        """Which tuples it did not meet because they had expired: those that came before, up to some times."""
        seen = tuple(x.seq if stream == x.stream else before for stream, before in enumerate(came))
        self.record(x, LATE, self.now, seen, tuple(self.expired))
        x.doubt = True
        self.counters[LATE] += 1

    def record(self, x: Stored, why: str, when: int, seen: tuple[int, ...], expired: tuple[int, ...]) -> None:
        self.out.shed.append(Record(x.stream, x.seq, x.ts, when, self.tick, why, seen, expired))
