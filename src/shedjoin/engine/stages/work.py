"""The work of a probe, as decision 017 counts it, whatever the loops of the probe look at.

For each other window: the tuples of the compared part that share a value with the row, and the list that has them. Without an
index on such a value it is the whole part, and no list. Probes of predicates count their work themselves.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import KEYED, ROW
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.layouts.indexed import bucket_of
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import select
from shedjoin.engine.stages.times import reach
from shedjoin.engine.structures import heap


@inlined
def _meets(how, stream, ts, other, there):
    """Whether the older of two rows was in its time window when the newer came."""
    if there < ts:
        return ts - there < reach(how, other)
    return there - ts < reach(how, stream)


@kernel
def _of_bucket(how, st, io, b, stream, ts, other, key):
    """The tuples of a bucket, with a value, that are in the window and in the part of it."""
    base, first, mask, span = int(b["base"]), int(b["first"]), int(b["room"]) - 1, int(b["span"])
    by_value, in_part = how["layout"] != KEYED, how["basic"] > 0  # a bucket of a key holds nothing else
    if (
        span > 0 and not by_value and not in_part and how["lateness"] == 0
    ):  # in order of time: with both ends, all are inside
        oldest, newest = mem.entries(st, base + (first & mask)), mem.entries(st, base + ((first + span - 1) & mask))
        if _meets(how, stream, ts, other, oldest["ts"]) and _meets(how, stream, ts, other, newest["ts"]):
            return int(b["count"])
    lo = 0
    if how["limited"] and mem.window_kind(how, other) == ROW:
        lo = min(st["arrived"][other] - mem.window_size(how, other), io["old_seq"][other])
    total, at = 0, 0
    while at < span:
        place = base + ((first + at) & mask)
        at += 1
        e = mem.entries(st, place)
        if e["item"] == NONE or e["seq"] < lo or (by_value and mem.entry_key(st, place) != key):
            continue
        if not _meets(how, stream, ts, other, e["ts"]):
            continue
        if in_part and not select.is_inside(how, st, other, e["ts"], e["seq"]):
            at = select.skip(how, st, other, base, first, mask, at - 1, span)
        else:
            total += 1
    return total


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


@inlined
def _of_part(how, st, stream, ts, other, enough):
    """The tuples of the compared part of a window, or `enough` of them."""
    return st["part_size"][other] if how["basic"] > 0 else _of_window(how, st, stream, ts, other, enough)


@kernel
def _count_of_index(how, st, io, i, stream, ts, other, by_probe):
    """The work of a row in a window of a join graph."""
    way = mem.work(st, stream * how["streams"] + other)
    if way["index"] == NONE:
        st["compared"] += _of_part(how, st, stream, ts, other, 2**62)
        return
    key = mem.row_key(io, i * how["width"] + way["attr"])
    b = mem.index_buckets(st, bucket_of(mem.indexes(st, way["index"]), key))
    if not by_probe:
        st["compared"] += _of_bucket(how, st, io, b, stream, ts, other, key)
    # A list of an empty window is not looked up, unless the join is on one key.
    if how["shared_key"] or _of_part(how, st, stream, ts, other, 1) > 0:
        st["looked_up"] += 1


@kernel
def count(how, st, io, i, v, stream, ts):
    """Count the work of a row's probe. Where its one loop sees the same tuples, the probe counts them itself."""
    n = how["streams"]
    st["probed"] += 1
    by_probe = n == 2 and mem.steps(st, stream * n + 1)["shared"] == 1
    for other in range(n):
        if other == stream:
            continue
        if how["layout"] != KEYED:
            _count_of_index(how, st, io, i, stream, ts, other, by_probe)
            continue
        st["looked_up"] += 1
        if not by_probe:
            b = mem.buckets(st, v * n + other)
            st["compared"] += _of_bucket(how, st, io, b, stream, ts, other, 0)


@inlined
def begin(st, io):
    """What was counted before a probe."""
    io["compared"] = st["compared"]
    io["looked_up"] = st["looked_up"]


@kernel
def spend(how, st, io):
    """A virtual CPU has done what the probe took."""
    compared, lists = st["compared"] - io["compared"], st["looked_up"] - io["looked_up"]
    st["worked"] += how["probe_cost"] + how["comparison_cost"] * compared + how["lookup_cost"] * lists
