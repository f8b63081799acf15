"""Making the arrays of a state, and larger ones when a join outgrows them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.budget import Budget
from shedjoin.engine import indirect, item_memory, selection, waiting_rows
from shedjoin.engine.codes import (
    AGE,
    CUMULATIVE,
    DECAYED,
    IN_WINDOW,
    KEY,
    KEYED,
    LEARNED,
    LIFE,
    MET,
    MOST,
    RANDOM,
    ROW,
    SAMPLE,
    SCHEDULE,
    TUPLE,
)
from shedjoin.engine.forms import is_pair
from shedjoin.engine.handle import Handle, cache_lines
from shedjoin.engine.item_memory import has_items
from shedjoin.engine.layouts.items import EVERY_ROW
from shedjoin.engine.plan import Plan
from shedjoin.engine.records import (
    BUCKET_RECORD,
    COHORT_RECORD,
    ENTRY_RECORD,
    EXPIRY_RECORD,
    HEAP_RECORD,
    INDEX_RECORD,
    ITEM_CODES,
    KEY_RECORD,
    LEAF_RECORD,
    LEARN_CODES,
    LEVEL_RECORD,
    MANY_STATE,
    MATCH_RECORD,
    MORE_RECORD,
    NEVER,
    NONE,
    PAIR_STATE,
    SEEN_RECORD,
    SELECT_CODES,
    THRESHOLD_RECORD,
    TRAIL_RECORD,
    TUPLE_RECORD,
    WAIT_CODES,
)
from shedjoin.engine.stages import ages, learn, neighbours, sampling
from shedjoin.engine.structures import heap, histogram, kinetic_tournament
from shedjoin.engine.structures.key_table import hash_of

Arrays = dict[str, NDArray[Any]]
Integers = NDArray[np.int64]
#: The pool, the table of values and the ring of expiry are never smaller, and always a power of two.
LEAST = 1024
#: Room for this much of a budget is made at once, for more as it is needed: a cap is no forecast.
AT_ONCE = 1 << 14
#: Where arrays are tight, their sizes are multiples of this, and they grow by one part in so many.
STEP, QUARTER = 64, 4
#: The arena of entries, and how many buckets an index that grows begins with.
FIRST_ENTRIES, FEW = 4096, 16

# The hash as plain Python, which takes whole arrays.
whole_hash_of = getattr(hash_of, "py_func", hash_of)


class Sizes(NamedTuple):
    """What most arrays are measured by."""

    tuples: int
    values: int


def allocate(plan: Plan, cfg: NDArray[Any], seed: int, *, runs: bool = True) -> Handle:
    """The empty memory of a new join. `runs`: or it is only looked at, and no kernel is needed."""
    known = sum(table[0].size for table in plan.tables if table is not None) * max(len(plan.parts), 1)
    capped = plan.budget.tuples or 0 if plan.budget is not None else 0
    sizes = Sizes(power_of_two(LEAST + min(capped, AT_ONCE)), power_of_two(LEAST + known))
    state = Handle(PAIR_STATE if is_pair(cfg) else MANY_STATE)
    state.hold(**pool_arrays(cfg, sizes, plan.lateness > 0), **value_arrays(cfg, sizes), **order_arrays(cfg, sizes))
    streams = plan.streams
    until = plan.schedule or tuple(np.zeros(0, np.int64) for _ in range(streams))
    part_of = np.full((max(len(plan.parts), 1), MOST), NONE, np.int32)
    for number, part in enumerate(plan.parts):
        for stream, attr in part.items():
            part_of[number, stream] = attr
    state.hold(
        **arena(cfg, FIRST_ENTRIES),
        expiry=np.zeros((streams, LEAST), EXPIRY_RECORD),
        seen=np.zeros((streams, LEAST if cfg[0]["estimator"] in (IN_WINDOW, LEARNED) else 1), SEEN_RECORD),
        sketch=np.zeros(max(len(plan.parts), 1) * streams * plan.weigher.depth * plan.weigher.width, np.int64),
        model=_first_model((streams, learn.NUMBERS if cfg[0]["estimator"] == LEARNED else 1)),
        until=np.concatenate([*until, np.zeros(1, np.int64)]),
        until_from=np.cumsum([0, *(part.size for part in until)]).astype(np.int64),
        thresholds=np.zeros((streams, FEW if cfg[0]["organisation"] == SAMPLE else 1), THRESHOLD_RECORD),
        moments=np.zeros((streams, sampling.MOMENTS)),
        curve=np.zeros((streams, ages.NUMBERS if cfg[0]["organisation"] == AGE else 1)),
        marks=np.zeros(64 * MOST if cfg[0]["evaluate_every"] else 1, np.int64),
        levels=np.zeros(MOST, LEVEL_RECORD),
        part_of=part_of.ravel(),
        filters=np.full(plan.filter_shape(plan.budget), NEVER, np.int64),
        **index_arrays(plan, FEW),
    )
    if not is_pair(cfg):
        state.hold(**selection.arrays(cfg))
        state.hold(work=plan.work())
        if plan.selective is not None:
            selection.start(state, plan.selective.fraction)
    set_steps(state, plan, plan.orders)
    if has_items(cfg):
        state.hold(**item_memory.arena(item_memory.FIRST_ITEMS))
    state["lag"] = plan.lateness
    state["clock"] = state["base"] = state["horizon"] = state["limit"] = state["oldest"] = NEVER
    state["bound"] = -np.inf
    state["free_entries"] = NONE
    state["free_count"], state["free_key_count"] = sizes
    state["free_cell_count"] = state.arrays["free_cells"].size
    state["last_evaluation"] = state["last_expiry"] = NEVER
    state["age_now"], state["age_lowest"] = NEVER, NONE
    state["random"] = state["salt"] = first_random_state(seed)
    waiting_rows.allocate(plan.admission, cfg, state)
    for stream in range(streams):
        mine = [number for number, index in enumerate(plan.indexes) if index.stream == stream]
        if mine:
            state["first_index"][stream], state["end_index"][stream] = mine[0], mine[-1] + 1
    if runs:
        _link(plan, cfg, state)
    if has_items(cfg):
        item_memory.set_free(state, np.empty(0, np.int64))
        item_memory.fill_lists(cfg, state)
    if runs:
        _preload(plan, cfg, state)
    return state


def _link(plan: Plan, cfg: NDArray[Any], state: Handle) -> None:
    """The kernels that only this kind of join needs."""
    if has_items(cfg):
        indirect.link(state, ITEM_CODES)
    elif plan.alone:
        indirect.link(state, ("expect partners",))
    if plan.selective is not None:
        indirect.link(state, SELECT_CODES)
    if cfg[0]["estimator"] == LEARNED and not is_pair(cfg):
        indirect.link(state, LEARN_CODES)
    if plan.admission is not None:
        indirect.link(state, WAIT_CODES)


def power_of_two(least: int) -> int:
    """The smallest power of two from `least` on."""
    return 1 << (least - 1).bit_length()


def is_tight(cfg: NDArray[Any]) -> bool:
    """Whether arrays may hardly be larger than what is in them: rows count what they take, see footprint.py."""
    return bool(cfg[0]["row_bytes"] > 0) and not has_items(cfg)


def room_for(cfg: NDArray[Any], least: int) -> int:
    """The size of an array for this many, as tight as it may be."""
    return -(-least // STEP) * STEP if is_tight(cfg) else power_of_two(least)


def first_random_state(seed: int) -> int:
    """splitmix64's first output, so that seeds that look alike start far apart."""
    mask = 2**64 - 1
    x = (seed + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return (x ^ (x >> 31)) or 1


def free_stack(first: int, size: int) -> NDArray[np.int32]:
    """Places first .. size - 1, the lowest on top."""
    return np.arange(size - 1, first - 1, -1, dtype=np.int32)


def empty_matches(shape: tuple[int, ...]) -> NDArray[Any]:
    """A tournament for each stream that no group plays in."""
    match = cache_lines(shape, MATCH_RECORD)
    match["doubt"] = kinetic_tournament.SURE
    match["winner"] = NONE
    return match


def empty_cohorts(shape: tuple[int, ...]) -> NDArray[Any]:
    """Cohorts of AGE without a tuple."""
    cohorts = cache_lines(shape, COHORT_RECORD)
    cohorts["root"] = NONE
    return cohorts


def _heap_room(entries: int) -> int:
    return entries + heap.TOP + 1  # a multiple of four for every power of two from four on


def is_keyed(cfg: NDArray[Any]) -> bool:
    return bool(cfg[0]["layout"] == KEYED)


def has_cells(cfg: NDArray[Any]) -> bool:
    return not is_keyed(cfg) and bool(cfg[0]["weighed"]) and not cfg[0]["alone"]


def _groups(cfg: NDArray[Any], sizes: Sizes) -> int:
    if is_keyed(cfg):
        return sizes.values * int(cfg[0]["streams"])
    return sizes.tuples if cfg[0]["weighed"] else 1


def has_floor(cfg: NDArray[Any]) -> bool:
    """Whether tuples note which rows of other windows they may meet: those whose lack of partners is judged."""
    return bool(cfg[0]["judged"].any() and (cfg[0]["kind"][: int(cfg[0]["streams"])] == ROW).any())


def grow_filters(plan: Plan, state: Handle, budget: Budget | None) -> None:
    """More cells for a larger budget: each new cell begins with what the old one knew."""
    cells, now = plan.filter_shape(budget)[1], state.arrays["filters"].shape[1]
    if cells > now:
        state.hold(filters=np.tile(state.arrays["filters"], cells // now))


def pool_arrays(cfg: NDArray[Any], sizes: Sizes, strays: bool) -> Arrays:
    """What there is one of for each tuple. (Cells are as many: each has a tuple.)"""
    size, streams = sizes.tuples, int(cfg[0]["streams"])
    cards = 1 if is_keyed(cfg) else size
    lazy = size if cfg[0]["evaluate_every"] else 1
    cells, parts = size if has_cells(cfg) else 1, max(int(cfg[0]["parts"]), 1)
    arrays = {
        "pool": cache_lines(size, TUPLE_RECORD),
        "free": free_stack(0, size),
        **stray_arrays(streams, size if strays else 1),
        "card": np.zeros(cards, ENTRY_RECORD),
        "attr": np.zeros((size if cfg[0]["where"] else cards) * int(cfg[0]["width"]), np.int64),
        "spot": np.full(cards * int(cfg[0]["spots"]), NONE, np.int32),
        "link": np.full(2 * cells if cfg[0]["fifo"] else 1, NONE, np.int32),
        "pending": np.zeros(lazy, np.int32),
        "came": np.zeros(lazy, np.int64),
        "cell_values": np.full(cells * parts, NONE, np.int32),
        "cell_links": np.full(cells * parts * 2, NONE, np.int32),
        "cell_heads": np.full(power_of_two(2 * cells), NONE, np.int32),
        "free_cells": free_stack(0, cells),
    }
    if not is_keyed(cfg):
        arrays["buckets"] = cache_lines(_groups(cfg, sizes), BUCKET_RECORD)
    if cfg[0]["estimator"] == MET:
        arrays["met_on_arrival"] = np.zeros(size, np.int64)
    arrays["leaving"] = np.zeros(size if cfg[0]["most"].any() else 1, np.int32)
    arrays["floor"] = np.zeros(size * streams if has_floor(cfg) else 1, np.int64)
    if has_items(cfg):
        arrays |= item_memory.pool_arrays(size)
    return {**arrays, **waiting_rows.pool_arrays(cfg, size)}


def stray_arrays(streams: int, size: int) -> Arrays:
    """Heaps of the tuples that came out of order."""
    return {
        "stray": cache_lines((streams, _heap_room(size)), HEAP_RECORD),
        "stray_place": np.full(size, NONE, np.int32),
    }


def value_arrays(cfg: NDArray[Any], sizes: Sizes) -> Arrays:
    """What there is one of for each value, and in the keyed layout for each group."""
    size, streams = sizes.values, int(cfg[0]["streams"])
    cells = size if cfg[0]["weighed"] and not is_keyed(cfg) else 1
    arrays = {
        "keys": np.zeros(size, KEY_RECORD),
        "heads": np.full(power_of_two(2 * size), NONE, np.int32),
        "free_keys": free_stack(0, size),
        "mass": np.zeros(size * streams if cfg[0]["estimator"] == DECAYED else 1),
        "trail": cache_lines(size * streams if cfg[0]["estimator"] == LEARNED else 1, TRAIL_RECORD),
        "part": np.zeros(1 if is_pair(cfg) else size, np.int32),
        "weight": np.zeros(cells * streams),
        "cell_count": np.zeros(cells, np.int32),
        "first_cell": np.full(cells * streams, NONE, np.int32),
    }
    if is_keyed(cfg):
        arrays["buckets"] = cache_lines(_groups(cfg, sizes), BUCKET_RECORD)
    return {**arrays, **waiting_rows.value_arrays(cfg, size)}


def order_arrays(cfg: NDArray[Any], sizes: Sizes) -> Arrays:
    """What a policy needs to find the lowest tuple."""
    organisation, streams = int(cfg[0]["organisation"]), int(cfg[0]["streams"])
    tuples, groups = sizes.tuples, _groups(cfg, sizes)
    of_tuples = organisation in (TUPLE, CUMULATIVE, SCHEDULE, SAMPLE)
    by_age = organisation == AGE
    entries = groups if organisation == KEY else tuples if of_tuples else 1
    lines = sizes.values if organisation == KEY and is_keyed(cfg) else entries  # of each stream
    leaves = power_of_two(tuples) if organisation == LIFE else 1
    following = tuples if cfg[0]["follows"] else 1
    heaps = 2 * streams if organisation == SAMPLE else streams
    return {
        "heap": cache_lines((heaps, _heap_room(lines)), HEAP_RECORD),
        "place": np.full({RANDOM: tuples, LIFE: groups, AGE: tuples}.get(organisation, entries), NONE, np.int32),
        "more": np.zeros(tuples if by_age or (organisation in (KEY, LIFE) and not cfg[0]["fifo"]) else 1, MORE_RECORD),
        "dense": np.tile(np.arange(tuples if organisation in (RANDOM, LIFE) else 1, dtype=np.int32), (streams, 1)),
        "prio": np.zeros(tuples if organisation in (CUMULATIVE, SAMPLE, AGE) else 1),
        "since": np.zeros(tuples if organisation in (SAMPLE, AGE) else 1, np.int64),
        "touched": np.zeros(following, np.int64),
        "probed": np.full(groups if following > 1 and is_pair(cfg) else 1, NONE, np.int64),
        "match": empty_matches((streams, 2 * leaves)),
        "leaf": np.zeros((streams, leaves), LEAF_RECORD),
        "cohorts": empty_cohorts((streams, ages.COHORTS if by_age else 1)),
        "age_pools": np.zeros((streams, 2 * ages.PLACES if by_age else 1)),
    }


def arena(cfg: NDArray[Any], size: int) -> Arrays:
    """Room for the entries of all buckets."""
    return {
        "entries": cache_lines(size, ENTRY_RECORD),
        "entry_key": np.zeros(1 if is_keyed(cfg) else size, np.int64),
    }


def _first_model(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """A model that has learned nothing yet."""
    model = np.zeros(shape)
    if shape[1] > 1:
        for feature in range(learn.FEATURES):
            model[:, learn.COEFFICIENT + feature] = learn.first_guess(feature)
        model[0, learn.NEAR + neighbours.TURNS] = 1.0 / neighbours.PLACES
    return model


def index_arrays(plan: Plan, growing: int, wanted: dict[int, int] | None = None) -> Arrays:
    """The indexes of all windows and their empty buckets; those that grow have `growing`, or as many as wanted."""
    indexes = np.zeros(max(len(plan.indexes), 1), INDEX_RECORD)
    first = 0
    for number, index in enumerate(plan.indexes):
        many = index.buckets if index.buckets is not None else (wanted or {}).get(number, growing)
        indexes[number] = (index.stream, index.attr, first, many, int(index.buckets is not None))
        first += many
    if not plan.indexes:
        indexes["modular"] = 1  # none that grows
    buckets = np.zeros(max(first, 1), BUCKET_RECORD)
    buckets["base"] = NONE
    return {"indexes": indexes, "index_buckets": buckets}


def set_steps(state: Handle, plan: Plan, orders: tuple[tuple[int, ...], ...]) -> None:
    """Put the loops of these join orders in place."""
    steps, checks = plan.steps(orders)
    state.hold(steps=steps, checks=checks)


def _preload(plan: Plan, cfg: NDArray[Any], state: Handle) -> None:
    """The values of a table are known from the start and never forgotten."""
    if not any(table is not None for table in plan.tables) or not cfg[0]["weighed"] or not plan.parts:
        return
    streams = plan.streams
    wanted = [
        (number, stream, *plan.tables[stream])  # type: ignore[misc]
        for number, part in enumerate(plan.parts)
        for stream in part
        if plan.tables[stream] is not None
    ]
    if has_items(cfg):
        wanted = _known_values(cfg, state, [one for one in wanted if one[0] != EVERY_ROW])
    keys = np.concatenate([keys for _, _, keys, _ in wanted])
    parts = np.concatenate([np.full(keys.size, number) for number, _, keys, _ in wanted])
    order = np.lexsort((keys, parts))
    parts, keys = parts[order], keys[order]
    new = np.append(True, (np.diff(parts) != 0) | (np.diff(keys) != 0))[: keys.size]
    both, which = np.stack([parts[new], keys[new]]), np.empty(keys.size, np.int64)
    which[order] = np.cumsum(new) - 1
    weights = np.zeros((both.shape[1], streams))
    start = 0
    for _, stream, mine, numbers in wanted:
        np.add.at(weights[:, stream], which.reshape(-1)[start : start + mine.size], numbers)
        start += mine.size
    add_values(cfg, state, both[1], both[0], held=np.ones(both.shape[1], np.int32), weights=weights)


def _known_values(cfg: NDArray[Any], state: Handle, wanted: list[Any]) -> list[Any]:
    """A table of a predicate: of single items, or of numbers, which are counted by buckets."""
    if not item_memory.has_numbers(cfg):
        every = [(EVERY_ROW, stream, np.zeros(1, np.int64), np.ones(1)) for stream in range(int(cfg[0]["streams"]))]
        return wanted + every
    if item_memory.has_histogram(cfg):
        histogram.widen(state, np.concatenate([keys for _, _, keys, _ in wanted]).astype(np.float64).tolist())
    return [
        (part, stream, item_memory.values_of_numbers(cfg, state, keys.astype(np.float64)), numbers)
        for part, stream, keys, numbers in wanted
    ]


def add_values(
    cfg: NDArray[Any], state: Handle, keys: Integers, parts: Integers, held: Integers, weights: NDArray[np.float64]
) -> None:
    """Put values into an empty table, numbered from 0 on."""
    size, streams = keys.size, int(cfg[0]["streams"])
    arrays = state.arrays
    arrays["keys"]["key"][:size] = keys
    arrays["keys"]["held"][:size] = held
    if arrays["part"].size > 1:
        arrays["part"][:size] = parts
    if is_keyed(cfg):
        buckets = arrays["buckets"][: size * streams]
        buckets["base"], buckets["low"] = NONE, NONE
        buckets["weight"] = weights.reshape(-1)
    else:
        arrays["weight"][: size * streams] = weights.reshape(-1)
    if arrays["trail"].size > 1:
        arrays["trail"]["last"][: size * streams] = NEVER
    state["free_key_count"] = arrays["keys"].size - size  # the stack has the lowest on top
    rehash(state, np.arange(size))


def rehash(state: Handle, values: Integers) -> None:
    """Put values into their chains, which are empty."""
    keys, heads = state.arrays["keys"], state.arrays["heads"]
    parts = state.arrays["part"][values] if state.arrays["part"].size > 1 else np.zeros(values.size, np.int64)
    with np.errstate(over="ignore"):
        places = whole_hash_of(keys["key"][values] + parts.astype(np.int64) * 0x9E3779B9, heads.size)
    chain(values, places, heads, keys["next"])


def chain(items: Integers, places: Integers, heads: NDArray[np.int32], following: NDArray[Any]) -> None:
    """Link items that share a place; `heads` has the first of each."""
    order = np.argsort(places, kind="stable")
    items, places = items[order], places[order]
    if not items.size:
        return
    last = np.append(places[1:] != places[:-1], True)
    after = np.append(items[1:], NONE)
    following[items] = np.where(last, NONE, after)
    first = np.append(True, last[:-1])
    heads[places[first]] = items[first]


def in_use(state: Handle, stack: str, count: str) -> NDArray[np.int64]:
    """The places that are not on a stack of free ones."""
    free = state.arrays[stack]
    used = np.ones(free.size, np.bool_)
    used[free[: int(state[count])]] = False
    return np.flatnonzero(used)
