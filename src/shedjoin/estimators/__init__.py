"""Estimators: how often a key is expected on a stream. One file each; `ESTIMATORS` is the registry."""

from shedjoin.estimators.base import Estimator
from shedjoin.estimators.count_min import CountMin
from shedjoin.estimators.decayed import Decayed
from shedjoin.estimators.history import History
from shedjoin.estimators.in_memory import InMemory
from shedjoin.estimators.in_window import InWindow
from shedjoin.estimators.met import Met
from shedjoin.estimators.table import Table

ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind for kind in (Table, InMemory, InWindow, History, Decayed, CountMin, Met)
}

__all__ = ["ESTIMATORS", "CountMin", "Decayed", "Estimator", "History", "InMemory", "InWindow", "Met", "Table"]
