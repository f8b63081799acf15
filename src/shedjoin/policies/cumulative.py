"""Cumulative priorities: gain with every output, lose with every instant without one. DGL is the paper's case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shedjoin.engine.codes import CUMULATIVE, Order
from shedjoin.estimators import Estimator, InMemory
from shedjoin.policies.base import Policy, check_number


@dataclass(frozen=True, slots=True)
class Cumulative(Policy):
    """Priority starts at the importance; an instant with output adds gain * importance^a * matches^b * share of life^c,
    any other instant multiplies it by `loss`.

    The decay is the same for all tuples, so it is one number for the whole memory; only tuples with output are updated.

    References
    ----------
    importance2006, section 3.2 (cumulative form).
    """

    importance: float = 1.0
    matches: float = 1.0
    life: float = 1.0
    gain: float = 1.0
    loss: float = 0.99
    estimator: Estimator = field(default_factory=InMemory)
    name: ClassVar[str] = "cumulative"

    def __post_init__(self) -> None:
        Policy.__post_init__(self)
        for exponent in ("importance", "matches", "life"):
            check_number(self, exponent)
        check_number(self, "gain", above=0)
        check_number(self, "loss", above=0, below=1)

    def order(self) -> Order:
        return Order(
            CUMULATIVE,
            importance=self.importance,
            matches=self.matches,
            life=self.life,
            gain=self.gain,
            loss=self.loss,
        )
