"""The audit of what estimators remember."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST
from shedjoin.engine import learn, neighbours
from shedjoin.engine.audit_memory import Stock
from shedjoin.engine.codes import COUNT_MIN, DECAYED, HISTORY, IN_MEMORY, IN_WINDOW, KEY, LEARNED, PRODUCT
from shedjoin.engine.consistent import require, within
from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.engine.state import NEVER


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
    remembers = estimator in (IN_WINDOW, LEARNED)
    seen = _check_seen(st, known) if remembers else None
    _check_learned(how, st, known, seen)
    if seen is None:
        require(within(held, 0, 2), "an estimator holds a key more than once")
        require((st["seen_size"] == 0) & (st["seen_head"] == 0), "arrivals are remembered that nobody asks for")
        return
    if estimator == LEARNED:
        require(within(held, 0, 2) & (held >= seen[known].any(axis=1)), "a key that was seen lately is not held")
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


def _check_learned(how: Any, st: Handle, known: NDArray[np.bool_], seen: NDArray[np.int64] | None) -> None:
    """What Prospect counts and has learned."""
    if how["estimator"] != LEARNED or seen is None:
        fits = (st["observed"] == 0) & (st["looked_soon"] == 0) & (st["looked_later"] == 0)
        require(fits & (st["faded"] == 0), "something was learned that nobody asks for")
        return
    require(within(st["observed"], 0, 2**53) & (st["observed"] <= st["arrived"]), "more rows were observed than came")
    require(
        within(st["looked_later"], 0, 2**53)
        & (st["looked_later"] <= st["looked_soon"])
        & (st["looked_soon"] <= st["seen_size"]),
        "more arrivals were looked at again than are remembered",
    )
    now = int(st["observed"].sum()) if how["by_rows"] else int(st["clock"].max())
    require(st["observed"].sum() == 0 or abs(int(st["faded"])) <= max(now, LATEST), "totals have faded too far")
    trail = st.arrays["trail"][:, known]
    require(np.isfinite(trail["mass"]) & (trail["mass"] >= 0), "a decayed count is not finite and at least 0")
    before = trail["before"]
    require((before >= 0) & (before <= st["observed"][:, None]), "more rows came before a key than came")
    require((trail["last"] == NEVER) | (abs(trail["last"]) <= max(now, LATEST)), "a key came after now")
    require(seen[known] == trail["recent"].T, "late rows of a key are counted wrongly")
    model = st.arrays["model"]
    require(np.isfinite(model[:, : learn.LOG_SHARE]), "what was learned is not finite")
    ring = model[0, learn.NEAR : learn.NEAR + neighbours.NUMBERS]
    length = 1.0 / ring[neighbours.TURNS]
    require(neighbours.PLACES <= length <= 2.0**neighbours.MOST_DOUBLINGS, f"keys lie on a ring that is {length} long")
    speed = ring[neighbours.SPEED]
    require(speed in range(-neighbours.FASTEST, neighbours.FASTEST + 1), f"keys move at a speed of {speed}")


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
