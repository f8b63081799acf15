"""The policies: who is lowest. What is called m on the page is `matches` here."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from naive.arithmetic import exp, log, power, times_log
from naive.learned import LearnedWeights
from naive.rows import Stored
from naive.weights import DecayedWeights
from shedjoin.estimators import Met
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

    @property
    def policy(self) -> Policy:
        return self.twin.policy

    # ------------------------------------------------------------------------------------------------- who is lowest

    def lowest(self, group: tuple[int, ...]) -> Stored:
        """The tuple that streams which share a memory give up next."""
        if isinstance(self.policy, Rand):
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
            key = self.offer(stream).value if self.twin.competing(stream) else None
            if key is not None and learned.is_stale(key):
                learned.look(key)

    def lowest_as_weighed(self, group: tuple[int, ...]) -> Stored:
        offers = [self.offer(stream) for stream in group if self.twin.competing(stream)]
        return min(offers, key=lambda x: (self.between_streams(x), x.arrival))

    def offer(self, stream: int) -> Stored:
        """What a stream would give up first."""
        return min(self.twin.competing(stream), key=lambda x: (self.within_stream(x), self.rank(x), x.arrival))

    def has_risen(self, x: Stored) -> bool:
        """Weigh a tuple that is a group of its own again: others are moved whenever a weight changes."""
        before = self.within_stream(x)
        self.weigh(x)
        return self.within_stream(x) > before

    def between_streams(self, x: Stored) -> float:
        weights = self.twin.weights
        if isinstance(weights, LearnedWeights):
            return self.within_stream(x) + (weights.steps_between() if x.stream == 0 else 0.0)
        return (self.within_stream(x) - self.common(x.stream)) * self.one_scale(x.stream)

    def one_scale(self, stream: int) -> float:
        """Decayed's weights have a factor in common. It must go where streams multiply different numbers of them."""
        factors = self.twin.join.condition.factors
        if not isinstance(self.twin.weights, DecayedWeights) or not isinstance(self.policy, Prob | Life | DimpProb):
            return 1.0
        return 1.0 if factors(stream) == factors(0) else self.twin.weights.scale(factors(stream) - factors(0))

    # ------------------------------------------------------------------------------------------------------ priorities

    def within_stream(self, x: Stored) -> float:
        """The priority, less the term that all tuples of the stream share."""
        match self.policy:
            case Prob() | Prospect():
                return self.matches(x)
            case Life():
                return self.matches(x) * float(self.end(x) - self.base(x.stream))
            case DimpProb():
                return x.importance * self.matches(x)
            case Additive(update="always", matches=b):
                return self.rank(x) + b * self.matches(x)
            case Multiplicative(update="always", matches=b):
                return self.rank(x) + times_log(b, self.matches(x))
            case Replay():
                return float(self.until(x))
        return x.priority

    def common(self, stream: int) -> float:
        match self.policy:
            case Additive(update="always", life=c) | Multiplicative(update="always", life=c):
                return c * (float(self.base(stream)) / self.twin.windows[stream].size)
        return 0.0

    def rank(self, x: Stored) -> float:
        size = self.twin.windows[x.stream].size
        match self.policy:
            case Prob() | Prospect() | Replay():
                return 0.0
            case Life():
                return float(self.end(x))
            case Additive(update="always", importance=a, life=c):
                return a * x.importance + c * (self.end(x) / size)
            case Multiplicative(update="always", importance=a, life=c):
                return a * log(x.importance) + c * (self.end(x) / size)
        return x.importance

    def at_arrival(self, x: Stored) -> float:
        """The priority that step 6 fixes; NaN for policies that look anew each time."""
        match self.policy:
            case Simp():
                return x.importance
            case SimpProb():
                return x.importance * self.current_matches(x)
            case Additive(update="arrival", importance=a, matches=b, life=c):
                return a * x.importance + b * self.current_matches(x) + c * self.share(x)
            case Multiplicative(update="arrival", importance=a, matches=b, life=c):
                return a * log(x.importance) + times_log(b, self.current_matches(x)) + c * self.share(x)
            case Cumulative() | Dgl():
                return log(x.importance) + self.lift
        return math.nan

    def settle(self, new: list[Stored], productive: list[Stored]) -> None:
        """Step 6: new tuples get their priorities; cumulative ones gain by the results of the instant."""
        for x in new:
            self.weigh(x)
            x.priority = self.at_arrival(x) if not self.cumulates else self.accumulate(x, True, x in productive)
        if self.cumulates:
            for x in {*productive} - {*new}:
                x.priority = self.accumulate(x, False, True)

    # ------------------------------------------------------------------------------------------- cumulative priorities

    @property
    def cumulates(self) -> bool:
        return isinstance(self.policy, Cumulative | Dgl)

    def begin_instant(self) -> None:
        """Rather than lower all that produces nothing, the others are lifted."""
        if isinstance(self.policy, Cumulative | Dgl):
            self.lift = (self.lift_tick - self.twin.tick) * math.log(self.policy.loss)

    def accumulate(self, x: Stored, is_new: bool, gains: bool) -> float:
        """The new v of a tuple that arrived or took part in an output in this instant."""
        assert isinstance(self.policy, Cumulative | Dgl)
        before = x.priority - (self.lift + math.log(self.policy.loss))
        value = x.importance if is_new else exp(before)
        if gains:
            value = value + self.gain(x)
        return (log(value) if value > 0 else before) + self.lift

    def gain(self, x: Stored) -> float:
        share = self.share(x)
        if share <= 0:
            return 0.0  # it arrived outside its window and goes in step 7, whatever its priority
        matches = self.current_matches(x)
        match self.policy:
            case Cumulative(importance=a, matches=b, life=c, gain=gain):
                gained = gain * power(x.importance, a) * power(matches, b) * power(share, c)
                return 0.0 if math.isnan(gained) else gained
            case Dgl(gain=gain):
                return gain * x.importance * matches * share
        raise TypeError(f"{self.policy!r} does not gain")

    def change(self, before: Policy) -> None:
        """The policy has got other numbers, or is another one: then all is weighed as if it arrived now."""
        if isinstance(self.policy, Rand) and not isinstance(before, Rand):
            queue, waiting = self.twin.join.queue, self.twin.admission.waiting
            for side in (*self.twin.stored, *(waiting if queue is not None and queue.integrated else ())):
                side.sort(key=lambda x: x.arrival)
        if self.cumulates and isinstance(before, Cumulative | Dgl):
            if self.twin.tick >= 0:
                for x in itertools.chain(*map(self.twin.competing, self.twin.streams)):
                    x.priority -= self.lift
                self.lift, self.lift_tick = 0.0, self.twin.tick
            return
        for x in itertools.chain(*map(self.twin.competing, self.twin.streams)):
            x.priority = self.at_arrival(x)

    # ---------------------------------------------------------------------------------- what priorities are made of

    @property
    def reads_sizes(self) -> bool:
        """Whether m is a number of partners, and not only in proportion to it."""
        return isinstance(self.policy, Additive | Multiplicative)

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
        return float(self.end(x) - self.base(x.stream)) / self.twin.windows[x.stream].size

    def until(self, x: Stored) -> int:
        """When a schedule lets it go."""
        assert isinstance(self.policy, Replay)
        return int(self.policy.schedule()[x.stream][x.seq])
