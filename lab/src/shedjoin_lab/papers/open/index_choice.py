"""Which windows to index when memory does not suffice for all (golab2003, section 5.4): by the cost model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from shedjoin.join_order import Model, best_global


def by_cost(model: Model, buckets: int, memory: float) -> tuple[int, ...]:
    """Buckets of each window (1: no index) whose best plan costs least; the tuples of indexed windows fit into the memory.

    Every set of windows is tried: a join has few. Of equal costs, the one with fewer indexed tuples.

    Three small indexes can be better than the large one: new tuples of the fast stream look into the small windows.

    Examples
    --------
    >>> from shedjoin.join_order import StreamStats
    >>> slow, fast = StreamStats(1, 100, 50), StreamStats(10, 100, 50)
    >>> by_cost(Model.of([slow, slow, slow, fast]), buckets=10, memory=1000)
    (10, 10, 10, 1)
    """
    return min(choices(model, buckets, memory), key=lambda one: (plan_cost(model, one), _indexed(model, one)))


def largest_first(model: Model, buckets: int, memory: float) -> tuple[int, ...]:
    """The rule of thumb: the largest windows that fit."""
    found = [1] * model.many
    for stream in sorted(range(model.many), key=lambda stream: -model.size(stream)):
        if model.size(stream) <= memory:
            found[stream] = buckets
            memory -= model.size(stream)
    return tuple(found)


def choices(model: Model, buckets: int, memory: float) -> Iterator[tuple[int, ...]]:
    """Every set of windows that may be indexed."""
    for some in itertools.product((1, buckets), repeat=model.many):
        if _indexed(model, some) <= memory:
            yield some


def plan_cost(model: Model, buckets: tuple[int, ...]) -> float:
    """Comparisons a time unit of the best plan with these indexes."""
    return best_global(indexed(model, buckets)).cost


def indexed(model: Model, buckets: tuple[int, ...]) -> Model:
    """The model with these buckets."""
    streams = tuple(replace(stream, buckets=float(b)) for stream, b in zip(model.streams, buckets, strict=True))
    return replace(model, streams=streams)


def _indexed(model: Model, buckets: tuple[int, ...]) -> float:
    """Tuples in indexed windows: what an index takes in memory grows with them."""
    return sum(model.size(stream) for stream, count in enumerate(buckets) if count > 1)
