"""What every estimator is: a frozen description that boils down to a `Weigher`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import Weigher


class Estimator:
    """Estimates the frequency of a key on a stream. docs/semantics.md has the exact weights of each estimator."""

    name: ClassVar[str]
    #: What kernels know it by.
    code: ClassVar[int]

    def weigher(self) -> Weigher:
        return Weigher(self.code)

    def table(self, stream: int) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Keys and weights known from the start, if any."""
        del stream
        return None
