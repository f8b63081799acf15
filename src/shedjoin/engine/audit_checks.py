"""The checks that every part of the audit is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import SnapshotError

#: No join has counted so far: sums of two such numbers do not overflow.
ENDLESS = 2**62


def require(fits: Any, wrong: str) -> None:
    """Refuse contents of which something does not fit; `wrong` is the end of the sentence."""
    if not np.all(fits):
        raise SnapshotError(f"the snapshot contradicts itself: {wrong}")


def within(values: NDArray[Any], least: int, end: int) -> NDArray[np.bool_]:
    """Which of the values are at least `least` and below `end`."""
    inside: NDArray[np.bool_] = (values >= least) & (values < end)
    return inside
