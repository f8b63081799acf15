"""The arrays of rows that wait for their turn: made, made larger, written as columns, and built from columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.admission import Admission
from shedjoin.engine.codes import BY_STOCK, DROP_RANDOM, DROP_SEMANTIC, KEYED, LEARNED, MOST, RANDOM
from shedjoin.engine.handle import Handle
from shedjoin.engine.item_memory import counts_values, has_items, item_places, places_in_use
from shedjoin.engine.records import (
    FRESH_RECORD,
    GONE,
    HEAP_RECORD,
    IN_LINE,
    NEVER,
    NONE,
    WAITING_BY_STREAM,
    WAITING_COUNTERS,
    WAITING_FLOATS,
    WAITING_NUMBERS,
    WAITING_RECORD,
)
from shedjoin.engine.structures import heap

Arrays = dict[str, NDArray[Any]]
Columns = dict[str, NDArray[Any]]
Integers = NDArray[np.int64]
#: Arrays begin with this many places, and always have a power of two.
LEAST = 64
#: Columns of a row that waits, with the kinds they are saved as.
ROW_COLUMNS = {
    "stream": "|i1",
    "arrival": "<i8",
    "seq": "<i8",
    "ts": "<i8",
    "instant": "<i8",
    "number": "<i8",
    "importance": "<f8",
    "prio": "<f8",
    "expected": "<f8",
    "bytes": "<i4",
    "null": "|i1",
    "kind": "<i4",
}
NUMBERS = ("probed", *WAITING_COUNTERS, *WAITING_NUMBERS)


def by_lot(how: NDArray[Any]) -> bool:
    """Whether lots fall on the rows in line."""
    shared = how[0]["integrated"] and how[0]["organisation"] == RANDOM
    return bool(how[0]["drop"] == DROP_RANDOM or shared)


def _are_weighed(how: NDArray[Any]) -> bool:
    """Whether rows in line are groups with a chance: those with items, where they compete."""
    return bool(how[0]["integrated"] and how[0]["alone"] and how[0]["weighed"])


def held(how: NDArray[Any], st: Handle) -> Integers:
    """Places of the pool that hold items of no stored tuple: of rows that wait, and of tuples that left in the open instant."""
    if not how[0]["waits"]:
        return np.empty(0, np.int64)
    items = st.arrays["waiting"]["item"][_in_use(st)]
    fresh = st.arrays["fresh"]["item"][: int(st["fresh_count"])]
    gone = fresh[st.arrays["pool"]["queued"][fresh] == GONE]
    return np.concatenate([items[items != NONE], gone]).astype(np.int64)


def held_streams(columns: Columns) -> Integers:
    """The streams of the tuples that `held` names, from the columns of a snapshot."""
    if "waiting stream" not in columns:
        return np.empty(0, np.int64)
    waits, gone = columns["waiting null"] == 0, columns["fresh item"] == NONE
    return np.concatenate([columns["waiting stream"][waits], columns["fresh stream"][gone]]).astype(np.int64)


def parts_of(how: NDArray[Any]) -> int:
    return max(int(how[0]["parts"]), 1)


def pool_arrays(how: NDArray[Any], size: int) -> Arrays:
    """What there is one of for each place in the pool."""
    if not how[0]["waits"]:
        return {}
    return {"gone": np.zeros(size, np.int32), "window_number": np.zeros(size if how[0]["let_in"] else 1, np.int64)}


def value_arrays(how: NDArray[Any], size: int) -> Arrays:
    """What there is one of for each value."""
    if not how[0]["waits"]:
        return {}
    streams, setting = int(how[0]["streams"]), how[0]
    counts = setting["drop"] == DROP_SEMANTIC and setting["drop_by"] == BY_STOCK
    asked = counts or setting["estimator"] == LEARNED
    stocked = asked and setting["layout"] != KEYED
    return {
        "kept": np.zeros(size, np.int32),
        "stock": np.zeros(size * streams if stocked else 1, np.int32),
        "windowed": np.zeros(size * streams if setting["dual"] else 1),
    }


def _row_arrays(how: NDArray[Any], size: int) -> Arrays:
    streams, lots = int(how[0]["streams"]), by_lot(how)
    return {
        "waiting": np.zeros(size, WAITING_RECORD),
        "free_waiting": np.arange(size - 1, -1, -1, dtype=np.int32),
        "waiting_key": np.zeros(size * int(how[0]["width"]), np.int64),
        "queue_heap": np.zeros((streams, 1 if lots else size + heap.TOP + 1), HEAP_RECORD),
        "queue_list": np.zeros((streams, size if lots else 1), np.int32),
        "queue_place": np.full(size, NONE, np.int32),
    }


def _ring_arrays(how: NDArray[Any], size: int) -> Arrays:
    streams, parts = int(how[0]["streams"]), parts_of(how)
    return {
        "let_ts": np.zeros((streams, size), np.int64),
        "let_value": np.full(streams * size * parts, NONE, np.int32),
    }


def _level_arrays(how: NDArray[Any], size: int) -> Arrays:
    streams = int(how[0]["streams"])
    return {
        "level": np.zeros((streams, size)),
        "level_count": np.zeros((streams, size), np.int64),
        "level_sum": np.zeros((streams, size), np.int64),
    }


def _fresh_arrays(how: NDArray[Any], size: int) -> Arrays:
    return {"fresh": np.zeros(size, FRESH_RECORD), "fresh_value": np.full(size * parts_of(how), NONE, np.int32)}


def allocate(admission: Admission | None, how: NDArray[Any], st: Handle) -> None:
    """The empty line, aux-window and histograms of a new join."""
    if admission is None:
        return
    size = LEAST if admission.dual else 2
    _hold(
        st,
        **_row_arrays(how, LEAST),
        **_ring_arrays(how, size),
        **_level_arrays(how, size),
        **_fresh_arrays(how, LEAST),
        instants=np.zeros(LEAST * MOST, np.int64),
        told=np.zeros(1, np.int64),
    )
    st["free_waiting_count"] = LEAST
    for name in ("line_first", "line_last", "aux_first", "aux_last", "own_first", "own_last", "instant", "turned"):
        st[name] = NONE
    st["last_adapt"] = NEVER
    st["base"] = 0
    st["cpu_free"] = -np.inf
    st["rear_share"], st["front_share"] = admission.shares or (0.0, 0.0)


def _hold(st: Handle, **arrays: NDArray[Any]) -> None:
    st.hold(**arrays)
    st.resize(**{name: array.shape[-1] for name, array in arrays.items()})


def _in_use(st: Handle) -> Integers:
    """The places of rows that wait, in the order of their arrival: first those of the aux-window, then those in line."""
    free = st.arrays["free_waiting"]
    used = np.ones(free.size, np.bool_)
    used[free[: int(st["free_waiting_count"])]] = False
    rows = np.flatnonzero(used)
    return rows[np.argsort(st.arrays["waiting"]["arrival"][rows], kind="stable")]


def count(st: Handle) -> int:
    """How many rows wait."""
    return int(st.arrays["waiting"].size - st["free_waiting_count"])


# ------------------------------------------------------------------------------------------------------------- growing


def grow_rows(how: NDArray[Any], st: Handle) -> None:
    """Twice the room for rows that wait."""
    names = ("waiting", "waiting_key", "queue_heap", "queue_list", "queue_place")
    old = {name: st.arrays[name] for name in names}
    held, before = int(st["free_waiting_count"]), st.arrays["free_waiting"]
    size = 2 * old["waiting"].size
    new = _row_arrays(how, size)
    for name in names:
        new[name][tuple(slice(0, length) for length in old[name].shape)] = old[name]
    added = size - before.size
    new["free_waiting"][:added] = np.arange(size - 1, before.size - 1, -1)
    new["free_waiting"][added : added + held] = before[:held]
    st["free_waiting_count"] = held + added
    _hold(st, **new)


def _first_instant(st: Handle) -> int:
    rows = _in_use(st)
    return int(st.arrays["waiting"]["instant"][rows[0]]) if rows.size else int(st["instant"]) + 1


def _marks(st: Handle) -> NDArray[np.int64]:
    """How many rows of each stream had come when each instant began, from the first on of which a row waits."""
    ring = st.arrays["instants"].reshape(-1, MOST)
    numbers = np.arange(_first_instant(st), int(st["instant"]) + 1)
    marks: NDArray[np.int64] = ring[numbers & (len(ring) - 1)]
    return marks


def grow_instants(st: Handle) -> None:
    """Twice the room for instants of which rows wait."""
    marks, ring = _marks(st), np.zeros((2 * st.arrays["instants"].size // MOST, MOST), np.int64)
    numbers = np.arange(int(st["instant"]) + 1 - len(marks), int(st["instant"]) + 1)
    ring[numbers & (len(ring) - 1)] = marks
    _hold(st, instants=ring.reshape(-1))


def grow_fresh(how: NDArray[Any], st: Handle, io: Handle) -> None:
    """Room for the tuples of an open instant, there and where policies see them."""
    size = max(st.arrays["fresh"].size, 2 * int(st["fresh_count"]))
    new = _fresh_arrays(how, size)
    for name, array in new.items():
        array[: st.arrays[name].size] = st.arrays[name]
    _hold(st, **new)
    _hold(io, out_fresh=np.zeros(size, np.int64))


def grow_let_in(how: NDArray[Any], st: Handle) -> None:
    """Twice the room for the rows that a window will hold."""
    old, values = st.arrays["let_ts"], st.arrays["let_value"].reshape(*st.arrays["let_ts"].shape, -1)
    streams, before = old.shape
    new = _ring_arrays(how, 2 * before)
    more = new["let_value"].reshape(streams, 2 * before, -1)
    for stream in range(streams):
        counters = np.arange(int(st["let_from"][stream]), int(st["let_to"][stream]))
        new["let_ts"][stream, counters & (2 * before - 1)] = old[stream, counters & (before - 1)]
        more[stream, counters & (2 * before - 1)] = values[stream, counters & (before - 1)]
    _hold(st, **new)


def grow_levels(how: NDArray[Any], st: Handle) -> None:
    """Twice the room for numbers of expected partners."""
    old, counts = st.arrays["level"], st.arrays["level_count"]
    new = _level_arrays(how, 2 * old.shape[1])
    new["level"][:, : old.shape[1]], new["level_count"][:, : old.shape[1]] = old, counts
    _sum_up(new)
    _hold(st, **new)


def _sum_up(arrays: Arrays) -> None:
    """The Fenwick trees of counts."""
    counts, sums = arrays["level_count"], arrays["level_sum"]
    nodes = np.arange(1, counts.shape[1])
    total = np.concatenate([np.zeros((len(counts), 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
    sums[:, 1:] = total[:, nodes] - total[:, nodes - (nodes & -nodes)]


def add_told(st: Handle, told: Integers) -> None:
    """Clocks that hold when all rows that have come so far have had their turn."""
    length = told.size + 1
    pending = st.arrays["told"][int(st["told_from"]) * length : int(st["told_to"]) * length]
    _hold(st, told=np.concatenate([pending, [int(st["rows"])], told]).astype(np.int64))
    st["told_from"], st["told_to"] = 0, pending.size // length + 1


# ----------------------------------------------------------------------------------------------------------- gathering


def gather(how: NDArray[Any], st: Handle, items: Integers, values: Integers) -> Columns:
    """The columns of what waits, of the open instant and of the histograms. `items`: tuples, `values`: values, as saved."""
    if not how[0]["waits"]:
        return {}
    streams, parts = int(how[0]["streams"]), parts_of(how)
    rows = _in_use(st)
    waiting = st.arrays["waiting"][rows]
    columns: Columns = {f"waiting {name}": waiting[name].astype(kind) for name, kind in ROW_COLUMNS.items()}
    columns["waiting key"] = st.arrays["waiting_key"].reshape(-1, int(how[0]["width"]))[rows]
    if _are_weighed(how):
        item = np.where(waiting["item"] == NONE, 0, waiting["item"])
        columns["waiting chance"] = np.where(waiting["item"] == NONE, 0.0, st.arrays["buckets"]["weight"][item])
    columns["waiting inside"] = (np.arange(rows.size) < int(st["aux_count"])).astype(np.int8)
    if by_lot(how):
        columns["waiting place"] = st.arrays["queue_place"][rows]
    columns["instants"] = _marks(st)[:, :streams]
    length = streams + 1
    told = st.arrays["told"][int(st["told_from"]) * length : int(st["told_to"]) * length]
    columns["told"] = told.reshape(-1, length)
    columns |= _gather_fresh(st, items, values, parts)
    back = _back(values, st.arrays["keys"].size)
    ring = st.arrays["let_ts"].shape[1]
    let_value = st.arrays["let_value"].reshape(streams, ring, parts)
    for stream in range(streams):
        places = np.arange(int(st["let_from"][stream]), int(st["let_to"][stream])) & (ring - 1)
        columns[f"let in ts {stream}"] = st.arrays["let_ts"][stream, places]
        columns[f"let in value {stream}"] = back[let_value[stream, places]]
    columns["waiting numbers"] = np.array([int(st[name]) for name in NUMBERS], np.int64)
    columns["waiting floats"] = np.array([float(st[name]) for name in WAITING_FLOATS])
    columns["waiting by stream"] = np.stack([st[name][:streams] for name in WAITING_BY_STREAM])
    return {name: np.ascontiguousarray(column) for name, column in columns.items()}


def _back(places: Integers, size: int) -> Integers:
    """From places to their order among those saved; NONE, which is the last place, stays what it is."""
    back = np.full(size + 1, NONE, np.int64)
    back[places] = np.arange(places.size)
    return back


def _gather_fresh(st: Handle, items: Integers, values: Integers, parts: int) -> Columns:
    fresh = st.arrays["fresh"][: int(st["fresh_count"])]
    value = st.arrays["fresh_value"][: fresh.size * parts].reshape(-1, parts)
    return {
        "fresh item": _back(items, st.arrays["pool"].size)[fresh["item"]],
        "fresh stream": fresh["stream"].astype(np.int8),
        "fresh number": fresh["number"],
        "fresh value": _back(values, st.arrays["keys"].size)[value],
    }


# ------------------------------------------------------------------------------------------------------------- building


def build(how: NDArray[Any], st: Handle, columns: Columns, items: Integers, kept: Integers) -> None:
    """Fill the arrays of a state whose tuples and values are there; in an integrated queue rows still have to compete.

    `items`: the places of stored tuples; `kept`: those of tuples that only wait, or have left.
    """
    streams = int(how[0]["streams"])
    for name, number in zip(NUMBERS, columns["waiting numbers"], strict=True):
        st[name] = int(number)
    for name, value in zip(WAITING_FLOATS, columns["waiting floats"], strict=True):
        st[name] = float(value)
    for name, by_stream in zip(WAITING_BY_STREAM, columns["waiting by stream"], strict=True):
        st[name][:streams] = by_stream
    _build_rows(how, st, columns)
    _build_instants(st, columns["instants"])
    _hold(st, told=np.concatenate([columns["told"].reshape(-1), np.zeros(1, np.int64)]))
    st["told_from"], st["told_to"] = 0, len(columns["told"])
    waits = int((columns["waiting null"] == 0).sum())
    if kept.size:
        _build_items(how, st, columns, kept[:waits])
    _build_fresh(how, st, columns, items, kept[waits:])
    _build_histograms(how, st, columns)


def _room(size: int) -> int:
    return max(LEAST, 1 << int(size).bit_length())


def _build_rows(how: NDArray[Any], st: Handle, columns: Columns) -> None:
    size, streams = columns["waiting arrival"].size, int(how[0]["streams"])
    _hold(st, **_row_arrays(how, _room(size)))
    rows, waiting = np.arange(size), st.arrays["waiting"]
    for name in ROW_COLUMNS:
        if f"waiting {name}" in columns:
            waiting[name][:size] = columns[f"waiting {name}"]
    waiting["item"][:size] = NONE
    st.arrays["waiting_key"].reshape(-1, int(how[0]["width"]))[:size] = columns["waiting key"]
    st["free_waiting_count"] = waiting.size - size
    inside = columns["waiting inside"] == 1
    stream = columns["waiting stream"].astype(np.int64)
    st["aux_count"] = int(inside.sum())
    for name, some in (("aux", rows[inside]), ("line", rows[~inside])):
        st[f"{name}_first"], st[f"{name}_last"] = _link(waiting, some, "next", "back")
    for number in range(streams):
        own = rows[~inside & (stream == number)]
        st["own_first"][number], st["own_last"][number] = _link(waiting, own, "next_own", "back_own")
        st["queued_rows"][number] = own.size
        st["queued_bytes"][number] = int(waiting["bytes"][own].sum())
        st["aux_rows"][number] = int((inside & (stream == number) & (columns["waiting null"] == 0)).sum())
        st["queue_size"][number] = 0
        if by_lot(how):
            place = columns.get("waiting place")
            order = own if place is None else own[np.argsort(place[own])]
            st.arrays["queue_list"][number, : own.size] = order
            st.arrays["queue_place"][order] = np.arange(own.size)
            st["queue_size"][number] = own.size
        elif how[0]["drop"] == DROP_SEMANTIC:
            order = own[np.lexsort((-waiting["arrival"][own], waiting["prio"][own]))]  # what is sorted is a heap
            entries = st.arrays["queue_heap"][number, heap.TOP : heap.TOP + own.size]
            entries["prio"], entries["rank"] = waiting["prio"][order], -waiting["arrival"][order].astype(np.float64)
            entries["arrival"], entries["item"] = waiting["arrival"][order], order
            st.arrays["queue_place"][order] = np.arange(heap.TOP, heap.TOP + own.size)
            st["queue_size"][number] = own.size


def _build_items(how: NDArray[Any], st: Handle, columns: Columns, places: Integers) -> None:
    """Rows with items, in the places of the pool where they wait."""
    rows = np.flatnonzero(columns["waiting null"] == 0)
    waiting, pool, cards = st.arrays["waiting"], st.arrays["pool"], st.arrays["card"]
    waiting["item"][rows] = places
    for name in ("arrival", "bytes", "stream"):
        pool[name][places] = waiting[name][rows]
    pool["queued"][places], pool["place"][places], pool["group"][places] = IN_LINE, rows, places
    for name in ("ts", "seq", "importance"):
        cards[name][places] = waiting[name][rows]
    cards["item"][places] = places
    if _are_weighed(how):
        st.arrays["buckets"]["weight"][places] = columns["waiting chance"][rows]


def _link(waiting: NDArray[Any], rows: Integers, following: str, before: str) -> tuple[int, int]:
    """Rows in a list; returns the first and the last."""
    if not rows.size:
        return NONE, NONE
    waiting[following][rows] = np.append(rows[1:], NONE)
    waiting[before][rows] = np.append(NONE, rows[:-1])
    return int(rows[0]), int(rows[-1])


def _build_instants(st: Handle, marks: NDArray[np.int64]) -> None:
    ring = np.zeros((_room(len(marks) + 3), MOST), np.int64)
    numbers = np.arange(int(st["instant"]) + 1 - len(marks), int(st["instant"]) + 1)
    ring[numbers & (len(ring) - 1), : marks.shape[1]] = marks
    _hold(st, instants=ring.reshape(-1))


def _build_fresh(how: NDArray[Any], st: Handle, columns: Columns, items: Integers, kept: Integers) -> None:
    """Tuples of the open instant that are gone take a place in the pool each, which is free when it closes."""
    item, parts = columns["fresh item"], parts_of(how)
    _hold(st, **_fresh_arrays(how, _room(item.size)))
    fresh, there = st.arrays["fresh"][: item.size], item != NONE
    fresh["stream"], fresh["number"] = columns["fresh stream"], columns["fresh number"]
    st.arrays["fresh_value"].reshape(-1, parts)[: item.size] = columns["fresh value"]
    st["fresh_count"] = item.size
    missing = int((~there).sum())
    free = kept
    if not has_items(how):
        free = st.arrays["free"][int(st["free_count"]) - missing : int(st["free_count"])]
        st["free_count"] -= missing
    fresh["item"][there] = items[item[there]]
    fresh["item"][~there] = free
    st.arrays["pool"]["queued"][free] = GONE
    st.arrays["gone"][:missing] = free
    st["gone_count"] = missing
    if has_items(how):
        pool = st.arrays["pool"]
        pool["stream"][free] = fresh["stream"][~there]
        if counts_values(how):
            places, _ = item_places(st, fresh["item"].astype(np.int64), more=1)
            np.add.at(st.arrays["kept"], st.arrays["item_values"][places], 1)
    elif how[0]["weighed"]:
        known = columns["fresh value"][columns["fresh value"] != NONE]
        np.add.at(st.arrays["kept"], known, 1)


def _build_histograms(how: NDArray[Any], st: Handle, columns: Columns) -> None:
    streams, parts = int(how[0]["streams"]), parts_of(how)
    if st.arrays["stock"].size > 1:
        _count_stock(how, st)
    if not how[0]["dual"]:
        return
    longest = max(columns[f"let in ts {stream}"].size for stream in range(streams))
    _hold(st, **_ring_arrays(how, _room(longest + 1)))
    values = st.arrays["let_value"].reshape(streams, -1, parts)
    expected, stream = columns["waiting expected"], columns["waiting stream"]
    counted = (columns["waiting inside"] == 1) & (columns["waiting null"] == 0)
    found = [np.unique(expected[counted & (stream == one)], return_counts=True) for one in range(streams)]
    levels = _level_arrays(how, _room(2 * max(level.size for level, _ in found) + 2))
    for number in range(streams):
        times, value = columns[f"let in ts {number}"], columns[f"let in value {number}"]
        st.arrays["let_ts"][number, : times.size], values[number, : times.size] = times, value
        st["let_from"][number], st["let_to"][number] = 0, times.size
        held = value[value != NONE]
        np.add.at(st.arrays["kept"], held, 1)
        np.add.at(st.arrays["windowed"], held * streams + number, 1.0)
        if how[0]["rear"]:
            level, counts = found[number]
            levels["level"][number, : level.size], levels["level_count"][number, : level.size] = level, counts
            st["levels_size"][number] = level.size
    _sum_up(levels)
    _hold(st, **levels)


def _count_stock(how: NDArray[Any], st: Handle) -> None:
    """How many tuples of each value are stored: their cells know."""
    streams, parts = int(how[0]["streams"]), parts_of(how)
    free = st.arrays["free"][: int(st["free_count"])]
    used = np.ones(st.arrays["pool"].size, np.bool_)
    used[free] = False
    used &= st.arrays["pool"]["queued"] >= NONE
    if has_items(how):
        stored = places_in_use(st)
        stored = stored[st.arrays["pool"]["queued"][stored] >= NONE]
        places, owner = item_places(st, stored, more=1)
        stream = st.arrays["pool"]["stream"][stored][owner]
        np.add.at(st.arrays["stock"], st.arrays["item_values"][places] * streams + stream, 1)
        return
    pool = st.arrays["pool"][used]
    values = st.arrays["cell_values"].reshape(-1, parts)[pool["group"]].astype(np.int64)
    for part in range(parts):
        known = values[:, part] != NONE
        np.add.at(st.arrays["stock"], values[known, part] * streams + pool["stream"][known], 1)


def histograms(how: NDArray[Any], st: Handle) -> tuple[list[float], list[float]] | None:
    """How often each value is in the histograms of two streams; None while one of them is empty."""
    counts = st.arrays["windowed"].reshape(-1, 2)
    known = np.flatnonzero(counts.any(axis=1))
    if not counts.any(axis=0).all():
        return None
    keys = st.arrays["keys"]["key"][known].tolist()
    order = known[sorted(range(known.size), key=lambda place: str(keys[place]))]
    return counts[order, 0].tolist(), counts[order, 1].tolist()
