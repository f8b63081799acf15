"""What audits are made of: small questions about whole arrays, and one way to say no."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import heap
from shedjoin.engine.handle import Handle
from shedjoin.engine.state import NONE
from shedjoin.errors import SnapshotError

Mask = NDArray[np.bool_]
Numbers = NDArray[Any]


def require(fits: Any, wrong: str) -> None:
    """Refuse a state of which something does not fit; `wrong` is the end of the sentence."""
    if not np.all(fits):
        raise SnapshotError(f"the snapshot contradicts itself: {wrong}")


def within(values: Numbers, least: int, end: int) -> Mask:
    """Which of the values are at least `least` and below `end`."""
    inside: Mask = (values >= least) & (values < end)
    return inside


def not_on_stack(stack: Numbers, count: int, what: str) -> Mask:
    """The places that are in use: all but the first `count` of a stack of free ones."""
    size = stack.size
    require(0 <= count <= size, f"{count} of {size} {what} are free")
    free = stack[:count]
    require(within(free, 0, size), f"a free place is none of the {size} {what}")
    used = np.ones(size, np.bool_)
    used[free] = False
    require(size - int(used.sum()) == count, f"one of the {what} is free twice")
    return used


def all_end(links: Numbers) -> bool:
    """Whether one comes to an end (-1) from everywhere by following the links, which are in range.

    Every round doubles the steps, so that a circle is told from a long way after a few rounds.
    """
    # The place -1 is the last one: an end leads to itself.
    at = np.append(links, NONE)
    for _ in range(links.size.bit_length() + 1):
        if (at == NONE).all():
            return True
        at = at[at]
    return False


def check_heap(entries: Numbers, place: Numbers, size: int, what: str) -> NDArray[np.int64]:
    """The items of a heap that is in order and whose `place` leads back to it."""
    return _check_entries(entries, place, size, size, what)["item"]


def check_queue(entries: Numbers, place: Numbers, size: int, front: int, bound: float, what: str) -> NDArray[np.int64]:
    """The same for a queue whose front is a heap, see front.py."""
    require(0 <= front <= size, f"{front} of the {size} entries of {what} are its front")
    require(not np.isnan(bound), f"the bound of {what} is not a number")
    there = _check_entries(entries, place, size, front, what)
    require(
        (there["prio"] <= bound) == (np.arange(size) < front), f"an entry of {what} is on the wrong side of its bound"
    )
    return there["item"]


def check_raised(st: Handle, stream: int) -> None:
    """Cumulative priorities rise unseen by the queue: none may be below what stands there."""
    there = st.arrays["heap"][stream, heap.TOP : heap.TOP + int(st["heap_size"][stream])]
    require(there["prio"] <= st.arrays["cumulated"][there["item"]], "a cumulative priority is below that of its queue")


def _check_entries(entries: Numbers, place: Numbers, size: int, front: int, what: str) -> Numbers:
    require(0 <= size < entries.size - heap.TOP, f"{what} has {size} entries")
    there = entries[heap.TOP : heap.TOP + size]
    item = there["item"]
    require(within(item, 0, place.size), f"{what} has an item that there is not")
    require(place[item] == np.arange(heap.TOP, heap.TOP + size), f"an item of {what} is said to stand elsewhere")
    require(~(np.isnan(there["prio"]) | np.isnan(there["rank"])), f"a priority in {what} is not a number")
    above = there[(np.arange(1, front) - 1) >> 2]
    require(~_lower(there[1:front], above), f"{what} is not in order")
    return there


def _lower(a: Numbers, b: Numbers) -> Mask:
    """`heap.lower` for whole arrays."""
    by_arrival = (a["rank"] == b["rank"]) & (a["arrival"] < b["arrival"])
    lower: Mask = (a["prio"] < b["prio"]) | ((a["prio"] == b["prio"]) & ((a["rank"] < b["rank"]) | by_arrival))
    return lower
