"""The weights of results, of joins that sample what they store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Weights(NamedTuple):
    """How many results of the exact join each result stands for, and the stream whose row came last and found it.

    `inverse`: of three and more streams the factors of each weight, a column for each stream; that of the newest row is 1.
    """

    weight: NDArray[np.float64]
    newest: NDArray[np.int8]
    inverse: NDArray[np.float64]

    @classmethod
    def nothing(cls, streams: int) -> Weights:
        return cls(np.empty(0), np.empty(0, np.int8), np.empty((0, streams if streams > 2 else 0)))

    @classmethod
    def joined(cls, parts: Sequence[Weights]) -> Weights:
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def some(self, which: slice) -> Weights:
        return Weights(self.weight[which], self.newest[which], self.inverse[which])
