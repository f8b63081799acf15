"""What an estimator remembers beside what is stored, where the budget has a limit: keys are forgotten. See stages/remember.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import item_memory, loop
from shedjoin.engine.codes import DECAYED, LEARNED
from shedjoin.engine.handle import Handle
from shedjoin.engine.item_memory import has_items
from shedjoin.engine.layouts.items import EVERY_ROW
from shedjoin.engine.memory import in_use, is_keyed
from shedjoin.engine.stages import remember


def _drop_late_rows(cfg: NDArray[Any], state: Handle) -> None:
    """Prospect, of a budget that has become smaller: the oldest late rows go."""
    streams, ring = int(cfg[0]["streams"]), state.arrays["seen"]
    for stream in range(streams):
        over = int(state["seen_size"][stream]) - int(cfg[0]["keys_kept"])
        if over <= 0:
            continue
        places = (int(state["seen_head"][stream]) + np.arange(over)) & (ring.shape[1] - 1)
        np.subtract.at(state.arrays["trail"]["recent"], ring["value"][stream, places] * streams + stream, 1)
        state["seen_head"][stream] = (int(state["seen_head"][stream]) + over) & (ring.shape[1] - 1)
        state["seen_size"][stream] -= over
        for name in ("looked_soon", "looked_later"):
            state[name][stream] = max(int(state[name][stream]) - over, 0)
        state["forgotten"] += over


def forget_keys(cfg: NDArray[Any], state: Handle) -> None:
    """The estimator forgets keys without a stored tuple, the least frequent (of Prospect: the least recent) first.

    What stays is half of what may be remembered; the other half is for keys that lose their last tuple from now on.
    """
    state["idle_bound"] = 0
    if has_items(cfg) and item_memory.has_histogram(cfg):
        return  # which has few values
    if cfg[0]["estimator"] == LEARNED:
        _drop_late_rows(cfg, state)
    loop.forget(cfg, state)  # what has faded is forgotten without this
    streams, keys = int(cfg[0]["streams"]), state.arrays["keys"]
    values = in_use(state, "free_keys", "free_key_count")
    groups = values[:, None] * streams + np.arange(streams)
    if is_keyed(cfg):
        idle = state.arrays["buckets"]["count"][groups].sum(axis=1) == 0
    else:
        idle = state.arrays["cell_count"][values] == 0
    if has_items(cfg):
        idle &= state.arrays["part"][values] != EVERY_ROW
    idle &= keys["held"][values] > 0
    state["idle_bound"] = int(idle.sum())
    if cfg[0]["estimator"] == LEARNED:
        trail = state.arrays["trail"]
        idle &= trail["recent"][groups].sum(axis=1) == 0
        worth = trail["last"][groups].max(axis=1)
    elif cfg[0]["estimator"] == DECAYED:
        worth = state.arrays["mass"][groups].sum(axis=1)
    else:
        weights = state.arrays["buckets"]["weight"] if is_keyed(cfg) else state.arrays["weight"]
        worth = weights[groups].sum(axis=1)
    values, worth = values[idle], worth[idle]
    gone = values.size - int(cfg[0]["keys_kept"]) // remember.STAYS
    if gone <= 0:
        return
    parts = state.arrays["part"][values] if state.arrays["part"].size > 1 else np.zeros(values.size, np.int32)
    keys["held"][values[np.lexsort((keys["key"][values], parts, worth))[:gone]]] = 0
    state["forgotten"] += gone
    state["idle_bound"] -= gone
    loop.forget(cfg, state)
