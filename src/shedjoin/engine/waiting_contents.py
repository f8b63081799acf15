"""Rows that wait, as columns: gathered from the arrays of a state, and built again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import waiting_rows
from shedjoin.engine.codes import DROP_SEMANTIC, MOST
from shedjoin.engine.handle import Handle
from shedjoin.engine.item_memory import counts_values, has_items, item_places, places_in_use
from shedjoin.engine.records import (
    GONE,
    IN_LINE,
    NONE,
    WAITING_BY_STREAM,
    WAITING_COUNTERS,
    WAITING_FLOATS,
    WAITING_NUMBERS,
)
from shedjoin.engine.structures import heap
from shedjoin.engine.waiting_rows import Columns, Integers, by_lot, parts_of

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


def _are_weighed(cfg: NDArray[Any]) -> bool:
    """Whether rows in line are groups with a chance: those with items, where they compete."""
    return bool(cfg[0]["integrated"] and cfg[0]["alone"] and cfg[0]["weighed"])


def held(cfg: NDArray[Any], state: Handle) -> Integers:
    """Places of the pool that hold items of no stored tuple: of rows that wait, and of tuples that left in the open instant."""
    if not cfg[0]["waits"]:
        return np.empty(0, np.int64)
    items = state.arrays["waiting"]["item"][waiting_rows.in_use(state)]
    fresh = state.arrays["fresh"]["item"][: int(state["fresh_count"])]
    gone = fresh[state.arrays["pool"]["queued"][fresh] == GONE]
    return np.concatenate([items[items != NONE], gone]).astype(np.int64)


def held_streams(columns: Columns) -> Integers:
    """The streams of the tuples that `held` names, from the columns of a snapshot."""
    if "waiting stream" not in columns:
        return np.empty(0, np.int64)
    waits, gone = columns["waiting null"] == 0, columns["fresh item"] == NONE
    return np.concatenate([columns["waiting stream"][waits], columns["fresh stream"][gone]]).astype(np.int64)


# ------------------------------------------------------------------------------------------------------------ gathering


def gather(cfg: NDArray[Any], state: Handle, items: Integers, values: Integers) -> Columns:
    """The columns of what waits, of the open instant and of the histograms. `items`: tuples, `values`: values, as saved."""
    if not cfg[0]["waits"]:
        return {}
    streams, parts = int(cfg[0]["streams"]), parts_of(cfg)
    rows = waiting_rows.in_use(state)
    waiting = state.arrays["waiting"][rows]
    columns: Columns = {f"waiting {name}": waiting[name].astype(kind) for name, kind in ROW_COLUMNS.items()}
    columns["waiting key"] = state.arrays["waiting_key"].reshape(-1, int(cfg[0]["width"]))[rows]
    if _are_weighed(cfg):
        item = np.where(waiting["item"] == NONE, 0, waiting["item"])
        columns["waiting chance"] = np.where(waiting["item"] == NONE, 0.0, state.arrays["buckets"]["weight"][item])
    columns["waiting inside"] = (np.arange(rows.size) < int(state["aux_count"])).astype(np.int8)
    if by_lot(cfg):
        columns["waiting place"] = state.arrays["queue_place"][rows]
    columns["instants"] = waiting_rows.instants_of(state)[:, :streams]
    length = streams + 1
    told = state.arrays["told"][int(state["told_from"]) * length : int(state["told_to"]) * length]
    columns["told"] = told.reshape(-1, length)
    columns |= _gather_fresh(state, items, values, parts)
    back = _back(values, state.arrays["keys"].size)
    for stream in range(streams):
        ts, size, value = waiting_rows.let_in(state, stream)
        columns |= {f"let in ts {stream}": ts, f"let in size {stream}": size, f"let in value {stream}": back[value]}
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
    waiting_rows.hold(state, told=np.concatenate([columns["told"].reshape(-1), np.zeros(1, np.int64)]))
    state["told_from"], state["told_to"] = 0, len(columns["told"])
    waits = int((columns["waiting null"] == 0).sum())
    if kept.size:
        _build_items(cfg, state, columns, kept[:waits])
    _build_fresh(cfg, state, columns, items, kept[waits:])
    _build_histograms(cfg, state, columns)


def _build_rows(cfg: NDArray[Any], state: Handle, columns: Columns) -> None:
    size, streams = columns["waiting arrival"].size, int(cfg[0]["streams"])
    waiting_rows.hold(state, **waiting_rows.row_arrays(cfg, waiting_rows.room(size)))
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
    if cfg[0]["where"]:
        state.arrays["attr"].reshape(-1, int(cfg[0]["width"]))[places] = columns["waiting key"][rows]
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
    ring = np.zeros((waiting_rows.room(len(marks) + 3), MOST), np.int64)
    numbers = np.arange(int(state["instant"]) + 1 - len(marks), int(state["instant"]) + 1)
    ring[numbers & (len(ring) - 1), : marks.shape[1]] = marks
    waiting_rows.hold(state, instants=ring.reshape(-1))


def _build_fresh(cfg: NDArray[Any], state: Handle, columns: Columns, items: Integers, kept: Integers) -> None:
    """Tuples of the open instant that are gone take a place in the pool each, which is free when it closes."""
    item, parts = columns["fresh item"], parts_of(cfg)
    waiting_rows.hold(state, **waiting_rows.fresh_arrays(cfg, waiting_rows.room(item.size)))
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
    streams = int(cfg[0]["streams"])
    if state.arrays["stock"].size > 1 and not is_stocked(cfg, state):
        _count_stock(cfg, state)
    if not cfg[0]["dual"]:
        return
    let_in = [
        tuple(columns[f"let in {name} {stream}"] for name in ("ts", "size", "value")) for stream in range(streams)
    ]
    waiting_rows.fill_rings(cfg, state, let_in, max(value.size for _, _, value in let_in))
    expected, stream = columns["waiting expected"], columns["waiting stream"]
    counted = (columns["waiting inside"] == 1) & (columns["waiting null"] == 0)
    found = [np.unique(expected[counted & (stream == one)], return_counts=True) for one in range(streams)]
    levels = waiting_rows.level_arrays(cfg, waiting_rows.room(2 * max(level.size for level, _ in found) + 2))
    for number in range(streams):
        value = columns[f"let in value {number}"]
        np.add.at(state.arrays["kept"], value, 1)
        np.add.at(state.arrays["windowed"], value * streams + number, 1.0)
        if cfg[0]["rear"]:
            level, counts = found[number]
            levels["level"][number, : level.size], levels["level_count"][number, : level.size] = level, counts
            state["levels_size"][number] = level.size
    waiting_rows.sum_up(levels)
    waiting_rows.hold(state, **levels)


def is_stocked(cfg: NDArray[Any], state: Handle) -> bool:
    """As `indexed.is_stocked`."""
    return bool(cfg[0]["waits"] and cfg[0]["alone"]) and not has_items(cfg) and state.arrays["stock"].size > 1


def restock(cfg: NDArray[Any], state: Handle, values: Integers, stream: Integers) -> None:
    """Count the values (tuple, part) of stored tuples that are groups of their own."""
    for part in range(values.shape[1]):
        known = values[:, part] != NONE
        value = values[known, part]
        np.add.at(state.arrays["stock"], value * int(cfg[0]["streams"]) + stream[known], 1)
        np.add.at(state.arrays["cell_count"], value, 1)


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
