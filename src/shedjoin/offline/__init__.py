"""The best that any policy could have done: offline optima by flows, by dynamic programming, and of static joins."""

from shedjoin.offline.odja import odja
from shedjoin.offline.optimum import Optimum, optimum

__all__ = ["Optimum", "odja", "optimum"]
