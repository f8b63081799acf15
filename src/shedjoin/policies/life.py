"""LIFE: expected partners over the rest of a tuple's life."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shedjoin.engine.codes import LIFE, PRODUCT, Order
from shedjoin.estimators import Estimator, History
from shedjoin.policies.base import Policy


@dataclass(frozen=True, slots=True)
class Life(Policy):
    """Priority: remaining life times how often the key is expected on the other stream.

    Priorities fall with time at different speeds, so keys compete in a kinetic tournament: each comparison stores the first
    instant at which its result could change.

    References
    ----------
    das2003, section 3.3.2.
    """

    estimator: Estimator = field(default_factory=History)
    name: ClassVar[str] = "life"

    def order(self) -> Order:
        return Order(LIFE, PRODUCT, matches=1.0, life=1.0)
