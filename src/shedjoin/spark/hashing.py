"""A hash of whole numbers, to distribute rows over shards and to draw random numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def spread(keys: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Keys as 64 bits of which each depends on all bits of the key (splitmix64's finaliser): neighbours go to any shard."""
    mixed = keys.astype(np.int64).view(np.uint64)  # a copy
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed
