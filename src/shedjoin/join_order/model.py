"""What a join order is judged by: rates, window sizes, distinct values, buckets, and the join graph."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shedjoin.errors import SpecError

#: The search looks at every set of streams; beyond this there are too many.
MOST_STREAMS = 16


@dataclass(frozen=True, slots=True)
class StreamStats:
    """One stream of a multi-way join, as the cost model sees it.

    Parameters
    ----------
    rate
        Tuples per time unit (lambda).
    window
        The window's length in time units (T). A row window of C rows has T = C / rate.
    values
        Distinct values of the join attribute in the window (v).
    buckets
        Buckets of the window's hash index (b); 1: no index, the window is scanned.
    cost
        What a comparison with a tuple of this window costs; above 1 for an expensive predicate.

    Examples
    --------
    >>> StreamStats(rate=10, window=100, values=500).size
    1000.0
    """

    rate: float
    window: float
    values: float = 1.0
    buckets: float = 1.0
    cost: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("rate", 0.0), ("window", 0.0), ("values", 1.0), ("buckets", 1.0), ("cost", 0.0)):
            value = getattr(self, name)
            fits = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
            if not fits or value < least:
                raise SpecError(f"StreamStats.{name} must be a finite number of at least {least:g}, not {value!r}")

    @property
    def size(self) -> float:
        """Tuples in the window."""
        return float(self.rate * self.window)


@dataclass(frozen=True, slots=True)
class Equality:
    """Streams that must agree in an attribute, and how many values each has of it.

    `values` maps the number of a stream to the distinct values of that attribute in its window.
    """

    values: Mapping[int, float]

    def __post_init__(self) -> None:
        if len(self.values) < 2:
            raise SpecError(f"Equality.values must name at least two streams, not {dict(self.values)!r}")


@dataclass(frozen=True, slots=True)
class Theta:
    """A predicate other than equality between two streams, and the share of pairs that satisfy it."""

    left: int
    right: int
    selectivity: float = 1 / 3

    def __post_init__(self) -> None:
        if not 0.0 <= self.selectivity <= 1.0:
            raise SpecError(f"Theta.selectivity must be a share from 0 to 1, not {self.selectivity!r}")


@dataclass(frozen=True)
class Model:
    """The cost model of golab2003 (section 4.2) over a join graph.

    Costs are comparisons per time unit. For each stream i, its new tuples walk the other windows in some order; a step costs
    (tuples passed down) x (tuples looked at), and passes down the share that the predicates let through.

    Parameters
    ----------
    streams
        The streams, in their order.
    equalities
        Which streams must agree in which attribute. Default: all in one, with `StreamStats.values` each.
    thetas
        Other predicates between pairs of streams.
    tau
        Lazy evaluation and expiry every so many time units; windows are then tau / 2 longer on average. 0: eager.

    Examples
    --------
    >>> table5 = [(10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5)]
    >>> model = Model.of([StreamStats(*line) for line in table5])
    >>> model.cost((0, 1, 2, 3)), model.cost((1, 0, 2, 3))
    (16000.0, 19600.0)
    """

    streams: tuple[StreamStats, ...]
    equalities: tuple[Equality, ...]
    thetas: tuple[Theta, ...] = ()
    tau: float = 0.0
    names: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls,
        streams: Sequence[StreamStats],
        equalities: Iterable[Equality] | None = None,
        thetas: Iterable[Theta] = (),
        *,
        tau: float = 0.0,
        names: Sequence[str] | None = None,
    ) -> Model:
        """A checked model."""
        many = len(streams)
        if not 2 <= many <= MOST_STREAMS:
            raise SpecError(f"a join order needs 2 to {MOST_STREAMS} streams, not {many}")
        if not all(isinstance(stream, StreamStats) for stream in streams):
            raise SpecError("streams must be a list of StreamStats, one a stream")
        if not math.isfinite(tau) or tau < 0:
            raise SpecError(f"tau must be a finite number of at least 0, not {tau!r}")
        if equalities is None:
            equalities = [Equality({number: stream.values for number, stream in enumerate(streams)})]
        equalities, thetas = tuple(equalities), tuple(thetas)
        ends = [number for one in equalities for number in one.values]
        ends += [end for theta in thetas for end in (theta.left, theta.right)]
        if not all(0 <= end < many for end in ends):
            raise SpecError(f"predicates may speak of streams 0 to {many - 1}, not of {sorted(set(ends))}")
        names = tuple(names) if names is not None else tuple(f"S{number + 1}" for number in range(many))
        if len(names) != many:
            raise SpecError(f"names has {len(names)} names for {many} streams: give one a stream")
        return cls(tuple(streams), equalities, thetas, float(tau), names)

    @property
    def many(self) -> int:
        return len(self.streams)

    def size(self, stream: int) -> float:
        """Tuples in a window on average; lazy expiry lets it grow by half of what arrives between two rounds."""
        return self.streams[stream].rate * (self.streams[stream].window + self.tau / 2)

    def fresh(self, stream: int) -> float:
        """New tuples of a stream that are joined at once."""
        return max(self.streams[stream].rate * self.tau, 0.0) if self.tau > 0 else 1.0

    def rounds(self, stream: int) -> float:
        """How often per time unit new tuples of a stream are joined."""
        return 1.0 / self.tau if self.tau > 0 else self.streams[stream].rate

    def origin_cost(self, origin: int, order: Sequence[int]) -> float:
        """Comparisons per time unit for the new tuples of one stream, in a nested loop over all streams.

        `order` has every stream; the new tuples stand at the place of `origin`, which is the first for EAGER and LAZY and
        any for NAIVE and GENERAL LAZY. Written as one reads the paper: step by step, v falling as streams join.
        """
        return sum(self.cost_by_window(origin, order).values())

    def cost_by_window(self, origin: int, order: Sequence[int]) -> dict[int, float]:
        """The cost of `origin_cost`, by the window that is looked into."""
        passed = self.fresh(origin) if order[0] == origin else self.size(order[0])
        least = {number: one.values.get(order[0]) for number, one in enumerate(self.equalities)}
        bound = {order[0]}
        costs: dict[int, float] = {}
        for stream in order[1:]:
            size = self.fresh(origin) if stream == origin else self.size(stream)
            indexed = False
            step = 1.0
            for number, one in enumerate(self.equalities):
                mine, theirs = one.values.get(stream), least[number]
                if mine is None:
                    continue
                if theirs is not None:
                    step /= max(mine, theirs)
                    indexed = True
                least[number] = mine if theirs is None else min(mine, theirs)
            for theta in self.thetas:
                if stream in (theta.left, theta.right) and bound & ({theta.left, theta.right} - {stream}):
                    step *= theta.selectivity
            looked_at = size / self.streams[stream].buckets if indexed else size
            costs[stream] = passed * looked_at * self.streams[stream].cost * self.rounds(origin)
            passed *= size * step
            bound.add(stream)
        return costs

    def cost(self, order: Sequence[int], *, naive: bool = False) -> float:
        """Comparisons per time unit of one global order.

        New tuples come first and the others follow in the order (EAGER, LAZY); with `naive` they stay at their place.
        """
        self.check(order)
        return sum(
            self.origin_cost(origin, order if naive else origin_first(origin, order)) for origin in range(self.many)
        )

    def cost_of_orders(self, orders: Sequence[Sequence[int]]) -> float:
        """Comparisons per time unit with an order for each origin (GENERAL LAZY; EAGER when each begins with its origin)."""
        if len(orders) != self.many:
            raise SpecError(f"orders has {len(orders)} orders for {self.many} streams: give one a stream")
        for order in orders:
            self.check(order)
        return sum(self.origin_cost(origin, order) for origin, order in enumerate(orders))

    def check(self, order: Sequence[int]) -> None:
        """Refuse an order that does not name every stream once."""
        if sorted(order) != list(range(self.many)):
            raise SpecError(f"an order must name each of the streams 0 to {self.many - 1} once, not {list(order)}")

    def pair_size(self, a: int, b: int) -> float:
        """Tuples in the join of two windows: what makes one predicate more selective than another."""
        size = self.size(a) * self.size(b)
        for one in self.equalities:
            if a in one.values and b in one.values:
                size /= max(one.values[a], one.values[b])
        for theta in self.thetas:
            if {theta.left, theta.right} == {a, b}:
                size *= theta.selectivity
        return size

    def linked(self, a: int, b: int) -> bool:
        """Whether some predicate speaks of these two streams."""
        return any(a in one.values and b in one.values for one in self.equalities) or any(
            {theta.left, theta.right} == {a, b} for theta in self.thetas
        )


def origin_first(origin: int, order: Sequence[int]) -> tuple[int, ...]:
    """A global order as the new tuples of one stream walk it.

    Examples
    --------
    >>> origin_first(2, (0, 1, 2))
    (2, 0, 1)
    """
    return (origin, *(stream for stream in order if stream != origin))
