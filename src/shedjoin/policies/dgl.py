"""DGL: dynamic gain and loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shedjoin.engine.codes import CUMULATIVE, Order
from shedjoin.estimators import Estimator, InMemory
from shedjoin.policies.base import Policy, check_number


@dataclass(frozen=True, slots=True)
class Dgl(Policy):
    """Starts at the importance; an instant with output adds gain * importance * matches * share of life left, any other
    instant multiplies the priority by `loss`.

    The paper gives neither constant; docs/decisions/006 has the measurements behind the defaults.

    References
    ----------
    importance2006, section 4.3.
    """

    gain: float = 1.0
    loss: float = 0.99
    estimator: Estimator = field(default_factory=InMemory)
    name: ClassVar[str] = "dgl"

    def __post_init__(self) -> None:
        Policy.__post_init__(self)
        check_number(self, "gain", above=0)
        check_number(self, "loss", above=0, below=1)

    def order(self) -> Order:
        return Order(CUMULATIVE, importance=1.0, matches=1.0, life=1.0, gain=self.gain, loss=self.loss)
