"""Sample: keep a random sample of the tuples with known probabilities, so that results can be weighted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shedjoin.engine.codes import PRODUCT, SAMPLE, Order
from shedjoin.errors import SpecError
from shedjoin.estimators import Estimator, History
from shedjoin.policies.base import Policy, check_number


@dataclass(frozen=True, slots=True)
class Sample(Policy):
    """Priority sampling: each result gets a weight, and sums of weighted results have the exact join's sums as their mean.

    A tuple has a weight w = (importance x expected partners) ^ power, fixed on arrival, and a random number u. Its priority is
    w / u. It is in memory with a known probability: min(1, w / T), where T is the highest priority that was evicted since
    its arrival. A result counts one divided by that.

    Parameters
    ----------
    power
        1: the sum over all results is most accurate. 0.5: rare keys are estimated better, the sum over all worse. 0: all tuples
        have the same weight.
    keep
        The part of memory, from 0 to below 1, that keeps the tuples with the highest w without sampling. A larger part gives
        more results, and wider intervals for the others.

    References
    ----------
    Duffield, Lund and Thorup: Priority sampling for estimation of arbitrary subset sums, JACM 2007.
    """

    estimator: Estimator = field(default_factory=History)
    power: float = 1.0
    keep: float = 0.0
    name: ClassVar[str] = "sample"

    def __post_init__(self) -> None:
        Policy.__post_init__(self)
        for name in ("power", "keep"):
            check_number(self, name)
        if not 0.0 <= self.power <= 2.0:
            raise SpecError(f"Sample.power must be from 0 to 2, not {self.power!r}")
        if not 0.0 <= self.keep < 1.0:
            raise SpecError(f"Sample.keep must be from 0 to below 1, not {self.keep!r}: nothing would be sampled")

    def order(self) -> Order:
        return Order(SAMPLE, PRODUCT, importance=self.power, matches=self.power, keep=self.keep)
