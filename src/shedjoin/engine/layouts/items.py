"""The items layout: predicates on numbers and sets. A tuple stands in a list for each of its items, or for its bucket of numbers.

The first stream's tuples stand at even places of the pool, the second's at odd ones; places 0 and 1 are unused. Each tuple is a
group, because hardly two have the same items. The values that estimators count are its items and, last, one that every row has; a
number has its bucket instead.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import BAND, DROP_SEMANTIC, FIRST_OF_SETS, MET, ROW
from shedjoin.engine.indirect import indirect
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import NONE
from shedjoin.engine.stages.compare import signature_of
from shedjoin.engine.stages.search import bucket
from shedjoin.engine.structures import bitmaps, histogram, key_table, time_lists
from shedjoin.engine.structures.time_lists import EMPTIES

#: Values are items or buckets, or the one value that every row has.
ITEM, EVERY_ROW = 0, 1


@inlined
def row_size(cfg, buffers, i):
    """How many items a row has."""
    if cfg["predicate"] < FIRST_OF_SETS:
        return 0
    offsets = mem.row_offsets(buffers)
    return offsets[i + 1] - offsets[i]


@inlined
def values_of_row(state, buffers):
    """How many values the row at hand has, which waited."""
    x = int(mem.waiting(state, buffers["row"])["item"])
    return 1 if x == NONE else mem.item_count(state)[x] + 1


@indirect("make room for item", "whole")
def lists_wanted(cfg, state, buffers, i, stream):
    """How much room the lists lack for a row: 0 most often."""
    if cfg["waits"]:
        x = int(mem.waiting(state, buffers["row"])["item"])
        return _lists_wanted(
            cfg, state, stream, mem.items(state), mem.item_at(state)[x], mem.item_count(state)[x], mem.number(state)[x]
        )
    size = row_size(cfg, buffers, i)
    first = mem.row_offsets(buffers)[i] if size > 0 else 0
    number = mem.row_number(buffers)[i] if cfg["predicate"] < FIRST_OF_SETS else 0.0
    return _lists_wanted(cfg, state, stream, mem.row_items(buffers), first, size, number)


@kernel
def _lists_wanted(cfg, state, stream, of, first, size, number):
    """The same for a row that has a number, or items at a place of an array."""
    claims = time_lists.room_wanted(state, stream)
    if cfg["lists"]:
        if 2 * (state["lists_used"] + max(size, 1)) > time_lists.table_size(state):
            return size + 1
        if cfg["predicate"] == BAND:
            own = bucket(number, cfg["bound"])
            for place in range(own - 1, own + 2):
                time_lists.ask(state, 1 - stream, place)
            which = time_lists.find(state, stream, own)
            claims += time_lists.room_wanted(state, which)
            if which != time_lists.NO_LIST:
                time_lists.ask_for_entries(state, which)
        elif size == 0:
            claims += time_lists.room_wanted(state, EMPTIES + stream)
        for k in range(first, first + size):
            claims += time_lists.room_wanted(state, time_lists.find(state, stream, of[k]))
    return size + 1 if state["list_top"] + claims > mem.list_ts(state).size else 0


@inlined
def take_place(state, stream):
    """A free place of the pool."""
    state["free_places"][stream] -= 1
    return int(mem.free(state, stream * (state["free_room"] // 2) + state["free_places"][stream]))


@inlined
def give_place(state, stream, x):
    mem.set_free(state, stream * (state["free_room"] // 2) + state["free_places"][stream], x)
    state["free_places"][stream] += 1


@kernel
def _fill(cfg, state, buffers, i, ts, seq, x):
    """What is kept of a row."""
    card = mem.card(state, x)
    card["ts"] = ts
    card["seq"] = seq
    card["importance"] = mem.row_importance(buffers, i)
    card["item"] = x
    card["partners"] = 0
    size, at = row_size(cfg, buffers, i), state["item_top"]
    items = mem.items(state)
    mem.item_at(state)[x] = at
    mem.item_count(state)[x] = size
    if cfg["predicate"] < FIRST_OF_SETS:
        mem.number(state)[x] = mem.row_number(buffers)[i]
    first = mem.row_offsets(buffers)[i] if size > 0 else 0
    for k in range(size):
        items[at + k] = mem.row_items(buffers)[first + k]
        mem.item_weights(state)[at + k] = mem.row_weights(buffers)[first + k]
    mem.signature(state)[x] = signature_of(items, at, size)
    if cfg["where"]:
        storage.keep_attributes(cfg, state, buffers, i, x)
    state["item_top"] = at + size + 1


@indirect("receive item", "whole")
def receive(cfg, state, buffers, i, stream, ts, seq):
    """A row that only probes here takes a place, and enters no list."""
    x = take_place(state, stream)
    mem.pool(state, x)["stream"] = stream
    _fill(cfg, state, buffers, i, ts, seq, x)
    return x


@kernel
def dismiss(state, x):
    """The last that was received goes."""
    state["item_top"] = mem.item_at(state)[x]
    give_place(state, int(mem.pool(state, x)["stream"]), x)


@indirect("store item")
def put(cfg, state, buffers, i, stream, ts, seq, x):
    """Store a row, for which there is room, in all of its lists. One that waited has its items there already."""
    if cfg["waits"] == 0:
        _fill(cfg, state, buffers, i, ts, seq, x)
    state["stored_to"][stream] = seq + 1
    if state["came_room"] > 1:
        mem.set_came(state, x, state["tick"])
    if has_values(cfg):
        _note_values(cfg, state, x)
    _enter_lists(cfg, state, stream, x, 0 if mem.window_kind(cfg, stream) == ROW else ts, seq)


@kernel
def _enter_lists(cfg, state, stream, x, ts, seq):
    time_lists.add(state, stream, ts, seq, x)
    if cfg["lists"] == 0:
        return
    at, size = mem.item_at(state)[x], mem.item_count(state)[x]
    if cfg["predicate"] == BAND:
        _enter_list(cfg, state, stream, x, ts, seq, bucket(mem.number(state)[x], cfg["bound"]))
    elif size == 0:
        time_lists.trim(cfg, state, EMPTIES + stream, stream)
        time_lists.add(state, EMPTIES + stream, ts, seq, x)
    for k in range(at, at + size):
        _enter_list(cfg, state, stream, x, ts, seq, mem.items(state)[k])


@kernel
def _enter_list(cfg, state, stream, x, ts, seq, item):
    which = time_lists.find_or_make(state, stream, item)
    time_lists.trim(cfg, state, which, stream)
    time_lists.add(state, which, ts, seq, x)
    bitmaps.mark(state, which, x)


@indirect("remove item")
def take_out(cfg, state, stream, x):
    """Take a tuple away. In its lists an entry whose time is over is let go when the list is next touched."""
    bitmaps.clear(state, stream, x)
    card, at, size = mem.card(state, x), mem.item_at(state)[x], mem.item_count(state)[x]
    if has_values(cfg):
        for k in range(at, at + size + 1):
            mem.cell_count(state)[mem.item_values(state)[k]] -= 1
    if time_lists.is_gone(cfg, state, stream, card["ts"], card["seq"]):
        return
    ts, seq = 0 if mem.window_kind(cfg, stream) == ROW else card["ts"], card["seq"]
    time_lists.strike(state, stream, ts, seq)
    if cfg["lists"] == 0:
        return
    if cfg["predicate"] == BAND:
        time_lists.strike(state, time_lists.find(state, stream, bucket(mem.number(state)[x], cfg["bound"])), ts, seq)
    elif size == 0:
        time_lists.strike(state, EMPTIES + stream, ts, seq)
    for k in range(at, at + size):
        time_lists.strike(state, time_lists.find(state, stream, mem.items(state)[k]), ts, seq)


# ------------------------------------------------------------------------------------------------------------- values


@kernel
def find_value(cfg, state, x, number):
    """The number of a value of a row; the caller has made sure that one is free."""
    if number < mem.item_count(state)[x]:
        return key_table.find_or_add(cfg, state, mem.items(state)[mem.item_at(state)[x] + number], ITEM)
    if cfg["predicate"] >= FIRST_OF_SETS:
        return key_table.find_or_add(cfg, state, np.int64(0), EVERY_ROW)
    return key_table.find_or_add(cfg, state, value_of_number(cfg, state, mem.number(state)[x]), ITEM)


@kernel
def _note_values(cfg, state, x):
    """The numbers of a tuple's values; the caller has made sure that there are enough."""
    at = mem.item_at(state)[x]
    for number in range(mem.item_count(state)[x] + 1):
        v = find_value(cfg, state, x, number)
        mem.item_values(state)[at + number] = v
        mem.cell_count(state)[v] += 1


@inlined
def has_values(cfg):
    """Whether values are counted: by an estimator, for a queue, or for dual windows."""
    return cfg["weighed"] == 1 and (cfg["estimator"] != MET or cfg["drop"] == DROP_SEMANTIC or cfg["dual"] == 1)


@inlined
def value_of_number(cfg, state, number):
    """What a number is counted by."""
    if cfg["predicate"] == BAND:
        return bucket(number, cfg["bound"])
    return histogram.bucket(state, number)


@indirect("count items", "truth")
def fits_histogram(cfg, state, buffers):
    """Whether the histogram of numbers has a bucket for all new tuples; without one they cannot be counted."""
    if not has_values(cfg) or cfg["predicate"] == BAND or cfg["predicate"] >= FIRST_OF_SETS:
        return True
    for i in range(buffers["fresh"]):
        if not histogram.has(state, mem.number(state)[np.int64(mem.out_fresh(buffers, i))]):
            return False
    return True
