"""The work of a probe: what a virtual CPU has to do for it, whatever the join order (decision 017).

For each other window: the tuples that share a value with the row, and the list that this takes; the whole window where the two
streams share no attribute, or without an index.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import KEYED, ROW
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.layouts.indexed import bucket_of
from shedjoin.engine.records import NONE
from shedjoin.engine.stages.times import reach
from shedjoin.engine.stages.waiting import attr_of
from shedjoin.engine.structures import heap


@inlined
def _meets(how, stream, ts, other, there):
    """Whether the older of two rows was in its time window when the newer came."""
    if there < ts:
        return ts - there < reach(how, other)
    return there - ts < reach(how, stream)


@kernel
def _of_bucket(how, st, b, stream, ts, other, by_key, key):
    """The tuples of a bucket that a row may meet, and that have its value."""
    base, first, mask, span = int(b["base"]), int(b["first"]), int(b["room"]) - 1, int(b["span"])
    if span == 0:
        return 0
    if not by_key and how["lateness"] == 0:  # in order of time: with both ends, all are inside
        oldest, newest = mem.entries(st, base + (first & mask)), mem.entries(st, base + ((first + span - 1) & mask))
        if _meets(how, stream, ts, other, oldest["ts"]) and _meets(how, stream, ts, other, newest["ts"]):
            return int(b["count"])
    count = 0
    for at in range(span):
        place = base + ((first + at) & mask)
        e = mem.entries(st, place)
        if e["item"] != NONE and (not by_key or mem.entry_key(st, place) == key):
            count += 1 if _meets(how, stream, ts, other, e["ts"]) else 0
    return count


@inlined
def _time_of(how, st, other, at):
    """The time of a tuple in the ring of expiry; NONE, and 0, for a gap."""
    there = mem.expiry(st, other * st["expiry_room"] + (at & (st["expiry_room"] - 1)))
    x = int(there["item"])
    if x == NONE:
        return x, 0
    return x, storage.card(how, st, x)["ts"] if mem.window_kind(how, other) == ROW else there["stamp"]


@kernel
def _of_window(how, st, stream, ts, other, enough):
    """The stored tuples of a stream that a row may meet; no more than `enough` are looked for, from the newest on."""
    count = 0
    for back in range(st["ring_to"][other] - st["ring_from"][other]):
        x, there = _time_of(how, st, other, st["ring_to"][other] - 1 - back)
        if x != NONE and _meets(how, stream, ts, other, there):
            count += 1
            if count == enough:
                return count
    for i in range(st["stray_size"][other]):
        x = int(mem.stray(st)[other, heap.TOP + i]["item"])
        if _meets(how, stream, ts, other, storage.card(how, st, x)["ts"]):
            count += 1
            if count == enough:
                return count
    return count


@kernel
def _common_part(how, st, stream, other):
    """The first set of equated attributes that two streams have in common; -1: none."""
    for part in range(how["parts"]):
        if attr_of(st, part, stream) >= 0 and attr_of(st, part, other) >= 0:
            return part
    return NONE


@kernel
def _index_of(st, other, attr):
    """The index of a window by an attribute, if it is no scan; -1: none."""
    for number in range(st["first_index"][other], st["end_index"][other]):
        index = mem.indexes(st, number)
        if index["attr"] == attr and not (index["modular"] == 1 and index["many"] == 1):
            return number
    return NONE


@kernel
def _of_index(how, st, io, i, stream, ts, other):
    """(tuples, lists) that a row looks at in a window of a join graph."""
    part = _common_part(how, st, stream, other)
    number = NONE if part == NONE else _index_of(st, other, attr_of(st, part, other))
    if number == NONE:
        return _of_window(how, st, stream, ts, other, 2**62), 0
    key = mem.row_key(io, i * how["width"] + attr_of(st, part, stream))
    b = mem.index_buckets(st, bucket_of(mem.indexes(st, number), key))
    found = _of_bucket(how, st, b, stream, ts, other, True, key)
    # A list of an empty window is not looked up.
    some = how["shared_key"] == 1 or found > 0 or _of_window(how, st, stream, ts, other, 1) > 0
    return found, 1 if some else 0


@kernel
def count(how, st, io, i, v):
    """The work of the probe of row i."""
    stream, ts = mem.row_stream(io, i), mem.row_ts(io, i)
    compared, lists = 0, 0
    for other in range(how["streams"]):
        if other == stream:
            continue
        if how["layout"] == KEYED:
            b = mem.buckets(st, v * how["streams"] + other)
            compared += _of_bucket(how, st, b, stream, ts, other, False, 0)
            lists += 1
        else:
            found, looked = _of_index(how, st, io, i, stream, ts, other)
            compared += found
            lists += looked
    st["probed"] += 1
    st["compared"] += compared
    st["looked_up"] += lists
    st["worked"] += how["probe_cost"] + how["comparison_cost"] * compared + how["lookup_cost"] * lists
