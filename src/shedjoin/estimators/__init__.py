"""Estimators: how often a key is expected on a stream. One file each; a line here registers it."""

from shedjoin.estimators.base import Estimator as Estimator
from shedjoin.estimators.count_min import CountMin as CountMin
from shedjoin.estimators.decayed import Decayed as Decayed
from shedjoin.estimators.history import History as History
from shedjoin.estimators.in_memory import InMemory as InMemory
from shedjoin.estimators.in_window import InWindow as InWindow
from shedjoin.estimators.met import Met as Met
from shedjoin.estimators.table import Table as Table
from shedjoin.registry import registered

#: All estimators by name.
ESTIMATORS: dict[str, type[Estimator]] = registered(Estimator, vars())
