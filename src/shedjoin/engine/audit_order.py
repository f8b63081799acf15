"""The audit of a policy's order: its heaps, lists, and tournaments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import kinetic, memory
from shedjoin.engine.audit_memory import Stock
from shedjoin.engine.codes import CUMULATIVE, KEEP, KEY, LIFE, RANDOM, ROW
from shedjoin.engine.consistent import all_end, check_heap, check_queue, check_raised, not_on_stack, require, within
from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.engine.state import NONE


def check(how: Any, st: Handle, stock: Stock) -> None:
    """Everything by which a policy finds the lowest."""
    organisation = how["organisation"]
    if organisation in (KEY, LIFE):
        _check_lowest(how, st, stock)
    for stream in range(STREAMS):
        size = int(st["heap_size"][stream])
        if organisation == KEEP:
            require(size == 0, f"a join that keeps all has {size} tuples in order")
        elif organisation == RANDOM:
            _check_list(st, stock, stream, size)
        elif organisation == LIFE:
            _check_leaves(how, st, stock, stream, size)
        elif organisation == KEY:
            _check_heap_of_keys(st, stock, stream, size)
        else:
            _check_heap_of_tuples(st, stock, stream, size)
    if organisation == LIFE:
        memory.replay_tournaments(st)
    if organisation == CUMULATIVE:
        require(~np.isnan(st.arrays["cumulated"][stock.live]), "a cumulative priority is not a number")
        for stream in range(STREAMS):
            check_raised(st, stream)
        require(within(st.arrays["probed"], NONE, int(st["tick"])), "a key was met in an instant that has not been")


def _check_lowest(how: Any, st: Handle, stock: Stock) -> None:
    """Every key knows which of its tuples goes first."""
    low, pool = st.arrays["sides"]["low"], st.arrays["pool"]
    if how["fifo"]:
        require(low[stock.used] == stock.first[stock.used], "the lowest tuple of a key is not its oldest")
        return
    require(low[stock.known[:, None] & ~stock.used] == NONE, "a key without tuples has a lowest one")
    slot, stream = np.nonzero(stock.used)
    root = low[stock.used]
    require(within(root, 0, pool.size), "the lowest tuple of a key is not there")
    require(stock.live[root] & _is_of(pool[root], slot, stream), "the lowest tuple of a key is gone or of another key")
    _check_trees(st, stock, root)


def _is_of(tuples: NDArray[Any], slot: NDArray[Any], stream: NDArray[Any]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (tuples["slot"] == slot) & (tuples["stream"] == stream)
    return same


def _check_trees(st: Handle, stock: Stock, root: NDArray[Any]) -> None:
    """The tuples of a key are one tree: each but the root hangs on exactly one other of the key."""
    more, pool, live = st.arrays["more"], st.arrays["pool"], stock.live
    is_root = np.zeros(live.size, np.bool_)
    is_root[root] = True
    require(~np.isnan(more["rank"][live]), "the rank of a tuple is not a number")
    require(more["arrival"][live] == pool["arrival"][live], "a tuple has two arrivals")
    require(more["sibling"][root] == NONE, "the lowest tuple of a key has siblings")
    wrong = "the tuples of a key are linked wrongly"
    for link in ("child", "sibling"):
        target = more[link][live]
        require(within(target, NONE, live.size), wrong)
        up, down = np.flatnonzero(live)[target != NONE], target[target != NONE]
        require(live[down] & ~is_root[down] & (more["back"][down] == up), wrong)
    hanging = np.flatnonzero(live & ~is_root)
    back = more["back"][hanging]
    require(within(back, 0, live.size), wrong)
    require(live[back] & _is_of(pool[hanging], pool["slot"][back], pool["stream"][back]), wrong)
    require((more["child"][back] == hanging) != (more["sibling"][back] == hanging), wrong)
    ways = np.full(live.size, NONE, np.int64)
    ways[hanging] = back
    require(all_end(ways), "the tuples of a key are linked in a circle")


def _check_list(st: Handle, stock: Stock, stream: int, size: int) -> None:
    """RAND: the tuples of a stream in any order."""
    dense, place, pool = st.arrays["dense"][stream], st.arrays["place"][stream], st.arrays["pool"]
    # Also behind the end: a look ahead may read it.
    require(within(dense, 0, pool.size), "the list of tuples holds one that there is not")
    require(size == st["resident"][stream], f"{size} tuples of stream {stream} are listed")
    item = dense[:size]
    require(stock.live[item] & (pool["stream"][item] == stream), "a listed tuple is gone or of another stream")
    require(place[item] == np.arange(size), "a listed tuple is said to stand elsewhere")


def _check_heap_of_tuples(st: Handle, stock: Stock, stream: int, size: int) -> None:
    pool, place = st.arrays["pool"], st.arrays["place"][stream]
    require(size == st["resident"][stream], f"{size} tuples of stream {stream} are in the policy's heap")
    front, bound = int(st["front"][stream]), float(st["bound"][stream])
    item = check_queue(st.arrays["heap"][stream], place, size, front, bound, "the policy's heap")
    require(
        stock.live[item] & (pool["stream"][item] == stream), "a tuple in the policy's heap is gone or of another stream"
    )
    require((place != NONE).sum() == size, "a tuple is said to be in the policy's heap")


def _check_heap_of_keys(st: Handle, stock: Stock, stream: int, size: int) -> None:
    place, used = st.arrays["place"][stream], stock.used[:, stream]
    require(size == used.sum(), f"{size} keys of stream {stream} are in the policy's heap")
    item = check_heap(st.arrays["heap"][stream], place, size, "the policy's heap")
    require(used[item], "a key in the policy's heap has no tuples")
    require((place != NONE).sum() == size, "a key is said to be in the policy's heap")


def _check_leaves(how: Any, st: Handle, stock: Stock, stream: int, size: int) -> None:
    """LIFE: every key with tuples has a leaf of its own; the matches above are played again."""
    place, dense = st.arrays["place"][stream], st.arrays["dense"][stream]
    leaf_of, match = st.arrays["leaf"][stream], st.arrays["match"][stream]
    leaves = leaf_of.size
    slot = np.flatnonzero(stock.used[:, stream])
    require(size == slot.size, f"{size} keys of stream {stream} are in the tournament")
    # The free leaves are a stack that ends at the end of the array.
    taken = not_on_stack(dense[::-1], leaves - size, "leaves")
    require((place != NONE) == stock.used[:, stream], "a key without tuples is in the tournament, or one with is not")
    leaf = place[slot]
    require(within(leaf, 0, leaves), "a key has a leaf that there is not")
    require(taken[leaf] & (leaf_of["slot"][leaf] == slot), "a key has the leaf of another")
    require(
        match["winner"][leaves:] == np.where(taken, np.arange(leaves), NONE), "a leaf of the tournament is not in it"
    )
    require(match["doubt"][leaves:] == kinetic.SURE, "a leaf of the tournament is in doubt")

    low = st.arrays["sides"]["low"][slot, stream]
    tuples = st.arrays["pool"][low]
    card = st.arrays["shelf"][tuples["place"]]
    span = int(how[f"size{stream}"])
    ends = card["seq"] + span + 1 if how[f"kind{stream}"] == ROW else card["ts"] + span
    mine = match[leaves + leaf]
    require(
        (mine["end"] == ends) & (leaf_of["arrival"][leaf] == tuples["arrival"]),
        "a key's line is not that of its lowest tuple",
    )
    weights = st.arrays["sides"]["weight"][slot, 1 - stream]
    require(mine["weight"] == weights, "a key's line falls not as its weight says")
