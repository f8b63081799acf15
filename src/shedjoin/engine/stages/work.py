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
from shedjoin.engine.stages.times import number_of, reach
from shedjoin.engine.structures import heap


@inlined
def _meets(cfg, stream, ts, other, there):
    """Whether two rows are near enough in time: neither is newer than the other by its window or more."""
    return ts - there < reach(cfg, other) and there - ts < reach(cfg, stream)


@inlined
def _first_number(cfg, state, buffers, other):
    """Row windows, where tuples are stored that have left them: what the first that is met is counted by."""
    if cfg["limited"] == 0 or mem.window_kind(cfg, other) != ROW:
        return 0
    return min(state["arrived"][other] - mem.window_size(cfg, other), buffers["old_seq"][other])


@kernel
def _of_bucket(cfg, state, buffers, b, stream, ts, other, key):
    """The tuples of a bucket, with a value, that are in the window and in the part of it."""
    base, first, mask, span = int(b["base"]), int(b["first"]), int(b["room"]) - 1, int(b["span"])
    by_value, in_part = cfg["layout"] != KEYED, cfg["basic"] > 0  # a bucket of a key holds nothing else
    if (
        span > 0 and not by_value and not in_part and state["lag"] == 0
    ):  # in order of time: with both ends, all are inside
        oldest, newest = (
            mem.entries(state, base + (first & mask)),
            mem.entries(state, base + ((first + span - 1) & mask)),
        )
        if _meets(cfg, stream, ts, other, oldest["ts"]) and _meets(cfg, stream, ts, other, newest["ts"]):
            return int(b["count"])
    lo, total, at = _first_number(cfg, state, buffers, other), 0, 0
    while at < span:
        place = base + ((first + at) & mask)
        at += 1
        e = mem.entries(state, place)
        if e["item"] == NONE or (by_value and mem.entry_key(state, place) != key):
            continue
        if lo > 0 and number_of(cfg, state, int(e["item"]), e["seq"]) < lo:
            continue
        if not _meets(cfg, stream, ts, other, e["ts"]):
            continue
        if in_part and not select.is_inside(cfg, state, other, e["ts"], e["seq"]):
            at = select.skip(cfg, state, other, base, first, mask, at - 1, span)
        else:
            total += 1
    return total


@inlined
def _time_of(cfg, state, other, at):
    """The time of a tuple in the ring of expiry; NONE, and 0, for a gap."""
    there = mem.expiry(state, other * state["expiry_room"] + (at & (state["expiry_room"] - 1)))
    x = int(there["item"])
    if x == NONE:
        return x, 0
    return x, storage.card(cfg, state, x)["ts"] if mem.window_kind(cfg, other) == ROW else there["stamp"]


@inlined
def _stamp(state, other, at):
    """What a tuple in the ring of expiry expires by; gaps keep theirs."""
    return mem.expiry(state, other * state["expiry_room"] + (at & (state["expiry_room"] - 1)))["stamp"]


@kernel
def _of_window(cfg, state, buffers, stream, ts, other, enough):
    """The stored tuples of a stream that a row may meet; no more than `enough` are looked for, from the newest on."""
    lo, count = _first_number(cfg, state, buffers, other), 0
    for back in range(state["ring_to"][other] - state["ring_from"][other]):
        at = state["ring_to"][other] - 1 - back
        x, there = _time_of(cfg, state, other, at)
        if lo > 0 and _stamp(state, other, at) < lo:
            return count
        if x != NONE and _meets(cfg, stream, ts, other, there):
            count += 1
            if count == enough:
                return count
    for i in range(state["stray_size"][other]):
        x = int(mem.stray(state)[other, heap.TOP + i]["item"])
        if _meets(cfg, stream, ts, other, storage.card(cfg, state, x)["ts"]):
            count += 1
            if count == enough:
                return count
    return count


@inlined
def _of_part(cfg, state, buffers, stream, ts, other, enough):
    """The tuples of the compared part of a window, or `enough` of them."""
    return state["part_size"][other] if cfg["basic"] > 0 else _of_window(cfg, state, buffers, stream, ts, other, enough)


@kernel
def _count_of_index(cfg, state, buffers, i, stream, ts, other, by_probe):
    """The work of a row in a window of a join graph."""
    way = mem.work(state, stream * cfg["streams"] + other)
    if way["index"] == NONE:
        state["compared"] += _of_part(cfg, state, buffers, stream, ts, other, 2**62)
        return
    key = mem.row_key(buffers, i * cfg["width"] + way["attr"])
    b = mem.index_buckets(state, bucket_of(mem.indexes(state, way["index"]), key))
    if not by_probe:
        state["compared"] += _of_bucket(cfg, state, buffers, b, stream, ts, other, key)
    # A list of an empty window is not looked up, unless the join is on one key.
    if cfg["shared_key"] or _of_part(cfg, state, buffers, stream, ts, other, 1) > 0:
        state["looked_up"] += 1


@kernel
def count(cfg, state, buffers, i, v, stream, ts):
    """Count the work of a row's probe. Where its one loop sees the same tuples, the probe counts them itself."""
    n = cfg["streams"]
    state["probed"] += 1
    by_probe = n == 2 and mem.steps(state, stream * n + 1)["shared"] == 1
    for other in range(n):
        if other == stream:
            continue
        if cfg["layout"] != KEYED:
            _count_of_index(cfg, state, buffers, i, stream, ts, other, by_probe)
            continue
        state["looked_up"] += 1
        if not by_probe:
            b = mem.buckets(state, v * n + other)
            state["compared"] += _of_bucket(cfg, state, buffers, b, stream, ts, other, 0)


@inlined
def begin(state, buffers):
    """What was counted before a probe."""
    buffers["compared"] = state["compared"]
    buffers["looked_up"] = state["looked_up"]


@kernel
def spend(cfg, state, buffers):
    """A virtual CPU has done what the probe took."""
    compared, lists = state["compared"] - buffers["compared"], state["looked_up"] - buffers["looked_up"]
    state["worked"] += cfg["probe_cost"] + cfg["comparison_cost"] * compared + cfg["lookup_cost"] * lists
