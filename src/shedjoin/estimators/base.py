"""What every estimator is: a frozen description that boils down to a `Weigher`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import Weigher


class Estimator:
    """Says how much a stream is expected to bring of a key. See docs/semantics.md for each one's exact weights."""

    name: ClassVar[str]
    #: What kernels know it by.
    code: ClassVar[int]

    def weigher(self) -> Weigher:
        return Weigher(self.code)

    def table(self, stream: int) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Keys and weights known from the start, if any."""
        del stream
        return None
