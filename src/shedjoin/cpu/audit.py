"""Whether the state of a snapshot can be run: kernels do not check what they read, so this looks at every place they follow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Values
from shedjoin.cpu import state as cs
from shedjoin.cpu.codes import LOWEST
from shedjoin.cpu.plan import Plan
from shedjoin.cpu.rows import Rows
from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.errors import SnapshotError
from shedjoin.predicates.state import BY_STREAM, ENTRIES, FIXED_LISTS, ITEMS, LISTS, POOL


def require(holds: Any, what: str) -> None:
    if not bool(holds):
        raise SnapshotError(f"the snapshot does not hang together: {what}")


def within(values: NDArray[Any], low: int, high: int) -> bool:
    return values.size == 0 or bool((values >= low).all() and (values < high).all())


def audit(plan: Plan, st: Handle) -> None:
    """Refuse a state in which a kernel would read what is not there."""
    members = check_store(st)
    _lengths(plan, st)
    _heaps(plan, st, members)
    ages, _ = plan.ages()
    kinds = st.arrays["kind_gain"].shape[1]
    for stream in range(STREAMS):
        ranks = np.sort(st.arrays["age_rank"][stream])
        require(np.array_equal(ranks, np.arange(ages)), "a ranking of basic windows lacks one of them")
        require(within(st.arrays["kind"][members[stream]], 0, kinds), "a tuple has a type that there is not")
    require(st["random"] != 0, "its random numbers have run dry")
    require(0.0 < st["fraction"] <= 1.0, "its fraction is not between 0 and 1")
    require(all(st[name] >= 0 for name in cs.COUNTERS), "a counter is below 0")


def check_store(st: Handle) -> list[NDArray[np.int64]]:
    """The stored tuples of each stream, after making sure that every place that leads somewhere leads to something."""
    arrays = st.arrays
    pool = arrays["ts"].size
    require(
        pool > 1
        and pool % 2 == 0
        and arrays["count"].size == pool // 2
        and all(arrays[name].size == pool for name in POOL),
        "the pool's columns differ in length",
    )
    require(all(arrays[name].shape == (STREAMS, pool) for name in BY_STREAM), "members and heaps do not fit the pool")
    require(len({arrays[name].size for name in ITEMS}) == 1, "items and weights differ in length")
    require(len({arrays[name].size for name in ENTRIES}) == 1, "the entries' columns differ in length")
    table = arrays["t_item"].size
    require(
        table > 0 and table & (table - 1) == 0 and arrays["t_tag"].size == table, "the table's length is no power of 2"
    )
    require(all(arrays[name].size == table + FIXED_LISTS for name in LISTS), "there is not a list for every item")
    members = _members(st, pool)
    _items(st, members)
    _lists(st, pool, members)
    return members


def _lengths(plan: Plan, st: Handle) -> None:
    """What adapting needs has the length that the join's settings give it."""
    arrays = st.arrays
    ages, _ = plan.ages()
    kinds = max(plan.selective.types, 1) if plan.selective is not None else 1
    for name in cs.STATE_ARRAYS:
        require(
            arrays[name].shape[-1] == ages and arrays[name].shape[0] in (ages, STREAMS), f"{name} has another length"
        )
    for name in cs.KIND_ARRAYS:
        require(arrays[name].shape == (STREAMS, kinds), f"{name} has another length")
    for name in cs.SACK_ARRAYS:
        require(arrays[name].size == STREAMS * kinds, f"{name} has another length")
    for name in (*cs.STATE_ARRAYS, *cs.KIND_ARRAYS, *cs.SACK_ARRAYS):
        require(st[f"{name}_room"] == arrays[name].shape[-1], f"{name} has another length")


def _members(st: Handle, pool: int) -> list[NDArray[np.int64]]:
    """Every place of the pool is free or stored, once."""
    counts = st["resident"]
    require(all(0 <= count < pool for count in counts), "more is stored than there is room for")
    members = [st.arrays["members"][stream, : counts[stream]] for stream in range(STREAMS)]
    for stream, mine in enumerate(members):
        spare = int(st["free_count"][stream])
        require(0 <= spare < pool, "more is free than there is")
        everyone = np.sort(np.concatenate((mine, st.arrays["free"][stream, :spare])))
        fits = np.array_equal(everyone, np.arange(STREAMS + stream, pool, STREAMS))
        require(fits, "a place of the pool is neither free nor stored, or both")
        require(np.array_equal(st.arrays["place"][mine], np.arange(mine.size)), "a tuple does not know its place")
        require((st.arrays["side"][mine] == stream).all(), "a tuple stands with the other stream")
    require((st.arrays["count"] == 0).all(), "a search was not finished")
    return members


def _items(st: Handle, members: list[NDArray[np.int64]]) -> None:
    mine = np.concatenate(members)
    at, size = st.arrays["item_at"][mine], st.arrays["item_len"][mine]
    top = int(st["item_top"])
    require(0 <= top <= st.arrays["item"].size, "the items end beyond their array")
    require((size >= 0).all() and (at >= 0).all() and (at + size <= top).all(), "a tuple's items lie outside the array")
    require(int(size.sum()) == st["item_live"], "the count of items is wrong")


def _lists(st: Handle, pool: int, members: list[NDArray[np.int64]]) -> None:
    start, cap, head, length = (st.arrays[name] for name in LISTS)
    top = int(st["entry_top"])
    require(0 <= top <= st.arrays["e_ts"].size, "the entries end beyond their array")
    tags = st.arrays["t_tag"]
    used = np.concatenate((np.arange(FIXED_LISTS), FIXED_LISTS + np.flatnonzero(tags)))
    require(
        within(tags, 0, STREAMS + 1) and used.size - FIXED_LISTS == st["table_used"], "the table of items is damaged"
    )
    require(2 * int(st["table_used"]) <= tags.size, "the table of items is too full to be searched")
    s, c, h, n = start[used], cap[used], head[used], length[used]
    require((s >= 0).all() and (c >= 0).all() and (h >= 0).all() and (n >= 0).all(), "a list has a length below 0")
    require((h + n <= c).all() and (s + c <= top).all(), "a list lies outside its room")
    order = np.argsort(s, kind="stable")
    blocks = order[c[order] > 0]
    require((s[blocks][1:] >= (s + c)[blocks][:-1]).all(), "two lists share a room")
    require(st["dead"] >= 0, "a count is below 0")
    for stream in range(STREAMS):
        entries = slice(int(start[stream] + head[stream]), int(start[stream] + head[stream] + length[stream]))
        slots = st.arrays["e_slot"][entries]
        alive = np.sort(slots[slots != 0])
        require(
            np.array_equal(alive, np.sort(members[stream])), "the list of all tuples lacks one, or has one too many"
        )
    require(within(st.arrays["e_slot"], 0, pool), "an entry leads outside the pool")


def _heaps(plan: Plan, st: Handle, members: list[NDArray[np.int64]]) -> None:
    groups = len(plan.caps(plan.budget)) if plan.victim == LOWEST else 0
    for group in range(groups):
        expected = np.sort(members[group] if groups == STREAMS else np.concatenate(members))
        size = int(st["heap_size"][group])
        require(size == expected.size, "a heap has another size than the memory")
        heap = st.arrays["heap"][group, :size]
        require(np.array_equal(np.sort(heap), expected), "a heap lacks a tuple, or has one too many")
        require(
            np.array_equal(st.arrays["heap_at"][heap], np.arange(size)), "a tuple does not know its place in the heap"
        )


_COLUMNS = ("stream", "ts", "importance", "kind")
_VALUES = ("null", "number", "offsets", "items", "weights")
_TYPES = {"importance": np.float64, "number": np.float64, "weights": np.float64, "null": np.bool_}


def write_waiting(rows: Rows, places: NDArray[np.int64], prio: NDArray[np.float64]) -> dict[str, Any]:
    """The rows in the queue as plain data."""
    columns = {name: getattr(rows, name).tolist() for name in _COLUMNS}
    values = {name: getattr(rows.values, name).tolist() for name in _VALUES}
    return {**columns, **values, "places": places.tolist(), "prio": prio.tolist()}


def read_waiting(data: Any, st: Handle) -> tuple[Rows, NDArray[np.int64], NDArray[np.float64]]:
    """The rows in the queue from plain data, checked like any input."""
    try:
        parts: dict[str, NDArray[Any]] = {
            name: np.array(data[name], _TYPES.get(name, np.int64)) for name in (*_COLUMNS, *_VALUES)
        }
        places = np.array(data["places"], np.int64).reshape(3, -1)
        prio = np.array(data["prio"], np.float64)
    except (KeyError, TypeError, ValueError, OverflowError) as reason:
        raise SnapshotError(f"the rows that wait cannot be read: {reason}") from None
    size = parts["stream"].size
    require(
        all(parts[name].shape == (size,) for name in (*_COLUMNS, "null", "number")), "rows that wait differ in length"
    )
    require(places.shape == (3, size) and prio.shape == (size,), "rows that wait differ in length")
    offsets, items = parts["offsets"], parts["items"].size
    require(
        offsets.shape == (size + 1,) and offsets[0] == 0 and offsets[-1] == items, "offsets of rows that wait are wrong"
    )
    require((np.diff(offsets) >= 0).all() and parts["weights"].shape == (items,), "offsets of rows that wait are wrong")
    require(within(parts["kind"], 0, st.arrays["kind_gain"].shape[1]), "a row that waits has a type that there is not")
    for stream in range(STREAMS):
        mine = parts["stream"] == stream
        require(int(mine.sum()) == st["in_queue"][stream], "the queue's length is wrong")
        require(np.array_equal(np.sort(places[2][mine]), np.arange(mine.sum())), "the queue's bag is damaged")
    values = Values(*(parts[name] for name in _VALUES))
    rows = Rows(parts["stream"], parts["ts"], parts["importance"], parts["kind"], values)
    return rows, places, prio
