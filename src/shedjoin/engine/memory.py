"""Making the arrays of a state, and larger ones when a join outgrows them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.budget import Budget
from shedjoin.engine import indirect, item_memory, loop, selection, waiting_rows
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
    CELL_RECORD,
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
from shedjoin.engine.stages import ages, learn, neighbours, remember, sampling
from shedjoin.engine.structures import heap, histogram, kinetic_tournament
from shedjoin.engine.structures.buckets import SMALLEST
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
_hash_of = getattr(hash_of, "py_func", hash_of)


class Sizes(NamedTuple):
    """What most arrays are measured by."""

    tuples: int
    values: int


def allocate(plan: Plan, cfg: NDArray[Any], seed: int) -> Handle:
    """The empty memory of a new join."""
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
            selection.start(cfg, state, plan.selective.fraction)
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
    _link(plan, cfg, state)
    if has_items(cfg):
        item_memory.set_free(state, np.empty(0, np.int64))
        item_memory.fill_lists(cfg, state)
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


def _free_stack(first: int, size: int) -> NDArray[np.int32]:
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


def _has_cells(cfg: NDArray[Any]) -> bool:
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
    cells, parts = size if _has_cells(cfg) else 1, max(int(cfg[0]["parts"]), 1)
    arrays = {
        "pool": cache_lines(size, TUPLE_RECORD),
        "free": _free_stack(0, size),
        **_strays(streams, size if strays else 1),
        "card": np.zeros(cards, ENTRY_RECORD),
        "attr": np.zeros((size if cfg[0]["where"] else cards) * int(cfg[0]["width"]), np.int64),
        "spot": np.full(cards * int(cfg[0]["spots"]), NONE, np.int32),
        "link": np.full(2 * cells if cfg[0]["fifo"] else 1, NONE, np.int32),
        "pending": np.zeros(lazy, np.int32),
        "came": np.zeros(lazy, np.int64),
        "cell_values": np.full(cells * parts, NONE, np.int32),
        "cell_links": np.full(cells * parts * 2, NONE, np.int32),
        "cell_heads": np.full(power_of_two(2 * cells), NONE, np.int32),
        "free_cells": _free_stack(0, cells),
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


def _strays(streams: int, size: int) -> Arrays:
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
        "free_keys": _free_stack(0, size),
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
    both, which = np.unique(np.stack([parts, keys]), axis=1, return_inverse=True)
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
    _rehash(cfg, state, np.arange(size))


def _rehash(cfg: NDArray[Any], state: Handle, values: Integers) -> None:
    """Put values into their chains, which are empty."""
    keys, heads = state.arrays["keys"], state.arrays["heads"]
    parts = state.arrays["part"][values] if state.arrays["part"].size > 1 else np.zeros(values.size, np.int64)
    with np.errstate(over="ignore"):
        places = _hash_of(keys["key"][values] + parts.astype(np.int64) * 0x9E3779B9, heads.size)
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


# ------------------------------------------------------------------------------------------------------------- growing


def _larger(size: int) -> int:
    """The next size of an array that is full: small ones grow faster, since each step takes as long as thousands of rows."""
    return 4 * size if size < AT_ONCE else 2 * size


def _grown(cfg: NDArray[Any], before: int, least: int) -> int:
    """The next size of an array that is full and must have room for `least`."""
    if is_tight(cfg):
        return room_for(cfg, max(before + before // QUARTER, least))
    return power_of_two(max(_larger(before), least))


def _exchange(state: Handle, new: Arrays, *, but: tuple[str, ...] = ()) -> Arrays:
    """Put larger arrays behind the handle, the old contents at their beginning; returns the old arrays."""
    old = {name: state.arrays[name] for name in new}
    for name, array in new.items():
        if name not in but:
            array[tuple(slice(0, length) for length in old[name].shape)] = old[name]
    state.hold(**new)
    return old


def _stack_more(state: Handle, stack: str, count: str, old: NDArray[np.int32]) -> None:
    """New places go below the old ones: low places are used first."""
    free = state.arrays[stack]
    held, added = int(state[count]), free.size - old.size
    free[:added] = _free_stack(old.size, free.size)
    free[added : added + held] = old[:held]
    state[count] = held + added


def _sizes(state: Handle) -> Sizes:
    return Sizes(state.arrays["pool"].size, state.arrays["keys"].size)


def _grow_order(cfg: NDArray[Any], state: Handle, sizes: Sizes) -> None:
    before = state.arrays["match"].shape[1] // 2
    old = _exchange(state, order_arrays(cfg, sizes), but=("match",))
    if cfg[0]["organisation"] == LIFE:
        leaves = state.arrays["match"].shape[1] // 2
        state.arrays["match"][:, leaves : leaves + before] = old["match"][:, before:]
        replay_tournaments(state)


def grow_pool(cfg: NDArray[Any], state: Handle, room: int) -> None:
    """Room for at least `room` more tuples."""
    before = state.arrays["pool"].size
    size = _grown(cfg, before, before - int(state["free_count"]) + room)
    strays = state.arrays["stray_place"].size > 1
    if has_items(cfg):
        size = power_of_two(max(2 * before, before + 2 * room))
        used = item_memory.places_in_use(state)
    sizes = Sizes(size, state.arrays["keys"].size)
    old = _exchange(state, pool_arrays(cfg, sizes, strays), but=("free", "free_cells", "cell_heads"))
    if has_items(cfg):
        item_memory.set_free(state, used)
        item_memory.renew_bitmaps(state)
    else:
        _stack_more(state, "free", "free_count", old["free"])
    if _has_cells(cfg):
        _stack_more(state, "free_cells", "free_cell_count", old["free_cells"])
        rehash_cells(cfg, state)
    _grow_order(cfg, state, sizes)


def hold_strays(cfg: NDArray[Any], state: Handle) -> None:
    """Room for tuples that come out of order: only then is there any."""
    size, streams = state.arrays["pool"].size, int(cfg[0]["streams"])
    state.hold(**_strays(streams, size))


def make_room_for_values(cfg: NDArray[Any], state: Handle, room: int) -> None:
    """Forget what can be forgotten; grow when that is not plenty."""
    loop.forget(cfg, state)
    before = state.arrays["keys"].size
    plenty = before // (2 * QUARTER) if is_tight(cfg) else before // 2
    if int(state["free_key_count"]) >= max(room, plenty):
        return
    values = in_use(state, "free_keys", "free_key_count")
    if is_tight(cfg):
        size = room_for(cfg, max(before, values.size + values.size // QUARTER + room))
    else:
        size = _grown(cfg, before, values.size + room)
    sizes = Sizes(state.arrays["pool"].size, size)
    old = _exchange(state, value_arrays(cfg, sizes), but=("free_keys", "heads"))
    _stack_more(state, "free_keys", "free_key_count", old["free_keys"])
    _rehash(cfg, state, values)
    if is_keyed(cfg):
        _grow_order(cfg, state, sizes)


def widen_histogram(cfg: NDArray[Any], state: Handle, numbers: list[float]) -> None:
    """Wider buckets of numbers, so that these have one. What was counted by old buckets is counted by new ones."""
    before = int(state["known_numbers"]), float(state["bucket_width"])
    histogram.widen(state, numbers)
    values, streams = in_use(state, "free_keys", "free_key_count"), int(cfg[0]["streams"])
    arrays, old = state.arrays, state.arrays["keys"][values]
    order = np.argsort(old["key"], kind="stable")
    keys, which = np.unique(histogram.renamed(old["key"][order], before, state), return_inverse=True)
    number = np.zeros(arrays["keys"].size, np.int64)
    number[values[order]] = which
    groups = values[order][:, None] * streams + np.arange(streams)
    merged = {
        name: _merged(arrays[name][groups], which, keys.size) for name in ("weight", "mass") if arrays[name].size > 1
    }
    counted = {name: arrays[name] for name in ("kept", "stock", "windowed") if name in arrays}
    held = _merged(old["held"][order], which, keys.size)
    if cfg[0]["estimator"] != IN_WINDOW:
        held = np.minimum(held, 1)  # known, not counted
    stored = _merged(arrays["cell_count"][values[order]], which, keys.size)
    places, _ = item_memory.item_places(state, item_memory.places_in_use(state), more=1)
    arrays["item_values"][places] = number[arrays["item_values"][places]]
    arrays["seen"]["value"] = number[arrays["seen"]["value"]]
    if cfg[0]["dual"]:
        arrays["let_value"][:] = number[arrays["let_value"]]
    state.hold(**value_arrays(cfg, _sizes(state)))
    add_values(cfg, state, keys, np.zeros(keys.size, np.int64), held, merged["weight"])
    state.arrays["cell_count"][: keys.size] = stored
    if "kept" in counted:
        state.arrays["kept"][: keys.size] = _merged(counted["kept"][values[order]], which, keys.size)
    for name in ("stock", "windowed"):
        if name in counted and counted[name].size > 1:
            state.arrays[name][: keys.size * streams] = _merged(counted[name][groups], which, keys.size).reshape(-1)
    if "mass" in merged:
        state.arrays["mass"][: keys.size * streams] = merged["mass"].reshape(-1)


def _merged(counts: NDArray[Any], which: Integers, size: int) -> NDArray[Any]:
    """Sums of counts, one after the other."""
    sums = np.zeros((size, *counts.shape[1:]), counts.dtype)
    np.add.at(sums, which, counts)
    return sums


def rehash_cells(cfg: NDArray[Any], state: Handle) -> None:
    """Put all cells into their chains, which are empty."""
    cells = in_use(state, "free_cells", "free_cell_count")
    records, parts = state.arrays["buckets"].view(CELL_RECORD), int(cfg[0]["parts"])
    mixed = records["stream"][cells].astype(np.int64)
    values = state.arrays["cell_values"].reshape(-1, max(parts, 1))[cells].astype(np.int64)
    with np.errstate(over="ignore"):
        for part in range(parts):
            mixed = mixed * 0x100000001B3 + values[:, part]
        places = _hash_of(mixed, state.arrays["cell_heads"].size)
    chain(cells, places, state.arrays["cell_heads"], records["next"])


def grow_seen(cfg: NDArray[Any], state: Handle, room: int) -> None:
    """Room for at least `room` more arrivals in InWindow's memory, if so many may be remembered."""
    old = state.arrays["seen"]
    size = max(2 * old.shape[1], int(state["seen_size"].max()) + room)
    if cfg[0]["keys_kept"] >= 0:
        size = max(min(size, int(cfg[0]["keys_kept"])), int(state["seen_size"].max()))
    size = power_of_two(size)
    seen = np.zeros((len(old), size), SEEN_RECORD)
    for stream in range(len(old)):
        held = int(state["seen_size"][stream])
        seen[stream, :held] = np.roll(old[stream], -int(state["seen_head"][stream]))[:held]
    state["seen_head"] = 0
    state.hold(seen=seen)


def grow_expiry(cfg: NDArray[Any], state: Handle, room: int) -> None:
    """Room for at least `room` more tuples in the order of expiry."""
    old = state.arrays["expiry"]
    streams, before = old.shape
    rings = []
    for stream in range(streams):
        counters = np.arange(int(state["ring_from"][stream]), int(state["ring_to"][stream]))
        ring = old[stream, counters & (before - 1)]
        if is_tight(cfg):  # tuples that were evicted have left gaps
            ring = ring[ring["item"] != NONE]
            state["ring_to"][stream] = int(state["ring_from"][stream]) + ring.size
            state["ring_ready"][stream] = 0
        rings.append(ring)
    many = max(ring.size for ring in rings)
    if is_tight(cfg):
        size = power_of_two(max(LEAST, many + many // QUARTER + room))
    else:
        size = power_of_two(max(_larger(before), many + room))
    expiry = np.zeros((streams, size), EXPIRY_RECORD)
    for stream, ring in enumerate(rings):
        places = (int(state["ring_from"][stream]) + np.arange(ring.size)) & (size - 1)
        expiry[stream, places] = ring
        there = ring["item"] != NONE
        state.arrays["pool"]["queued"][ring["item"][there]] = places[there]
    state.hold(expiry=expiry)


def grow_thresholds(state: Handle) -> None:
    """Room for more thresholds. Those from before all that is sampled are forgotten."""
    old, streams = state.arrays["thresholds"], state.arrays["thresholds"].shape[0]
    with_items = "item_at" in state.arrays
    places = item_memory.places_in_use(state) if with_items else in_use(state, "free", "free_count")
    since = state.arrays["since"][places]
    least = int(since[since >= 0].min(initial=int(state["evicted"])))
    kept = [old[one, : int(state["threshold_count"][one])] for one in range(streams)]
    kept = [one[one["stamp"] >= least] for one in kept]
    thresholds = np.zeros((streams, power_of_two(2 * max(FEW, *(one.size for one in kept)))), THRESHOLD_RECORD)
    for stream, one in enumerate(kept):
        thresholds[stream, : one.size] = one
        state["threshold_count"][stream] = one.size
    state.hold(thresholds=thresholds)


def count_bytes(cfg: NDArray[Any], state: Handle, items: Integers) -> None:
    """What the stored tuples, and their keys, count against a budget in bytes."""
    pool, streams = state.arrays["pool"][items], int(cfg[0]["streams"])
    size = pool["bytes"].astype(np.int64) + int(cfg[0]["row_bytes"])
    groups = np.unique(pool["group"]) % streams if cfg[0]["key_bytes"] else np.empty(0, np.int64)
    for stream in range(streams):
        mine = pool["stream"] == stream
        keys = int((groups == stream).sum())
        state["stored_bytes"][stream] = int(size[mine].sum()) + int(cfg[0]["key_bytes"]) * keys
        if cfg[0]["organisation"] == SAMPLE:
            kept = state.arrays["since"][items] == sampling.KEPT
            state["kept_bytes"][stream] = int(size[mine & kept].sum())


def own_bytes(state: Handle, stream: int | None = None) -> int:
    """The summed `bytes` of the stored tuples, of all streams or one: what they take elsewhere."""
    items = item_memory.places_in_use(state) if "item_at" in state.arrays else in_use(state, "free", "free_count")
    pool = state.arrays["pool"][items]
    return int(pool["bytes"][pool["stream"] == stream if stream is not None else slice(None)].sum())


def _drop_late_rows(cfg: NDArray[Any], state: Handle) -> None:
    """Prospect, of a budget that has become smaller: the oldest late rows go."""
    streams, ring = int(cfg[0]["streams"]), state.arrays["seen"]
    for stream in range(streams):
        over = int(state["seen_size"][stream]) - int(cfg[0]["keys_kept"])
        if over <= 0:
            continue
        places = (int(state["seen_head"][stream]) + np.arange(over)) & (ring.shape[1] - 1)
        np.subtract.at(state.arrays["trail"]["recent"], ring["value"][stream, places] * streams + stream, 1)
        state["seen_head"][stream] = (int(state["seen_head"][stream]) + over) & (ring.shape[1] - 1)
        state["seen_size"][stream] -= over
        for name in ("looked_soon", "looked_later"):
            state[name][stream] = max(int(state[name][stream]) - over, 0)
        state["forgotten"] += over


def forget_keys(cfg: NDArray[Any], state: Handle) -> None:
    """The estimator forgets keys without a stored tuple, the least frequent (of Prospect: the least recent) first.

    What stays is half of what may be remembered; the other half is for keys that lose their last tuple from now on.
    """
    state["idle_bound"] = 0
    if has_items(cfg) and item_memory.has_histogram(cfg):
        return  # which has few values
    if cfg[0]["estimator"] == LEARNED:
        _drop_late_rows(cfg, state)
    loop.forget(cfg, state)  # what has faded is forgotten without this
    streams, keys = int(cfg[0]["streams"]), state.arrays["keys"]
    values = in_use(state, "free_keys", "free_key_count")
    groups = values[:, None] * streams + np.arange(streams)
    if is_keyed(cfg):
        idle = state.arrays["buckets"]["count"][groups].sum(axis=1) == 0
    else:
        idle = state.arrays["cell_count"][values] == 0
    if has_items(cfg):
        idle &= state.arrays["part"][values] != EVERY_ROW
    idle &= keys["held"][values] > 0
    state["idle_bound"] = int(idle.sum())
    if cfg[0]["estimator"] == LEARNED:
        trail = state.arrays["trail"]
        idle &= trail["recent"][groups].sum(axis=1) == 0
        worth = trail["last"][groups].max(axis=1)
    elif cfg[0]["estimator"] == DECAYED:
        worth = state.arrays["mass"][groups].sum(axis=1)
    else:
        weights = state.arrays["buckets"]["weight"] if is_keyed(cfg) else state.arrays["weight"]
        worth = weights[groups].sum(axis=1)
    values, worth = values[idle], worth[idle]
    gone = values.size - int(cfg[0]["keys_kept"]) // remember.STAYS
    if gone <= 0:
        return
    parts = state.arrays["part"][values] if state.arrays["part"].size > 1 else np.zeros(values.size, np.int32)
    keys["held"][values[np.lexsort((keys["key"][values], parts, worth))[:gone]]] = 0
    state["forgotten"] += gone
    state["idle_bound"] -= gone
    loop.forget(cfg, state)


def grow_marks(state: Handle) -> None:
    """Room for more instants that wait for their evaluation."""
    _exchange(state, {"marks": np.zeros(2 * state.arrays["marks"].size, np.int64)})


def replay_tournaments(state: Handle) -> None:
    """Play LIFE's tournaments again, from the leaves up."""
    loop.replay(state)


# ------------------------------------------------------------------------------------------------------------- entries


class Rings(NamedTuple):
    """Entries that are stored, bucket by bucket and oldest first."""

    bucket: Integers  # of each entry
    entry: NDArray[Any]
    key: Integers  # its value, in an index
    stream: Integers
    which: Integers  # the index among those of its stream


def all_rings(cfg: NDArray[Any], state: Handle) -> Rings:
    """All entries of all buckets."""
    keyed = is_keyed(cfg)
    buckets = state.arrays["buckets" if keyed else "index_buckets"]
    used = np.flatnonzero(buckets["count"] > 0)
    base, room, first, span = (buckets[name][used].astype(np.int64) for name in ("base", "room", "first", "span"))
    owner = np.repeat(np.arange(used.size), span)
    step = np.arange(owner.size) - np.repeat(np.cumsum(span) - span, span)
    place = base[owner] + ((first[owner] + step) & (room[owner] - 1))
    entry = state.arrays["entries"][place]
    there = entry["item"] != NONE
    bucket, entry, place = used[owner][there], entry[there], place[there]
    streams = int(cfg[0]["streams"])
    if keyed:
        nothing = np.zeros(bucket.size, np.int64)
        return Rings(bucket, entry, nothing, bucket % streams, nothing)
    indexes = state.arrays["indexes"]
    number = np.searchsorted(indexes["first"], bucket, side="right") - 1
    stream = indexes["stream"][number]
    return Rings(bucket, entry, state.arrays["entry_key"][place], stream, number - state["first_index"][stream])


def fill_rings(cfg: NDArray[Any], state: Handle, rings: Rings, room: int = 0) -> None:
    """A new arena with these entries, which are in the order of their buckets, each in a ring that fits, and `room` more."""
    buckets = state.arrays["buckets" if is_keyed(cfg) else "index_buckets"]
    used, counts = np.unique(rings.bucket, return_counts=True)
    rooms = np.maximum(SMALLEST, 1 << np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64))
    base, taken = np.cumsum(rooms) - rooms, int(rooms.sum())
    size = room_for(cfg, taken + taken // QUARTER + room) if is_tight(cfg) else power_of_two(2 * (taken + room))
    state.hold(**arena(cfg, max(FIRST_ENTRIES, size)))
    place = np.repeat(base - (np.cumsum(counts) - counts), counts) + np.arange(rings.bucket.size)
    state.arrays["entries"][place] = rings.entry
    buckets["base"][used], buckets["room"][used], buckets["first"][used] = base, rooms, 0
    buckets["span"][used], buckets["count"][used] = counts, counts
    items = rings.entry["item"]
    if is_keyed(cfg):
        state.arrays["pool"]["place"][items] = place
        empty = np.ones(buckets.size, np.bool_)
        empty[used] = False
        for name, value in (("base", NONE), ("room", 0), ("first", 0), ("span", 0), ("count", 0)):
            buckets[name][empty] = value
    else:
        state.arrays["entry_key"][place] = rings.key
        state.arrays["spot"][items.astype(np.int64) * int(cfg[0]["spots"]) + rings.which] = place
    state["entry_top"], state["free_entries"] = int(rooms.sum()), NONE


def grow_entries(cfg: NDArray[Any], state: Handle, room: int) -> None:
    """A new arena, with room for at least one more ring of `room` places, or for a row of that many items."""
    if has_items(cfg):
        item_memory.fill_lists(cfg, state, room)
        return
    rings, before = all_rings(cfg, state), state.arrays["entries"].size
    if not is_keyed(cfg):
        _empty(state.arrays["index_buckets"])
    fill_rings(cfg, state, rings, room if is_tight(cfg) else max(room, (_larger(before) - before) // 4))


def _empty(buckets: NDArray[Any]) -> None:
    buckets[:] = 0
    buckets["base"] = NONE


def grow_index_buckets(plan: Plan, cfg: NDArray[Any], state: Handle, room: int) -> None:
    """More buckets for the indexes that grow: one for each tuple that is there or comes."""
    rings = all_rings(cfg, state)
    wanted = {
        number: max(int(index["many"]), power_of_two(int(state["resident"][index["stream"]]) + room))
        for number, index in enumerate(state.arrays["indexes"])
    }
    state.hold(**index_arrays(plan, FEW, wanted))
    fill_indexes(cfg, state, rings, room)


def fill_indexes(cfg: NDArray[Any], state: Handle, rings: Rings, room: int = 0) -> None:
    """The entries of all indexes into their buckets, which are empty; `rings.bucket` is worked out anew."""
    indexes = state.arrays["indexes"]
    index = indexes[state["first_index"][rings.stream] + rings.which]
    with np.errstate(over="ignore"):
        hashed = _hash_of(rings.key, index["many"])
    bucket = np.where(index["modular"] == 1, rings.key % index["many"], hashed)
    bucket = index["first"] + np.where(index["many"] == 1, 0, bucket)
    order = np.lexsort((state.arrays["pool"]["arrival"][rings.entry["item"]], bucket))
    _empty(state.arrays["index_buckets"])
    fill_rings(cfg, state, Rings(bucket[order], *(column[order] for column in rings[1:])), room)
