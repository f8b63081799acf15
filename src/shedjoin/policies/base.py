"""What every policy is: a frozen description that answers one question, "how are tuples ordered?"."""

from __future__ import annotations

import math
import sys
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import Order
from shedjoin.errors import SpecError
from shedjoin.estimators import Estimator


class Policy:
    """Chooses the tuples to evict. The engine owns the loop; a policy only defines how tuples are ordered.

    `estimator` provides the expected matches, or is None for policies that do not use them. `revision` is raised
    when a policy keeps other tuples of the same rows than before: a query on Spark cannot continue with another revision.
    """

    name: ClassVar[str]
    revision: ClassVar[int] = 1
    estimator: Estimator | None = None

    def __post_init__(self) -> None:
        if "estimator" in getattr(self, "__dataclass_fields__", ()) and not isinstance(self.estimator, Estimator):
            raise SpecError(
                f"{type(self).__name__}.estimator must be an estimator such as History() or InMemory(), not {self.estimator!r}"
            )

    def order(self) -> Order:
        raise TypeError(f"{type(self).__name__} does not describe its order")

    def schedule(self) -> tuple[NDArray[np.int64], ...] | None:
        """The times at which rows leave, for policies that know them in advance."""
        return None


def check_number(owner: Policy, field: str, *, above: float = -math.inf, below: float = math.inf) -> None:
    """Check that a numeric parameter is in an open range."""
    value = getattr(owner, field)
    fits = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if not (fits and above < value < below):
        bounds = [f"above {above:g}"] * math.isfinite(above) + [f"below {below:g}"] * math.isfinite(below)
        raise SpecError(
            f"{type(owner).__name__}.{field} must be a finite number {' and '.join(bounds)}".rstrip()
            + f", not {value!r}"
        )
    object.__setattr__(owner, field, float(value))
