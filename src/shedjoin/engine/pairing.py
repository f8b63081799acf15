"""Pairing heaps inside the pool: the tuples of one stream and key, lowest (rank, arrival) at the root.

Thousands of small heaps share the pool's own links, so none has storage to grow.
"""

from __future__ import annotations

from shedjoin.engine.jit import kernel
from shedjoin.engine.state import NONE


@kernel
def _meld(pool, a, b):
    """One heap of two; neither root may have a sibling."""
    if a == NONE:
        return b
    if b == NONE:
        return a
    x, y = pool[a], pool[b]
    if y["rank"] < x["rank"] or (y["rank"] == x["rank"] and y["arrival"] < x["arrival"]):
        a, b = b, a
    up, down = pool[a], pool[b]
    first = up["child"]
    down["sibling"] = first
    down["back"] = a
    if first != NONE:
        pool[first]["back"] = b
    up["child"] = b
    return a


@kernel
def _meld_all(pool, first):
    """One heap of a list of siblings: in pairs from the left, then together from the right."""
    pairs = NONE
    while first != NONE:
        a = first
        b = int(pool[a]["sibling"])
        first = NONE
        if b != NONE:
            first = int(pool[b]["sibling"])
            pool[b]["sibling"] = NONE
        pool[a]["sibling"] = NONE
        pair = _meld(pool, a, b)
        pool[pair]["sibling"] = pairs
        pairs = pair
    root = NONE
    while pairs != NONE:
        following = int(pool[pairs]["sibling"])
        pool[pairs]["sibling"] = NONE
        root = _meld(pool, root, pairs)
        pairs = following
    return root


@kernel
def insert(pool, root, x):
    """The root after x came in."""
    pool[x]["child"] = NONE
    pool[x]["sibling"] = NONE
    pool[x]["back"] = NONE
    return _meld(pool, root, x)


@kernel
def remove(pool, root, x):
    """The root after x went out."""
    gone = pool[x]
    rest = _meld_all(pool, int(gone["child"]))
    gone["child"] = NONE
    if x == root:
        return rest
    back, sibling = gone["back"], gone["sibling"]
    if pool[back]["child"] == x:
        pool[back]["child"] = sibling
    else:
        pool[back]["sibling"] = sibling
    if sibling != NONE:
        pool[sibling]["back"] = back
    gone["sibling"] = NONE
    return _meld(pool, root, rest)
