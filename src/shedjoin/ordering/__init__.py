"""Join orders for n-way joins: a cost model, the paper's heuristics, and an exact search of our own."""

from shedjoin.ordering.buckets import buckets_by_cost, buckets_by_size
from shedjoin.ordering.heuristics import (
    along_the_graph,
    by_selectivity,
    expensive_first,
    fast_streams,
    fluctuating_first,
    heuristic,
    indexed_last,
)
from shedjoin.ordering.join_order import JoinOrder
from shedjoin.ordering.model import Equality, Model, StreamStats, Theta, origin_first
from shedjoin.ordering.search import (
    best_for_origin,
    best_global,
    best_orders,
    costs_of_all,
    exhaustive,
    exhaustive_orders,
)

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
    "buckets_by_cost",
    "buckets_by_size",
    "by_selectivity",
    "costs_of_all",
    "exhaustive",
    "exhaustive_orders",
    "expensive_first",
    "fast_streams",
    "fluctuating_first",
    "heuristic",
    "indexed_last",
    "origin_first",
]
