"""SIMPPROB: importance times the matches on arrival."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shedjoin.engine.codes import PRODUCT, TUPLE, Order
from shedjoin.estimators import Estimator, InMemory
from shedjoin.policies.base import Policy


@dataclass(frozen=True, slots=True)
class SimpProb(Policy):
    """Priority: importance times the matches in the opposite window when the tuple arrives; fixed from then on.

    Ties drop the lowest importance, then the oldest. (The paper's middle rule, fewest matches, never decides: equal products
    of equal importance have equal matches.)

    References
    ----------
    importance2006, section 4.3.
    """

    estimator: Estimator = field(default_factory=InMemory)
    name: ClassVar[str] = "simp_prob"

    def order(self) -> Order:
        return Order(TUPLE, PRODUCT, importance=1.0, matches=1.0)
