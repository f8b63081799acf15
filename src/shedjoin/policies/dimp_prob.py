"""DIMPPROB: importance times current matches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shedjoin.engine.codes import KEY, PRODUCT, Order
from shedjoin.estimators import Estimator, InMemory
from shedjoin.policies.base import Policy


@dataclass(frozen=True, slots=True)
class DimpProb(Policy):
    """Priority: importance times the current matches in the opposite window.

    The second factor belongs to the key: a heap by importance inside each key, a heap of keys outside.
    Ties drop the lowest importance, then the oldest.

    References
    ----------
    importance2006, section 4.3.
    """

    estimator: Estimator = field(default_factory=InMemory)
    name: ClassVar[str] = "dimp_prob"

    def order(self) -> Order:
        return Order(KEY, PRODUCT, importance=1.0, matches=1.0)
