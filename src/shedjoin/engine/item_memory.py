"""The arrays of the items layout: made, grown, and filled from what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import BAND, DROP_SEMANTIC, FIRST_OF_SETS, ITEMS, MET, ROW
from shedjoin.engine.handle import Handle, cache_lines
from shedjoin.engine.records import LIST_RECORD, NONE
from shedjoin.engine.stages import search
from shedjoin.engine.structures import bitmaps, histogram, time_lists
from shedjoin.engine.structures.time_lists import EMPTIES, FIXED_LISTS, NO_TUPLE

Arrays = dict[str, NDArray[Any]]
Integers = NDArray[np.int64]
#: Two streams have a predicate between them.
STREAMS = 2
FIRST_ITEMS, FIRST_LISTS = 1024, 1024
#: Arrays shorter than this grow faster, since each step takes as long as thousands of rows.
SMALL = 1 << 15
_POOL = {
    "number": "f8",
    "item_at": "i8",
    "item_count": "i8",
    "signature": "u8",
    "hit": "i4",
    "product": "f8",
}
_ENTRIES = {"list_ts": "i8", "list_seq": "i8", "list_slot": "i4"}


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


def arena(size: int) -> Arrays:
    """Room for the items of all tuples."""
    return {
        "items": np.zeros(size, np.int64),
        "item_weights": np.zeros(size),
        "item_values": np.full(size, NONE, np.int32),
    }


def _roomy(size: int) -> int:
    """How long an array is made that must hold this much."""
    return 4 * size if size < SMALL else 2 * size


def grow_items(state: Handle, room: int) -> None:
    """The items of stored tuples side by side, with room for as many again."""
    tuples = places_in_use(state)
    places, owners = item_places(state, tuples, more=1)
    new = arena(_roomy(places.size + room + FIRST_ITEMS))
    for name, array in new.items():
        array[: places.size] = state.arrays[name][places]
    sizes = state.arrays["item_count"][tuples] + 1
    state.arrays["item_at"][tuples] = np.cumsum(sizes) - sizes
    state["item_top"] = owners.size
    state.hold(**new)


def item_places(state: Handle, tuples: Integers, more: int = 0) -> tuple[Integers, Integers]:
    """Where the items of tuples stand in the arena, and whose they are. `more`: how many places behind them as well."""
    sizes = state.arrays["item_count"][tuples] + more
    owners = np.repeat(np.arange(tuples.size), sizes)
    step = np.arange(owners.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return state.arrays["item_at"][tuples][owners] + step, owners


# --------------------------------------------------------------------------------------------------------------- lists


class Lists(NamedTuple):
    """Lists one after another, and their entries in the same order."""

    kind: NDArray[np.int8]  # lists of items have FIXED_LISTS and their stream here, others their number
    item: Integers
    length: Integers
    ts: Integers  # of each entry, as the next two
    seq: Integers
    slot: Integers


def fill_lists(cfg: NDArray[Any], state: Handle, room: int = 0) -> None:
    """All lists anew, from the tuples that are stored, with room for as many again and for a row of `room` items."""
    tuples = places_in_use(state)
    tuples = tuples[state.arrays["pool"]["queued"][tuples] >= NONE]  # others wait, or left in the open instant
    tuples, ts, seq = _in_time(cfg, state, tuples)
    owner, item, kind = _members(cfg, state, tuples)
    order = np.lexsort((item, kind))  # which is stable: lists stay in order of time
    owner, item, kind = owner[order], item[order], kind[order]
    starts = np.flatnonzero(np.append(True, (np.diff(item) != 0) | (np.diff(kind) != 0))[: item.size])
    lengths = np.diff(np.append(starts, item.size))
    _lay_out(state, Lists(kind[starts], item[starts], lengths, ts[owner], seq[owner], tuples[owner]), room)


def grow_lists(cfg: NDArray[Any], state: Handle, room: int) -> None:
    """The same from the lists as they are: nothing has to be sorted."""
    lists = state.arrays["lists"]
    used = np.flatnonzero(lists["length"])
    item, length = lists["item"][used], lists["length"][used].astype(np.int64)
    stream = np.where(used < FIXED_LISTS, used % STREAMS, lists["tag"][used].astype(np.int64) - 1)
    first = lists["start"][used].astype(np.int64) + lists["head"][used]
    owner = np.repeat(np.arange(used.size), length)
    place = np.arange(owner.size) + (first - np.cumsum(length) + length)[owner]
    ts, seq, slot = (state.arrays[name][place] for name in _ENTRIES)
    kept = (slot != NO_TUPLE) & ~_are_gone(cfg, state, stream[owner], ts, seq)
    length = np.bincount(owner[kept], minlength=used.size)
    there = length > 0
    kind = np.where(used < FIXED_LISTS, used, FIXED_LISTS + stream)[there].astype(np.int8)
    _lay_out(state, Lists(kind, item[there], length[there], ts[kept], seq[kept], slot[kept]), room)


def _are_gone(cfg: NDArray[Any], state: Handle, stream: Integers, ts: Integers, seq: Integers) -> NDArray[np.bool_]:
    """As `time_lists.is_gone`."""
    stamp = np.where(cfg[0]["kind"][stream] == ROW, seq, ts)
    return np.asarray((stamp <= state["limit"][stream]) & (seq < state["gone_to"][stream]), np.bool_)


def _lay_out(state: Handle, made: Lists, room: int) -> None:
    """Put lists behind the handle, each with room for as many entries again."""
    slots = FIRST_LISTS
    while slots < 4 * (made.item.size + room):
        slots *= 2
    lists = cache_lines(FIXED_LISTS + slots, LIST_RECORD)
    which = made.kind.astype(np.int64)
    named = which >= FIXED_LISTS
    which[named] = _enter_table(lists, which[named] - FIXED_LISTS, made.item[named])
    rooms = np.maximum(time_lists.FIRST_ROOM, 2 * made.length)
    begin = np.cumsum(rooms) - rooms
    lists["start"][which], lists["room"][which], lists["length"][which] = begin, rooms, made.length
    top = int(rooms.sum())
    entries = top + 8 * time_lists.FIRST_ROOM * (room + FIXED_LISTS)
    state.hold(lists=lists, **{name: np.zeros(_roomy(entries), kind) for name, kind in _ENTRIES.items()})
    place = np.repeat(begin - np.cumsum(made.length) + made.length, made.length) + np.arange(made.ts.size)
    for name, column in zip(_ENTRIES, (made.ts, made.seq, made.slot), strict=True):
        state.arrays[name][place] = column
    state["list_top"], state["lists_used"] = top, int(named.sum())
    renew_bitmaps(state)


def _in_time(cfg: NDArray[Any], state: Handle, tuples: Integers) -> tuple[Integers, Integers, Integers]:
    """Tuples in the order in which they stand in lists, with their times and row numbers there."""
    cards, stream = state.arrays["card"][tuples], state.arrays["pool"]["stream"][tuples]
    ts = np.where(cfg[0]["kind"][stream] == ROW, 0, cards["ts"])
    order = np.lexsort((cards["seq"], ts))
    return tuples[order], ts[order], cards["seq"][order]


def _members(cfg: NDArray[Any], state: Handle, tuples: Integers) -> tuple[Integers, Integers, NDArray[np.int8]]:
    """Which tuple stands in which list: (tuple, item, list). Lists of items have the number FIXED_LISTS and their stream here."""
    stream = state.arrays["pool"]["stream"][tuples].astype(np.int8)
    everyone, nothing = np.arange(tuples.size), np.zeros(tuples.size, np.int64)
    parts = [(everyone, nothing, stream)]
    if cfg[0]["lists"]:
        if cfg[0]["predicate"] == BAND:
            buckets = values_of_numbers(cfg, state, state.arrays["number"][tuples])
            parts.append((everyone, buckets, FIXED_LISTS + stream))
        else:
            places, owner = item_places(state, tuples)
            parts.append((owner, state.arrays["items"][places], FIXED_LISTS + stream[owner]))
            empty = np.flatnonzero(state.arrays["item_count"][tuples] == 0)
            parts.append((empty, nothing[empty], EMPTIES + stream[empty]))
    owner, item, which = (np.concatenate(column) for column in zip(*parts, strict=True))
    return owner, item, which


def _enter_table(lists: NDArray[Any], stream: Integers, item: Integers) -> Integers:
    """Numbers for lists in the hash table, which is empty; those that find their place taken go to the next."""
    table = lists[FIXED_LISTS:]
    mask = table.size - 1
    with np.errstate(over="ignore"):
        x = item.astype(np.uint64) * np.uint64(2) + stream.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    at = (x & np.uint64(mask)).astype(np.int64)
    waiting, claimed = np.arange(item.size), np.zeros(table.size, np.int64)
    while waiting.size:
        place = at[waiting]
        claimed[place] = waiting  # one of those that want a place
        won = (table["tag"][place] == 0) & (claimed[place] == waiting)
        there = waiting[won]
        table["item"][at[there]], table["tag"][at[there]] = item[there], stream[there] + 1
        waiting = waiting[~won]
        at[waiting] = (at[waiting] + 1) & mask
    return FIXED_LISTS + at


def renew_bitmaps(state: Handle) -> None:
    """No item has a bitmap; there is room for those to come."""
    words = bitmaps.words_for(state.arrays["pool"].size)
    for name, size in (("bits", bitmaps.MOST * words), ("planes", bitmaps.PLANES * words)):
        old = state.arrays.get(name)
        if old is None or old.size != size:
            state.hold(**{name: np.zeros(size, np.uint64)})
    state.arrays["lists"]["bitmap"] = 0
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
    """Whether items or buckets of numbers are counted: by an estimator, for a queue, or for dual windows."""
    asked = cfg[0]["estimator"] != MET or cfg[0]["drop"] == DROP_SEMANTIC or cfg[0]["dual"]
    return bool(cfg[0]["weighed"]) and bool(asked)


def has_histogram(cfg: NDArray[Any]) -> bool:
    return has_numbers(cfg) and counts_values(cfg) and cfg[0]["predicate"] != BAND
