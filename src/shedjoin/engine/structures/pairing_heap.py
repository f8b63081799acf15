"""Pairing heaps inside the pool: the tuples of one group, lowest (rank, arrival) at the root.

Thousands of small heaps share the pool's own links, so none has storage to grow.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE


@inlined
def fetch(st, x):
    """Ask for a tuple's links, if tuples have any."""
    if st["more_room"] > 1:
        mem.fetch_more(st, x)


@inlined
def fetch_linked(st, x):
    """Ask for what x is linked to: it will be linked anew when x goes out. (Prefetching an invalid index is harmless.)"""
    if st["more_room"] > 1:
        links = mem.more(st, x)
        mem.fetch_more(st, links["child"])
        mem.fetch_more(st, links["sibling"])
        mem.fetch_more(st, links["back"])


@kernel
def _meld(st, a, b):
    """One heap of two; neither root may have a sibling."""
    if a == NONE:
        return b
    if b == NONE:
        return a
    x, y = mem.more(st, a), mem.more(st, b)
    if y["rank"] < x["rank"] or (y["rank"] == x["rank"] and y["arrival"] < x["arrival"]):
        a, b = b, a
    up, down = mem.more(st, a), mem.more(st, b)
    first = up["child"]
    down["sibling"] = first
    down["back"] = a
    down["ahead"] = NONE
    if first != NONE:
        down["ahead"] = mem.more(st, first)["sibling"]
        mem.more(st, first)["back"] = b
    up["child"] = b
    return a


@kernel
def _meld_all(st, first):
    """One heap of a list of siblings: in pairs from the left, then together from the right."""
    pairs = NONE
    while first != NONE:
        a = first
        b = int(mem.more(st, a)["sibling"])
        fetch(st, mem.more(st, a)["ahead"])  # the next first, unless much has changed: while one waits for b
        first = NONE
        if b != NONE:
            first = int(mem.more(st, b)["sibling"])
            mem.more(st, b)["sibling"] = NONE
        mem.more(st, a)["sibling"] = NONE
        pair = _meld(st, a, b)
        mem.more(st, pair)["sibling"] = pairs
        pairs = pair
    root = NONE
    while pairs != NONE:
        following = int(mem.more(st, pairs)["sibling"])
        mem.more(st, pairs)["sibling"] = NONE
        root = _meld(st, root, pairs)
        pairs = following
    return root


@kernel
def insert(st, root, x):
    """The root after x came in."""
    mem.more(st, x)["child"] = NONE
    mem.more(st, x)["sibling"] = NONE
    mem.more(st, x)["back"] = NONE
    return _meld(st, root, x)


@kernel
def remove(st, root, x):
    """The root after x went out."""
    gone = mem.more(st, x)
    rest = _meld_all(st, int(gone["child"]))
    gone["child"] = NONE
    if x == root:
        return rest
    back, sibling = gone["back"], gone["sibling"]
    if mem.more(st, back)["child"] == x:
        mem.more(st, back)["child"] = sibling
    else:
        mem.more(st, back)["sibling"] = sibling
    if sibling != NONE:
        mem.more(st, sibling)["back"] = back
    gone["sibling"] = NONE
    return _meld(st, root, rest)
