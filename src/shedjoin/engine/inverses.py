"""How likely a join that samples was to have what it has: one divided by the probability of each stored tuple."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.handle import Handle
from shedjoin.engine.stages.sampling import KEPT
from shedjoin.engine.stored import Integers, live_tuples


class Inverses(NamedTuple):
    """Of each stored tuple: its stream, its bytes, and one divided by the probability that it is still stored."""

    stream: Integers
    bytes: Integers
    inverse: NDArray[np.float64]


def inverses(cfg: NDArray[Any], state: Handle) -> Inverses:
    """Of all stored tuples, in the order of their arrival: as `sampling.inverse`, of many tuples."""
    items = live_tuples(state)
    pool = state.arrays["pool"]
    stream, size = pool["stream"][items].astype(np.int64), pool["bytes"][items].astype(np.int64)
    weight, since = state.arrays["prio"][items], state.arrays["since"][items]
    inverse = np.ones(items.size)
    for one in range(int(cfg[0]["streams"])):
        noted = state.arrays["thresholds"][one, : int(state["threshold_count"][one])]
        mine = np.flatnonzero((stream == one) & (since != KEPT))
        place = np.searchsorted(noted["stamp"], since[mine])
        highest = np.append(noted["prio"], 0.0)[place]
        inverse[mine] = np.maximum(1.0, highest / weight[mine])
    return Inverses(stream, size, inverse)
