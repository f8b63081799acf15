"""The paper's rules of thumb for join orders (golab2003, sections 5.1 and 5.4)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from shedjoin.join_order import JoinOrder, Model, origin_first

#: The paper looks at about n^f orders; when that is more, fast streams are moved one after the other.
MOST_ORDERS = 5000


def by_selectivity(model: Model) -> list[tuple[int, ...]]:
    """Orders by descending selectivity of binary joins; more than one where the most selective pair leaves the top open.

    The first two streams are those with the smallest join; then follows, again and again, the stream with the smallest join
    with one that is in the order.
    """
    pairs = itertools.combinations(range(model.many), 2)
    a, b = min(pairs, key=lambda pair: (model.pair_size(*pair), pair))
    return [_grown(model, first) for first in ([a, b], [b, a])]


def _grown(model: Model, order: list[int]) -> tuple[int, ...]:
    order = list(order)
    while len(order) < model.many:
        rest = [stream for stream in range(model.many) if stream not in order]
        order.append(min(rest, key=lambda stream: (min(model.pair_size(stream, other) for other in order), stream)))
    return tuple(order)


def fast_streams(model: Model) -> list[int]:
    """The streams that are faster than the mean."""
    mean = sum(stream.rate for stream in model.streams) / model.many
    return [number for number, stream in enumerate(model.streams) if stream.rate > mean]


def heuristic(model: Model) -> JoinOrder:
    """The paper's heuristic: by descending selectivity, then fast streams moved up, but not to the top (section 5.1).

    Examples
    --------
    >>> from shedjoin.join_order import StreamStats
    >>> table6 = [(100, 100, 200), (1, 100, 200), (1, 100, 20), (3, 100, 2)]
    >>> found = heuristic(Model.of([StreamStats(*line) for line in table6]))
    >>> found.cost, found.orders[1]
    (80400.0, (1, 0, 2, 3))
    """
    best: tuple[float, tuple[int, ...]] | None = None
    for start in by_selectivity(model):
        for order in _moved(model, start):
            found = (model.cost(order), order)
            best = found if best is None else min(best, found)
    assert best is not None  # there is always a start
    return JoinOrder.of_global(model, best[1])


def _moved(model: Model, start: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The start, and every order with fast streams moved up."""
    yield start
    fast = [stream for stream in start if stream in fast_streams(model)]
    if model.many ** len(fast) <= MOST_ORDERS:
        for places in itertools.product(*(range(1, start.index(stream) + 1) for stream in fast if start[0] != stream)):
            yield _placed(start, dict(zip((s for s in fast if s != start[0]), places, strict=True)))
        return
    order = start
    for stream in fast:
        if stream != order[0]:
            ways = [_placed(order, {stream: place}) for place in range(1, order.index(stream) + 1)]
            order = min(ways, key=model.cost)
            yield order


def _placed(order: tuple[int, ...], places: dict[int, int]) -> tuple[int, ...]:
    """Some streams at these places, the others in their order."""
    moved = [stream for stream in order if stream not in places]
    for stream, place in sorted(places.items(), key=lambda item: item[1]):
        moved.insert(place, stream)
    return tuple(moved)


def indexed_last(model: Model) -> JoinOrder:
    """Hybrid joins (5.4): windows with an index go into the inner loops, which repeat most often; else by size."""
    order = sorted(range(model.many), key=lambda s: (model.streams[s].buckets > 1, model.size(s), s))
    return JoinOrder.of_global(model, order)


def expensive_first(model: Model) -> JoinOrder:
    """Expensive predicates (5.4) near the top, where they are evaluated least often; equal ones by selectivity."""
    start = by_selectivity(model)[0]
    order = sorted(range(model.many), key=lambda s: (-model.streams[s].cost, start.index(s)))
    return JoinOrder.of_global(model, order)


def fluctuating_first(model: Model, fluctuating: list[int]) -> JoinOrder:
    """Streams whose rates are expected to change widely near the top (5.4), for plans that cannot be changed."""
    start = heuristic(model).orders[0]
    start = origin_first(start[0], start)
    order = sorted(range(model.many), key=lambda s: (s not in fluctuating, start.index(s)))
    return JoinOrder.of_global(model, order)
