"""The arrays of rows that wait for their turn: made, and made larger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.admission import Admission
from shedjoin.engine.codes import BY_STOCK, DROP_RANDOM, DROP_SEMANTIC, KEYED, LEARNED, MOST, RANDOM
from shedjoin.engine.handle import Handle
from shedjoin.engine.records import (
    FRESH_RECORD,
    HEAP_RECORD,
    NEVER,
    NONE,
    WAITING_RECORD,
)
from shedjoin.engine.structures import heap

Arrays = dict[str, NDArray[Any]]
Columns = dict[str, NDArray[Any]]
Integers = NDArray[np.int64]
#: Arrays begin with this many places, and always have a power of two.
LEAST = 64


def by_lot(cfg: NDArray[Any]) -> bool:
    """Whether lots fall on the rows in line."""
    shared = cfg[0]["integrated"] and cfg[0]["organisation"] == RANDOM
    return bool(cfg[0]["drop"] == DROP_RANDOM or shared)


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


def row_arrays(cfg: NDArray[Any], size: int) -> Arrays:
    streams, lots = int(cfg[0]["streams"]), by_lot(cfg)
    return {
        "waiting": np.zeros(size, WAITING_RECORD),
        "free_waiting": np.arange(size - 1, -1, -1, dtype=np.int32),
        "waiting_key": np.zeros(size * int(cfg[0]["width"]), np.int64),
        "queue_heap": np.zeros((streams, 1 if lots else size + heap.TOP + 1), HEAP_RECORD),
        "queue_list": np.zeros((streams, size if lots else 1), np.int32),
        "queue_place": np.full(size, NONE, np.int32),
    }


def _ring_arrays(cfg: NDArray[Any], rows: int, values: int) -> Arrays:
    streams = int(cfg[0]["streams"])
    return {
        "let_ts": np.zeros((streams, rows), np.int64),
        "let_size": np.zeros((streams, rows), np.int32),
        "let_value": np.zeros((streams, values), np.int32),
    }


def level_arrays(cfg: NDArray[Any], size: int) -> Arrays:
    streams = int(cfg[0]["streams"])
    return {
        "level": np.zeros((streams, size)),
        "level_count": np.zeros((streams, size), np.int64),
        "level_sum": np.zeros((streams, size), np.int64),
    }


def fresh_arrays(cfg: NDArray[Any], size: int) -> Arrays:
    return {"fresh": np.zeros(size, FRESH_RECORD), "fresh_value": np.full(size * parts_of(cfg), NONE, np.int32)}


def allocate(admission: Admission | None, cfg: NDArray[Any], state: Handle) -> None:
    """The empty line, aux-window and histograms of a new join."""
    if admission is None:
        return
    size = LEAST if admission.dual else 2
    hold(
        state,
        **row_arrays(cfg, LEAST),
        **_ring_arrays(cfg, size, size),
        **level_arrays(cfg, size),
        **fresh_arrays(cfg, LEAST),
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


def set_given_shares(admission: Admission | None, state: Handle) -> None:
    """Of a join that goes on: shares that are given are those of now."""
    if admission is not None and admission.shares is not None and admission.speeds is None:
        state["rear_share"], state["front_share"] = admission.shares


def hold(state: Handle, **arrays: NDArray[Any]) -> None:
    state.hold(**arrays)
    state.resize(**{name: array.shape[-1] for name, array in arrays.items()})


def in_use(state: Handle) -> Integers:
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
    new = row_arrays(cfg, size)
    for name in names:
        new[name][tuple(slice(0, length) for length in old[name].shape)] = old[name]
    added = size - before.size
    new["free_waiting"][:added] = np.arange(size - 1, before.size - 1, -1)
    new["free_waiting"][added : added + held] = before[:held]
    state["free_waiting_count"] = held + added
    hold(state, **new)


def _first_instant(state: Handle) -> int:
    rows = in_use(state)
    return int(state.arrays["waiting"]["instant"][rows[0]]) if rows.size else int(state["instant"]) + 1


def instants_of(state: Handle) -> NDArray[np.int64]:
    """How many rows of each stream had come when each instant began, from the first on of which a row waits."""
    ring = state.arrays["instants"].reshape(-1, MOST)
    numbers = np.arange(_first_instant(state), int(state["instant"]) + 1)
    marks: NDArray[np.int64] = ring[numbers & (len(ring) - 1)]
    return marks


def grow_instants(state: Handle) -> None:
    """Twice the room for instants of which rows wait."""
    marks, ring = instants_of(state), np.zeros((2 * state.arrays["instants"].size // MOST, MOST), np.int64)
    numbers = np.arange(int(state["instant"]) + 1 - len(marks), int(state["instant"]) + 1)
    ring[numbers & (len(ring) - 1)] = marks
    hold(state, instants=ring.reshape(-1))


def grow_fresh(cfg: NDArray[Any], state: Handle, buffers: Handle) -> None:
    """Room for the tuples of an open instant, there and where policies see them."""
    size = max(state.arrays["fresh"].size, 2 * int(state["fresh_count"]))
    new = fresh_arrays(cfg, size)
    for name, array in new.items():
        array[: state.arrays[name].size] = state.arrays[name]
    hold(state, **new)
    hold(buffers, out_fresh=np.zeros(size, np.int64))


def grow_let_in(cfg: NDArray[Any], state: Handle, values: int) -> None:
    """Twice the room for the rows that a window will hold, and for their values and at least this many more."""
    held = int((state["let_tail"] - state["let_head"]).max())
    fill_rings(cfg, state, [let_in(state, stream) for stream in range(int(cfg[0]["streams"]))], values + held)


def let_in(state: Handle, stream: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The rows that a window will hold: their times, how many values each has, and the values."""
    rows, values = state.arrays["let_ts"].shape[1], state.arrays["let_value"].shape[1]
    row = np.arange(int(state["let_from"][stream]), int(state["let_to"][stream])) & (rows - 1)
    value = np.arange(int(state["let_head"][stream]), int(state["let_tail"][stream])) & (values - 1)
    arrays = state.arrays
    return arrays["let_ts"][stream, row], arrays["let_size"][stream, row], arrays["let_value"][stream, value]


def fill_rings(cfg: NDArray[Any], state: Handle, let_in: Sequence[tuple[NDArray[Any], ...]], values: int) -> None:
    """New rings with these rows of each stream, and room for as many again, and for this many values."""
    rows = max(ts.size for ts, _, _ in let_in)
    hold(state, **_ring_arrays(cfg, room(rows + 1), room(values + 1)))
    for stream, (ts, size, value) in enumerate(let_in):
        state.arrays["let_ts"][stream, : ts.size], state.arrays["let_size"][stream, : ts.size] = ts, size
        state.arrays["let_value"][stream, : value.size] = value
        state["let_from"][stream], state["let_to"][stream] = 0, ts.size
        state["let_head"][stream], state["let_tail"][stream] = 0, value.size


def grow_levels(cfg: NDArray[Any], state: Handle) -> None:
    """Twice the room for numbers of expected partners."""
    old, counts = state.arrays["level"], state.arrays["level_count"]
    new = level_arrays(cfg, 2 * old.shape[1])
    new["level"][:, : old.shape[1]], new["level_count"][:, : old.shape[1]] = old, counts
    sum_up(new)
    hold(state, **new)


def sum_up(arrays: Arrays) -> None:
    """The Fenwick trees of counts."""
    counts, sums = arrays["level_count"], arrays["level_sum"]
    nodes = np.arange(1, counts.shape[1])
    total = np.concatenate([np.zeros((len(counts), 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
    sums[:, 1:] = total[:, nodes] - total[:, nodes - (nodes & -nodes)]


def add_told(state: Handle, told: Integers) -> None:
    """Clocks that hold when all rows that have come so far have had their turn."""
    length = told.size + 1
    pending = state.arrays["told"][int(state["told_from"]) * length : int(state["told_to"]) * length]
    hold(state, told=np.concatenate([pending, [int(state["rows"])], told]).astype(np.int64))
    state["told_from"], state["told_to"] = 0, pending.size // length + 1


def room(size: int) -> int:
    return max(LEAST, 1 << int(size).bit_length())


def histograms(state: Handle) -> tuple[list[float], list[float]] | None:
    """How often each value is in the histograms of two streams; None while one of them is empty."""
    counts = state.arrays["windowed"].reshape(-1, 2)
    known = np.flatnonzero(counts.any(axis=1))
    if not counts.any(axis=0).all():
        return None
    keys = state.arrays["keys"]["key"][known].tolist()
    order = known[sorted(range(known.size), key=lambda place: str(keys[place]))]
    return counts[order, 0].tolist(), counts[order, 1].tolist()
