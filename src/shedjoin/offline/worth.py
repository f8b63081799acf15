"""What a result is worth: one each, or an importance made of its two tuples'."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shedjoin.offline.timeline import Floats

OBJECTIVES = ("matches", "importance")
#: The importance of a result, from that of its two tuples.
IMPORTANCE: dict[str, Callable[[Floats, Floats], Floats]] = {
    "min": np.minimum,
    "max": np.maximum,
    "sum": np.add,
    "product": np.multiply,
    "mean": lambda left, right: (left + right) / 2,
}


@dataclass(frozen=True, slots=True)
class Worth:
    """`counts`: every result is worth 1. Else `function` says how importance follows from the inputs'."""

    counts: bool
    function: str = "min"

    def of(self, left: Floats, right: Floats) -> Floats:
        """The worth of pairs."""
        return np.ones(left.size) if self.counts else IMPORTANCE[self.function](left, right)
