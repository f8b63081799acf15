"""PROB: keep the tuples that are most likely to find partners."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shedjoin.engine.codes import KEY, PRODUCT, Order
from shedjoin.estimators import Estimator, History
from shedjoin.policies.base import Policy


@dataclass(frozen=True, slots=True)
class Prob(Policy):
    """Priority: how often the tuple's key is expected on the other stream. Ties keep the later arrival.

    All tuples of one stream and key share one priority, so the heap is over keys and each key keeps its tuples in order of
    arrival; a changed estimate moves one key.

    References
    ----------
    das2003, section 3.3.1. The paper's experiments know the true distribution: `Table`.
    """

    estimator: Estimator = field(default_factory=History)
    name: ClassVar[str] = "prob"

    def order(self) -> Order:
        return Order(KEY, PRODUCT, matches=1.0)
