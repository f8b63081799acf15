"""Offline optima, the best result of any policy: by flows, by dynamic programming, and for static joins."""

from shedjoin.offline.odja import odja
from shedjoin.offline.optimum import Optimum, optimum
from shedjoin.offline.static import Truncated, truncated_join, truncated_joins

__all__ = ["Optimum", "Truncated", "odja", "optimum", "truncated_join", "truncated_joins"]
