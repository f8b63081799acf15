"""What a result is worth: one each, or an importance made of its two tuples'."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shedjoin.offline.ground import Floats

OBJECTIVES = ("matches", "importance")


@dataclass(frozen=True, slots=True)
class Worth:
    """`counts`: every result is worth 1. Else `function` says how importance follows from the inputs'."""

    counts: bool
    function: str = "min"

    def of(self, left: Floats, right: Floats) -> Floats:
        """The worth of pairs."""
        if self.counts:
            return np.ones(left.size)
        if self.function == "min":
            return np.minimum(left, right)
        if self.function == "max":
            return np.maximum(left, right)
        if self.function == "sum":
            return left + right
        if self.function == "product":
            return left * right
        return (left + right) / 2
