"""Where rows that wait are found by their lot, and witnesses by their key."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.state import NONE
from shedjoin.recall.sample.draws import cell_of, hash_of, lot_of, place_of, tag_of
from shedjoin.recall.sample.state import ACTIVE, WAITING


@inlined
def wait(sample, x, lot):
    """Put a row where the shed log will find it."""
    place = place_of(lot, sample.rows)
    sample.table[x]["next"] = sample.rows[place]
    sample.rows[place] = x
    sample.sieve[place_of(lot >> np.uint64(6), sample.sieve)] |= np.uint64(1) << (lot & np.uint64(63))


@inlined
def may_wait(sieve, lot):
    """1 if a row of this lot may be waiting; few that are not pass."""
    return (sieve[place_of(lot >> np.uint64(6), sieve)] >> (lot & np.uint64(63))) & np.uint64(1)


@inlined
def testify(sample, x):
    """Put a witness where rows of its key will find it. The order in a chain changes no number."""
    w = sample.table[x]
    hashed = hash_of(w["key"])
    cell = cell_of(hashed, w["stream"], sample.heads)
    w["next"] = sample.heads[cell]
    sample.heads[cell] = x
    sample.tags[cell] |= np.uint16(np.uint64(1) << tag_of(hashed))


@kernel
def link_all(st, sample):
    for i in range(sample.rows.size):
        sample.rows[i] = NONE
    for i in range(sample.sieve.size):
        sample.sieve[i] = np.uint64(0)
    for i in range(sample.heads.size):
        sample.heads[i] = NONE
        sample.tags[i] = 0
    for x in range(st["used"]):
        w = sample.table[x]
        if w["state"] == WAITING:
            wait(sample, x, lot_of(st["seed"], w["stream"], w["seq"]))
        elif w["state"] == ACTIVE:
            testify(sample, x)
