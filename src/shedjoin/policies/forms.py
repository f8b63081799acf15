"""importance2006's general priority forms over importance, matches and age: additive and multiplicative."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shedjoin.engine.codes import KEY, LOGSUM, SUM, TUPLE, Order
from shedjoin.errors import SpecError
from shedjoin.estimators import Estimator, InMemory
from shedjoin.policies.base import Policy, check_number

UPDATES = ("arrival", "always")


@dataclass(frozen=True, slots=True)
class _Form(Policy):
    importance: float = 1.0
    matches: float = 1.0
    life: float = 0.0
    update: str = "always"
    estimator: Estimator = field(default_factory=InMemory)
    combine: ClassVar[int]

    def __post_init__(self) -> None:
        Policy.__post_init__(self)
        if self.update not in UPDATES:
            raise SpecError(f"{type(self).__name__}.update must be one of {', '.join(UPDATES)}, not {self.update!r}")
        for factor in ("importance", "matches", "life"):
            check_number(self, factor)

    def order(self) -> Order:
        organisation = KEY if self.update == "always" else TUPLE
        return Order(organisation, self.combine, self.importance, self.matches, self.life)


@dataclass(frozen=True, slots=True)
class Additive(_Form):
    """Priority: importance * i + matches * m + life * (share of its life left), fixed on arrival or always current.

    References
    ----------
    importance2006, section 3.2 (additive form); `Simp` is the case (1, 0, 0).
    """

    name: ClassVar[str] = "additive"
    combine: ClassVar[int] = SUM


@dataclass(frozen=True, slots=True)
class Multiplicative(_Form):
    """Priority: i^importance * m^matches * e^(life * share of its life left), fixed on arrival or always current.

    Age enters as an exponential, so that the order of two tuples of one key never changes with time.

    References
    ----------
    importance2006, section 3.2 (multiplicative form); `SimpProb` and `DimpProb` are the case (1, 1, 0).
    """

    name: ClassVar[str] = "multiplicative"
    combine: ClassVar[int] = LOGSUM
