"""All join orders and their costs: the yardstick for searches, for few streams."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from shedjoin.join_order import JoinOrder, Model

Floats = NDArray[np.float64]


def costs_of_all(model: Model, *, naive: bool = False) -> tuple[NDArray[np.int64], Floats]:
    """Every global order and its cost, worked out step by step for all orders at once: the yardstick for small n."""
    orders = np.array(list(itertools.permutations(range(model.many))))
    total = np.zeros(len(orders))
    for origin in range(model.many):
        total += _walk(model, origin, orders if naive else _origin_first(orders, origin))
    return orders, total


def _origin_first(orders: NDArray[np.int64], origin: int) -> NDArray[np.int64]:
    rest = orders[orders != origin].reshape(len(orders), -1)
    return np.hstack([np.full((len(orders), 1), origin), rest])


def _walk(model: Model, origin: int, orders: NDArray[np.int64]) -> Floats:
    """`Model.origin_cost` for many orders."""
    many = model.many
    sizes = np.array([model.fresh(s) if s == origin else model.size(s) for s in range(many)])
    values = np.array([[one.values.get(s, np.nan) for s in range(many)] for one in model.equalities])
    buckets = np.array([stream.buckets for stream in model.streams])
    costs = np.array([stream.cost for stream in model.streams])
    theta = np.ones((many, many))
    for one in model.thetas:
        theta[one.left, one.right] *= one.selectivity
        theta[one.right, one.left] *= one.selectivity
    passed = sizes[orders[:, 0]].copy()
    least = [line[orders[:, 0]] for line in values]
    total = np.zeros(len(orders))
    for at in range(1, many):
        stream = orders[:, at]
        step = np.ones(len(orders))
        indexed = np.zeros(len(orders), np.bool_)
        for number, line in enumerate(values):
            mine, theirs = line[stream], least[number]
            both = ~np.isnan(mine) & ~np.isnan(theirs)
            step[both] /= np.maximum(mine, theirs)[both]
            indexed |= both
            least[number] = np.fmin(mine, theirs)
        for before in range(at):
            step *= theta[stream, orders[:, before]]
        looked_at = np.where(indexed, sizes[stream] / buckets[stream], sizes[stream])
        total += passed * looked_at * costs[stream]
        passed *= sizes[stream] * step
    return total * model.rounds(origin)


def exhaustive(model: Model, *, naive: bool = False) -> JoinOrder:
    """The best global order by looking at all n! of them."""
    orders, costs = costs_of_all(model, naive=naive)
    at = int(np.argmin(costs))
    return JoinOrder.of_global(model, tuple(orders[at].tolist()), float(costs[at]), naive=naive)


def exhaustive_orders(model: Model, *, general: bool = False) -> JoinOrder:
    """The best order for each origin by looking at all of them: n n! orders for GENERAL LAZY."""
    everything = np.array(list(itertools.permutations(range(model.many))))
    found, total = [], 0.0
    for origin in range(model.many):
        orders = everything if general else everything[everything[:, 0] == origin]
        costs = _walk(model, origin, orders)
        at = int(np.argmin(costs))
        found.append(tuple(orders[at].tolist()))
        total += float(costs[at])
    return JoinOrder(model, tuple(found), total)
