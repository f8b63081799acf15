"""Join orders for n-way joins: a cost model, and an exact search for the cheapest order."""

from shedjoin.join_order.model import Equality, Model, StreamStats, Theta, origin_first
from shedjoin.join_order.order import JoinOrder
from shedjoin.join_order.search import along_the_graph, best_for_origin, best_global, best_orders

__all__ = [
    "Equality",
    "JoinOrder",
    "Model",
    "StreamStats",
    "Theta",
    "along_the_graph",
    "best_for_origin",
    "best_global",
    "best_orders",
    "origin_first",
]
