"""Partners met on arrival: what gedik2007 and importance2006 know of a tuple without any statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import MET
from shedjoin.estimators.base import Estimator


@dataclass(frozen=True, slots=True)
class Met(Estimator):
    """The number of results that a row's own probe found. It counts nothing and works on any condition.

    A tuple without results when it arrived has a priority of 0 by most policies, whatever comes later.
    """

    name: ClassVar[str] = "met"
    code: ClassVar[int] = MET
