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


def by_lot(cfg: NDArray[Any]) -> bool:
    """Whether lots fall on the rows in line."""
    shared = cfg[0]["integrated"] and cfg[0]["organisation"] == RANDOM
    return bool(cfg[0]["drop"] == DROP_RANDOM or shared)


def _are_weighed(cfg: NDArray[Any]) -> bool:
    """Whether rows in line are groups with a chance: those with items, where they compete."""
    return bool(cfg[0]["integrated"] and cfg[0]["alone"] and cfg[0]["weighed"])


def held(cfg: NDArray[Any], state: Handle) -> Integers:
    """Places of the pool that hold items of no stored tuple: of rows that wait, and of tuples that left in the open instant."""
    if not cfg[0]["waits"]:
        return np.empty(0, np.int64)
    items = state.arrays["waiting"]["item"][_in_use(state)]
    fresh = state.arrays["fresh"]["item"][: int(state["fresh_count"])]
    gone = fresh[state.arrays["pool"]["queued"][fresh] == GONE]
    return np.concatenate([items[items != NONE], gone]).astype(np.int64)


def held_streams(columns: Columns) -> Integers:
    """The streams of the tuples that `held` names, from the columns of a snapshot."""
    if "waiting stream" not in columns:
        return np.empty(0, np.int64)
    waits, gone = columns["waiting null"] == 0, columns["fresh item"] == NONE
    return np.concatenate([columns["waiting stream"][waits], columns["fresh stream"][gone]]).astype(np.int64)


def parts_of(cfg: NDArray[Any]) -> int:
    return max(int(cfg[0]["parts"]), 1)


def pool_arrays(cfg: NDArray[Any], size: int) -> Arrays:
    """What there is one of for each place in the pool."""
    if not cfg[0]["waits"]:
        return {}
    return {"gone": np.zeros(size, np.int32), "window_number": np.zeros(size if cfg[0]["let_in"] else 1, np.int64)}


def value_arrays(cfg: NDArray[Any], size: int) -> Arrays:
    """What there is one of for each value."""
    if not cfg[0]["waits"]:
        return {}
    streams, setting = int(cfg[0]["streams"]), cfg[0]
    counts = setting["drop"] == DROP_SEMANTIC and setting["drop_by"] == BY_STOCK
    asked = counts or setting["estimator"] == LEARNED
    stocked = asked and setting["layout"] != KEYED
    return {
        "kept": np.zeros(size, np.int32),
        "stock": np.zeros(size * streams if stocked else 1, np.int32),
        "windowed": np.zeros(size * streams if setting["dual"] else 1),
    }


def _row_arrays(cfg: NDArray[Any], size: int) -> Arrays:
    streams, lots = int(cfg[0]["streams"]), by_lot(cfg)
    return {
        "waiting": np.zeros(size, WAITING_RECORD),
        "free_waiting": np.arange(size - 1, -1, -1, dtype=np.int32),
        "waiting_key": np.zeros(size * int(cfg[0]["width"]), np.int64),
        "queue_heap": np.zeros((streams, 1 if lots else size + heap.TOP + 1), HEAP_RECORD),
        "queue_list": np.zeros((streams, size if lots else 1), np.int32),
        "queue_place": np.full(size, NONE, np.int32),
    }


def _ring_arrays(cfg: NDArray[Any], size: int) -> Arrays:
    streams, parts = int(cfg[0]["streams"]), parts_of(cfg)
    return {
        "let_ts": np.zeros((streams, size), np.int64),
        "let_value": np.full(streams * size * parts, NONE, np.int32),
    }


def _level_arrays(cfg: NDArray[Any], size: int) -> Arrays:
    streams = int(cfg[0]["streams"])
    return {
        "level": np.zeros((streams, size)),
        "level_count": np.zeros((streams, size), np.int64),
        "level_sum": np.zeros((streams, size), np.int64),
    }


def _fresh_arrays(cfg: NDArray[Any], size: int) -> Arrays:
    return {"fresh": np.zeros(size, FRESH_RECORD), "fresh_value": np.full(size * parts_of(cfg), NONE, np.int32)}


def allocate(admission: Admission | None, cfg: NDArray[Any], state: Handle) -> None:
    """The empty line, aux-window and histograms of a new join."""
    if admission is None:
        return
    size = LEAST if admission.dual else 2
    _hold(
        state,
        **_row_arrays(cfg, LEAST),
        **_ring_arrays(cfg, size),
        **_level_arrays(cfg, size),
        **_fresh_arrays(cfg, LEAST),
        instants=np.zeros(LEAST * MOST, np.int64),
        told=np.zeros(1, np.int64),
    )
    state["free_waiting_count"] = LEAST
    for name in ("line_first", "line_last", "aux_first", "aux_last", "own_first", "own_last", "instant", "turned"):
        state[name] = NONE
    state["last_adapt"] = NEVER
    state["base"] = 0
    state["cpu_free"] = -np.inf
    state["rear_share"], state["front_share"] = admission.shares or (0.0, 0.0)


def _hold(state: Handle, **arrays: NDArray[Any]) -> None:
    state.hold(**arrays)
    state.resize(**{name: array.shape[-1] for name, array in arrays.items()})


def _in_use(state: Handle) -> Integers:
    """The places of rows that wait, in the order of their arrival: first those of the aux-window, then those in line."""
    free = state.arrays["free_waiting"]
    used = np.ones(free.size, np.bool_)
    used[free[: int(state["free_waiting_count"])]] = False
    rows = np.flatnonzero(used)
    return rows[np.argsort(state.arrays["waiting"]["arrival"][rows], kind="stable")]


def count(state: Handle) -> int:
    """How many rows wait."""
    return int(state.arrays["waiting"].size - state["free_waiting_count"])


# ------------------------------------------------------------------------------------------------------------- growing


def grow_rows(cfg: NDArray[Any], state: Handle) -> None:
    """Twice the room for rows that wait."""
    names = ("waiting", "waiting_key", "queue_heap", "queue_list", "queue_place")
    old = {name: state.arrays[name] for name in names}
    held, before = int(state["free_waiting_count"]), state.arrays["free_waiting"]
    size = 2 * old["waiting"].size
    new = _row_arrays(cfg, size)
    for name in names:
        new[name][tuple(slice(0, length) for length in old[name].shape)] = old[name]
    added = size - before.size
    new["free_waiting"][:added] = np.arange(size - 1, before.size - 1, -1)
    new["free_waiting"][added : added + held] = before[:held]
    state["free_waiting_count"] = held + added
    _hold(state, **new)


def _first_instant(state: Handle) -> int:
    rows = _in_use(state)
    return int(state.arrays["waiting"]["instant"][rows[0]]) if rows.size else int(state["instant"]) + 1


def _marks(state: Handle) -> NDArray[np.int64]:
    """How many rows of each stream had come when each instant began, from the first on of which a row waits."""
    ring = state.arrays["instants"].reshape(-1, MOST)
    numbers = np.arange(_first_instant(state), int(state["instant"]) + 1)
    marks: NDArray[np.int64] = ring[numbers & (len(ring) - 1)]
    return marks


def grow_instants(state: Handle) -> None:
    """Twice the room for instants of which rows wait."""
    marks, ring = _marks(state), np.zeros((2 * state.arrays["instants"].size // MOST, MOST), np.int64)
    numbers = np.arange(int(state["instant"]) + 1 - len(marks), int(state["instant"]) + 1)
    ring[numbers & (len(ring) - 1)] = marks
    _hold(state, instants=ring.reshape(-1))


def grow_fresh(cfg: NDArray[Any], state: Handle, buffers: Handle) -> None:
    """Room for the tuples of an open instant, there and where policies see them."""
    size = max(state.arrays["fresh"].size, 2 * int(state["fresh_count"]))
    new = _fresh_arrays(cfg, size)
    for name, array in new.items():
        array[: state.arrays[name].size] = state.arrays[name]
    _hold(state, **new)
    _hold(buffers, out_fresh=np.zeros(size, np.int64))


def grow_let_in(cfg: NDArray[Any], state: Handle) -> None:
    """Twice the room for the rows that a window will hold."""
    old, values = state.arrays["let_ts"], state.arrays["let_value"].reshape(*state.arrays["let_ts"].shape, -1)
    streams, before = old.shape
    new = _ring_arrays(cfg, 2 * before)
    more = new["let_value"].reshape(streams, 2 * before, -1)
    for stream in range(streams):
        counters = np.arange(int(state["let_from"][stream]), int(state["let_to"][stream]))
        new["let_ts"][stream, counters & (2 * before - 1)] = old[stream, counters & (before - 1)]
        more[stream, counters & (2 * before - 1)] = values[stream, counters & (before - 1)]
    _hold(state, **new)


def grow_levels(cfg: NDArray[Any], state: Handle) -> None:
    """Twice the room for numbers of expected partners."""
    old, counts = state.arrays["level"], state.arrays["level_count"]
    new = _level_arrays(cfg, 2 * old.shape[1])
    new["level"][:, : old.shape[1]], new["level_count"][:, : old.shape[1]] = old, counts
    _sum_up(new)
    _hold(state, **new)


def _sum_up(arrays: Arrays) -> None:
    """The Fenwick trees of counts."""
    counts, sums = arrays["level_count"], arrays["level_sum"]
    nodes = np.arange(1, counts.shape[1])
    total = np.concatenate([np.zeros((len(counts), 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
    sums[:, 1:] = total[:, nodes] - total[:, nodes - (nodes & -nodes)]


def add_told(state: Handle, told: Integers) -> None:
    """Clocks that hold when all rows that have come so far have had their turn."""
    length = told.size + 1
    pending = state.arrays["told"][int(state["told_from"]) * length : int(state["told_to"]) * length]
    _hold(state, told=np.concatenate([pending, [int(state["rows"])], told]).astype(np.int64))
    state["told_from"], state["told_to"] = 0, pending.size // length + 1


# ----------------------------------------------------------------------------------------------------------- gathering


def gather(cfg: NDArray[Any], state: Handle, items: Integers, values: Integers) -> Columns:
    """The columns of what waits, of the open instant and of the histograms. `items`: tuples, `values`: values, as saved."""
    if not cfg[0]["waits"]:
        return {}
    streams, parts = int(cfg[0]["streams"]), parts_of(cfg)
    rows = _in_use(state)
    waiting = state.arrays["waiting"][rows]
    columns: Columns = {f"waiting {name}": waiting[name].astype(kind) for name, kind in ROW_COLUMNS.items()}
    columns["waiting key"] = state.arrays["waiting_key"].reshape(-1, int(cfg[0]["width"]))[rows]
    if _are_weighed(cfg):
        item = np.where(waiting["item"] == NONE, 0, waiting["item"])
        columns["waiting chance"] = np.where(waiting["item"] == NONE, 0.0, state.arrays["buckets"]["weight"][item])
    columns["waiting inside"] = (np.arange(rows.size) < int(state["aux_count"])).astype(np.int8)
    if by_lot(cfg):
        columns["waiting place"] = state.arrays["queue_place"][rows]
    columns["instants"] = _marks(state)[:, :streams]
    length = streams + 1
    told = state.arrays["told"][int(state["told_from"]) * length : int(state["told_to"]) * length]
    columns["told"] = told.reshape(-1, length)
    columns |= _gather_fresh(state, items, values, parts)
    back = _back(values, state.arrays["keys"].size)
    ring = state.arrays["let_ts"].shape[1]
    let_value = state.arrays["let_value"].reshape(streams, ring, parts)
    for stream in range(streams):
        places = np.arange(int(state["let_from"][stream]), int(state["let_to"][stream])) & (ring - 1)
        columns[f"let in ts {stream}"] = state.arrays["let_ts"][stream, places]
        columns[f"let in value {stream}"] = back[let_value[stream, places]]
    columns["waiting numbers"] = np.array([int(state[name]) for name in NUMBERS], np.int64)
    columns["waiting floats"] = np.array([float(state[name]) for name in WAITING_FLOATS])
    columns["waiting by stream"] = np.stack([state[name][:streams] for name in WAITING_BY_STREAM])
    return {name: np.ascontiguousarray(column) for name, column in columns.items()}


def _back(places: Integers, size: int) -> Integers:
    """From places to their order among those saved; NONE, which is the last place, stays what it is."""
    back = np.full(size + 1, NONE, np.int64)
    back[places] = np.arange(places.size)
    return back


def _gather_fresh(state: Handle, items: Integers, values: Integers, parts: int) -> Columns:
    fresh = state.arrays["fresh"][: int(state["fresh_count"])]
    value = state.arrays["fresh_value"][: fresh.size * parts].reshape(-1, parts)
    return {
        "fresh item": _back(items, state.arrays["pool"].size)[fresh["item"]],
        "fresh stream": fresh["stream"].astype(np.int8),
        "fresh number": fresh["number"],
        "fresh value": _back(values, state.arrays["keys"].size)[value],
    }


# ------------------------------------------------------------------------------------------------------------- building


def build(cfg: NDArray[Any], state: Handle, columns: Columns, items: Integers, kept: Integers) -> None:
    """Fill the arrays of a state whose tuples and values are there; in an integrated queue rows still have to compete.

    `items`: the places of stored tuples; `kept`: those of tuples that only wait, or have left.
    """
    streams = int(cfg[0]["streams"])
    for name, number in zip(NUMBERS, columns["waiting numbers"], strict=True):
        state[name] = int(number)
    for name, value in zip(WAITING_FLOATS, columns["waiting floats"], strict=True):
        state[name] = float(value)
    for name, by_stream in zip(WAITING_BY_STREAM, columns["waiting by stream"], strict=True):
        state[name][:streams] = by_stream
    _build_rows(cfg, state, columns)
    _build_instants(state, columns["instants"])
    _hold(state, told=np.concatenate([columns["told"].reshape(-1), np.zeros(1, np.int64)]))
    state["told_from"], state["told_to"] = 0, len(columns["told"])
    waits = int((columns["waiting null"] == 0).sum())
    if kept.size:
        _build_items(cfg, state, columns, kept[:waits])
    _build_fresh(cfg, state, columns, items, kept[waits:])
    _build_histograms(cfg, state, columns)


def _room(size: int) -> int:
    return max(LEAST, 1 << int(size).bit_length())


def _build_rows(cfg: NDArray[Any], state: Handle, columns: Columns) -> None:
    size, streams = columns["waiting arrival"].size, int(cfg[0]["streams"])
    _hold(state, **_row_arrays(cfg, _room(size)))
    rows, waiting = np.arange(size), state.arrays["waiting"]
    for name in ROW_COLUMNS:
        if f"waiting {name}" in columns:
            waiting[name][:size] = columns[f"waiting {name}"]
    waiting["item"][:size] = NONE
    state.arrays["waiting_key"].reshape(-1, int(cfg[0]["width"]))[:size] = columns["waiting key"]
    state["free_waiting_count"] = waiting.size - size
    inside = columns["waiting inside"] == 1
    stream = columns["waiting stream"].astype(np.int64)
    state["aux_count"] = int(inside.sum())
    for name, some in (("aux", rows[inside]), ("line", rows[~inside])):
        state[f"{name}_first"], state[f"{name}_last"] = _link(waiting, some, "next", "back")
    for number in range(streams):
        own = rows[~inside & (stream == number)]
        state["own_first"][number], state["own_last"][number] = _link(waiting, own, "next_own", "back_own")
        state["queued_rows"][number] = own.size
        state["queued_bytes"][number] = int(waiting["bytes"][own].sum())
        state["aux_rows"][number] = int((inside & (stream == number) & (columns["waiting null"] == 0)).sum())
        state["queue_size"][number] = 0
        if by_lot(cfg):
            place = columns.get("waiting place")
            order = own if place is None else own[np.argsort(place[own])]
            state.arrays["queue_list"][number, : own.size] = order
            state.arrays["queue_place"][order] = np.arange(own.size)
            state["queue_size"][number] = own.size
        elif cfg[0]["drop"] == DROP_SEMANTIC:
            order = own[np.lexsort((-waiting["arrival"][own], waiting["prio"][own]))]  # what is sorted is a heap
            entries = state.arrays["queue_heap"][number, heap.TOP : heap.TOP + own.size]
            entries["prio"], entries["rank"] = waiting["prio"][order], -waiting["arrival"][order].astype(np.float64)
            entries["arrival"], entries["item"] = waiting["arrival"][order], order
            state.arrays["queue_place"][order] = np.arange(heap.TOP, heap.TOP + own.size)
            state["queue_size"][number] = own.size


def _build_items(cfg: NDArray[Any], state: Handle, columns: Columns, places: Integers) -> None:
    """Rows with items, in the places of the pool where they wait."""
    rows = np.flatnonzero(columns["waiting null"] == 0)
    waiting, pool, cards = state.arrays["waiting"], state.arrays["pool"], state.arrays["card"]
    waiting["item"][rows] = places
    for name in ("arrival", "bytes", "stream"):
        pool[name][places] = waiting[name][rows]
    pool["queued"][places], pool["place"][places], pool["group"][places] = IN_LINE, rows, places
    for name in ("ts", "seq", "importance"):
        cards[name][places] = waiting[name][rows]
    cards["item"][places] = places
    if _are_weighed(cfg):
        state.arrays["buckets"]["weight"][places] = columns["waiting chance"][rows]


def _link(waiting: NDArray[Any], rows: Integers, following: str, before: str) -> tuple[int, int]:
    """Rows in a list; returns the first and the last."""
    if not rows.size:
        return NONE, NONE
    waiting[following][rows] = np.append(rows[1:], NONE)
    waiting[before][rows] = np.append(NONE, rows[:-1])
    return int(rows[0]), int(rows[-1])


def _build_instants(state: Handle, marks: NDArray[np.int64]) -> None:
    ring = np.zeros((_room(len(marks) + 3), MOST), np.int64)
    numbers = np.arange(int(state["instant"]) + 1 - len(marks), int(state["instant"]) + 1)
    ring[numbers & (len(ring) - 1), : marks.shape[1]] = marks
    _hold(state, instants=ring.reshape(-1))


def _build_fresh(cfg: NDArray[Any], state: Handle, columns: Columns, items: Integers, kept: Integers) -> None:
    """Tuples of the open instant that are gone take a place in the pool each, which is free when it closes."""
    item, parts = columns["fresh item"], parts_of(cfg)
    _hold(state, **_fresh_arrays(cfg, _room(item.size)))
    fresh, there = state.arrays["fresh"][: item.size], item != NONE
    fresh["stream"], fresh["number"] = columns["fresh stream"], columns["fresh number"]
    state.arrays["fresh_value"].reshape(-1, parts)[: item.size] = columns["fresh value"]
    state["fresh_count"] = item.size
    missing = int((~there).sum())
    free = kept
    if not has_items(cfg):
        free = state.arrays["free"][int(state["free_count"]) - missing : int(state["free_count"])]
        state["free_count"] -= missing
    fresh["item"][there] = items[item[there]]
    fresh["item"][~there] = free
    state.arrays["pool"]["queued"][free] = GONE
    state.arrays["gone"][:missing] = free
    state["gone_count"] = missing
    if has_items(cfg):
        pool = state.arrays["pool"]
        pool["stream"][free] = fresh["stream"][~there]
        if counts_values(cfg):
            places, _ = item_places(state, fresh["item"].astype(np.int64), more=1)
            np.add.at(state.arrays["kept"], state.arrays["item_values"][places], 1)
    elif cfg[0]["weighed"]:
        known = columns["fresh value"][columns["fresh value"] != NONE]
        np.add.at(state.arrays["kept"], known, 1)


def _build_histograms(cfg: NDArray[Any], state: Handle, columns: Columns) -> None:
    streams, parts = int(cfg[0]["streams"]), parts_of(cfg)
    if state.arrays["stock"].size > 1:
        _count_stock(cfg, state)
    if not cfg[0]["dual"]:
        return
    longest = max(columns[f"let in ts {stream}"].size for stream in range(streams))
    _hold(state, **_ring_arrays(cfg, _room(longest + 1)))
    values = state.arrays["let_value"].reshape(streams, -1, parts)
    expected, stream = columns["waiting expected"], columns["waiting stream"]
    counted = (columns["waiting inside"] == 1) & (columns["waiting null"] == 0)
    found = [np.unique(expected[counted & (stream == one)], return_counts=True) for one in range(streams)]
    levels = _level_arrays(cfg, _room(2 * max(level.size for level, _ in found) + 2))
    for number in range(streams):
        times, value = columns[f"let in ts {number}"], columns[f"let in value {number}"]
        state.arrays["let_ts"][number, : times.size], values[number, : times.size] = times, value
        state["let_from"][number], state["let_to"][number] = 0, times.size
        held = value[value != NONE]
        np.add.at(state.arrays["kept"], held, 1)
        np.add.at(state.arrays["windowed"], held * streams + number, 1.0)
        if cfg[0]["rear"]:
            level, counts = found[number]
            levels["level"][number, : level.size], levels["level_count"][number, : level.size] = level, counts
            state["levels_size"][number] = level.size
    _sum_up(levels)
    _hold(state, **levels)


def _count_stock(cfg: NDArray[Any], state: Handle) -> None:
    """How many tuples of each value are stored: their cells know."""
    streams, parts = int(cfg[0]["streams"]), parts_of(cfg)
    free = state.arrays["free"][: int(state["free_count"])]
    used = np.ones(state.arrays["pool"].size, np.bool_)
    used[free] = False
    used &= state.arrays["pool"]["queued"] >= NONE
    if has_items(cfg):
        stored = places_in_use(state)
        stored = stored[state.arrays["pool"]["queued"][stored] >= NONE]
        places, owner = item_places(state, stored, more=1)
        stream = state.arrays["pool"]["stream"][stored][owner]
        np.add.at(state.arrays["stock"], state.arrays["item_values"][places] * streams + stream, 1)
        return
    pool = state.arrays["pool"][used]
    values = state.arrays["cell_values"].reshape(-1, parts)[pool["group"]].astype(np.int64)
    for part in range(parts):
        known = values[:, part] != NONE
        np.add.at(state.arrays["stock"], values[known, part] * streams + pool["stream"][known], 1)


def histograms(cfg: NDArray[Any], state: Handle) -> tuple[list[float], list[float]] | None:
    """How often each value is in the histograms of two streams; None while one of them is empty."""
    counts = state.arrays["windowed"].reshape(-1, 2)
    known = np.flatnonzero(counts.any(axis=1))
    if not counts.any(axis=0).all():
        return None
    keys = state.arrays["keys"]["key"][known].tolist()
    order = known[sorted(range(known.size), key=lambda place: str(keys[place]))]
    return counts[order, 0].tolist(), counts[order, 1].tolist()
