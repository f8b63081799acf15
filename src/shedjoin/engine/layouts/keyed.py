"""The keyed layout: all streams share a key, and each key has a bucket for each stream.

The buckets of a key stand side by side (for two streams they fill one cache line), so that one look-up serves the probe, the
new tuple and the policy. A bucket is also a group.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import CUMULATIVE, KEY, LIFE
from shedjoin.engine.forms import in_pairs
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import priority
from shedjoin.engine.structures import buckets, key_table, pairing_heap

# How many rows are looked up ahead: a power of two.
AHEAD = 16


@inlined
def _fetch_entries_of_pair(how, st, v, stream):
    other, own = mem.buckets(st, 2 * v + 1 - stream), mem.buckets(st, 2 * v + stream)
    mem.fetch_entry(st, other["base"] + other["first"])
    mem.fetch_entry(st, own["base"] + ((own["first"] + own["span"]) & (own["room"] - 1)))


@in_pairs(_fetch_entries_of_pair)
@inlined
def _fetch_entries(how, st, v, stream):
    """Prefetch the buckets of a key: those of others are read from their beginning, the own is added to at its end."""
    for other in range(how["streams"]):
        b = mem.buckets(st, v * how["streams"] + other)
        end = (b["first"] + b["span"]) & (b["room"] - 1) if other == stream else b["first"]
        mem.fetch_entry(st, b["base"] + end)


@kernel
def look_ahead(how, st, io, first):
    """Look up the keys of the next rows, and prefetch what they will need, while other rows have work to do.

    In loops of their own, so that the processor waits for many at a time: with a large memory, waiting for each in
    turn would be most of the work.
    """
    end = min(first + AHEAD, io["row_ts_room"])
    for i in range(first, end):
        v = key_table.find(st, mem.row_key(io, i), 0)
        mem.set_out_ahead(io, i & (AHEAD - 1), v)
        for other in range(0, how["streams"], 2):
            mem.fetch_bucket(st, v * how["streams"] + other)  # harmless where there is none
    for i in range(first, end):
        v = mem.out_ahead(io, i & (AHEAD - 1))
        if v != NONE:
            stream = mem.row_stream(io, i)
            _fetch_entries(how, st, v, stream)
            if how["organisation"] == CUMULATIVE:
                mem.fetch_probed(st, (v * how["streams"] + stream) ^ 1)
            elif how["organisation"] == KEY or how["organisation"] == LIFE:
                pairing_heap.fetch(st, mem.buckets(st, v * how["streams"] + stream)["low"])
    io["ahead"] = end


@inlined
def home(how, st, io, i):
    """The number of a row's key."""
    if i >= io["ahead"]:
        look_ahead(how, st, io, i)
    v = mem.out_ahead(io, i & (AHEAD - 1))
    if v == NONE:  # it may have come since
        v = key_table.find_or_add(how, st, mem.row_key(io, i), 0)
    return v


@inlined
def make_place(how, st, v, stream):
    """Make room for one tuple; returns what the arena lacks for that, most often 0."""
    return buckets.make_place(how, st, mem.buckets(st, v * how["streams"] + stream), 0)


@inlined
def put(how, st, v, stream, ts, seq, importance, x):
    """Put a tuple at the end of its bucket; returns its group."""
    g = v * how["streams"] + stream
    b = mem.buckets(st, g)
    if how["fifo"] and b["count"] == 0:
        b["low"] = x
    buckets.append(how, st, b, ts, seq, importance, x, 0)
    return g


@inlined
def take_out(how, st, g, x):
    """Take a tuple out of its bucket."""
    b = mem.buckets(st, g)
    first = buckets.remove(how, st, b, int(mem.pool(st, x)["place"]), 0)
    if how["fifo"] and first != NONE:
        b["low"] = first


@inlined
def _reweigh_other(how, st, v, stream):
    priority.reweigh(how, st, 1 - stream, 2 * v + 1 - stream)


@in_pairs(_reweigh_other)
@inlined
def reweigh_others(how, st, v, stream):
    """A stream's weight of a key has changed: so have the chances of the key's other groups."""
    for other in range(how["streams"]):
        if other != stream:
            g = v * how["streams"] + other
            if mem.buckets(st, g)["count"] > 0:
                priority.reweigh(how, st, other, g)
