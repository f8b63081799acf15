"""The work of a probe, as decision 017 counts it, whatever the loops of the probe look at.

For each other window: the tuples of the compared part that share a value with the row, and one list that has them. Without an
index on such a value it is the whole part, and no list.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import KEYED, ROW
from shedjoin.engine.jit import kernel
from shedjoin.engine.layouts.indexed import bucket_of
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import select
from shedjoin.engine.stages.times import reach


@kernel
def _in_bucket(how, st, io, stream, ts, other, b, key):
    """The tuples of a bucket, with a value, that are in the window and in the part of it."""
    base, first, mask, span = int(b["base"]), int(b["first"]), int(b["room"]) - 1, int(b["span"])
    end, window, lo = ts + reach(how, stream), reach(how, other), 0
    if mem.window_kind(how, other) == ROW:
        lo = min(st["arrived"][other] - mem.window_size(how, other), io["old_seq"][other])
    by_value = how["layout"] != KEYED  # a bucket of a key holds nothing else
    total, at = 0, 0
    while at < span:
        place = base + ((first + at) & mask)
        at += 1
        e = mem.entries(st, place)
        if e["item"] == NONE or e["seq"] < lo or (by_value and mem.entry_key(st, place) != key):
            continue
        if max(ts, e["ts"]) >= min(end, e["ts"] + window):
            continue
        if select.is_inside(how, st, other, e["ts"], e["seq"]):
            total += 1
        else:
            at = select.skip(how, st, other, base, first, mask, at - 1, span)
    return total


@kernel
def count(how, st, io, i, v, stream, ts):
    """Count the work of a row's probe. Where its one loop sees the same tuples, the probe counts them itself."""
    n = how["streams"]
    st["probed"] += 1
    by_probe = n == 2 and mem.steps(st, stream * n + 1)["shared"] == 1
    for other in range(n):
        if other == stream:
            continue
        if how["layout"] == KEYED:
            st["looked_up"] += 1
            if not by_probe:
                st["compared"] += _in_bucket(how, st, io, stream, ts, other, mem.buckets(st, v * n + other), 0)
            continue
        if st["part_size"][other] == 0:
            continue
        way = mem.work(st, stream * n + other)
        if way["index"] == NONE:
            st["compared"] += st["part_size"][other]
            continue
        st["looked_up"] += 1
        if not by_probe:
            key = mem.row_key(io, i * how["width"] + way["attr"])
            b = mem.index_buckets(st, bucket_of(mem.indexes(st, way["index"]), key))
            st["compared"] += _in_bucket(how, st, io, stream, ts, other, b, key)
