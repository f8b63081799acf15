"""Keep all: the exact join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import KEEP, Order
from shedjoin.policies.base import Policy


@dataclass(frozen=True, slots=True)
class KeepAll(Policy):
    """Evicts nothing: the exact join, for a join without a budget."""

    name: ClassVar[str] = "keep_all"

    def order(self) -> Order:
        return Order(KEEP)
