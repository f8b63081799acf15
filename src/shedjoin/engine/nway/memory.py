"""The memory of an n-way join: empty at the beginning, and put together again from a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import IN_WINDOW, KEY, LIFE
from shedjoin.engine.handle import Handle
from shedjoin.engine.jit import entry
from shedjoin.engine.memory import LEAST, empty_matches, first_random_state, measure, power_of_two
from shedjoin.engine.nway import cells, mem, order
from shedjoin.engine.nway.arrays import (
    FEW,
    arena,
    cell_arrays,
    heap_arrays,
    index_arrays,
    pool_arrays,
    slot_arrays,
    streams_of,
)
from shedjoin.engine.nway.plan import NPlan
from shedjoin.engine.nway.state import LEVEL_RECORD, MOST, STATE_RECORD
from shedjoin.engine.state import EXPIRY_RECORD, NEVER, NONE, SEEN_RECORD


def allocate(plan: NPlan, how: NDArray[Any], seed: int) -> Handle:
    """The empty memory of a new join."""
    capped = plan.budget.tuples or 0 if plan.budget is not None else 0
    known = sum(table[0].size for table in plan.tables if table is not None) * max(len(plan.graph.parts), 1)
    tuples, slots = power_of_two(LEAST + capped), power_of_two(LEAST + known)
    st = Handle(STATE_RECORD)
    st.hold(**pool_arrays(plan, how, tuples), **slot_arrays(how, slots), **cell_arrays(how, tuples))
    st.hold(**heap_arrays(how, tuples, tuples))
    st.hold(**index_arrays(plan, FEW), **arena(4096))
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
    st["bound"] = -np.inf
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


def rebuild_cells(how: NDArray[Any], st: Handle) -> None:
    """Slots found again, and all tuples put into cells anew, in the order of their arrival."""
    size = st.arrays["cells"].size
    tuples = st.arrays["pool"].size
    st.hold(**cell_arrays(how, size))
    if how[0]["organisation"] in (KEY, LIFE):
        st.hold(**heap_arrays(how, tuples, size))
        st["heap_size"] = 0
    if how[0]["organisation"] == LIFE:
        streams = streams_of(how)
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
