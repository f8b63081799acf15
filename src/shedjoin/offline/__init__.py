"""The best that any policy could have done: offline optima by flows, by dynamic programming, and of static joins."""

from shedjoin.offline.optimum import Optimum, optimum

__all__ = ["Optimum", "optimum"]
