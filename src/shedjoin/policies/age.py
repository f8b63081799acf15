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
    """Priority: the best rate of partners that a tuple of this age can look forward to, as learned; with an estimator, times
    the partners that its key can expect.

    For joins in which keys are unique, such as impressions and clicks by their id: no key comes twice, so that counts of keys
    say nothing, and when partners come says all. The join counts, for each stream and age, how often stored tuples found
    partners, and how many tuples were in memory at that age. It counts those that have found a partner apart: a tuple whose
    only partner has come is soon worth nothing. Ages that are hardly ever reached are taken for average ones.

    Parameters
    ----------
    estimator
        None: ages alone. Or one such as `History()`: the keys of tuples count as well.

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
