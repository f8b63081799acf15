"""Which tuples are stored, and what is known of them, wherever a layout keeps it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import item_memory
from shedjoin.engine.codes import SAMPLE
from shedjoin.engine.handle import Handle
from shedjoin.engine.item_memory import has_items
from shedjoin.engine.memory import in_use, is_keyed
from shedjoin.engine.records import (
    NONE,
)
from shedjoin.engine.stages import sampling

Columns = dict[str, NDArray[Any]]
Integers = NDArray[np.int64]


def live_tuples(state: Handle) -> Integers:
    """The places of all stored tuples, in the order of their arrival."""
    items = item_memory.places_in_use(state) if "item_at" in state.arrays else in_use(state, "free", "free_count")
    items = items[
        state.arrays["pool"]["queued"][items] >= NONE
    ]  # others hold rows that wait, or left in the open instant
    return items[np.argsort(state.arrays["pool"]["arrival"][items], kind="stable")]


def cards_of(cfg: NDArray[Any], state: Handle, items: Integers) -> NDArray[Any]:
    """Time, row number and importance of stored tuples."""
    cards: NDArray[Any]
    if is_keyed(cfg):
        cards = state.arrays["entries"][state.arrays["pool"]["place"][items]]
    else:
        cards = state.arrays["card"][items]
    return cards


def keys_of(cfg: NDArray[Any], state: Handle, items: Integers) -> NDArray[np.int64]:
    """The attributes of stored tuples: one column each."""
    keys: NDArray[np.int64]
    if cfg[0]["where"]:
        keys = state.arrays["attr"].reshape(-1, int(cfg[0]["width"]))[items]
    elif is_keyed(cfg):
        values = state.arrays["pool"]["group"][items] // int(cfg[0]["streams"])
        keys = state.arrays["keys"]["key"][values].reshape(-1, 1)
    elif has_items(cfg):
        keys = np.zeros((items.size, 1), np.int64)
    else:
        keys = state.arrays["attr"].reshape(-1, int(cfg[0]["width"]))[items]
    return keys


def count_bytes(cfg: NDArray[Any], state: Handle, items: Integers) -> None:
    """What the stored tuples, and their keys, count against a budget in bytes."""
    pool, streams = state.arrays["pool"][items], int(cfg[0]["streams"])
    size = pool["bytes"].astype(np.int64) + int(cfg[0]["row_bytes"])
    groups = np.unique(pool["group"]) % streams if cfg[0]["key_bytes"] else np.empty(0, np.int64)
    for stream in range(streams):
        mine = pool["stream"] == stream
        keys = int((groups == stream).sum())
        state["stored_bytes"][stream] = int(size[mine].sum()) + int(cfg[0]["key_bytes"]) * keys
        if cfg[0]["organisation"] == SAMPLE:
            kept = state.arrays["since"][items] == sampling.KEPT
            state["kept_bytes"][stream] = int(size[mine & kept].sum())


def own_bytes(state: Handle, stream: int | None = None) -> int:
    """The summed `bytes` of the stored tuples, of all streams or one: what they take elsewhere."""
    items = item_memory.places_in_use(state) if "item_at" in state.arrays else in_use(state, "free", "free_count")
    pool = state.arrays["pool"][items]
    return int(pool["bytes"][pool["stream"] == stream if stream is not None else slice(None)].sum())
