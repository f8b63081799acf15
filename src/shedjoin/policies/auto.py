"""AUTO: our own policy. The join tries policies on a sample of its own rows, and changes to the best one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from shedjoin.engine.codes import Order
from shedjoin.errors import SpecError
from shedjoin.estimators import Estimator
from shedjoin.policies.base import Policy, check_number
from shedjoin.policies.prob import Prob


@dataclass(frozen=True, slots=True)
class Auto(Policy):
    """Begins with the default policy of the join, and changes to another one that is clearly better for some time.

    For each candidate a miniature of the join runs: the same join on the rows of a few keys, with an equally small part of the
    memory. After each stretch (a number of rows) the results of the miniatures are compared, stretch by stretch.

    Parameters
    ----------
    memory
        The memory of all miniatures together, as a part of the budget and in addition to it. If this is too small, the join
        keeps its first policy.
    every
        Rows in a stretch. 0: half as many as the budget has room for, but at least 512, and 128 of the sample.
    gain
        How much more another policy must find: 0.05 is 5%. A return to the first policy does not need it.
    stretches
        How many stretches are compared, at most. Half of them must have passed.

    References
    ----------
    Waldspurger, Saemundsson, Ahmad, Park: Cache modeling and optimization using miniature simulations. USENIX ATC 2017. The paper
    does this for caches.

    Examples
    --------
    >>> Auto()
    Auto(memory=0.1, every=0, gain=0.05, stretches=12)
    """

    memory: float = 0.1
    every: int = 0
    gain: float = 0.05
    stretches: int = 12
    name: ClassVar[str] = "auto"
    tries_others: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self, "memory", above=0)
        check_number(self, "gain", above=-1.0)
        _check_count(self, "every", 0)
        _check_count(self, "stretches", 1)

    @property
    def estimator(self) -> Estimator:  # type: ignore[override]
        return Prob().estimator

    def order(self) -> Order:
        """That of PROB, for whoever asks before it is known which join it is."""
        return Prob().order()


def _check_count(owner: Auto, field: str, least: int) -> None:
    value: Any = getattr(owner, field)
    if type(value) is not int or not least <= value <= 2**40:
        raise SpecError(f"Auto.{field} must be a whole number of at least {least}, not {value!r}")
