"""Making the arrays of an n-way join's state, and larger ones when it outgrows them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import heap
from shedjoin.engine.codes import CUMULATIVE, DECAYED, IN_WINDOW, KEY, LIFE, RANDOM, SCHEDULE, TUPLE
from shedjoin.engine.handle import Handle
from shedjoin.engine.jit import entry
from shedjoin.engine.memory import LEAST, empty_matches, first_random_state, measure, power_of_two
from shedjoin.engine.nway import cells, mem, order, rings, weigh
from shedjoin.engine.nway.plan import NPlan
from shedjoin.engine.nway.state import (
    BUCKET_RECORD,
    CARD_RECORD,
    CELL_RECORD,
    INDEX_RECORD,
    LEVEL_RECORD,
    MOST,
    RING_RECORD,
    SLOT_RECORD,
    STATE_RECORD,
)
from shedjoin.engine.state import (
    EXPIRY_RECORD,
    HEAP_RECORD,
    LEAF_RECORD,
    MORE_RECORD,
    NEVER,
    NONE,
    SEEN_RECORD,
    TOUCHED_RECORD,
    TUPLE_RECORD,
)

Arrays = dict[str, NDArray[Any]]
#: How many buckets an index that grows begins with.
FEW = 16


def allocate(plan: NPlan, how: NDArray[Any], seed: int) -> Handle:
    """The empty memory of a new join."""
    capped = plan.budget.tuples or 0 if plan.budget is not None else 0
    known = sum(table[0].size for table in plan.tables if table is not None) * max(len(plan.graph.parts), 1)
    tuples, slots = power_of_two(LEAST + capped), power_of_two(LEAST + known)
    st = Handle(STATE_RECORD)
    st.hold(**_pool_arrays(plan, how, tuples), **_slot_arrays(how, slots), **_cell_arrays(how, tuples))
    st.hold(**_heap_arrays(how, tuples, tuples))
    st.hold(**_index_arrays(plan, FEW), **_arena(4096))
    streams = plan.streams
    until = plan.schedule or tuple(np.zeros(0, np.int64) for _ in range(streams))
    starts = np.cumsum([0, *(part.size for part in until)])
    part_of = np.full((max(len(plan.graph.parts), 1), MOST), NONE, np.int32)
    for number, part in enumerate(plan.graph.parts):
        for stream, attr in part.items():
            part_of[number, stream] = attr
    weigher = plan.weigher
    st.hold(
        levels=np.zeros(MOST, LEVEL_RECORD),
        part_of=part_of.ravel(),
        expiry=np.zeros((streams, LEAST), EXPIRY_RECORD),
        seen=np.zeros((streams, LEAST if how[0]["estimator"] == IN_WINDOW else 1), SEEN_RECORD),
        sketch=np.zeros(max(len(plan.graph.parts), 1) * streams * weigher.depth * weigher.width, np.int64),
        marks=np.zeros(64 * MOST, np.int64),
        until=np.concatenate([*until, np.zeros(1, np.int64)]),
        until_from=np.asarray(starts, np.int64),
    )
    set_steps(st, plan, plan.orders)
    measure(st)
    st["clock"] = st["base"] = st["horizon"] = NEVER
    st["free_ring"] = NONE
    st["free_count"], st["free_slot_count"], st["free_cell_count"] = tuples, slots, tuples
    st["last_evaluation"] = st["last_expiry"] = NEVER
    st["random"] = first_random_state(seed)
    for stream, window in enumerate(plan.windows):
        st["kind"][stream] = plan.kinds[stream]
        st["window"][stream] = window.size
        mine = [number for number, index in enumerate(plan.indexes) if index.stream == stream]
        st["first_index"][stream], st["end_index"][stream] = mine[0], mine[-1] + 1
        st["factors"][stream] = plan.graph.factors(stream)
    if how[0]["weighed"]:
        for stream, table in enumerate(plan.tables):
            if table is not None:
                _preload(how, st.for_kernel(), stream, *table)
    return st


def set_steps(st: Handle, plan: NPlan, orders: tuple[tuple[int, ...], ...]) -> None:
    """Put the loops of these orders in place."""
    steps, checks = plan.steps(orders)
    st.hold(steps=steps, checks=checks)
    st.resize(steps=steps.size, checks=checks.size)


def _heap_room(entries: int) -> int:
    return entries + heap.TOP + 1


def _streams(how: NDArray[Any]) -> int:
    return int(how[0]["streams"])


def _pool_arrays(plan: NPlan, how: NDArray[Any], size: int) -> Arrays:
    streams, organisation = _streams(how), how[0]["organisation"]
    leaves = size if organisation == LIFE else 1
    ordered = organisation in (KEY, LIFE)
    strays = size if plan.lateness > 0 else 1
    cumulative = size if organisation == CUMULATIVE else 1
    return {
        "pool": np.zeros(size, TUPLE_RECORD),
        "card": np.zeros(size, CARD_RECORD),
        "attr": np.zeros(size * int(how[0]["width"]), np.int64),
        "spot": np.full(size * int(how[0]["spots"]), NONE, np.int32),
        "link": np.full(2 * size if how[0]["fifo"] else 1, NONE, np.int32),
        "more": np.zeros(size if ordered and not how[0]["fifo"] else 1, MORE_RECORD),
        "free": np.arange(size - 1, -1, -1, dtype=np.int32),
        "stray": np.zeros((streams, _heap_room(strays)), HEAP_RECORD),
        "stray_place": np.full(strays, NONE, np.int32),
        "dense": np.tile(np.arange(size if organisation in (RANDOM, LIFE) else 1, dtype=np.int32), (streams, 1)),
        "cumulated": np.zeros(cumulative),
        "touched": np.zeros(cumulative, TOUCHED_RECORD),
        "match": empty_matches((streams, 2 * leaves)),
        "leaf": np.zeros((streams, leaves), LEAF_RECORD),
        "pending": np.zeros(size if how[0]["evaluate_every"] else 1, np.int32),
    }


def _slot_arrays(how: NDArray[Any], size: int) -> Arrays:
    size = size if how[0]["weighed"] else 1
    return {
        "slots": np.zeros(size, SLOT_RECORD),
        "slot_buckets": np.full(2 * size, NONE, np.int32),
        "free_slots": np.arange(size - 1, -1, -1, dtype=np.int32),
        "weight": np.zeros(size * MOST),
        "mass": np.zeros(size * MOST if how[0]["estimator"] == DECAYED else 1),
        "slot_cells": np.full(size * MOST, NONE, np.int32),
    }


def _cell_arrays(how: NDArray[Any], size: int) -> Arrays:
    size = size if how[0]["weighed"] else 1
    parts = max(int(how[0]["parts"]), 1)
    return {
        "cells": np.zeros(size, CELL_RECORD),
        "cell_slots": np.full(size * parts, NONE, np.int32),
        "cell_links": np.full(size * parts * 2, NONE, np.int32),
        "cell_buckets": np.full(2 * size, NONE, np.int32),
        "free_cells": np.arange(size - 1, -1, -1, dtype=np.int32),
    }


def _heap_arrays(how: NDArray[Any], tuples: int, all_cells: int) -> Arrays:
    streams, organisation = _streams(how), int(how[0]["organisation"])
    entries = {KEY: all_cells, TUPLE: tuples, CUMULATIVE: tuples, SCHEDULE: tuples}.get(organisation, 1)
    places = {RANDOM: tuples, LIFE: all_cells}.get(organisation, entries)
    return {
        "heap": np.zeros((streams, _heap_room(entries)), HEAP_RECORD),
        "place": np.full((streams, places), NONE, np.int32),
    }


def _arena(size: int) -> Arrays:
    """Room for the rings of all buckets."""
    return {"ring": np.zeros(size, RING_RECORD), "ring_key": np.zeros(size, np.int64)}


def _index_arrays(plan: NPlan, growing: int, wanted: dict[int, int] | None = None) -> Arrays:
    """The indexes of all windows and their empty buckets; those that grow have `growing`, or as many as wanted."""
    indexes = np.zeros(len(plan.indexes), INDEX_RECORD)
    first = 0
    for number, index in enumerate(plan.indexes):
        many = index.buckets if index.buckets is not None else (wanted or {}).get(number, growing)
        indexes[number] = (index.stream, index.attr, first, many, int(index.buckets is not None))
        first += many
    return {"indexes": indexes, "buckets": np.zeros(first, BUCKET_RECORD)}


def _exchange(st: Handle, new: Arrays, *, but: tuple[str, ...] = ()) -> Arrays:
    """Put larger arrays behind the handle, the old contents at their beginning; returns the old arrays."""
    old = {name: st.arrays[name] for name in new}
    for name, array in new.items():
        if name not in but:
            array[tuple(slice(0, length) for length in old[name].shape)] = old[name]
    st.hold(**new)
    measure(st)
    return old


def _stack_more(st: Handle, stack: str, count: str, old: NDArray[np.int32]) -> None:
    """New places go below the old ones: low places are used first."""
    free = st.arrays[stack]
    held, added = int(st[count]), free.size - old.size
    free[:added] = np.arange(free.size - 1, old.size - 1, -1, dtype=np.int32)
    free[added : added + held] = old[:held]
    st[count] = held + added


def grow_pool(plan: NPlan, how: NDArray[Any], st: Handle, room: int) -> None:
    """Room for at least `room` more tuples, and as many cells."""
    before = st.arrays["pool"].size
    size = power_of_two(max(2 * before, before - int(st["free_count"]) + room))
    new = _pool_arrays(plan, how, size)
    all_cells = max(st.arrays["cells"].size, size) if how[0]["weighed"] else 1
    grown_cells = _cell_arrays(how, all_cells)
    old = _exchange(st, new | grown_cells, but=("free", "match", "free_cells", "cell_buckets"))
    _exchange(st, _heap_arrays(how, size, all_cells))
    _stack_more(st, "free", "free_count", old["free"])
    if how[0]["weighed"]:
        _stack_more(st, "free_cells", "free_cell_count", old["free_cells"])
        _rehash_cells(how, st.for_kernel(), old["cell_buckets"])
    if how[0]["organisation"] == LIFE:
        st.arrays["match"][:, size : size + before] = old["match"][:, before:]
        _replay(st.for_kernel(), _streams(how))


def make_room_for_slots(how: NDArray[Any], st: Handle, room: int) -> None:
    """Let go of idle values; if that is not enough, room for at least `room` more."""
    _forget(how, st.for_kernel())
    before = st.arrays["slots"].size
    # A table that was almost full of live values would be full again at once.
    if st["free_slot_count"] >= max(room, before // 4):
        return
    size = power_of_two(max(2 * before, before - int(st["free_slot_count"]) + room))
    old = _exchange(st, _slot_arrays(how, size), but=("free_slots", "slot_buckets"))
    _stack_more(st, "free_slots", "free_slot_count", old["free_slots"])
    _rehash_slots(st.for_kernel(), old["slot_buckets"])


def grow_seen(st: Handle, room: int) -> None:
    """Room for at least `room` more arrivals in InWindow's memory."""
    old = st.arrays["seen"]
    streams = old.shape[0]
    size = power_of_two(max(2 * old.shape[1], int(st["seen_size"].max()) + room))
    seen = np.zeros((streams, size), SEEN_RECORD)
    for stream in range(streams):
        held = int(st["seen_size"][stream])
        seen[stream, :held] = np.roll(old[stream], -int(st["seen_head"][stream]))[:held]
    st["seen_head"] = 0
    st.hold(seen=seen)
    measure(st)


def grow_expiry(st: Handle, room: int) -> None:
    """Room for at least `room` more tuples in the order of expiry."""
    old = st.arrays["expiry"]
    streams, before = old.shape
    span = st["ring_to"] - st["ring_from"]
    size = power_of_two(max(2 * before, int(span.max()) + room))
    grown = np.zeros((streams, size), EXPIRY_RECORD)
    pool = st.arrays["pool"]
    for stream in range(streams):
        count = int(span[stream])
        places = (int(st["ring_from"][stream]) + np.arange(count)) & (before - 1)
        grown[stream, :count] = old[stream, places]
        items = grown[stream, :count]["item"]
        there = items != NONE
        pool["queued"][items[there]] = np.flatnonzero(there)
        st["ring_from"][stream], st["ring_to"][stream] = 0, count
        st["ring_ready"][stream] = 0
    st.hold(expiry=grown)
    measure(st)


def grow_marks(st: Handle) -> None:
    """Room for more instants that wait for their evaluation."""
    old = st.arrays["marks"]
    _exchange(st, {"marks": np.zeros(2 * old.size, np.int64)})


def _shadow(st: Handle, *names: str) -> Handle:
    """Another handle on the arrays as they are now."""
    old = Handle(STATE_RECORD)
    old.record[:] = st.record
    old.hold(**{name: st.arrays[name] for name in names})
    return old


def grow_rings(how: NDArray[Any], st: Handle, room: int) -> None:
    """A larger arena, or the same without holes, with room for a ring of `room`."""
    needed = int(rings.places_needed(st.for_kernel()))
    old = _shadow(st, "ring")
    size = max(st.arrays["ring"].size, 2 * power_of_two(needed + room))
    st.hold(**_arena(size))
    measure(st)
    rings.repack(how, st.for_kernel(), old.for_kernel())


def grow_buckets(plan: NPlan, how: NDArray[Any], st: Handle, room: int) -> None:
    """More buckets for the indexes that grow: one for each tuple that is there or comes."""
    indexes = st.arrays["indexes"]
    wanted = {
        number: max(int(index["many"]), power_of_two(int(st["resident"][index["stream"]]) + room))
        for number, index in enumerate(indexes)
    }
    old = _shadow(st, "ring", "buckets", "indexes")
    tuples = st.arrays["pool"].size * int(how[0]["spots"])
    size = max(st.arrays["ring"].size, 4 * power_of_two(tuples + sum(wanted.values())))
    st.hold(**_index_arrays(plan, FEW, wanted), **_arena(size))
    measure(st)
    rings.redistribute(how, st.for_kernel(), old.for_kernel())


def shapes(plan: NPlan, how: NDArray[Any], tuples: int, slots: int, all_cells: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays that belong to a pool, a table of values and cells of these sizes."""
    arrays = _pool_arrays(plan, how, tuples) | _slot_arrays(how, slots) | _cell_arrays(how, all_cells)
    arrays |= _heap_arrays(how, tuples, all_cells)
    return {name: array.shape for name, array in arrays.items()}


def rebuild_cells(how: NDArray[Any], st: Handle) -> None:
    """Slots found again, and all tuples put into cells anew, in the order of their arrival."""
    size = st.arrays["cells"].size
    tuples = st.arrays["pool"].size
    st.hold(**_cell_arrays(how, size))
    if how[0]["organisation"] in (KEY, LIFE):
        st.hold(**_heap_arrays(how, tuples, size))
        st["heap_size"] = 0
    if how[0]["organisation"] == LIFE:
        streams = _streams(how)
        st.hold(
            match=empty_matches((streams, 2 * tuples)),
            dense=np.tile(np.arange(tuples, dtype=np.int32), (streams, 1)),
        )
    slots = st.arrays["slots"]
    st.hold(slot_buckets=np.full(2 * slots.size, NONE, np.int32), slot_cells=np.full(slots.size * MOST, NONE, np.int32))
    st["free_cell_count"] = size
    measure(st)
    in_use = np.ones(slots.size, np.bool_)
    in_use[st.arrays["free_slots"][: int(st["free_slot_count"])]] = False
    stored = np.ones(tuples, np.bool_)
    stored[st.arrays["free"][: int(st["free_count"])]] = False
    items = np.flatnonzero(stored)
    items = items[np.argsort(st.arrays["pool"]["arrival"][items], kind="stable")]
    _rebuild(how, st.for_kernel(), np.flatnonzero(in_use), items)


@entry
def _preload(settings, state, stream, keys, weights):  # type: ignore[no-untyped-def]
    """Weights known from the start: for every attribute that the stream equates."""
    how, st = settings[0], state[0]
    for part in range(how["parts"]):
        if mem.part_of(st)[part * MOST + stream] >= 0:
            for i in range(keys.size):
                slot = cells.slot_of(st, part, keys[i])
                mem.slots(st, slot)["held"] = 1
                mem.weight(st)[slot * MOST + stream] = weights[i]


@entry
def _forget(settings, state):  # type: ignore[no-untyped-def]
    how, st = settings[0], state[0]
    weigh.sweep(how, st)
    return cells.forget_idle(st)


@entry
def _rehash_slots(state, old):  # type: ignore[no-untyped-def]
    st = state[0]
    for bucket in range(old.size):
        slot = int(old[bucket])
        while slot != NONE:
            following = int(mem.slots(st, slot)["next"])
            to = cells._slot_bucket(st, int(mem.slots(st, slot)["part"]), mem.slots(st, slot)["key"])
            mem.slots(st, slot)["next"] = mem.slot_buckets(st)[to]
            mem.slot_buckets(st)[to] = slot
            slot = following


@entry
def _rehash_cells(settings, state, old):  # type: ignore[no-untyped-def]
    how, st = settings[0], state[0]
    for bucket in range(old.size):
        cell = int(old[bucket])
        while cell != NONE:
            following = int(mem.cells(st, cell)["next"])
            to = cells._cell_bucket(how, st, cell, int(mem.cells(st, cell)["stream"]))
            mem.cells(st, cell)["next"] = mem.cell_buckets(st)[to]
            mem.cell_buckets(st)[to] = cell
            cell = following


@entry
def _replay(state, streams):  # type: ignore[no-untyped-def]
    for stream in range(streams):
        order.replay_all(state[0], stream)


@entry
def _rebuild(settings, state, in_use, items):  # type: ignore[no-untyped-def]
    """Slots into their buckets, then tuples into their cells; every value of a tuple has a slot."""
    how, st = settings[0], state[0]
    for i in range(in_use.size):
        slot = int(in_use[i])
        entry = mem.slots(st, slot)
        to = cells._slot_bucket(st, int(entry["part"]), entry["key"])
        entry["cells"] = 0
        entry["next"] = mem.slot_buckets(st)[to]
        mem.slot_buckets(st)[to] = slot
    for i in range(items.size):
        cells.enter(how, st, int(items[i]))
        if how["organisation"] == KEY or how["organisation"] == LIFE:
            order.enter(how, st, int(items[i]))
