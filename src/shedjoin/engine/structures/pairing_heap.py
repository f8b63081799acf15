"""Pairing heaps inside the pool: the tuples of one group, lowest (rank, arrival) at the root.

Thousands of small heaps share the pool's own links, so none has storage to grow.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.forms import unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE


@unless_plain
@inlined
def fetch(state, x):
    """Ask for a tuple's links, if tuples have any."""
    if state["more_room"] > 1:
        mem.fetch_more(state, x)


@inlined
def fetch_linked(state, x):
    """Ask for what x is linked to: it will be linked anew when x goes out. (Prefetching an invalid index is harmless.)"""
    if state["more_room"] > 1:
        links = mem.more(state, x)
        mem.fetch_more(state, links["child"])
        mem.fetch_more(state, links["sibling"])
        mem.fetch_more(state, links["back"])


@kernel
def _meld(state, a, b):
    """One heap of two; neither root may have a sibling."""
    if a == NONE:
        return b
    if b == NONE:
        return a
    x, y = mem.more(state, a), mem.more(state, b)
    if y["rank"] < x["rank"] or (y["rank"] == x["rank"] and y["arrival"] < x["arrival"]):
        a, b = b, a
    up, down = mem.more(state, a), mem.more(state, b)
    first = up["child"]
    down["sibling"] = first
    down["back"] = a
    down["ahead"] = NONE
    if first != NONE:
        down["ahead"] = mem.more(state, first)["sibling"]
        mem.more(state, first)["back"] = b
    up["child"] = b
    return a


@kernel
def _meld_all(state, first):
    """One heap of a list of siblings: in pairs from the left, then together from the right."""
    pairs = NONE
    while first != NONE:
        a = first
        b = int(mem.more(state, a)["sibling"])
        fetch(state, mem.more(state, a)["ahead"])  # the next first, unless much has changed: while one waits for b
        first = NONE
        if b != NONE:
            first = int(mem.more(state, b)["sibling"])
            mem.more(state, b)["sibling"] = NONE
        mem.more(state, a)["sibling"] = NONE
        pair = _meld(state, a, b)
        mem.more(state, pair)["sibling"] = pairs
        pairs = pair
    root = NONE
    while pairs != NONE:
        following = int(mem.more(state, pairs)["sibling"])
        mem.more(state, pairs)["sibling"] = NONE
        root = _meld(state, root, pairs)
        pairs = following
    return root


@kernel
def insert(state, root, x):
    """The root after x came in."""
    mem.more(state, x)["child"] = NONE
    mem.more(state, x)["sibling"] = NONE
    mem.more(state, x)["back"] = NONE
    return _meld(state, root, x)


@kernel
def remove(state, root, x):
    """The root after x went out."""
    gone = mem.more(state, x)
    rest = _meld_all(state, int(gone["child"]))
    gone["child"] = NONE
    if x == root:
        return rest
    back, sibling = gone["back"], gone["sibling"]
    if mem.more(state, back)["child"] == x:
        mem.more(state, back)["child"] = sibling
    else:
        mem.more(state, back)["sibling"] = sibling
    if sibling != NONE:
        mem.more(state, sibling)["back"] = back
    gone["sibling"] = NONE
    return _meld(state, root, rest)
