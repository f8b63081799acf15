"""Records in pieces."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class Pieces:
    """Records that come piece by piece, and are put together when somebody reads them: most logs are not read."""

    __slots__ = ("parts",)

    def __init__(self, dtype: np.dtype[np.void], parts: Iterable[NDArray[np.void]]) -> None:
        self.parts = [part for part in parts if part.size] or [np.empty(0, dtype)]

    def __len__(self) -> int:
        return sum(part.size for part in self.parts)

    def whole(self) -> NDArray[np.void]:
        """All of them, one after the other."""
        if len(self.parts) > 1:
            self.parts = [np.concatenate(self.parts)]
        return self.parts[0]
