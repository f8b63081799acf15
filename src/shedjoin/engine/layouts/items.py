"""The items layout: predicates on numbers and sets. A tuple stands in a list for each of its items, or for its bucket of numbers.

The first stream's tuples stand at even places of the pool, the second's at odd ones; places 0 and 1 are nobody's. Each tuple is a
group, because hardly two have the same items. The values that estimators count are its items and, last, one that every row has; a
number has its bucket instead.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import BAND, DROP_SEMANTIC, FIRST_OF_SETS, MET, ROW
from shedjoin.engine.indirect import indirect
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages.compare import signature_of
from shedjoin.engine.stages.search import bucket
from shedjoin.engine.structures import bitmaps, histogram, key_table, time_lists
from shedjoin.engine.structures.time_lists import EMPTIES

#: Values are items or buckets, or the one value that every row has.
ITEM, EVERY_ROW = 0, 1


@inlined
def row_size(how, io, i):
    """How many items a row has."""
    if how["predicate"] < FIRST_OF_SETS:
        return 0
    offsets = mem.row_offsets(io)
    return offsets[i + 1] - offsets[i]


@inlined
def values_of_row(st, io):
    """How many values the row at hand has, which waited."""
    x = int(mem.waiting(st, io["row"])["item"])
    return 1 if x == NONE else mem.item_count(st)[x] + 1


@indirect("make room for item", "whole")
def lists_wanted(how, st, io, i, stream):
    """How much room the lists lack for a row: 0 most often."""
    if how["waits"]:
        x = int(mem.waiting(st, io["row"])["item"])
        return _lists_wanted(
            how, st, stream, mem.items(st), mem.item_at(st)[x], mem.item_count(st)[x], mem.number(st)[x]
        )
    size = row_size(how, io, i)
    first = mem.row_offsets(io)[i] if size > 0 else 0
    number = mem.row_number(io)[i] if how["predicate"] < FIRST_OF_SETS else 0.0
    return _lists_wanted(how, st, stream, mem.row_items(io), first, size, number)


@kernel
def _lists_wanted(how, st, stream, of, first, size, number):
    """The same for a row that has a number, or items at a place of an array."""
    claims = time_lists.room_wanted(st, stream)
    if how["lists"]:
        if 2 * (st["lists_used"] + max(size, 1)) > mem.list_item(st).size:
            return size + 1
        if how["predicate"] == BAND:
            which = time_lists.find(st, stream, bucket(number, how["bound"]))
            claims += time_lists.room_wanted(st, which)
        elif size == 0:
            claims += time_lists.room_wanted(st, EMPTIES + stream)
        for k in range(first, first + size):
            claims += time_lists.room_wanted(st, time_lists.find(st, stream, of[k]))
    return size + 1 if st["list_top"] + claims > mem.list_ts(st).size else 0


@inlined
def take_place(st, stream):
    """A free place of the pool."""
    st["free_places"][stream] -= 1
    return int(mem.free(st, stream * (st["free_room"] // 2) + st["free_places"][stream]))


@inlined
def give_place(st, stream, x):
    mem.set_free(st, stream * (st["free_room"] // 2) + st["free_places"][stream], x)
    st["free_places"][stream] += 1


@kernel
def _fill(how, st, io, i, ts, seq, x):
    """What is kept of a row."""
    card = mem.card(st, x)
    card["ts"] = ts
    card["seq"] = seq
    card["importance"] = mem.row_importance(io, i)
    card["item"] = x
    size, at = row_size(how, io, i), st["item_top"]
    items = mem.items(st)
    mem.item_at(st)[x] = at
    mem.item_count(st)[x] = size
    if how["predicate"] < FIRST_OF_SETS:
        mem.number(st)[x] = mem.row_number(io)[i]
    first = mem.row_offsets(io)[i] if size > 0 else 0
    for k in range(size):
        items[at + k] = mem.row_items(io)[first + k]
        mem.item_weights(st)[at + k] = mem.row_weights(io)[first + k]
    mem.signature(st)[x] = signature_of(items, at, size)
    st["item_top"] = at + size + 1


@indirect("receive item", "whole")
def receive(how, st, io, i, stream, ts, seq):
    """A row that only probes here takes a place, and enters no list."""
    x = take_place(st, stream)
    mem.pool(st, x)["stream"] = stream
    _fill(how, st, io, i, ts, seq, x)
    return x


@kernel
def dismiss(st, x):
    """The last that was received goes."""
    st["item_top"] = mem.item_at(st)[x]
    give_place(st, int(mem.pool(st, x)["stream"]), x)


@indirect("store item")
def put(how, st, io, i, stream, ts, seq, x):
    """Store a row, for which there is room, in all of its lists. One that waited has its items there already."""
    if how["waits"] == 0:
        _fill(how, st, io, i, ts, seq, x)
    st["stored_to"][stream] = seq + 1
    if st["came_room"] > 1:
        mem.set_came(st, x, st["tick"])
    if has_values(how):
        _note_values(how, st, x)
    _enter_lists(how, st, stream, x, 0 if mem.window_kind(how, stream) == ROW else ts, seq)


@kernel
def _enter_lists(how, st, stream, x, ts, seq):
    time_lists.add(st, stream, ts, seq, x)
    if how["lists"] == 0:
        return
    at, size = mem.item_at(st)[x], mem.item_count(st)[x]
    if how["predicate"] == BAND:
        _enter_list(how, st, stream, x, ts, seq, bucket(mem.number(st)[x], how["bound"]))
    elif size == 0:
        time_lists.trim(how, st, EMPTIES + stream, stream)
        time_lists.add(st, EMPTIES + stream, ts, seq, x)
    for k in range(at, at + size):
        _enter_list(how, st, stream, x, ts, seq, mem.items(st)[k])


@kernel
def _enter_list(how, st, stream, x, ts, seq, item):
    which = time_lists.find_or_make(st, stream, item)
    time_lists.trim(how, st, which, stream)
    time_lists.add(st, which, ts, seq, x)
    bitmaps.mark(st, which, x)


@indirect("remove item")
def take_out(how, st, stream, x):
    """Take a tuple away. In its lists an entry whose time is over is let go when the list is next touched."""
    bitmaps.clear(st, stream, x)
    card, at, size = mem.card(st, x), mem.item_at(st)[x], mem.item_count(st)[x]
    if has_values(how):
        for k in range(at, at + size + 1):
            mem.cell_count(st)[mem.item_values(st)[k]] -= 1
    if time_lists.is_gone(how, st, stream, card["ts"], card["seq"]):
        return
    ts, seq = 0 if mem.window_kind(how, stream) == ROW else card["ts"], card["seq"]
    time_lists.strike(st, stream, ts, seq)
    if how["lists"] == 0:
        return
    if how["predicate"] == BAND:
        time_lists.strike(st, time_lists.find(st, stream, bucket(mem.number(st)[x], how["bound"])), ts, seq)
    elif size == 0:
        time_lists.strike(st, EMPTIES + stream, ts, seq)
    for k in range(at, at + size):
        time_lists.strike(st, time_lists.find(st, stream, mem.items(st)[k]), ts, seq)


# ------------------------------------------------------------------------------------------------------------- values


@kernel
def _note_values(how, st, x):
    """The numbers of a tuple's values; the caller has made sure that there are enough."""
    at, size = mem.item_at(st)[x], mem.item_count(st)[x]
    values = mem.item_values(st)
    for k in range(at, at + size):
        values[k] = key_table.find_or_add(how, st, mem.items(st)[k], ITEM)
    if how["predicate"] >= FIRST_OF_SETS:
        values[at + size] = key_table.find_or_add(how, st, np.int64(0), EVERY_ROW)
    else:
        values[at] = key_table.find_or_add(how, st, value_of_number(how, st, mem.number(st)[x]), ITEM)
    for k in range(at, at + size + 1):
        mem.cell_count(st)[values[k]] += 1


@inlined
def has_values(how):
    """Whether values are counted: by an estimator, or for a queue."""
    return how["weighed"] == 1 and (how["estimator"] != MET or how["drop"] == DROP_SEMANTIC)


@inlined
def value_of_number(how, st, number):
    """What a number is counted by."""
    if how["predicate"] == BAND:
        return bucket(number, how["bound"])
    return histogram.bucket(st, number)


@indirect("count items", "truth")
def fits_histogram(how, st, io):
    """Whether the histogram of numbers has a bucket for all new tuples; without one they cannot be counted."""
    if not has_values(how) or how["predicate"] == BAND or how["predicate"] >= FIRST_OF_SETS:
        return True
    for i in range(io["fresh"]):  # noqa: SIM110 - kernels have no generators
        if not histogram.has(st, mem.number(st)[np.int64(mem.out_fresh(io, i))]):
            return False
    return True
