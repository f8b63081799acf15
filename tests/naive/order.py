"""Which tuple is lowest. A policy says how it orders tuples (`Policy.order`); here that is carried out, slowly.

What docs/semantics.md calls m is `matches` here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from naive.ages import Ages
from naive.arithmetic import GOLDEN, exp, log, mix, power, product, times_log
from naive.learned import LearnedWeights
from naive.rows import EVICTED, Stored
from naive.weights import DecayedWeights, reads_sizes
from shedjoin.engine.codes import AGE, CUMULATIVE, KEY, LIFE, LOGSUM, PRODUCT, RANDOM, SAMPLE, SCHEDULE, SUM, TUPLE
from shedjoin.engine.codes import Order as Numbers
from shedjoin.estimators import CountMin, History, InWindow, Met, Table
from shedjoin.policies import Policy
from shedjoin.window import RowWindow, TimeWindow

if TYPE_CHECKING:
    from naive.twin import Twin

#: How often the lowest is weighed again before one goes.
TRIES = 4


class Order:
    """The order in which a policy gives up tuples."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.lift, self.lift_tick = 0.0, 0
        self.moments = [(0.0, 0.0, 0.0)] * len(twin.join.windows)  # Sample, of each stream
        self.ages = Ages(twin)

    @property
    def policy(self) -> Policy:
        return self.twin.policy

    @property
    def numbers(self) -> Numbers:
        return self.policy.order()

    # ------------------------------------------------------------------------------------------------- who is lowest

    def lowest(self, group: tuple[int, ...]) -> Stored:
        """The tuple that streams which share a memory give up next."""
        if self.numbers.organisation == SAMPLE:
            sampled = [x for stream in group for x in self.twin.stored[stream] if x.since is not None]
            return min(sampled, key=lambda x: (x.priority, x.arrival))
        if self.numbers.organisation == RANDOM:
            everyone = [x for stream in group for x in self.twin.competing(stream)]
            return everyone[self.twin.generator.below(len(everyone))]
        if isinstance(self.twin.weights, LearnedWeights):
            for stream in group:
                self.look_again(stream, self.twin.weights)
        for _ in range(TRIES):
            x = self.lowest_as_weighed(group)
            if not self.has_risen(x):
                return x
        return self.lowest_as_weighed(group)

    def look_again(self, stream: int, learned: LearnedWeights) -> None:
        for _ in range(2):
            key = learned.key(self.offer(stream)) if self.twin.competing(stream) else None
            if key is not None and learned.is_stale(key):
                learned.look(key)

    def lowest_as_weighed(self, group: tuple[int, ...]) -> Stored:
        offers = [self.offer(stream) for stream in group if self.twin.competing(stream)]
        return min(offers, key=lambda x: (self.between_streams(x), x.arrival))

    def offer(self, stream: int) -> Stored:
        """What a stream would give up first."""
        if self.goes_by_age:
            return self.ages.offer(stream)
        return min(self.twin.competing(stream), key=lambda x: (self.within_stream(x), self.rank(x), x.arrival))

    def has_risen(self, x: Stored) -> bool:
        """Weigh a tuple that is a group of its own again: others are moved whenever a weight changes."""
        before = self.within_stream(x)
        self.weigh(x)
        return self.within_stream(x) > before

    def between_streams(self, x: Stored) -> float:
        weights = self.twin.weights
        if isinstance(weights, LearnedWeights):
            return weights.by_rates(x.stream, self.within_stream(x))
        return (self.within_stream(x) - self.common(x.stream)) * self.one_scale(x.stream)

    def one_scale(self, stream: int) -> float:
        """Decayed's weights have a factor in common. It must go where streams multiply different numbers of them."""
        factors = self.twin.join.condition.factors
        if not isinstance(self.twin.weights, DecayedWeights) or not self.is_multiple_of_matches:
            return 1.0
        return 1.0 if factors(stream) == factors(0) else self.twin.weights.scale(factors(stream) - factors(0))

    # ------------------------------------------------------------------------------------------------------ priorities

    @property
    def is_multiple_of_matches(self) -> bool:
        """Whether priorities are m times something, and follow it."""
        return self.numbers.organisation in (KEY, LIFE) and self.numbers.combine == PRODUCT

    def within_stream(self, x: Stored) -> float:
        """The priority, less the term that all tuples of the stream share."""
        order = self.numbers
        if order.organisation == AGE:
            return self.ages.priority(x)
        if order.organisation == KEY and order.combine == SUM:
            return self.rank(x) + order.matches * self.matches(x)
        if order.organisation == KEY and order.combine == LOGSUM:
            return self.rank(x) + times_log(order.matches, self.matches(x))
        if order.organisation == KEY:
            return power(x.importance, order.importance) * self.matches(x)
        if order.organisation == LIFE:
            return self.matches(x) * float(self.end(x) - self.base(x.stream))
        return float(self.until(x)) if order.organisation == SCHEDULE else x.priority

    def common(self, stream: int) -> float:
        order = self.numbers
        if order.organisation != KEY or order.combine == PRODUCT:
            return 0.0
        return order.life * (float(self.base(stream)) / self.twin.windows[stream].range)

    def rank(self, x: Stored) -> float:
        """The order of tuples whose priorities are equal."""
        order = self.numbers
        if order.organisation == KEY and order.combine != PRODUCT:
            importance = x.importance if order.combine == SUM else log(x.importance)
            return order.importance * importance + order.life * (self.end(x) / self.twin.windows[x.stream].range)
        if order.organisation == LIFE:
            return float(self.end(x))
        ranked = order.organisation in (TUPLE, CUMULATIVE) or (order.organisation == KEY and order.importance != 0)
        return x.importance if ranked else 0.0

    def at_arrival(self, x: Stored) -> float:
        """The priority that step 6 fixes; NaN for policies that look anew each time."""
        order = self.numbers
        if order.organisation == CUMULATIVE:
            return log(x.importance) + self.lift
        if order.organisation == SAMPLE:
            x.weight, x.since = self.sampling_weight(x), None
            return x.weight / self.lot(x)
        if order.organisation == AGE:
            return self.current_matches(x) if order.matches != 0 else 1.0
        if order.organisation != TUPLE:
            return math.nan
        m = self.current_matches(x) if order.matches != 0 else 0.0
        if order.combine == SUM:
            return order.importance * x.importance + order.matches * m + order.life * self.share(x)
        if order.combine == LOGSUM:
            return order.importance * log(x.importance) + times_log(order.matches, m) + order.life * self.share(x)
        return power(x.importance, order.importance) * (power(m, order.matches) if order.matches != 0 else 1.0)

    def settle(self, new: list[Stored], productive: list[Stored]) -> None:
        """Step 6: new tuples get their priorities; cumulative ones gain by the results of the instant."""
        for x in new:
            self.weigh(x)
            x.priority = self.at_arrival(x) if not self.cumulates else self.accumulate(x, True, x in productive)
        if self.cumulates:
            for x in {*productive} - {*new}:
                x.priority = self.accumulate(x, False, True)
        if self.goes_by_age:
            for x in new:
                x.found = x in productive
                self.ages.see(x)
            for x in {*productive} - {*new}:
                self.ages.meet(x)
                x.priority, x.found = self.at_arrival(x), True

    # --------------------------------------------------------------------------------------------------------- sampling

    def sampling_weight(self, x: Stored) -> float:
        """w, fixed on arrival."""
        weight = x.importance * max(self.likely(x), self.least_matches())
        return min(max(power(weight, self.numbers.matches), 1e-150), 1e150)

    def likely(self, x: Stored) -> float:
        """The partners that it can expect: counts are drawn to their mean, as far as they differ no more than by chance."""
        count = self.current_matches(x)
        if not isinstance(self.policy.estimator, History | InWindow | CountMin) or len(self.twin.streams) != 2:
            return count
        fade = 1.0 - 1.0 / 256.0
        news = (1.0, count, count * count)
        total, first, second = (old * fade + new for old, new in zip(self.moments[x.stream], news, strict=True))
        self.moments[x.stream] = (total, first, second)
        mean = first / total
        beyond = second / total - mean * mean - mean
        if beyond <= 1e-9 * mean:
            return mean
        shape = mean * mean / beyond
        return mean * ((count + shape) / (mean + shape))

    def least_matches(self) -> float:
        """Partners that a tuple is taken to expect at least: one, or as many as the rarest known value."""
        table = self.policy.estimator
        if not isinstance(table, Table):
            return 1.0
        least = [min((p for p in table.table(j)[1].tolist() if p > 0), default=1.0) for j in self.twin.streams]
        return min(product(one for j, one in enumerate(least) if j != i) for i in self.twin.streams)

    def lot(self, x: Stored) -> float:
        """u, above 0 and up to 1: it depends on the seed and the row alone."""
        return ((mix(self.twin.salt + mix(x.seq * 16 + x.stream + GOLDEN)) >> 11) + 1) * 2.0**-53

    def divide(self, group: tuple[int, ...], cap: int) -> None:
        """What is more than the kept part of a memory can hold is sampled: the tuples of the lowest weights."""
        if self.numbers.organisation != SAMPLE:
            return
        room = math.floor(self.numbers.keep * cap)
        while kept := [x for stream in group for x in self.twin.stored[stream] if x.since is None]:
            if self.twin.size_of(kept) <= room:
                return
            lowest = min(kept, key=lambda x: (x.weight, x.arrival))
            lowest.since = self.twin.counters[EVICTED]

    def inverse(self, x: Stored) -> float:
        """One divided by the probability with which a stored tuple is still in memory."""
        if x.since is None:
            return 1.0
        highest = max(
            (prio for n, prio, group in self.twin.thresholds if n >= x.since and x.stream in group), default=0.0
        )
        return max(1.0, highest / x.weight)

    # ------------------------------------------------------------------------------------------- cumulative priorities

    @property
    def cumulates(self) -> bool:
        return self.numbers.organisation == CUMULATIVE

    @property
    def goes_by_age(self) -> bool:
        return self.numbers.organisation == AGE

    def follow_time(self) -> None:
        """Clocks have moved."""
        if self.goes_by_age:
            self.ages.follow()

    def begin_instant(self) -> None:
        """Rather than lower all that produces nothing, the others are lifted."""
        if self.cumulates:
            self.lift = (self.lift_tick - self.twin.tick) * math.log(self.numbers.loss)

    def accumulate(self, x: Stored, is_new: bool, gains: bool) -> float:
        """The new v of a tuple that arrived or took part in an output in this instant."""
        before = x.priority - (self.lift + math.log(self.numbers.loss))
        value = x.importance if is_new else exp(before)
        if gains:
            value = value + self.gain(x)
        return (log(value) if value > 0 else before) + self.lift

    def gain(self, x: Stored) -> float:
        share = self.share(x)
        if share <= 0:
            return 0.0  # it arrived outside its window and goes in step 7, whatever its priority
        order = self.numbers
        matches = power(self.current_matches(x), order.matches)
        gained = order.gain * power(x.importance, order.importance) * matches * power(share, order.life)
        return 0.0 if math.isnan(gained) else gained

    def change(self, before: Policy) -> None:
        """The policy has got other numbers, or is another one: then all is weighed as if it arrived now."""
        if self.numbers.organisation == RANDOM and before.order().organisation != RANDOM:
            queue, waiting = self.twin.join.queue, self.twin.admission.waiting
            for side in (*self.twin.stored, *(waiting if queue is not None and queue.integrated else ())):
                side.sort(key=lambda x: x.arrival)
        if self.numbers.organisation == before.order().organisation == SAMPLE:
            return  # a weight is fixed: what was evicted is compared with it
        self.moments = [(0.0, 0.0, 0.0)] * len(self.moments)
        if self.cumulates and before.order().organisation == CUMULATIVE:
            if self.twin.tick >= 0:
                for x in self.compared():
                    x.priority -= self.lift
                self.lift, self.lift_tick = 0.0, self.twin.tick
            return
        for x in sorted(self.compared(), key=lambda x: x.arrival):
            x.priority, x.found = self.at_arrival(x), False
        if self.goes_by_age:
            self.ages = Ages(self.twin)
            self.ages.now = [self.ages.step(stream) for stream in self.twin.streams]

    def compared(self) -> Iterator[Stored]:
        """All that competes, or has left an integrated queue with its priority and stands in the aux-window."""
        aux = self.twin.admission.aux
        yield from itertools.chain(*map(self.twin.competing, self.twin.streams), () if aux is None else aux.line)

    # ---------------------------------------------------------------------------------- what priorities are made of

    @property
    def reads_sizes(self) -> bool:
        """Whether m is a number of partners, and not only in proportion to it."""
        return reads_sizes(self.numbers)

    def matches(self, x: Stored) -> float:
        if isinstance(self.policy.estimator, Met):
            return float(x.met)
        if self.twin.join.condition.alone:
            return x.chance
        return self.twin.weights.read_chance(x) if self.reads_sizes else self.twin.weights.chance(x)

    def current_matches(self, x: Stored) -> float:
        return float(x.met) if isinstance(self.policy.estimator, Met) else self.twin.weights.current(x)

    def weigh(self, x: Stored) -> None:
        if self.twin.join.condition.alone:
            x.chance = self.twin.weights.current(x) if self.reads_sizes else self.twin.weights.chance(x)

    def multiply_chances(self, factor: float) -> None:
        """All weights were multiplied."""
        if not self.reads_sizes:
            for x in itertools.chain(*map(self.twin.competing, self.twin.streams)):
                x.chance *= factor

    def end(self, x: Stored) -> int:
        window = self.twin.windows[x.stream]
        return x.ts + window.length if isinstance(window, TimeWindow) else x.place + window.rows + 1

    def base(self, stream: int) -> int:
        if isinstance(self.twin.windows[stream], RowWindow):
            return self.twin.arrived[stream]
        known = [self.twin.horizon(stream), self.twin.clocks[stream], *self.twin.clocks, 0]
        return next(time for time in known if time is not None)

    def share(self, x: Stored) -> float:
        """What is left of its life; a float before it is divided."""
        return float(self.end(x) - self.base(x.stream)) / self.twin.windows[x.stream].range

    def until(self, x: Stored) -> int:
        """When a schedule lets it go."""
        schedule = self.policy.schedule()
        assert schedule is not None
        return int(schedule[x.stream][x.seq])
