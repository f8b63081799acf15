"""Tuples come in, expire, are evicted; and the arrays grow when they no longer fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.engine.jit import entry, kernel
from shedjoin.predicates import bitmaps, lists
from shedjoin.predicates import state as mem
from shedjoin.predicates.codes import BAND, FIRST_OF_SETS, LISTS
from shedjoin.predicates.compare import signature
from shedjoin.predicates.search import bucket
from shedjoin.predicates.state import COUNTS, EMPTIES, ENTRIES, FIXED_LISTS, ITEMS, NOBODY, POOL, TABLE

#: Arrays are never smaller.
LEAST = 64
#: What a row may need that is not there yet.
ENOUGH = 0
MORE_POOL = 1
MORE_ITEMS = 2
MORE_LISTS = 3


@kernel
def wanting(st, rule, stream, value):
    """What must grow before this row can be stored: ENOUGH if nothing."""
    items, at, size = value.items, value.at, value.size
    if st["free_count"][stream] == 0:
        return MORE_POOL
    if rule.code >= FIRST_OF_SETS and st["item_top"] + size > mem.items_of(st).size:
        return MORE_ITEMS
    if st["dead"] > 64 + 2 * (st["resident"][0] + st["resident"][1]) * (1 + size):
        return MORE_LISTS  # more struck out than alive: time to sweep
    table = mem.table_of(st)
    room = mem.entry_ts_of(st).size - st["entry_top"] - lists.room_wanted(st, stream)
    if rule.by == LISTS:
        if 2 * (st["table_used"] + max(size, 1)) > table.size:
            return MORE_LISTS
        if rule.code == BAND:
            room -= lists.room_wanted(st, lists.find(st, stream, bucket(value.number, rule.bound)))
        elif size == 0:
            room -= lists.room_wanted(st, EMPTIES + stream)
        for k in range(at, at + size):
            room -= lists.room_wanted(st, lists.find(st, stream, items[k]))
    return ENOUGH if room >= 0 else MORE_LISTS


@kernel
def put(st, rule, stream, card, value):
    """Store a row; there must be room. Returns its place in the pool."""
    ts, seq = card.ts, card.seq
    items, weights, at, size = value.items, value.weights, value.at, value.size
    st["free_count"][stream] -= 1
    slot = mem.free_of(st)[stream, st["free_count"][stream]]
    mem.ts_of(st)[slot] = ts
    mem.seq_of(st)[slot] = seq
    mem.row_of(st)[slot] = card.row
    mem.side_of(st)[slot] = stream
    mem.kind_of(st)[slot] = card.kind
    mem.importance_of(st)[slot] = card.importance
    mem.number_of(st)[slot] = value.number
    top = st["item_top"]
    mem.item_at_of(st)[slot] = top
    mem.item_len_of(st)[slot] = size
    mem.sign_of(st)[slot] = signature(items, at, size)
    kept, kept_weights = mem.items_of(st), mem.weights_of(st)
    for k in range(size):
        kept[top + k] = items[at + k]
        kept_weights[top + k] = weights[at + k]
    st["item_top"] = top + size
    st["item_live"] += size
    resident = st["resident"][stream]
    mem.members_of(st)[stream, resident] = slot
    mem.place_of(st)[slot] = resident
    st["resident"][stream] = resident + 1
    floor = st["floor"][stream]
    lists.add(st, stream, ts, seq, slot)
    if rule.by == LISTS:
        if rule.code == BAND:
            which = lists.find_or_make(st, stream, bucket(value.number, rule.bound))
            lists.trim(st, which, floor)
            lists.add(st, which, ts, seq, slot)
        elif size == 0:
            lists.trim(st, EMPTIES + stream, floor)
            lists.add(st, EMPTIES + stream, ts, seq, slot)
        for k in range(at, at + size):
            which = lists.find_or_make(st, stream, items[k])
            lists.trim(st, which, floor)
            lists.add(st, which, ts, seq, slot)
            bitmaps.mark(st, which, slot)
    return slot


@kernel
def release(st, stream, slot):
    """Give a tuple's place back. Its entries are over, or struck out."""
    if mem.bits_used_of(st)[0] > 1:
        bitmaps.clear(st, stream, slot)
    members, place = mem.members_of(st), mem.place_of(st)
    last = st["resident"][stream] - 1
    moved = members[stream, last]
    members[stream, place[slot]] = moved
    place[moved] = place[slot]
    place[slot] = -1
    st["resident"][stream] = last
    st["item_live"] -= mem.item_len_of(st)[slot]
    mem.free_of(st)[stream, st["free_count"][stream]] = slot
    st["free_count"][stream] += 1


@kernel
def evict(st, rule, stream, slot):
    """Strike a tuple out of its lists and let it go."""
    ts, seq = mem.ts_of(st)[slot], mem.seq_of(st)[slot]
    lists.strike(st, stream, ts, seq)
    if rule.by == LISTS:
        size, at, items = mem.item_len_of(st)[slot], mem.item_at_of(st)[slot], mem.items_of(st)
        if rule.code == BAND:
            lists.strike(st, lists.find(st, stream, bucket(mem.number_of(st)[slot], rule.bound)), ts, seq)
        elif size == 0:
            lists.strike(st, EMPTIES + stream, ts, seq)
        for k in range(at, at + size):
            lists.strike(st, lists.find(st, stream, items[k]), ts, seq)
    release(st, stream, slot)


@kernel
def _repack_list(old, new, which, target, floor):
    """Copy what is alive of a list, with room to grow. A list of which nothing is left gets none."""
    at = mem.start_of(old)[which] + mem.head_of(old)[which]
    size = mem.length_of(old)[which]
    times, seqs, slots = mem.entry_ts_of(old), mem.entry_seq_of(old), mem.entry_slot_of(old)
    new_times, new_seqs, new_slots = mem.entry_ts_of(new), mem.entry_seq_of(new), mem.entry_slot_of(new)
    top, kept = new["entry_top"], 0
    for p in range(at, at + size):
        if slots[p] != NOBODY and times[p] >= floor:
            new_times[top + kept] = times[p]
            new_seqs[top + kept] = seqs[p]
            new_slots[top + kept] = slots[p]
            kept += 1
    mem.start_of(new)[target] = top
    mem.cap_of(new)[target] = 2 * kept
    mem.head_of(new)[target] = 0
    mem.length_of(new)[target] = kept
    new["entry_top"] = top + 2 * kept


@kernel
def _alive(st, which, floor):
    """Whether a list has an entry that is neither over nor struck out."""
    at = mem.start_of(st)[which] + mem.head_of(st)[which]
    times, slots = mem.entry_ts_of(st), mem.entry_slot_of(st)
    for p in range(at, at + mem.length_of(st)[which]):  # noqa: SIM110 - kernels have no generators
        if slots[p] != NOBODY and times[p] >= floor:
            return True
    return False


@entry
def repack_lists(old_state, new_state):
    """All lists with something in them, side by side in new arrays."""
    old, new = old_state[0], new_state[0]
    tags, table = mem.tags_of(old), mem.table_of(old)
    for which in range(FIXED_LISTS):
        _repack_list(old, new, which, which, old["floor"][which & 1])
    for at in range(tags.size):
        if tags[at] != 0:
            stream = np.int64(tags[at]) - 1
            if _alive(old, at + FIXED_LISTS, old["floor"][stream]):
                target = lists.find_or_make(new, stream, table[at])
                _repack_list(old, new, at + FIXED_LISTS, target, old["floor"][stream])


@entry
def repack_items(state, items, weights):
    """The items of stored tuples, side by side in new arrays."""
    st = state[0]
    old_items, old_weights = mem.items_of(st), mem.weights_of(st)
    item_at, item_len, members = mem.item_at_of(st), mem.item_len_of(st), mem.members_of(st)
    top = 0
    for stream in range(STREAMS):
        for m in range(st["resident"][stream]):
            slot = members[stream, m]
            at = item_at[slot]
            for k in range(item_len[slot]):
                items[top + k] = old_items[at + k]
                weights[top + k] = old_weights[at + k]
            item_at[slot] = top
            top += item_len[slot]
    st["item_top"] = top


@kernel
def expire(st, stream, floor):
    """Let go of the tuples of a stream whose time is below the floor; returns how many."""
    if floor <= st["floor"][stream]:
        return 0
    st["floor"][stream] = floor
    head, length = mem.head_of(st), mem.length_of(st)
    times, slots = mem.entry_ts_of(st), mem.entry_slot_of(st)
    gone = 0
    at = mem.start_of(st)[stream] + head[stream]
    while length[stream] > 0 and times[at] < floor:
        slot = slots[at]
        if slot != NOBODY:
            release(st, stream, np.int64(slot))
            gone += 1
        head[stream] += 1
        length[stream] -= 1
        at += 1
    return gone


def allocate(st: Handle, never: int) -> None:
    """Empty arrays behind a handle whose record has STORE_FIELDS."""
    st.hold(**{name: np.zeros(LEAST, kind) for name, kind in {**POOL, **ITEMS, **ENTRIES, **TABLE}.items()})
    st.hold(**{name: np.zeros(LEAST + FIXED_LISTS, kind) for name, kind in mem.LISTS.items()})
    st.hold(**{name: np.zeros((STREAMS, LEAST), kind) for name, kind in mem.BY_STREAM.items()})
    st.hold(**{name: np.zeros(LEAST // 2, kind) for name, kind in COUNTS.items()})
    st.arrays["place"][:] = -1
    _add_free(st, STREAMS, LEAST)
    st["floor"] = never
    st.fleeting = frozenset(mem.BITS)
    bitmaps.renew(st)
    measure(st)


def measure(st: Handle) -> None:
    """Tell kernels how long the arrays are."""
    st.resize(**{name: st.arrays[name].shape[-1] for name in mem.ARRAYS})


def grow(st: Handle, what: int, wanted: int) -> None:
    """Make room: twice the pool, or what is alive repacked with as much room again."""
    if what == MORE_POOL:
        _grow_pool(st)
    elif what == MORE_ITEMS:
        size = 2 * (int(st["item_live"]) + wanted + LEAST)
        fresh: dict[str, Any] = {name: np.zeros(size, kind) for name, kind in ITEMS.items()}
        repack_items(st.for_kernel(), fresh["item"], fresh["weight"])
        st.hold(**fresh)
    else:
        _repack(st, wanted)
    measure(st)


def _grow_pool(st: Handle) -> None:
    old = st.arrays["ts"].size
    new = 2 * old
    for name, kind in POOL.items():
        array = np.zeros(new, kind)
        array[:old] = st.arrays[name]
        st.hold(**{name: array})
    for name, kind in mem.BY_STREAM.items():
        wide = np.zeros((STREAMS, new), kind)
        wide[:, :old] = st.arrays[name]
        st.hold(**{name: wide})
    st.hold(**{name: np.zeros(new // 2, kind) for name, kind in COUNTS.items()})
    st.arrays["place"][old:] = -1
    _add_free(st, old, new)
    bitmaps.renew(st)


def _add_free(st: Handle, start: int, stop: int) -> None:
    """Places from `start` to `stop` become free, the first of them to be taken first."""
    for stream in range(STREAMS):
        places = np.arange(start + stream, stop, STREAMS)[::-1]
        free = int(st["free_count"][stream])
        st.arrays["free"][stream, free : free + places.size] = places
        st["free_count"][stream] = free + places.size


def _repack(st: Handle, wanted: int) -> None:
    new = Handle(st.record.dtype)
    lengths = int(st.arrays["l_count"].sum())
    entries = 4 * lengths + 8 * lists.FIRST_ROOM * (wanted + 4)
    slots = LEAST
    while slots < 4 * (int(st["table_used"]) + wanted):
        slots *= 2
    new.hold(**{name: np.zeros(entries, kind) for name, kind in ENTRIES.items()})
    new.hold(**{name: np.zeros(slots, kind) for name, kind in TABLE.items()})
    new.hold(**{name: np.zeros(slots + FIXED_LISTS, kind) for name, kind in mem.LISTS.items()})
    new.resize(**{name: array.shape[-1] for name, array in new.arrays.items()})
    repack_lists(st.for_kernel(), new.for_kernel())
    st.hold(**new.arrays)
    st["entry_top"], st["table_used"], st["dead"] = new["entry_top"], new["table_used"], 0
    bitmaps.renew(st)
