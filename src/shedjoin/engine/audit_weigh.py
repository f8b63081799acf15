"""The audit of what estimators remember."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST
from shedjoin.engine.audit_memory import Stock
from shedjoin.engine.codes import COUNT_MIN, DECAYED, HISTORY, IN_MEMORY, IN_WINDOW, KEY, PRODUCT
from shedjoin.engine.consistent import require, within
from shedjoin.engine.handle import STREAMS, Handle


def check(how: Any, st: Handle, stock: Stock) -> None:
    """Weights, and what they are made of."""
    known, estimator = stock.known, how["estimator"]
    held = st.arrays["keys"]["held"][known]
    weight = st.arrays["sides"]["weight"][known]
    require(np.isfinite(weight) & (weight >= 0), "a weight is not finite and at least 0")
    if estimator in (HISTORY, COUNT_MIN):
        require(weight <= st["arrived"], "a weight is more than the rows that have arrived")
    if estimator == IN_MEMORY:
        require(weight == st.arrays["sides"]["count"][known], "a weight is not the number of stored tuples")
    if estimator == COUNT_MIN:
        cells = st.arrays["sketch"].reshape(STREAMS, -1)
        require((cells >= 0) & (cells <= st["arrived"][:, None]), "a cell of the sketch counts more than there was")
    _check_decayed(how, st, known, weight)
    seen = _check_seen(st, known) if estimator == IN_WINDOW else None
    if seen is None:
        require(within(held, 0, 2), "an estimator holds a key more than once")
        require((st["seen_size"] == 0) & (st["seen_head"] == 0), "arrivals are remembered that nobody asks for")
        return
    require(held == seen[known].sum(axis=1), "a key is held not as often as its arrivals are remembered")
    require(weight == seen[known], "a weight is not the number of arrivals that are remembered")


def _check_seen(st: Handle, known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many arrivals InWindow remembers of each key and stream."""
    counts = np.zeros((known.size, STREAMS), np.int64)
    for stream in range(STREAMS):
        ring = st.arrays["seen"][stream]
        head, size = int(st["seen_head"][stream]), int(st["seen_size"][stream])
        require(0 <= head < ring.size, f"the memory of arrivals begins at {head} of {ring.size}")
        require(0 <= size <= ring.size, f"the memory of arrivals holds {size} of {ring.size}")
        slot = ring["slot"][(head + np.arange(size)) & (ring.size - 1)]
        require(within(slot, 0, known.size), "an arrival is remembered of a key that there is not")
        require(known[slot], "an arrival is remembered of a key that is not known")
        counts[:, stream] = np.bincount(slot, minlength=known.size)
    return counts


def _check_decayed(how: Any, st: Handle, known: NDArray[np.bool_], weight: NDArray[np.float64]) -> None:
    started, epoch, t0 = int(st["started"]), int(st["epoch"]), int(st["t0"])
    if how["estimator"] == DECAYED:
        mass = st.arrays["mass"][:, known].T
        require(np.isfinite(mass) & (mass >= 0), "a decayed count is not finite and at least 0")
        if how["organisation"] != KEY or how["combine"] == PRODUCT:
            require(weight == mass, "a weight is not the decayed count")
    if how["estimator"] != DECAYED or started == 0:
        require(started == 0 and epoch == 0 and t0 == 0, "counts decay that were never begun")
        return
    now = int(st["clock"].max())
    require(started == 1 and -LATEST <= t0 <= now, f"counts decay from {t0} on, and it is {now}")
    # The last fold was needed (see `weigh.fold`).
    before = (now - t0) / float(how["half_life"]) - 512.0 * (epoch - 1)
    require(epoch == 0 or (epoch > 0 and before > 512.0), f"counts were folded {epoch} times, more than it takes")
