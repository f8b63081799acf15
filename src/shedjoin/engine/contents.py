"""What a join holds between two pushes, as columns: stored tuples, values that are known, and a few numbers.

Columns do not depend on how tuples are laid out in memory. A snapshot is made of them, and a state is built from them again: its
indexes, rings and heaps follow from the columns, so that nothing of a snapshot is ever followed as a link.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import buffers, item_memory, loop, memory, selection, waiting_rows
from shedjoin.engine.codes import (
    CUMULATIVE,
    DECAYED,
    KEEP,
    KEY,
    LEARNED,
    LIFE,
    LOGSUM,
    MET,
    MOST,
    PRODUCT,
    RANDOM,
    ROW,
    SCHEDULE,
    TUPLE,
)
from shedjoin.engine.handle import Handle
from shedjoin.engine.item_memory import has_items, has_numbers
from shedjoin.engine.layouts.items import EVERY_ROW
from shedjoin.engine.memory import Rings, Sizes, fill_indexes, fill_rings, in_use, is_keyed, measure, power_of_two
from shedjoin.engine.plan import Plan
from shedjoin.engine.records import CELL_RECORD, COUNTERS, ENTRY_RECORD, EXPIRY_RECORD, GONE, NONE, SEEN_RECORD
from shedjoin.engine.structures import heap

Columns = dict[str, NDArray[Any]]
Integers = NDArray[np.int64]

#: Numbers that are part of the contents; all others follow from the columns.
NUMBERS = (
    *COUNTERS,
    "tick",
    "arrival",
    "peak_tuples",
    "peak_bytes",
    "epoch",
    "t0",
    "started",
    "faded",
    "lift_tick",
    "first_mark",
    "last_evaluation",
    "last_expiry",
    "known_numbers",
    "random",
)
FLOATS = ("importance", "lift", "lowest_number", "highest_number", "bucket_width")
BY_STREAM = ("clock", "arrived", "horizon", "base", "observed", "looked_soon", "looked_later")


def live_tuples(st: Handle) -> Integers:
    """The places of all stored tuples, in the order of their arrival."""
    items = item_memory.places_in_use(st) if "item_at" in st.arrays else in_use(st, "free", "free_count")
    items = items[st.arrays["pool"]["queued"][items] >= NONE]  # others hold rows that wait, or left in the open instant
    return items[np.argsort(st.arrays["pool"]["arrival"][items], kind="stable")]


def cards_of(how: NDArray[Any], st: Handle, items: Integers) -> NDArray[Any]:
    """Time, row number and importance of stored tuples."""
    cards: NDArray[Any]
    if is_keyed(how):
        cards = st.arrays["entries"][st.arrays["pool"]["place"][items]]
    else:
        cards = st.arrays["card"][items]
    return cards


def keys_of(how: NDArray[Any], st: Handle, items: Integers) -> NDArray[np.int64]:
    """The attributes of stored tuples: one column each."""
    keys: NDArray[np.int64]
    if is_keyed(how):
        values = st.arrays["pool"]["group"][items] // int(how[0]["streams"])
        keys = st.arrays["keys"]["key"][values].reshape(-1, 1)
    elif has_items(how):
        keys = np.zeros((items.size, 1), np.int64)
    else:
        keys = st.arrays["attr"].reshape(-1, int(how[0]["width"]))[items]
    return keys


# ----------------------------------------------------------------------------------------------------------- gathering


def gather(how: NDArray[Any], st: Handle) -> Columns:
    """All columns of a state."""
    if how[0]["waits"]:
        st["arrival"] = st["rows"]  # between pushes no row is at hand, whose number this is
    columns = {**_tuples(how, st), **_values(how, st), **_numbers(st), **selection.gather(how, st)}
    return {**columns, **waiting_rows.gather(how, st, live_tuples(st), _known_values(how, st))}


def _known_values(how: NDArray[Any], st: Handle) -> Integers:
    return in_use(st, "free_keys", "free_key_count") if how[0]["weighed"] else np.empty(0, np.int64)


def _tuples(how: NDArray[Any], st: Handle) -> Columns:
    items = live_tuples(st)
    pool, cards, organisation = st.arrays["pool"][items], cards_of(how, st, items), how[0]["organisation"]
    columns: Columns = {
        "tuple stream": pool["stream"].astype(np.int8),
        "tuple arrival": pool["arrival"],
        "tuple bytes": pool["bytes"],
        "tuple ts": cards["ts"],
        "tuple seq": cards["seq"],
        "tuple importance": cards["importance"],
        "tuple key": keys_of(how, st, items),
    }
    if organisation in (TUPLE, CUMULATIVE):
        heaps, place = st.arrays["heap"], st.arrays["place"]
        columns["tuple prio"] = (
            heaps["prio"][pool["stream"], place[items]] if organisation == TUPLE else st.arrays["prio"][items]
        )
    if organisation == RANDOM:
        columns["tuple place"] = st.arrays["place"][items]
    if how[0]["alone"] and how[0]["weighed"]:
        columns["tuple chance"] = st.arrays["buckets"]["weight"][items]
    if how[0]["estimator"] == MET:
        columns["tuple met"] = st.arrays["met_on_arrival"][items]
    if has_items(how):
        columns |= _compared(how, st, np.concatenate([items, waiting_rows.held(how, st)]))
    if how[0]["waits"]:
        if organisation in (TUPLE, CUMULATIVE):  # while an instant is open, its tuples may have no priority yet
            columns["tuple prio"] = np.where(st.arrays["place"][items] == NONE, 0.0, columns["tuple prio"])
        columns["tuple in output"] = pool["met"].astype(np.int8)
    if how[0]["let_in"]:
        columns["tuple window number"] = st.arrays["window_number"][items]
    if how[0]["evaluate_every"]:
        columns["tuple came"] = st.arrays["came"][items]
        back = np.zeros(st.arrays["pool"].size, np.int64)
        back[items] = np.arange(items.size)
        columns["pending"] = back[st.arrays["pending"][: int(st["pending_count"])]]
        marks = (int(st["tick"]) - int(st["first_mark"])) * MOST
        columns["marks"] = st.arrays["marks"][:marks]
    return {name: np.ascontiguousarray(column) for name, column in columns.items()}


def _compared(how: NDArray[Any], st: Handle, items: Integers) -> Columns:
    """What a predicate compares: numbers, or items and their weights."""
    if has_numbers(how):
        return {"tuple number": st.arrays["number"][items]}
    places, _ = item_memory.item_places(st, items)
    return {
        "tuple items": st.arrays["item_count"][items],
        "items": st.arrays["items"][places],
        "item weights": st.arrays["item_weights"][places],
    }


def _values(how: NDArray[Any], st: Handle) -> Columns:
    streams = int(how[0]["streams"])
    values = _known_values(how, st)
    groups = values[:, None] * streams + np.arange(streams)
    weights = st.arrays["buckets"]["weight"] if is_keyed(how) else st.arrays["weight"]
    parts = st.arrays["part"]
    columns: Columns = {
        "value key": st.arrays["keys"]["key"][values],
        "value held": st.arrays["keys"]["held"][values],
        "value part": parts[values] if parts.size > 1 else np.zeros(values.size, np.int32),
        "value weight": weights[groups] if values.size else np.zeros((0, streams)),
        "sketch": st.arrays["sketch"],
        "model": st.arrays["model"],
    }
    if how[0]["estimator"] == DECAYED:
        columns["value mass"] = st.arrays["mass"][groups]
    if how[0]["estimator"] == LEARNED:
        columns["value trail"] = st.arrays["trail"][groups]
    back = np.zeros(st.arrays["keys"].size, np.int64)
    back[values] = np.arange(values.size)
    for stream in range(streams):
        ring = st.arrays["seen"][stream]
        seen = ring[(int(st["seen_head"][stream]) + np.arange(int(st["seen_size"][stream]))) & (ring.size - 1)]
        columns[f"seen stamp {stream}"] = seen["stamp"]
        columns[f"seen value {stream}"] = back[seen["value"]]
    return {name: np.ascontiguousarray(column) for name, column in columns.items()}


def _numbers(st: Handle) -> Columns:
    streams = st.arrays["expiry"].shape[0]
    numbers = np.array([int(st[name]) for name in NUMBERS if name != "random"], np.int64)
    return {
        "numbers": numbers,
        "random": np.array([st["random"]], np.uint64),
        "floats": np.array([st[name] for name in FLOATS]),
        "by stream": np.stack([st[name][:streams] for name in BY_STREAM]),
    }


# ------------------------------------------------------------------------------------------------------------- building


def build(plan: Plan, how: NDArray[Any], st: Handle, columns: Columns) -> None:
    """Fill a new state, whose columns were checked."""
    streams = plan.streams
    if not how[0]["weighed"]:  # by another policy values may have been known
        columns = {name: column[:0] if name.startswith("value ") else column for name, column in columns.items()}
    for name, number in zip((name for name in NUMBERS if name != "random"), columns["numbers"], strict=True):
        st[name] = int(number)
    st["random"] = columns["random"][0]
    for name, value in zip(FLOATS, columns["floats"], strict=True):
        st[name] = value
    for name, values in zip(BY_STREAM, columns["by stream"], strict=True):
        st[name][:streams] = values
    _build_values(how, st, columns)
    stored = columns["tuple stream"].size
    places, prio = _places(how, columns), columns.get("tuple prio")
    items = places[:stored]
    _build_tuples(how, st, columns, items)
    _build_rounds(how, st, columns, items)
    selection.build(how, st, columns)
    if how[0]["waits"]:
        waiting_rows.build(how, st, columns, items, places[stored:])
    ordered = np.arange(stored)
    if how[0]["waits"] and how[0]["organisation"] in (TUPLE, CUMULATIVE) and not how[0]["integrated"]:
        # Tuples of an open instant have no priority before it closes.
        ordered = np.setdiff1d(ordered, columns["fresh item"])
    build_order(how, st, items[ordered], None if prio is None else prio[ordered], columns.get("tuple place"))
    if how[0]["waits"]:
        _build_met(how, st, columns, items)
    if how[0]["integrated"]:
        turn = loop.REJOIN if "waiting prio" in columns else loop.COMPETE_ANEW
        io = buffers.make(how, st)
        io["turn"] = turn
        loop.advance(how, st, io)


def _build_met(how: NDArray[Any], st: Handle, columns: Columns, items: Integers) -> None:
    """Which tuples were part of an output in the open instant."""
    cumulative = how[0]["organisation"] == CUMULATIVE
    met = items[np.flatnonzero(columns["tuple in output"])] if cumulative else np.empty(0, np.int64)
    st.arrays["pool"]["met"][met] = 1
    st.arrays["touched"][: met.size] = met
    st["touched_count"] = met.size


def _places(how: NDArray[Any], columns: Columns) -> Integers:
    """Tuples take the first places of the pool, in the order of their arrival; behind them those whose items are held."""
    stream = columns["tuple stream"].astype(np.int64)
    if not has_items(how):
        return np.arange(stream.size)
    return item_memory.places_for(np.concatenate([stream, waiting_rows.held_streams(columns)]))


def _build_values(how: NDArray[Any], st: Handle, columns: Columns) -> None:
    keys, streams = columns["value key"], int(how[0]["streams"])
    waiting = columns["waiting arrival"].size + columns["fresh item"].size if how[0]["waits"] else 0
    tuples = int(_places(how, columns).max(initial=0)) + 1 + waiting
    values = keys.size + waiting * int(how[0]["parts"])
    sizes = Sizes(power_of_two(memory.LEAST + tuples), power_of_two(memory.LEAST + values))
    st.hold(**memory.pool_arrays(how, sizes, st.arrays["stray_place"].size > 1))
    st.hold(**memory.value_arrays(how, sizes), **memory.order_arrays(how, sizes))
    st["free_count"], st["free_cell_count"] = sizes.tuples, st.arrays["free_cells"].size
    measure(st)
    weights = columns["value weight"].reshape(keys.size, streams)
    memory.add_values(how, st, keys, columns["value part"].astype(np.int64), columns["value held"], weights)
    if how[0]["estimator"] == DECAYED:
        st.arrays["mass"][: keys.size * streams] = columns["value mass"].reshape(-1)
    if how[0]["estimator"] == LEARNED:
        st.arrays["trail"][: keys.size * streams] = columns["value trail"].reshape(-1)
    st.arrays["sketch"][:], st.arrays["model"][:] = columns["sketch"], columns["model"]
    stamps = [columns[f"seen stamp {stream}"] for stream in range(streams)]
    room = st.arrays["seen"].shape[1]
    if room > 1:
        room = power_of_two(max([room, *(stamp.size + 1 for stamp in stamps)]))
    seen = np.zeros((streams, room), SEEN_RECORD)
    for stream, stamp in enumerate(stamps):
        seen["stamp"][stream, : stamp.size] = stamp
        seen["value"][stream, : stamp.size] = columns[f"seen value {stream}"]
        st["seen_size"][stream] = stamp.size
    st.hold(seen=seen)
    measure(st)


def _build_tuples(how: NDArray[Any], st: Handle, columns: Columns, items: Integers) -> None:
    size, streams = items.size, int(how[0]["streams"])
    pool = st.arrays["pool"]
    stream = columns["tuple stream"].astype(np.int64)
    pool["arrival"][items], pool["stream"][items] = columns["tuple arrival"], stream
    pool["bytes"][items] = columns["tuple bytes"]
    st["free_count"] = pool.size - size  # the stack has the lowest on top
    for number in range(streams):
        mine = stream == number
        st["resident"][number] = int(mine.sum())
        st["stored_bytes"][number] = int(columns["tuple bytes"][mine].sum())
    entry = np.zeros(size, ENTRY_RECORD)
    for name in ("ts", "seq", "importance"):
        entry[name] = columns[f"tuple {name}"]
    entry["item"] = items
    keys = columns["tuple key"]
    if is_keyed(how):
        group = _find_values(st, keys[:, 0], np.zeros(size, np.int64)) * streams + stream
        pool["group"][:size] = group
        order = np.argsort(group, kind="stable")
        nothing = np.zeros(size, np.int64)
        fill_rings(how, st, Rings(group[order], entry[order], nothing, stream, nothing))
    else:
        st.arrays["card"][items] = entry
        if has_items(how):
            _build_items(how, st, columns, size)
        else:
            st.arrays["attr"].reshape(-1, keys.shape[1])[:size] = keys
            _build_indexes(how, st, entry, keys, stream)
            if how[0]["weighed"] and not how[0]["alone"]:
                _build_cells(how, st, keys, stream)
        if how[0]["alone"] and how[0]["weighed"]:
            _build_alone(how, st, columns, items)
    if how[0]["let_in"]:
        st.arrays["window_number"][items] = columns["tuple window number"]
    _build_expiry(how, st, stream, items)
    if selection.is_selective(how):
        selection.fill_timeline(how, st, stream, entry)


def _build_items(how: NDArray[Any], st: Handle, columns: Columns, stored: int) -> None:
    """The items of tuples, one after the other with a place between them, and all lists."""
    arrays, items = st.arrays, _places(how, columns)
    gone = items.size - int((columns["fresh item"] == NONE).sum() if how[0]["waits"] else 0)
    arrays["pool"]["queued"][items[stored:]] = GONE  # in no list
    sizes = columns.get("tuple items", np.zeros(items.size, np.int64))
    arrays["item_count"][items] = sizes
    arrays["item_at"][items] = np.cumsum(sizes + 1) - sizes - 1
    st["item_top"] = int(sizes.sum()) + items.size
    st.hold(**item_memory.arena(2 * int(st["item_top"]) + item_memory.FIRST_ITEMS))
    if has_numbers(how):
        arrays["number"][items] = columns["tuple number"]
    else:
        places, owner = item_memory.item_places(st, items)
        arrays["items"][places], arrays["item_weights"][places] = columns["items"], columns["item weights"]
        hashed = (columns["items"].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58)
        np.bitwise_or.at(arrays["signature"], items[owner], np.uint64(1) << hashed)
    measure(st)
    item_memory.set_free(st, items)
    item_memory.fill_lists(how, st)
    if item_memory.counts_values(how):
        _build_item_values(how, st, items[:stored])
        _build_item_values(how, st, items[gone:])
        places, _ = item_memory.item_places(st, items[:stored], more=1)
        np.add.at(arrays["cell_count"], arrays["item_values"][places], 1)


def _build_item_values(how: NDArray[Any], st: Handle, items: Integers) -> None:
    """The numbers of the values of each tuple."""
    arrays = st.arrays
    last = arrays["item_at"][items] + arrays["item_count"][items]
    if has_numbers(how):
        buckets = item_memory.values_of_numbers(how, st, arrays["number"][items])
        arrays["item_values"][last] = _find_values(st, buckets, np.zeros(items.size, np.int64))
    else:
        places, _ = item_memory.item_places(st, items)
        arrays["item_values"][places] = _find_values(st, arrays["items"][places], np.zeros(places.size, np.int64))
        nothing = np.zeros(items.size, np.int64)
        arrays["item_values"][last] = _find_values(st, nothing, np.full(items.size, EVERY_ROW))


def _build_alone(how: NDArray[Any], st: Handle, columns: Columns, items: Integers) -> None:
    """Each tuple is a group."""
    st.arrays["pool"]["group"][items] = items
    groups = st.arrays["buckets"]
    groups["count"][items] = 1
    groups["weight"][items] = columns.get("tuple chance", 0.0)
    if "tuple met" in columns:
        st.arrays["met_on_arrival"][items] = columns["tuple met"]


def _find_values(st: Handle, keys: Integers, parts: Integers) -> Integers:
    """The numbers of values, all of which are known."""
    size = st.arrays["keys"].size - int(st["free_key_count"])
    known = np.zeros(size, [("part", "i8"), ("key", "i8")])
    known["key"] = st.arrays["keys"]["key"][:size]
    if st.arrays["part"].size > 1:
        known["part"] = st.arrays["part"][:size]
    wanted = np.zeros(keys.size, known.dtype)
    wanted["key"], wanted["part"] = keys, parts
    order = np.argsort(known)
    return order[np.searchsorted(known[order], wanted)] if keys.size else np.empty(0, np.int64)


def _build_indexes(how: NDArray[Any], st: Handle, entry: NDArray[Any], keys: Integers, stream: Integers) -> None:
    parts = []
    for number, index in enumerate(st.arrays["indexes"]):
        mine = np.flatnonzero(stream == index["stream"])
        key = keys[mine, index["attr"]] if index["attr"] >= 0 else np.zeros(mine.size, np.int64)
        which = np.full(mine.size, number - int(st["first_index"][index["stream"]]))
        parts.append((np.zeros(mine.size, np.int64), entry[mine], key, stream[mine], which))
    fill_indexes(how, st, Rings(*(np.concatenate(part) for part in zip(*parts, strict=True))))


def _build_cells(how: NDArray[Any], st: Handle, keys: Integers, stream: Integers) -> None:
    """Tuples of one stream with the same values are a cell; cells are linked by their values."""
    parts, streams, size = int(how[0]["parts"]), int(how[0]["streams"]), stream.size
    part_of = st.arrays["part_of"].reshape(-1, MOST)
    values = np.full((size, parts), NONE, np.int64)
    for part in range(parts):
        for number in range(streams):
            attr, mine = int(part_of[part, number]), np.flatnonzero(stream == number)
            if attr >= 0:
                values[mine, part] = _find_values(st, keys[mine, attr], np.full(mine.size, part))
    both, first, which = (
        np.unique(np.column_stack([stream, values]), axis=0, return_index=True, return_inverse=True)
        if size
        else (np.empty((0, parts + 1), np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
    )
    which = which.reshape(-1)
    count = first.size
    cells = st.arrays["buckets"].view(CELL_RECORD)
    cells["stream"][:count], cells["low"][:count], cells["tail"][:count] = both[:, 0], NONE, NONE
    cells["count"][:count] = np.bincount(which, minlength=count)
    st.arrays["pool"]["group"][:size] = which
    st.arrays["cell_values"].reshape(-1, max(parts, 1))[:count, :parts] = both[:, 1:]
    st["free_cell_count"] = st.arrays["free_cells"].size - count
    memory.rehash_cells(how, st)
    links = st.arrays["cell_links"].reshape(-1, max(parts, 1), 2)
    for part in range(parts):
        for cell in range(count):
            v = int(both[cell, 1 + part])
            if v == NONE:
                continue
            place = v * streams + int(both[cell, 0])
            before = int(st.arrays["first_cell"][place])
            links[cell, part] = (NONE, before)
            if before != NONE:
                links[before, part, 0] = cell
            st.arrays["first_cell"][place] = cell
            st.arrays["cell_count"][v] += 1


def _build_expiry(how: NDArray[Any], st: Handle, stream: Integers, items: Integers) -> None:
    """All tuples in the order in which they expire."""
    streams = int(how[0]["streams"])
    cards = cards_of(how, st, items)
    counts = np.bincount(stream, minlength=streams)
    expiry = np.zeros((streams, power_of_two(max(memory.LEAST, int(counts.max(initial=0)) + 1))), EXPIRY_RECORD)
    pool = st.arrays["pool"]
    for number in range(streams):
        mine = np.flatnonzero(stream == number)
        numbers = st.arrays["window_number"][items] if how[0]["let_in"] else cards["seq"]
        stamp = (numbers if how[0]["kind"][number] == ROW else cards["ts"])[mine]
        order = np.argsort(stamp, kind="stable")
        ring = expiry[number, : mine.size]
        there = items[mine[order]]
        ring["item"], ring["stamp"], ring["group"] = there, stamp[order], pool["group"][there]
        pool["queued"][there] = np.arange(mine.size)
        st["ring_to"][number] = mine.size
        st["ring_newest"][number] = int(stamp.max()) if mine.size else 0
    st.hold(expiry=expiry)
    measure(st)


def _build_rounds(how: NDArray[Any], st: Handle, columns: Columns, items: Integers) -> None:
    if not how[0]["evaluate_every"]:
        return
    st.arrays["came"][items] = columns["tuple came"]
    pending, marks = items[columns["pending"]], columns["marks"]
    st.arrays["pending"][: pending.size] = pending
    st["pending_count"] = pending.size
    room = power_of_two(max(st.arrays["marks"].size, 2 * marks.size, 64 * MOST))
    st.hold(marks=np.concatenate([marks, np.zeros(room - marks.size, np.int64)]))
    measure(st)


# -------------------------------------------------------------------------------------------------------------- order


def build_order(
    how: NDArray[Any],
    st: Handle,
    items: Integers,
    prio: NDArray[np.float64] | None = None,
    place: NDArray[Any] | None = None,
) -> None:
    """Put stored tuples, in the order of their arrival, into the order of a policy, whose arrays are empty.

    Priorities that are not given are fixed as if all tuples arrived now.
    """
    organisation = int(how[0]["organisation"])
    st["heap_size"] = st["sorted"] = 0
    st["bound"] = -np.inf
    if not is_keyed(how) and how[0]["weighed"] and not how[0]["alone"] and organisation not in (KEY, LIFE):
        _run_order(how, st, items[:0])  # cells know their chances then
    if organisation == KEEP:
        return
    pool, cards = st.arrays["pool"][items], cards_of(how, st, items)
    if organisation in (KEY, LIFE):
        _build_groups(how, st, items, pool, cards)
    elif organisation == RANDOM:
        for stream in range(int(how[0]["streams"])):
            mine = np.flatnonzero(pool["stream"] == stream)
            order = mine if place is None else mine[np.argsort(place[mine])]
            st.arrays["dense"][stream, : mine.size] = items[order]
            st.arrays["place"][items[order]] = np.arange(mine.size)
            st["heap_size"][stream] = mine.size
        return
    elif organisation == SCHEDULE:
        prio = st.arrays["until"][st.arrays["until_from"][pool["stream"]] + cards["seq"]].astype(np.float64)
    if prio is not None:
        rank = np.zeros(items.size) if organisation == SCHEDULE else cards["importance"]
        _build_heaps(how, st, items, prio, rank)
        if organisation == CUMULATIVE:
            st.arrays["prio"][items] = prio
        return
    _run_order(how, st, items if organisation in (TUPLE, CUMULATIVE) else items[:0])


def _build_heaps(
    how: NDArray[Any], st: Handle, items: Integers, prio: NDArray[np.float64], rank: NDArray[np.float64]
) -> None:
    """Lazily sorted heaps of which only priorities of -infinity, their bound, are sorted yet."""
    pool = st.arrays["pool"]
    for stream in range(int(how[0]["streams"])):
        mine = np.flatnonzero(pool["stream"][items] == stream)
        mine = mine[np.lexsort((rank[mine], prio[mine] > -np.inf))]  # stable: of equal ranks the earlier arrival first
        st["sorted"][stream] = int((prio[mine] == -np.inf).sum())
        there = st.arrays["heap"][stream, heap.TOP : heap.TOP + mine.size]
        there["prio"], there["rank"], there["item"] = prio[mine], rank[mine], items[mine]
        there["arrival"] = pool["arrival"][items[mine]]
        st.arrays["place"][items[mine]] = np.arange(heap.TOP, heap.TOP + mine.size)
        st["heap_size"][stream] = mine.size


def _build_groups(how: NDArray[Any], st: Handle, items: Integers, pool: NDArray[Any], cards: NDArray[Any]) -> None:
    """Which tuple of each group goes first, and the pairing heap of the others below it."""
    groups = st.arrays["buckets"]
    groups["low"] = NONE
    group = pool["group"].astype(np.int64)
    if how[0]["fifo"]:
        order = np.argsort(group, kind="stable")
        _, first = np.unique(group[order], return_index=True)
        groups["low"][group[order[first]]] = items[order[first]]
        if not is_keyed(how) and not how[0]["alone"]:
            _build_links(st, items[order], group[order])
        return
    numbers = st.arrays["window_number"][items] if how[0]["let_in"] else cards["seq"]
    rank = np.array(
        [_rank_of(how, *one) for one in zip(pool["stream"], cards["importance"], cards["ts"], numbers, strict=True)]
    )
    order = np.lexsort((pool["arrival"], rank, group))
    items, group, more = items[order], group[order], st.arrays["more"]
    more["rank"][items], more["arrival"][items] = rank[order], pool["arrival"][order]
    first = np.append(True, group[1:] != group[:-1])[: group.size]
    last = np.append(first[1:], True)[: group.size]
    before, after = np.append(NONE, items[:-1]), np.append(items[1:], NONE)
    # The lowest is the root, and all others hang below it side by side.
    more["child"][items] = np.where(first & ~last, after, NONE)
    more["sibling"][items] = np.where(~first & ~last, after, NONE)
    more["back"][items] = np.where(first, NONE, before)
    more["ahead"][items] = NONE
    groups["low"][group[first]] = items[first]


def _build_links(st: Handle, items: Integers, group: Integers) -> None:
    """The queue of each cell, oldest first."""
    link, cells = st.arrays["link"].reshape(-1, 2), st.arrays["buckets"].view(CELL_RECORD)
    first = np.append(True, group[1:] != group[:-1])[: group.size]
    last = np.append(first[1:], True)[: group.size]
    link[items, 0] = np.where(first, NONE, np.append(NONE, items[:-1]))
    link[items, 1] = np.where(last, NONE, np.append(items[1:], NONE))
    cells["tail"][group[last]] = items[last]


def _rank_of(how: NDArray[Any], stream: int, importance: float, ts: int, seq: int) -> float:
    """As `priority.rank_of`: kernels and Python take the same logarithm, numpy does not."""
    window = int(how[0]["window"][stream])
    end = int(seq) + window + 1 if how[0]["kind"][stream] == ROW else int(ts) + window
    if how[0]["organisation"] == LIFE:
        return float(end)
    if how[0]["combine"] == PRODUCT:
        return float(importance) if how[0]["importance"] else 1.0
    age = float(how[0]["life"]) * (end / window)
    weight = float(how[0]["importance"])
    if how[0]["combine"] == LOGSUM:
        return weight * math.log(importance) + age
    return weight * float(importance) + age


def _run_order(how: NDArray[Any], st: Handle, items: Integers) -> None:
    """Let the kernels put groups, or tuples, in order."""
    io = buffers.make(how, st)
    io.hold(out_fresh=items.astype(np.int64))
    io["turn"], io["fresh"] = loop.ORDER, items.size
    loop.advance(how, st, io)
