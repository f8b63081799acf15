"""SIMP: static importance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import SUM, TUPLE, Order
from shedjoin.policies.base import Policy


@dataclass(frozen=True, slots=True)
class Simp(Policy):
    """Priority: the tuple's importance. Ties drop the oldest.

    References
    ----------
    importance2006, section 4.3.
    """

    name: ClassVar[str] = "simp"

    def order(self) -> Order:
        return Order(TUPLE, SUM, importance=1.0)
