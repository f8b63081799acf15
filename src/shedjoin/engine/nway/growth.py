"""Larger arrays for the state of an n-way join that has outgrown them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import LIFE
from shedjoin.engine.handle import Handle
from shedjoin.engine.jit import entry
from shedjoin.engine.memory import exchange, measure, power_of_two, stack_more
from shedjoin.engine.nway import cells, mem, order, rings, weigh
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
from shedjoin.engine.nway.state import STATE_RECORD
from shedjoin.engine.state import EXPIRY_RECORD, NONE


def grow_pool(plan: NPlan, how: NDArray[Any], st: Handle, room: int) -> None:
    """Room for at least `room` more tuples, and as many cells."""
    before = st.arrays["pool"].size
    size = power_of_two(max(2 * before, before - int(st["free_count"]) + room))
    new = pool_arrays(plan, how, size)
    all_cells = max(st.arrays["cells"].size, size) if how[0]["weighed"] else 1
    grown_cells = cell_arrays(how, all_cells)
    old = exchange(st, new | grown_cells, but=("free", "match", "free_cells", "cell_buckets"))
    exchange(st, heap_arrays(how, size, all_cells))
    stack_more(st, "free", "free_count", old["free"])
    if how[0]["weighed"]:
        stack_more(st, "free_cells", "free_cell_count", old["free_cells"])
        _rehash_cells(how, st.for_kernel(), old["cell_buckets"])
    if how[0]["organisation"] == LIFE:
        st.arrays["match"][:, size : size + before] = old["match"][:, before:]
        _replay(st.for_kernel(), streams_of(how))


def make_room_for_slots(how: NDArray[Any], st: Handle, room: int) -> None:
    """Let go of idle values; if that is not enough, room for at least `room` more."""
    _forget(how, st.for_kernel())
    before = st.arrays["slots"].size
    # A table that was almost full of live values would be full again at once.
    if st["free_slot_count"] >= max(room, before // 4):
        return
    size = power_of_two(max(2 * before, before - int(st["free_slot_count"]) + room))
    old = exchange(st, slot_arrays(how, size), but=("free_slots", "slot_buckets"))
    stack_more(st, "free_slots", "free_slot_count", old["free_slots"])
    _rehash_slots(st.for_kernel(), old["slot_buckets"])


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
    exchange(st, {"marks": np.zeros(2 * old.size, np.int64)})


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
    st.hold(**arena(size))
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
    st.hold(**index_arrays(plan, FEW, wanted), **arena(size))
    measure(st)
    rings.redistribute(how, st.for_kernel(), old.for_kernel())


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
