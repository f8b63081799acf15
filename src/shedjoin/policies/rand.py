"""RAND: das2003's random load shedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import RANDOM, Order
from shedjoin.policies.base import Policy


@dataclass(frozen=True, slots=True)
class Rand(Policy):
    """Evicts a tuple chosen at random, the new ones included.

    References
    ----------
    das2003, section 4: "dropping tuples randomly from the join input buffers".
    """

    name: ClassVar[str] = "rand"

    def order(self) -> Order:
        return Order(RANDOM)
