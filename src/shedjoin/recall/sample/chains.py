"""Chains of sampled rows: stored rows are found by their draw, shed rows by their key."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.recall.sample.draws import draw_of, hash_of, key_slot_of, slot_of, tag_of
from shedjoin.recall.sample.state import SHED, STORED


@inlined
def link_stored(sample, index, draw):
    """Add a stored row to its chain, where records of the shed log find it."""
    slot = slot_of(draw, sample.stored_heads)
    sample.table[index]["next"] = sample.stored_heads[slot]
    sample.stored_heads[slot] = index
    sample.bitmap[slot_of(draw >> np.uint64(6), sample.bitmap)] |= np.uint64(1) << (draw & np.uint64(63))


@inlined
def may_be_stored(bitmap, draw):
    """1 if the sample may have a stored row of this draw. False positives are rare."""
    return (bitmap[slot_of(draw >> np.uint64(6), bitmap)] >> (draw & np.uint64(63))) & np.uint64(1)


@inlined
def link_shed(sample, index):
    """Add a shed row to its chain, where rows of its key find it. The order within a chain does not change the counts."""
    row = sample.table[index]
    hashed = hash_of(row["key"])
    slot = key_slot_of(hashed, row["stream"], sample.shed_heads)
    row["next"] = sample.shed_heads[slot]
    sample.shed_heads[slot] = index
    sample.tags[slot] |= np.uint16(np.uint64(1) << tag_of(hashed))


@kernel
def rebuild_chains(state, sample):
    for i in range(sample.stored_heads.size):
        sample.stored_heads[i] = NONE
    for i in range(sample.bitmap.size):
        sample.bitmap[i] = np.uint64(0)
    for i in range(sample.shed_heads.size):
        sample.shed_heads[i] = NONE
        sample.tags[i] = 0
    for index in range(state["used"]):
        row = sample.table[index]
        if row["state"] == STORED:
            link_stored(sample, index, draw_of(state["seed"], row["stream"], row["seq"]))
        elif row["state"] == SHED:
            link_shed(sample, index)
