"""When a running join looks for a better join order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shedjoin.errors import SpecError


@dataclass(frozen=True, slots=True)
class Reordering:
    """When a running join looks for a better order.

    Parameters
    ----------
    every
        Rows between two looks; as many as are stored, where that is more.
    drift
        Another order is taken when the one in use is expected to cost more than 1 + drift times the best.
    """

    every: int = 10_000
    drift: float = 0.2

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int | np.integer) or self.every < 1:
            raise SpecError(f"every must be a whole number of at least 1, not {self.every!r}")
        if isinstance(self.drift, bool) or not isinstance(self.drift, int | float) or not 0 <= self.drift < np.inf:
            raise SpecError(f"drift must be a number of at least 0, not {self.drift!r}")
