"""AGE: the rate at which a tuple of its age finds partners, as learned from the join itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import AGE, PRODUCT, Order
from shedjoin.errors import SpecError
from shedjoin.estimators import Estimator
from shedjoin.policies.base import Policy


@dataclass(frozen=True, slots=True)
class Age(Policy):
    """Priority: the best learned rate of partners ahead for a tuple of this age; with an estimator, times the expected
    partners of its key.

    Use it if keys are unique, such as impressions and clicks by their id. No key occurs twice, so key counts do not help, but
    the age at which partners arrive does. The join counts, for each stream and age, how often stored tuples found partners, and
    how many tuples were in memory at that age. Tuples that have found a partner are counted separately: after its only partner
    a tuple is worth nothing. Ages that are rarely reached get the average rate.

    Parameters
    ----------
    estimator
        None: only ages count. Or an estimator such as `History()`: the keys of tuples count too.

    References
    ----------
    Srivastava and Widom: Memory-limited execution of windowed stream joins, VLDB 2004 (age-based model). The estimate
    and the priority are our own: docs/decisions/030. gedik2007 counts partners by age as well, to choose what to compare.

    Examples
    --------
    >>> import shedjoin as sj
    >>> spec = sj.JoinSpec(window=sj.TimeWindow(100), budget=sj.Budget(tuples=20), policy=sj.Age())
    >>> ids = list(range(1000))
    >>> clicks = {"key": ids, "ts": [3 + one for one in ids]}  # each three after its impression
    >>> sj.simulate(spec, {"key": ids}, clicks).matches
    1000
    """

    estimator: Estimator | None = None
    name: ClassVar[str] = "age"

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Estimator | None):
            raise SpecError(f"Age.estimator must be an estimator such as History(), or None, not {self.estimator!r}")

    def order(self) -> Order:
        return Order(AGE, PRODUCT, matches=0.0 if self.estimator is None else 1.0)
