"""Partners found on arrival: the estimate of gedik2007 and importance2006 without statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import MET
from shedjoin.estimators.base import Estimator


@dataclass(frozen=True, slots=True)
class Met(Estimator):
    """The number of results that a row's own probe found. It keeps no counts and works for any condition.

    With most policies, a tuple without results on arrival always has the priority 0.
    """

    name: ClassVar[str] = "met"
    code: ClassVar[int] = MET
