"""More room for the arrays of a join: new arrays take the place of the old ones, with what these held."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import item_memory, loop
from shedjoin.engine.codes import (
    IN_WINDOW,
    LIFE,
)
from shedjoin.engine.handle import Handle
from shedjoin.engine.item_memory import has_items
from shedjoin.engine.memory import (
    AT_ONCE,
    FEW,
    FIRST_ENTRIES,
    Arrays,
    Integers,
    Sizes,
    add_values,
    arena,
    chain,
    free_stack,
    has_cells,
    in_use,
    index_arrays,
    is_keyed,
    order_arrays,
    pool_arrays,
    power_of_two,
    rehash,
    stray_arrays,
    value_arrays,
    whole_hash_of,
)
from shedjoin.engine.plan import Plan
from shedjoin.engine.records import (
    CELL_RECORD,
    EXPIRY_RECORD,
    NONE,
    SEEN_RECORD,
    THRESHOLD_RECORD,
)
from shedjoin.engine.structures import histogram
from shedjoin.engine.structures.buckets import SMALLEST


def _larger(size: int) -> int:
    """The next size of an array that is full: small ones grow faster, since each step takes as long as thousands of rows."""
    return 4 * size if size < AT_ONCE else 2 * size


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
    free[:added] = free_stack(old.size, free.size)
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
    size = power_of_two(max(_larger(before), before - int(state["free_count"]) + room))
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
    if has_cells(cfg):
        _stack_more(state, "free_cells", "free_cell_count", old["free_cells"])
        rehash_cells(cfg, state)
    _grow_order(cfg, state, sizes)


def hold_strays(cfg: NDArray[Any], state: Handle) -> None:
    """Room for tuples that come out of order: only then is there any."""
    size, streams = state.arrays["pool"].size, int(cfg[0]["streams"])
    state.hold(**stray_arrays(streams, size))


def make_room_for_values(cfg: NDArray[Any], state: Handle, room: int) -> None:
    """Forget what can be forgotten; grow when that is not plenty."""
    loop.forget(cfg, state)
    before = state.arrays["keys"].size
    if int(state["free_key_count"]) >= max(room, before // 2):
        return
    values = in_use(state, "free_keys", "free_key_count")
    size = power_of_two(max(_larger(before), before - int(state["free_key_count"]) + room))
    sizes = Sizes(state.arrays["pool"].size, size)
    old = _exchange(state, value_arrays(cfg, sizes), but=("free_keys", "heads"))
    _stack_more(state, "free_keys", "free_key_count", old["free_keys"])
    rehash(state, values)
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
        places = whole_hash_of(mixed, state.arrays["cell_heads"].size)
    chain(cells, places, state.arrays["cell_heads"], records["next"])


def grow_seen(state: Handle, room: int) -> None:
    """Room for at least `room` more arrivals in InWindow's memory."""
    old = state.arrays["seen"]
    size = power_of_two(max(2 * old.shape[1], int(state["seen_size"].max()) + room))
    seen = np.zeros((len(old), size), SEEN_RECORD)
    for stream in range(len(old)):
        held = int(state["seen_size"][stream])
        seen[stream, :held] = np.roll(old[stream], -int(state["seen_head"][stream]))[:held]
    state["seen_head"] = 0
    state.hold(seen=seen)


def grow_expiry(state: Handle, room: int) -> None:
    """Room for at least `room` more tuples in the order of expiry."""
    old = state.arrays["expiry"]
    streams, before = old.shape
    span = (state["ring_to"] - state["ring_from"])[:streams]
    size = power_of_two(max(_larger(before), int(span.max()) + room))
    expiry = np.zeros((streams, size), EXPIRY_RECORD)
    for stream in range(streams):
        counters = np.arange(int(state["ring_from"][stream]), int(state["ring_to"][stream]))
        places = counters & (size - 1)
        expiry[stream, places] = old[stream, counters & (before - 1)]
        items = expiry[stream, places]["item"]
        there = items != NONE
        state.arrays["pool"]["queued"][items[there]] = places[there]
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
    base = np.cumsum(rooms) - rooms
    state.hold(**arena(cfg, max(FIRST_ENTRIES, power_of_two(2 * (int(rooms.sum()) + room)))))
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
        item_memory.grow_lists(cfg, state, room)
        return
    rings, before = all_rings(cfg, state), state.arrays["entries"].size
    if not is_keyed(cfg):
        _empty(state.arrays["index_buckets"])
    fill_rings(cfg, state, rings, max(room, (_larger(before) - before) // 4))


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
        hashed = whole_hash_of(rings.key, index["many"])
    bucket = np.where(index["modular"] == 1, rings.key % index["many"], hashed)
    bucket = index["first"] + np.where(index["many"] == 1, 0, bucket)
    order = np.lexsort((state.arrays["pool"]["arrival"][rings.entry["item"]], bucket))
    _empty(state.arrays["index_buckets"])
    fill_rings(cfg, state, Rings(bucket[order], *(column[order] for column in rings[1:])), room)
