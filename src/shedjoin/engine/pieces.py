"""Records that come piece by piece: most logs are not read, and those need not be put together."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class Pieces:
    """Pieces of records, which become one array when somebody asks for all. They are kept as they are: write to none."""

    __slots__ = ("parts",)

    def __init__(self, dtype: np.dtype[np.void], parts: Iterable[NDArray[np.void]]) -> None:
        self.parts = [np.asarray(part, dtype) for part in parts if part.size] or [np.empty(0, dtype)]

    def __len__(self) -> int:
        return sum(part.size for part in self.parts)

    def whole(self) -> NDArray[np.void]:
        """All of them, one after the other."""
        if len(self.parts) > 1:
            self.parts = [np.concatenate(self.parts)]
        return self.parts[0]
