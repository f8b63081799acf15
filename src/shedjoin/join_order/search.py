"""Our own search: the best order, exactly, by dynamic programming over sets of streams.

How many tuples are passed down after a set of streams does not depend on the order in which the set was joined: with v
falling to the least, the product of max(v, v_j) telescopes. So the cheapest way to have joined a set follows from those of
its subsets; 2^n sets instead of n! orders.

Nor does it depend on the origin, but for a factor: where new tuples stand for a window, its size is replaced by their number.
So one pass forwards (the cheapest way to a set) and one backwards (from a set to all) serve all origins: new tuples of i that
come after the set W cost forwards(W) + r_i (adding i to W + backwards(W and i)).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from shedjoin.join_order.model import Model
from shedjoin.join_order.order import JoinOrder

Floats = NDArray[np.float64]
#: What an empty window is taken for, as a share of the largest.
EMPTY = 1e-12


@cache
def _layers(many: int) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
    """For each size of a set: the sets (as bits), and the members of each."""
    sets = np.arange(1 << many)
    bits = (sets[:, None] >> np.arange(many)) & 1
    layers = []
    for size in range(many + 1):
        chosen = np.flatnonzero(bits.sum(axis=1) == size)
        members = np.nonzero(bits[chosen])[1].reshape(chosen.size, size)
        layers.append((chosen, members))
    return tuple(layers)


@cache
def _bits(many: int) -> NDArray[np.bool_]:
    """Which sets hold which streams."""
    return ((np.arange(1 << many)[:, None] >> np.arange(many)) & 1).astype(np.bool_)


def _times(factors: Floats, bits: NDArray[np.bool_]) -> Floats:
    """The product of the factors of each set's members."""
    product = np.ones(bits.shape[0])
    for stream, factor in enumerate(factors):
        product[bits[:, stream]] *= factor
    return product


def _let_through(model: Model) -> Floats:
    """The share of combinations that satisfies all predicates, for each set of streams."""
    bits = _bits(model.many)
    share = np.ones(bits.shape[0])
    for one in model.equalities:
        values = np.array([one.values.get(stream, 1.0) for stream in range(model.many)])
        least = np.full(bits.shape[0], np.inf)
        for stream in one.values:
            least = np.where(bits[:, stream], np.minimum(least, values[stream]), least)
        share *= np.where(np.isinf(least), 1.0, least) / _times(values, bits)
    for theta in model.thetas:
        share[bits[:, theta.left] & bits[:, theta.right]] *= theta.selectivity
    return share


def _looked_at(model: Model, sizes: Floats) -> Floats:
    """Cost of looking into each window (column) once the set (row) is bound: a bucket if the index can be used."""
    bits = _bits(model.many)
    buckets = np.array([stream.buckets for stream in model.streams])
    costs = np.array([stream.cost for stream in model.streams])
    cost = np.tile(sizes * costs, (bits.shape[0], 1))
    for one in model.equalities:
        members = np.array(sorted(one.values))
        bound = np.flatnonzero(bits[:, members].any(axis=1))
        cost[np.ix_(bound, members)] = (sizes / buckets * costs)[members]
    return cost


class _Sets:
    """What is known of every set of streams, for all origins."""

    def __init__(self, model: Model) -> None:
        self.model = model
        sizes = np.array([model.size(stream) for stream in range(model.many)])
        # A window of nothing is nearly nothing: it is divided by.
        self.sizes = np.maximum(sizes, EMPTY * max(1.0, sizes.max()))
        self.passed = _let_through(model) * _times(self.sizes, _bits(model.many))
        self.looked_at = _looked_at(model, self.sizes)

    def steps(self, origin: int, rows: NDArray[np.int64]) -> Floats:
        """For the new tuples of one stream: the cost of adding each stream (column) to some of the sets."""
        share = self.model.fresh(origin) / self.sizes[origin]
        passed = np.where(_bits(self.model.many)[rows, origin], self.passed[rows] * share, self.passed[rows])
        step = passed[:, None] * self.looked_at[rows]
        step[:, origin] *= share
        return np.asarray(step)


def _forwards(step: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The cheapest way from no stream to each set, and the stream it ends with; step[set, j] is the cost of adding j."""
    many = step.shape[1]
    best = np.zeros(step.shape[0])
    last = np.zeros(step.shape[0], np.int64)
    for sets, members in _layers(many)[1:]:
        before = sets[:, None] ^ (1 << members)
        best[sets], last[sets] = _least(best[before] + step[before, members], members)
    return best, last


def _backwards(step: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The cheapest way from each set to all streams, and the stream it begins with."""
    many = step.shape[1]
    whole = step.shape[0] - 1
    best = np.zeros(step.shape[0])
    first = np.zeros(step.shape[0], np.int64)
    # The others of a set are the members of its complement.
    for complements, others in _layers(many)[1:]:
        sets = whole ^ complements
        after = sets[:, None] | (1 << others)
        best[sets], first[sets] = _least(step[sets[:, None], others] + best[after], others)
    return best, first


def _least(ways: Floats, streams: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    pick = np.argmin(ways, axis=1)[:, None]
    return np.take_along_axis(ways, pick, axis=1)[:, 0], np.take_along_axis(streams, pick, axis=1)[:, 0]


def _way_to(where: int, last: NDArray[np.int64]) -> list[int]:
    order: list[int] = []
    while where:
        order.append(int(last[where]))
        where ^= 1 << order[-1]
    return order[::-1]


def _way_on(where: int, first: NDArray[np.int64]) -> list[int]:
    order: list[int] = []
    while where != first.size - 1:
        order.append(int(first[where]))
        where |= 1 << order[-1]
    return order


def best_for_origin(model: Model, origin: int, *, general: bool = False) -> tuple[tuple[int, ...], float]:
    """The best order for the new tuples of one stream, and its cost per time unit.

    They come first; with `general`, anywhere (GENERAL LAZY).
    """
    order = _orders(model, [origin], general)[0]
    return order, model.origin_cost(origin, order)


def _orders(model: Model, origins: Iterable[int], general: bool) -> list[tuple[int, ...]]:
    """The best order for the new tuples of each of these streams."""
    known = _Sets(model)
    step = known.passed[:, None] * known.looked_at
    step[0] = 0.0  # the outermost loop compares nothing
    onwards, first = _backwards(step)
    before, last = _forwards(step) if general else (np.zeros(0), first)
    sets = np.arange(step.shape[0])
    found = []
    for origin in origins:
        start = 0
        if general:
            there = sets[~_bits(model.many)[:, origin]]
            share = model.fresh(origin) / known.sizes[origin]
            ways = before[there] + share * (step[there, origin] + onwards[there | (1 << origin)])
            start = int(there[np.argmin(ways)])
        found.append((*_way_to(start, last), origin, *_way_on(start | (1 << origin), first)))
    return found


def best_orders(model: Model, *, general: bool = False) -> JoinOrder:
    """The best plan with an order for each origin.

    Examples
    --------
    >>> from shedjoin.join_order.model import StreamStats
    >>> table5 = [(10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5)]
    >>> best_orders(Model.of([StreamStats(*line) for line in table5])).cost
    16000.0
    """
    orders = tuple(_orders(model, range(model.many), general))
    return JoinOrder(model, orders, model.cost_of_orders(orders))


def best_global(model: Model, *, naive: bool = False) -> JoinOrder:
    """The best single order for all origins, as the paper's plans are."""
    many, known = model.many, _Sets(model)
    sets = np.arange(1 << many)
    step = np.zeros((sets.size, many))
    for origin in range(many):
        cost = model.rounds(origin) * known.steps(origin, sets if naive else sets | (1 << origin))
        if naive:
            cost[0] = 0.0
        else:
            cost[:, origin] = 0.0
        step += cost
    best, last = _forwards(step)
    return JoinOrder.of_global(model, tuple(_way_to(step.shape[0] - 1, last)), float(best[-1]), naive=naive)


def along_the_graph(model: Model) -> JoinOrder:
    """The rule of golab2003 5.4 for join graphs: new tuples first, then the most selective predicate that the graph allows.

    Streams that no predicate links with what is bound come last.
    """
    orders = []
    for origin in range(model.many):
        order = [origin]
        while len(order) < model.many:
            rest = [stream for stream in range(model.many) if stream not in order]
            order.append(min(rest, key=lambda stream: (*_link(model, stream, order), stream)))
        orders.append(tuple(order))
    return JoinOrder(model, tuple(orders), model.cost_of_orders(orders))


def _link(model: Model, stream: int, bound: list[int]) -> tuple[bool, float]:
    sizes = [model.pair_size(stream, other) for other in bound if model.linked(stream, other)]
    return (not sizes, min(sizes, default=model.size(stream)))
