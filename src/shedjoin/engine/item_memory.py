"""The arrays of the items layout: made, grown, and filled from what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import BAND, DROP_SEMANTIC, FIRST_OF_SETS, ITEMS, MET, ROW
from shedjoin.engine.handle import Handle
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import search
from shedjoin.engine.structures import bitmaps, histogram, time_lists
from shedjoin.engine.structures.time_lists import EMPTIES, FIXED_LISTS

Arrays = dict[str, NDArray[Any]]
Integers = NDArray[np.int64]
#: Two streams have a predicate between them.
STREAMS = 2
FIRST_ITEMS, FIRST_LISTS = 1024, 64
_POOL = {
    "number": "f8",
    "item_at": "i8",
    "item_count": "i8",
    "signature": "u8",
    "hit": "i4",
    "product": "f8",
}
_ENTRIES = {"list_ts": "i8", "list_seq": "i8", "list_slot": "i4"}
_LISTS = ("list_start", "list_room", "list_head", "list_length", "list_dead", "list_bitmap")


def has_items(cfg: NDArray[Any]) -> bool:
    return bool(cfg[0]["layout"] == ITEMS)


def pool_arrays(size: int) -> Arrays:
    """What there is one of for each tuple, or for each two places."""
    return {name: np.zeros(size, kind) for name, kind in _POOL.items()} | {"common": np.zeros(size // 2, np.uint8)}


def places_in_use(state: Handle) -> Integers:
    """Where tuples stand in the pool."""
    free = state.arrays["free"].reshape(STREAMS, -1)
    used = np.ones(free.size, np.bool_)
    used[:STREAMS] = False
    for stream in range(STREAMS):
        used[free[stream, : int(state["free_places"][stream])]] = False
    return np.flatnonzero(used)


def places_for(stream: Integers) -> Integers:
    """The lowest places for tuples of these streams, in their order."""
    places = np.zeros(stream.size, np.int64)
    for number in range(STREAMS):
        mine = np.flatnonzero(stream == number)
        places[mine] = STREAMS * (1 + np.arange(mine.size)) + number
    return places


def set_free(state: Handle, used: Integers) -> None:
    """All places but these are free."""
    size = state.arrays["pool"].size
    free = np.full((STREAMS, size // 2), NONE, np.int32)
    taken = np.zeros(size, np.bool_)
    taken[used] = taken[:STREAMS] = True
    for stream in range(STREAMS):
        places = np.arange(size - STREAMS + stream, -1, -STREAMS)
        places = places[~taken[places]]
        free[stream, : places.size] = places
        state["free_places"][stream] = places.size
    state.hold(free=free.reshape(-1))
    state.resize(free=size)


def arena(size: int) -> Arrays:
    """Room for the items of all tuples."""
    return {
        "items": np.zeros(size, np.int64),
        "item_weights": np.zeros(size),
        "item_values": np.full(size, NONE, np.int32),
    }


def grow_items(state: Handle, room: int) -> None:
    """The items of stored tuples side by side, with room for as many again."""
    tuples = places_in_use(state)
    places, owners = item_places(state, tuples, more=1)
    new = arena(2 * (places.size + room + FIRST_ITEMS))
    for name, array in new.items():
        array[: places.size] = state.arrays[name][places]
    sizes = state.arrays["item_count"][tuples] + 1
    state.arrays["item_at"][tuples] = np.cumsum(sizes) - sizes
    state["item_top"] = owners.size
    state.hold(**new)
    state.resize(**{name: array.size for name, array in new.items()})


def item_places(state: Handle, tuples: Integers, more: int = 0) -> tuple[Integers, Integers]:
    """Where the items of tuples stand in the arena, and whose they are. `more`: how many places behind them as well."""
    sizes = state.arrays["item_count"][tuples] + more
    owners = np.repeat(np.arange(tuples.size), sizes)
    step = np.arange(owners.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return state.arrays["item_at"][tuples][owners] + step, owners


# --------------------------------------------------------------------------------------------------------------- lists


def fill_lists(cfg: NDArray[Any], state: Handle, room: int = 0) -> None:
    """All lists anew, from the tuples that are stored, with room for as many again and for a row of `room` items."""
    tuples = places_in_use(state)
    tuples = tuples[state.arrays["pool"]["queued"][tuples] >= NONE]  # others wait, or left in the open instant
    owner, stream, item, fixed = _members(cfg, state, tuples)
    cards, pool = state.arrays["card"], state.arrays["pool"]
    ts = np.where(cfg[0]["kind"][pool["stream"][tuples]] == ROW, 0, cards["ts"][tuples])[owner]
    seq = cards["seq"][tuples][owner]
    order = np.lexsort((seq, ts, item, stream, fixed))
    owner, stream, item, fixed, ts, seq = (column[order] for column in (owner, stream, item, fixed, ts, seq))
    first = np.append(True, (np.diff(item) != 0) | (np.diff(stream) != 0) | (np.diff(fixed) != 0))[: item.size]
    starts = np.flatnonzero(first)
    lengths = np.diff(np.append(starts, item.size))
    slots = FIRST_LISTS
    while slots < 4 * (starts.size + room):
        slots *= 2
    state.hold(list_item=np.zeros(slots, np.int64), list_tag=np.zeros(slots, np.int8))
    state.hold(**{name: np.zeros(slots + FIXED_LISTS, np.int64) for name in _LISTS})
    which = np.where(fixed[starts] < FIXED_LISTS, fixed[starts], 0)
    named = fixed[starts] == FIXED_LISTS
    which[named] = FIXED_LISTS + _enter_table(state, stream[starts][named], item[starts][named])
    begin = 2 * (np.cumsum(lengths) - lengths)
    entries = 2 * item.size + 8 * time_lists.FIRST_ROOM * (room + FIXED_LISTS)
    state.hold(**{name: np.zeros(2 * entries, kind) for name, kind in _ENTRIES.items()})
    place = np.repeat(begin - starts, lengths) + np.arange(item.size)
    state.arrays["list_ts"][place], state.arrays["list_seq"][place] = ts, seq
    state.arrays["list_slot"][place] = tuples[owner]
    state.arrays["list_start"][which], state.arrays["list_length"][which] = begin, lengths
    state.arrays["list_room"][which] = 2 * lengths
    state["list_top"], state["lists_used"] = 2 * item.size, int(named.sum())
    state.resize(**{name: state.arrays[name].size for name in ("list_item", "list_tag", *_LISTS, *_ENTRIES)})
    renew_bitmaps(state)


def _members(cfg: NDArray[Any], state: Handle, tuples: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Which tuple stands in which list: (tuple, stream, item, list). Lists of items have the number FIXED_LISTS here."""
    stream = state.arrays["pool"]["stream"][tuples].astype(np.int64)
    everyone, nothing = np.arange(tuples.size), np.zeros(tuples.size, np.int64)
    parts = [(everyone, stream, nothing, stream)]
    if cfg[0]["lists"]:
        if cfg[0]["predicate"] == BAND:
            buckets = values_of_numbers(cfg, state, state.arrays["number"][tuples])
            parts.append((everyone, stream, buckets, np.full(tuples.size, FIXED_LISTS)))
        else:
            places, owner = item_places(state, tuples)
            items = state.arrays["items"][places]
            parts.append((owner, stream[owner], items, np.full(owner.size, FIXED_LISTS)))
            empty = np.flatnonzero(state.arrays["item_count"][tuples] == 0)
            parts.append((empty, stream[empty], np.zeros(empty.size, np.int64), EMPTIES + stream[empty]))
    owner, stream, item, fixed = (np.concatenate(column) for column in zip(*parts, strict=True))
    return owner, stream, item, fixed


def _enter_table(state: Handle, stream: Integers, item: Integers) -> Integers:
    """Places in the hash table, which is empty, for lists; those that find theirs taken go to the next."""
    table, tags = state.arrays["list_item"], state.arrays["list_tag"]
    mask = table.size - 1
    with np.errstate(over="ignore"):
        x = item.astype(np.uint64) * np.uint64(2) + stream.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    at = (x & np.uint64(mask)).astype(np.int64)
    waiting = np.arange(item.size)
    while waiting.size:
        free = tags[at[waiting]] == 0
        _, winners = np.unique(np.where(free, at[waiting], -1 - np.arange(waiting.size)), return_index=True)
        won = np.zeros(waiting.size, np.bool_)
        won[winners] = True
        won &= free
        there = waiting[won]
        table[at[there]], tags[at[there]] = item[there], stream[there] + 1
        waiting = waiting[~won]
        at[waiting] = (at[waiting] + 1) & mask
    return at


def renew_bitmaps(state: Handle) -> None:
    """No item has a bitmap; there is room for those to come."""
    words = bitmaps.words_for(state.arrays["pool"].size)
    for name, size in (("bits", bitmaps.MOST * words), ("planes", bitmaps.PLANES * words)):
        old = state.arrays.get(name)
        if old is None or old.size != size:
            state.hold(**{name: np.zeros(size, np.uint64)})
            state.resize(**{name: size})
    state.arrays["list_bitmap"][:] = 0
    state["bitmaps_used"] = 1


# -------------------------------------------------------------------------------------------------------------- values


def values_of_numbers(cfg: NDArray[Any], state: Handle | Mapping[str, float], numbers: NDArray[np.float64]) -> Integers:
    """What numbers are counted by, as `items.value_of_number` has it."""
    if cfg[0]["predicate"] == BAND:
        width = float(cfg[0]["bound"]) or 1.0
        clipped = np.clip(numbers / width, -search.LARGEST_BUCKET, search.LARGEST_BUCKET)
        return np.floor(clipped).astype(np.int64)
    if int(state["known_numbers"]) < histogram.SEVERAL:
        return (numbers + 0.0).view(np.int64)
    return np.floor(numbers / float(state["bucket_width"])).astype(np.int64)


def has_numbers(cfg: NDArray[Any]) -> bool:
    return has_items(cfg) and bool(cfg[0]["predicate"] < FIRST_OF_SETS)


def counts_values(cfg: NDArray[Any]) -> bool:
    """Whether items or buckets of numbers are counted: by an estimator, or for a queue."""
    return bool(cfg[0]["weighed"]) and bool(cfg[0]["estimator"] != MET or cfg[0]["drop"] == DROP_SEMANTIC)


def has_histogram(cfg: NDArray[Any]) -> bool:
    return has_numbers(cfg) and counts_values(cfg) and cfg[0]["predicate"] != BAND
