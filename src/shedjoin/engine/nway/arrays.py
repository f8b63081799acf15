"""The arrays of an n-way join's state, by their sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import heap
from shedjoin.engine.codes import CUMULATIVE, DECAYED, KEY, LIFE, RANDOM, SCHEDULE, TUPLE
from shedjoin.engine.memory import empty_matches
from shedjoin.engine.nway.plan import NPlan
from shedjoin.engine.nway.state import (
    BUCKET_RECORD,
    CARD_RECORD,
    CELL_RECORD,
    INDEX_RECORD,
    MOST,
    RING_RECORD,
    SLOT_RECORD,
)
from shedjoin.engine.state import HEAP_RECORD, LEAF_RECORD, MORE_RECORD, NONE, TUPLE_RECORD

Arrays = dict[str, NDArray[Any]]
#: How many buckets an index that grows begins with.
FEW = 16


def _heap_room(entries: int) -> int:
    return entries + heap.TOP + 1


def streams_of(how: NDArray[Any]) -> int:
    return int(how[0]["streams"])


def pool_arrays(plan: NPlan, how: NDArray[Any], size: int) -> Arrays:
    streams, organisation = streams_of(how), how[0]["organisation"]
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
        "touched": np.zeros(cumulative, np.int64),
        "match": empty_matches((streams, 2 * leaves)),
        "leaf": np.zeros((streams, leaves), LEAF_RECORD),
        "pending": np.zeros(size if how[0]["evaluate_every"] else 1, np.int32),
    }


def slot_arrays(how: NDArray[Any], size: int) -> Arrays:
    size = size if how[0]["weighed"] else 1
    return {
        "slots": np.zeros(size, SLOT_RECORD),
        "slot_buckets": np.full(2 * size, NONE, np.int32),
        "free_slots": np.arange(size - 1, -1, -1, dtype=np.int32),
        "weight": np.zeros(size * MOST),
        "mass": np.zeros(size * MOST if how[0]["estimator"] == DECAYED else 1),
        "slot_cells": np.full(size * MOST, NONE, np.int32),
    }


def cell_arrays(how: NDArray[Any], size: int) -> Arrays:
    size = size if how[0]["weighed"] else 1
    parts = max(int(how[0]["parts"]), 1)
    return {
        "cells": np.zeros(size, CELL_RECORD),
        "cell_slots": np.full(size * parts, NONE, np.int32),
        "cell_links": np.full(size * parts * 2, NONE, np.int32),
        "cell_buckets": np.full(2 * size, NONE, np.int32),
        "free_cells": np.arange(size - 1, -1, -1, dtype=np.int32),
    }


def heap_arrays(how: NDArray[Any], tuples: int, all_cells: int) -> Arrays:
    streams, organisation = streams_of(how), int(how[0]["organisation"])
    entries = {KEY: all_cells, TUPLE: tuples, CUMULATIVE: tuples, SCHEDULE: tuples}.get(organisation, 1)
    places = {RANDOM: tuples, LIFE: all_cells}.get(organisation, entries)
    return {
        "heap": np.zeros((streams, _heap_room(entries)), HEAP_RECORD),
        "place": np.full((streams, places), NONE, np.int32),
    }


def arena(size: int) -> Arrays:
    """Room for the rings of all buckets."""
    return {"ring": np.zeros(size, RING_RECORD), "ring_key": np.zeros(size, np.int64)}


def index_arrays(plan: NPlan, growing: int, wanted: dict[int, int] | None = None) -> Arrays:
    """The indexes of all windows and their empty buckets; those that grow have `growing`, or as many as wanted."""
    indexes = np.zeros(len(plan.indexes), INDEX_RECORD)
    first = 0
    for number, index in enumerate(plan.indexes):
        many = index.buckets if index.buckets is not None else (wanted or {}).get(number, growing)
        indexes[number] = (index.stream, index.attr, first, many, int(index.buckets is not None))
        first += many
    return {"indexes": indexes, "buckets": np.zeros(first, BUCKET_RECORD)}


def shapes(plan: NPlan, how: NDArray[Any], tuples: int, slots: int, all_cells: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays that belong to a pool, a table of values and cells of these sizes."""
    arrays = pool_arrays(plan, how, tuples) | slot_arrays(how, slots) | cell_arrays(how, all_cells)
    arrays |= heap_arrays(how, tuples, all_cells)
    return {name: array.shape for name, array in arrays.items()}
