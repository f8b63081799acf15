"""What a join holds between two pushes, as columns: stored tuples, values that are known, and a few numbers.

Columns do not depend on how tuples are laid out in memory. A snapshot is made of them, and a state is built from them again: its
indexes, rings and heaps follow from the columns, so that nothing of a snapshot is ever followed as a link.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import growth, item_memory, loop, memory, protocol, push_buffers, selection, waiting_contents
from shedjoin.engine.codes import (
    AGE,
    DECAYED,
    FOLLOWING,
    LEARNED,
    MET,
    MOST,
    RANDOM,
    ROW,
    SAMPLE,
    TUPLE,
)
from shedjoin.engine.growth import Rings, fill_indexes, fill_rings
from shedjoin.engine.handle import Handle
from shedjoin.engine.item_memory import has_items, has_numbers
from shedjoin.engine.layouts.items import EVERY_ROW
from shedjoin.engine.memory import Sizes, in_use, is_keyed, power_of_two
from shedjoin.engine.plan import Plan
from shedjoin.engine.priority_contents import build_order, build_samples
from shedjoin.engine.records import (
    CELL_RECORD,
    COUNTERS,
    DOUBT,
    ENTRY_RECORD,
    EXPIRY_RECORD,
    GONE,
    NONE,
    SEEN_RECORD,
)
from shedjoin.engine.stored import Columns, Integers, cards_of, count_bytes, keys_of, live_tuples

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
    "idle_bound",
    "first_mark",
    "last_evaluation",
    "last_expiry",
    "known_numbers",
    "random",
)
FLOATS = ("importance", "lift", "lowest_number", "highest_number", "bucket_width")
BY_STREAM = ("clock", "arrived", "horizon", "base", "observed", "looked_soon", "looked_later")


# ----------------------------------------------------------------------------------------------------------- gathering


def gather(cfg: NDArray[Any], state: Handle) -> Columns:
    """All columns of a state. What is neither stored nor known is let go of first, so that nothing depends on when it was."""
    if cfg[0]["weighed"]:
        loop.forget(cfg, state)
    if cfg[0]["waits"]:
        state["arrival"] = state["rows"]  # between pushes no row is at hand, whose number this is
    columns = {**_tuples(cfg, state), **_values(cfg, state), **_numbers(state), **selection.gather(cfg, state)}
    columns |= _thresholds(cfg, state)
    return {**columns, **waiting_contents.gather(cfg, state, live_tuples(state), _known_values(cfg, state))}


def _known_values(cfg: NDArray[Any], state: Handle) -> Integers:
    """In an order that does not depend on which numbers of forgotten values were given to others."""
    if not cfg[0]["weighed"]:
        return np.empty(0, np.int64)
    values = in_use(state, "free_keys", "free_key_count")
    parts = state.arrays["part"][values] if state.arrays["part"].size > 1 else np.zeros(values.size, np.int32)
    return values[np.lexsort((state.arrays["keys"]["key"][values], parts))]


def _tuples(cfg: NDArray[Any], state: Handle) -> Columns:
    items = live_tuples(state)
    pool, cards, organisation = state.arrays["pool"][items], cards_of(cfg, state, items), cfg[0]["organisation"]
    columns: Columns = {
        "tuple stream": pool["stream"].astype(np.int8),
        "tuple arrival": pool["arrival"],
        "tuple bytes": pool["bytes"],
        "tuple ts": cards["ts"],
        "tuple seq": cards["seq"],
        "tuple importance": cards["importance"],
        "tuple key": keys_of(cfg, state, items),
    }
    if organisation in (TUPLE, *FOLLOWING):
        heaps, place = state.arrays["heap"], state.arrays["place"]
        columns["tuple prio"] = (
            heaps["prio"][pool["stream"], place[items]] if organisation == TUPLE else state.arrays["prio"][items]
        )
    if organisation == AGE:
        settled = state.arrays["place"][items] != NONE
        columns["tuple found"] = np.where(settled, state.arrays["since"][items], 0).astype(np.int8)
    if organisation == SAMPLE:
        columns |= {"tuple weight": state.arrays["prio"][items], "tuple since": state.arrays["since"][items]}
    if organisation == RANDOM:
        columns["tuple place"] = state.arrays["place"][items]
    if cfg[0]["alone"] and cfg[0]["weighed"]:
        columns["tuple chance"] = state.arrays["buckets"]["weight"][items]
    if cfg[0]["estimator"] == MET:
        columns["tuple met"] = state.arrays["met_on_arrival"][items]
    if cfg[0]["counts"]:
        columns["tuple partners"] = cards["partners"]
    if memory.has_floor(cfg):
        columns["tuple floor"] = state.arrays["floor"].reshape(-1, int(cfg[0]["streams"]))[items]
    if has_items(cfg):
        columns |= _compared(cfg, state, np.concatenate([items, waiting_contents.held(cfg, state)]))
    if cfg[0]["waits"]:
        if organisation in (TUPLE, *FOLLOWING):  # while an instant is open, its tuples may have no priority yet
            columns["tuple prio"] = np.where(state.arrays["place"][items] == NONE, 0.0, columns["tuple prio"])
        columns["tuple in output"] = pool["met"].astype(np.int8)
    if cfg[0]["let_in"]:
        columns["tuple window number"] = state.arrays["window_number"][items]
    if cfg[0]["evaluate_every"]:
        columns["tuple came"] = state.arrays["came"][items]
        back = np.zeros(state.arrays["pool"].size, np.int64)
        back[items] = np.arange(items.size)
        columns["pending"] = back[state.arrays["pending"][: int(state["pending_count"])]]
        marks = (int(state["tick"]) - int(state["first_mark"])) * MOST
        columns["marks"] = state.arrays["marks"][:marks]
    return {name: np.ascontiguousarray(column) for name, column in columns.items()}


def _thresholds(cfg: NDArray[Any], state: Handle) -> Columns:
    """Sample: the priorities that were evicted, of each stream, and what new tuples expected."""
    if cfg[0]["organisation"] != SAMPLE:
        return {}
    columns: Columns = {"sampling moments": state.arrays["moments"].copy()}
    for stream in range(int(cfg[0]["streams"])):
        known = state.arrays["thresholds"][stream, : int(state["threshold_count"][stream])]
        columns |= {f"threshold {name} {stream}": np.ascontiguousarray(known[name]) for name in ("stamp", "prio")}
    return columns


def _compared(cfg: NDArray[Any], state: Handle, items: Integers) -> Columns:
    """What a predicate compares: numbers, or items and their weights."""
    if has_numbers(cfg):
        return {"tuple number": state.arrays["number"][items]}
    places, _ = item_memory.item_places(state, items)
    return {
        "tuple items": state.arrays["item_count"][items],
        "items": state.arrays["items"][places],
        "item weights": state.arrays["item_weights"][places],
    }


def _values(cfg: NDArray[Any], state: Handle) -> Columns:
    streams = int(cfg[0]["streams"])
    values = _known_values(cfg, state)
    groups = values[:, None] * streams + np.arange(streams)
    weights = state.arrays["buckets"]["weight"] if is_keyed(cfg) else state.arrays["weight"]
    parts = state.arrays["part"]
    columns: Columns = {
        "value key": state.arrays["keys"]["key"][values],
        "value held": state.arrays["keys"]["held"][values],
        "value part": parts[values] if parts.size > 1 else np.zeros(values.size, np.int32),
        "value weight": weights[groups] if values.size else np.zeros((0, streams)),
        "sketch": state.arrays["sketch"],
        "model": state.arrays["model"],
    }
    if cfg[0]["organisation"] == AGE:
        columns["curve"] = state.arrays["curve"]
    if cfg[0]["estimator"] == DECAYED:
        columns["value mass"] = state.arrays["mass"][groups]
    if cfg[0]["estimator"] == LEARNED:
        columns["value trail"] = state.arrays["trail"][groups]
    back = np.zeros(state.arrays["keys"].size, np.int64)
    back[values] = np.arange(values.size)
    for stream in range(streams):
        ring = state.arrays["seen"][stream]
        seen = ring[(int(state["seen_head"][stream]) + np.arange(int(state["seen_size"][stream]))) & (ring.size - 1)]
        columns[f"seen stamp {stream}"] = seen["stamp"]
        columns[f"seen value {stream}"] = back[seen["value"]]
    return {name: np.ascontiguousarray(column) for name, column in columns.items()}


def _numbers(state: Handle) -> Columns:
    streams = state.arrays["expiry"].shape[0]
    numbers = np.array([int(state[name]) for name in NUMBERS if name != "random"], np.int64)
    return {
        "numbers": numbers,
        "random": np.array([state["random"], state["salt"]], np.uint64),
        "filters": state.arrays["filters"],
        "floats": np.array([state[name] for name in FLOATS]),
        "by stream": np.stack([state[name][:streams] for name in BY_STREAM]),
    }


# ------------------------------------------------------------------------------------------------------------- building


def build(plan: Plan, cfg: NDArray[Any], state: Handle, columns: Columns) -> None:
    """Fill a new state, whose columns were checked."""
    streams = plan.streams
    if not cfg[0]["weighed"]:  # by another policy values may have been known
        columns = {name: column[:0] if name.startswith("value ") else column for name, column in columns.items()}
    for name, number in zip((name for name in NUMBERS if name != "random"), columns["numbers"], strict=True):
        state[name] = int(number)
    state["random"], state["salt"] = columns["random"]
    for name, value in zip(FLOATS, columns["floats"], strict=True):
        state[name] = value
    for name, values in zip(BY_STREAM, columns["by stream"], strict=True):
        state[name][:streams] = values
    state["lag"] = max(int(state["lag"]), _lag_of(streams, columns))
    state.hold(filters=columns["filters"].copy())
    if "curve" in columns:
        state.arrays["curve"][:] = columns["curve"]
    _build_values(cfg, state, columns)
    stored = columns["tuple stream"].size
    places, prio = _places(cfg, columns), columns.get("tuple prio")
    items = places[:stored]
    _build_tuples(cfg, state, columns, items)
    _build_leaving(cfg, state, columns, items)
    _build_rounds(cfg, state, columns, items)
    selection.build(cfg, state, columns)
    if cfg[0]["waits"]:
        waiting_contents.build(cfg, state, columns, items, places[stored:])
    if "tuple found" in columns:
        state.arrays["since"][items] = columns["tuple found"]
    ordered = np.arange(stored)
    if cfg[0]["waits"] and cfg[0]["organisation"] in (TUPLE, *FOLLOWING) and not cfg[0]["integrated"]:
        # Tuples of an open instant have no priority before it closes.
        ordered = np.setdiff1d(ordered, columns["fresh item"])
    if "tuple weight" in columns:
        build_samples(cfg, state, items, columns)
    else:
        build_order(cfg, state, items[ordered], None if prio is None else prio[ordered], columns.get("tuple place"))
    if cfg[0]["waits"]:
        _build_met(cfg, state, columns, items)
    if cfg[0]["integrated"]:
        turn = protocol.REJOIN if "waiting prio" in columns else protocol.COMPETE_ANEW
        buffers = push_buffers.make(cfg, state)
        buffers["turn"] = turn
        loop.advance(cfg, state, buffers)


def _lag_of(streams: int, columns: Columns) -> int:
    """How far stored tuples lie behind earlier ones of their stream."""
    lag = 0
    for stream in range(streams):
        ts = columns["tuple ts"][columns["tuple stream"] == stream]
        lag = max(lag, int((np.maximum.accumulate(ts) - ts).max(initial=0)))
    return lag


def _build_leaving(cfg: NDArray[Any], state: Handle, columns: Columns, items: Integers) -> None:
    """Which tuples leave when the open instant closes: they have as many partners as they may."""
    if not cfg[0]["most"].any():
        return
    partners = columns["tuple partners"].astype(np.int64)
    partners[partners < 0] -= DOUBT
    most = cfg[0]["most"][columns["tuple stream"].astype(np.int64)]
    leaving = items[(most > 0) & (partners >= most)]
    state.arrays["leaving"][: leaving.size] = leaving
    state["leaving_count"] = leaving.size


def _build_met(cfg: NDArray[Any], state: Handle, columns: Columns, items: Integers) -> None:
    """Which tuples were part of an output in the open instant."""
    met = items[np.flatnonzero(columns["tuple in output"])] if cfg[0]["follows"] else np.empty(0, np.int64)
    state.arrays["pool"]["met"][met] = 1
    state.arrays["touched"][: met.size] = met
    state["touched_count"] = met.size


def _places(cfg: NDArray[Any], columns: Columns) -> Integers:
    """Tuples take the first places of the pool, in the order of their arrival; behind them those whose items are held."""
    stream = columns["tuple stream"].astype(np.int64)
    if not has_items(cfg):
        return np.arange(stream.size)
    return item_memory.places_for(np.concatenate([stream, waiting_contents.held_streams(columns)]))


def _build_values(cfg: NDArray[Any], state: Handle, columns: Columns) -> None:
    keys, streams = columns["value key"], int(cfg[0]["streams"])
    waiting = columns["waiting arrival"].size + columns["fresh item"].size if cfg[0]["waits"] else 0
    tuples = int(_places(cfg, columns).max(initial=0)) + 1 + waiting
    values = keys.size + waiting * int(cfg[0]["parts"])
    sizes = Sizes(memory.room_for(cfg, memory.LEAST + tuples), memory.room_for(cfg, memory.LEAST + values))
    state.hold(**memory.pool_arrays(cfg, sizes, state["lag"] > 0))
    state.hold(**memory.value_arrays(cfg, sizes), **memory.order_arrays(cfg, sizes))
    state["free_count"], state["free_cell_count"] = sizes.tuples, state.arrays["free_cells"].size
    weights = columns["value weight"].reshape(keys.size, streams)
    memory.add_values(cfg, state, keys, columns["value part"].astype(np.int64), columns["value held"], weights)
    if cfg[0]["estimator"] == DECAYED:
        state.arrays["mass"][: keys.size * streams] = columns["value mass"].reshape(-1)
    if cfg[0]["estimator"] == LEARNED:
        state.arrays["trail"][: keys.size * streams] = columns["value trail"].reshape(-1)
    state.arrays["sketch"][:], state.arrays["model"][:] = columns["sketch"], columns["model"]
    stamps = [columns[f"seen stamp {stream}"] for stream in range(streams)]
    room = state.arrays["seen"].shape[1]
    if room > 1:
        room = power_of_two(max([room, *(stamp.size + 1 for stamp in stamps)]))
    seen = np.zeros((streams, room), SEEN_RECORD)
    for stream, stamp in enumerate(stamps):
        seen["stamp"][stream, : stamp.size] = stamp
        seen["value"][stream, : stamp.size] = columns[f"seen value {stream}"]
        state["seen_size"][stream] = stamp.size
    state.hold(seen=seen)


def _build_tuples(cfg: NDArray[Any], state: Handle, columns: Columns, items: Integers) -> None:
    size, streams = items.size, int(cfg[0]["streams"])
    pool = state.arrays["pool"]
    stream = columns["tuple stream"].astype(np.int64)
    pool["arrival"][items], pool["stream"][items] = columns["tuple arrival"], stream
    pool["bytes"][items] = columns["tuple bytes"]
    state["free_count"] = pool.size - size  # the stack has the lowest on top
    for number in range(streams):
        mine = stream == number
        state["resident"][number] = int(mine.sum())
    entry = np.zeros(size, ENTRY_RECORD)
    for name in ("ts", "seq", "importance"):
        entry[name] = columns[f"tuple {name}"]
    entry["item"] = items
    if cfg[0]["counts"]:
        entry["partners"] = columns["tuple partners"]
    if memory.has_floor(cfg):
        state.arrays["floor"].reshape(-1, streams)[items] = columns["tuple floor"]
    keys = columns["tuple key"]
    if cfg[0]["where"]:
        state.arrays["attr"].reshape(-1, keys.shape[1])[items] = keys
    if is_keyed(cfg):
        group = _find_values(state, keys[:, 0], np.zeros(size, np.int64)) * streams + stream
        pool["group"][:size] = group
        order = np.argsort(group, kind="stable")
        nothing = np.zeros(size, np.int64)
        fill_rings(cfg, state, Rings(group[order], entry[order], nothing, stream, nothing))
    else:
        state.arrays["card"][items] = entry
        if has_items(cfg):
            _build_items(cfg, state, columns, size)
        else:
            state.arrays["attr"].reshape(-1, keys.shape[1])[:size] = keys
            _build_indexes(cfg, state, entry, keys, stream)
            if cfg[0]["weighed"] and not cfg[0]["alone"]:
                _build_cells(cfg, state, keys, stream)
            elif waiting_contents.is_stocked(cfg, state):
                values = _values_of(cfg, state, keys, stream)
                waiting_contents.restock(cfg, state, values, stream)
        if cfg[0]["alone"] and cfg[0]["weighed"]:
            _build_alone(state, columns, items)
    if cfg[0]["let_in"]:
        state.arrays["window_number"][items] = columns["tuple window number"]
    count_bytes(cfg, state, items)
    _build_expiry(cfg, state, stream, items)
    if selection.is_selective(cfg):
        entry["seq"] = columns.get("tuple window number", entry["seq"])  # what the window counts by
        selection.fill_timeline(cfg, state, stream, entry)


def _build_items(cfg: NDArray[Any], state: Handle, columns: Columns, stored: int) -> None:
    """The items of tuples, one after the other with a place between them, and all lists."""
    arrays, items = state.arrays, _places(cfg, columns)
    gone = items.size - int((columns["fresh item"] == NONE).sum() if cfg[0]["waits"] else 0)
    arrays["pool"]["queued"][items[stored:]] = GONE  # in no list
    sizes = columns.get("tuple items", np.zeros(items.size, np.int64))
    arrays["item_count"][items] = sizes
    arrays["item_at"][items] = np.cumsum(sizes + 1) - sizes - 1
    state["item_top"] = int(sizes.sum()) + items.size
    state.hold(**item_memory.arena(2 * int(state["item_top"]) + item_memory.FIRST_ITEMS))
    if has_numbers(cfg):
        arrays["number"][items] = columns["tuple number"]
    else:
        places, owner = item_memory.item_places(state, items)
        arrays["items"][places], arrays["item_weights"][places] = columns["items"], columns["item weights"]
        hashed = (columns["items"].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58)
        np.bitwise_or.at(arrays["signature"], items[owner], np.uint64(1) << hashed)
    item_memory.set_free(state, items)
    item_memory.fill_lists(cfg, state)
    if item_memory.counts_values(cfg):
        _build_item_values(cfg, state, items[:stored])
        _build_item_values(cfg, state, items[gone:])
        places, _ = item_memory.item_places(state, items[:stored], more=1)
        np.add.at(arrays["cell_count"], arrays["item_values"][places], 1)


def _build_item_values(cfg: NDArray[Any], state: Handle, items: Integers) -> None:
    """The numbers of the values of each tuple."""
    arrays = state.arrays
    last = arrays["item_at"][items] + arrays["item_count"][items]
    if has_numbers(cfg):
        buckets = item_memory.values_of_numbers(cfg, state, arrays["number"][items])
        arrays["item_values"][last] = _find_values(state, buckets, np.zeros(items.size, np.int64))
    else:
        places, _ = item_memory.item_places(state, items)
        arrays["item_values"][places] = _find_values(state, arrays["items"][places], np.zeros(places.size, np.int64))
        nothing = np.zeros(items.size, np.int64)
        arrays["item_values"][last] = _find_values(state, nothing, np.full(items.size, EVERY_ROW))


def _build_alone(state: Handle, columns: Columns, items: Integers) -> None:
    """Each tuple is a group."""
    state.arrays["pool"]["group"][items] = items
    groups = state.arrays["buckets"]
    groups["count"][items] = 1
    groups["weight"][items] = columns.get("tuple chance", 0.0)
    if "tuple met" in columns:
        state.arrays["met_on_arrival"][items] = columns["tuple met"]


def _find_values(state: Handle, keys: Integers, parts: Integers) -> Integers:
    """The numbers of values, all of which are known."""
    size = state.arrays["keys"].size - int(state["free_key_count"])
    known = np.zeros(size, [("part", "i8"), ("key", "i8")])
    known["key"] = state.arrays["keys"]["key"][:size]
    if state.arrays["part"].size > 1:
        known["part"] = state.arrays["part"][:size]
    wanted = np.zeros(keys.size, known.dtype)
    wanted["key"], wanted["part"] = keys, parts
    order = np.argsort(known)
    return order[np.searchsorted(known[order], wanted)] if keys.size else np.empty(0, np.int64)


def _build_indexes(cfg: NDArray[Any], state: Handle, entry: NDArray[Any], keys: Integers, stream: Integers) -> None:
    parts = []
    for number, index in enumerate(state.arrays["indexes"]):
        mine = np.flatnonzero(stream == index["stream"])
        key = keys[mine, index["attr"]] if index["attr"] >= 0 else np.zeros(mine.size, np.int64)
        which = np.full(mine.size, number - int(state["first_index"][index["stream"]]))
        parts.append((np.zeros(mine.size, np.int64), entry[mine], key, stream[mine], which))
    fill_indexes(cfg, state, Rings(*(np.concatenate(part) for part in zip(*parts, strict=True))))


def _values_of(cfg: NDArray[Any], state: Handle, keys: Integers, stream: Integers) -> Integers:
    """The values of tuples, a column for each part; NONE where a stream has no attribute in it."""
    part_of = state.arrays["part_of"].reshape(-1, MOST)
    values = np.full((stream.size, int(cfg[0]["parts"])), NONE, np.int64)
    for part in range(values.shape[1]):
        for number in range(int(cfg[0]["streams"])):
            attr, mine = int(part_of[part, number]), np.flatnonzero(stream == number)
            if attr >= 0:
                values[mine, part] = _find_values(state, keys[mine, attr], np.full(mine.size, part))
    return values


def _build_cells(cfg: NDArray[Any], state: Handle, keys: Integers, stream: Integers) -> None:
    """Tuples of one stream with the same values are a cell; cells are linked by their values."""
    parts, streams, size = int(cfg[0]["parts"]), int(cfg[0]["streams"]), stream.size
    values = _values_of(cfg, state, keys, stream)
    both, first, which = (
        np.unique(np.column_stack([stream, values]), axis=0, return_index=True, return_inverse=True)
        if size
        else (np.empty((0, parts + 1), np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
    )
    which = which.reshape(-1)
    count = first.size
    cells = state.arrays["buckets"].view(CELL_RECORD)
    cells["stream"][:count], cells["low"][:count], cells["tail"][:count] = both[:, 0], NONE, NONE
    cells["count"][:count] = np.bincount(which, minlength=count)
    state.arrays["pool"]["group"][:size] = which
    state.arrays["cell_values"].reshape(-1, max(parts, 1))[:count, :parts] = both[:, 1:]
    state["free_cell_count"] = state.arrays["free_cells"].size - count
    growth.rehash_cells(cfg, state)
    links = state.arrays["cell_links"].reshape(-1, max(parts, 1), 2)
    for part in range(parts):
        for cell in range(count):
            v = int(both[cell, 1 + part])
            if v == NONE:
                continue
            place = v * streams + int(both[cell, 0])
            before = int(state.arrays["first_cell"][place])
            links[cell, part] = (NONE, before)
            if before != NONE:
                links[before, part, 0] = cell
            state.arrays["first_cell"][place] = cell
            state.arrays["cell_count"][v] += 1


def _build_expiry(cfg: NDArray[Any], state: Handle, stream: Integers, items: Integers) -> None:
    """All tuples in the order in which they expire."""
    streams = int(cfg[0]["streams"])
    cards = cards_of(cfg, state, items)
    counts = np.bincount(stream, minlength=streams)
    expiry = np.zeros((streams, power_of_two(max(memory.LEAST, int(counts.max(initial=0)) + 1))), EXPIRY_RECORD)
    pool = state.arrays["pool"]
    for number in range(streams):
        mine = np.flatnonzero(stream == number)
        numbers = state.arrays["window_number"][items] if cfg[0]["let_in"] else cards["seq"]
        stamp = (numbers if cfg[0]["kind"][number] == ROW else cards["ts"])[mine]
        order = np.argsort(stamp, kind="stable")
        ring = expiry[number, : mine.size]
        there = items[mine[order]]
        ring["item"], ring["stamp"], ring["group"] = there, stamp[order], pool["group"][there]
        pool["queued"][there] = np.arange(mine.size)
        state["ring_to"][number] = mine.size
        state["ring_newest"][number] = int(stamp.max()) if mine.size else 0
    state.hold(expiry=expiry)


def _build_rounds(cfg: NDArray[Any], state: Handle, columns: Columns, items: Integers) -> None:
    if not cfg[0]["evaluate_every"]:
        return
    state.arrays["came"][items] = columns["tuple came"]
    pending, marks = items[columns["pending"]], columns["marks"]
    state.arrays["pending"][: pending.size] = pending
    state["pending_count"] = pending.size
    room = power_of_two(max(state.arrays["marks"].size, 2 * marks.size, 64 * MOST))
    state.hold(marks=np.concatenate([marks, np.zeros(room - marks.size, np.int64)]))
