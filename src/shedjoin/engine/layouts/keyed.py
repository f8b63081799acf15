"""The keyed layout: all streams share a key, and each key has a bucket for each stream.

The buckets of a key stand side by side (for two streams they fill one cache line), so that one look-up serves the probe, the
new tuple and the policy. A bucket is also a group.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import KEY, LIFE
from shedjoin.engine.forms import in_pairs
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import priority
from shedjoin.engine.structures import buckets, key_table, pairing_heap

# How many rows are looked up ahead: a power of two.
AHEAD = 16
# How much further on rows are that are brought into the cache: columns come one by one, from far away.
FAR = 128
ROWS_IN_LINE = 8


@inlined
def _fetch_entries_of_pair(cfg, state, v, stream):
    other, own = mem.buckets(state, 2 * v + 1 - stream), mem.buckets(state, 2 * v + stream)
    mem.fetch_entry(state, other["base"] + other["first"])
    mem.fetch_entry(state, own["base"] + ((own["first"] + own["span"]) & (own["room"] - 1)))


@in_pairs(_fetch_entries_of_pair)
@inlined
def _fetch_entries(cfg, state, v, stream):
    """Prefetch the buckets of a key: those of others are read from their beginning, the own is added to at its end."""
    for other in range(cfg["streams"]):
        b = mem.buckets(state, v * cfg["streams"] + other)
        end = (b["first"] + b["span"]) & (b["room"] - 1) if other == stream else b["first"]
        mem.fetch_entry(state, b["base"] + end)


@inlined
def _fetch_rows(buffers, first):
    """Prefetch the columns of rows, a cache line of each at a time; behind the last row nothing comes of it."""
    mem.fetch_row_null(buffers, first)
    for i in range(first, first + AHEAD, ROWS_IN_LINE):
        mem.fetch_row_stream(buffers, i)
        mem.fetch_row_key(buffers, i)
        mem.fetch_row_ts(buffers, i)
        mem.fetch_row_importance(buffers, i)
        mem.fetch_row_bytes(buffers, i)


@kernel
def look_ahead(cfg, state, buffers, first):
    """Look up the keys of the next rows, and prefetch what they will need, while other rows have work to do.

    In loops of their own, so that the processor waits for many at a time: with a large memory, waiting for each in
    turn would be most of the work.
    """
    end = min(first + AHEAD, buffers["row_ts_room"])
    _fetch_rows(buffers, first + FAR)
    for i in range(first, end):
        v = key_table.first_of_chain(state, mem.row_key(buffers, i * cfg["width"]), 0)
        mem.set_out_ahead(buffers, i & (AHEAD - 1), v)
        mem.fetch_key(state, v)  # harmless where there is none
        for other in range(0, cfg["streams"], 2):
            mem.fetch_bucket(state, v * cfg["streams"] + other)
    for i in range(first, end):
        v = key_table.find_from(
            state, mem.out_ahead(buffers, i & (AHEAD - 1)), mem.row_key(buffers, i * cfg["width"]), 0
        )
        mem.set_out_ahead(buffers, i & (AHEAD - 1), v)
    for i in range(first, end):
        v = mem.out_ahead(buffers, i & (AHEAD - 1))
        if v != NONE:
            stream = mem.row_stream(buffers, i)
            _fetch_entries(cfg, state, v, stream)
            if cfg["follows"]:
                mem.fetch_probed(state, (v * cfg["streams"] + stream) ^ 1)
            elif cfg["organisation"] == KEY or cfg["organisation"] == LIFE:
                pairing_heap.fetch(state, mem.buckets(state, v * cfg["streams"] + stream)["low"])
    buffers["ahead"] = end


@inlined
def home(cfg, state, buffers, i):
    """The number of a row's key."""
    if i >= buffers["ahead"]:
        look_ahead(cfg, state, buffers, i)
    v = mem.out_ahead(buffers, i & (AHEAD - 1))
    if v == NONE:  # it may have come since
        v = key_table.find_or_add(cfg, state, mem.row_key(buffers, i * cfg["width"]), 0)
    return v


@inlined
def make_place(cfg, state, v, stream):
    """Make room for one tuple; returns what the arena lacks for that, most often 0."""
    return buckets.make_place(cfg, state, mem.buckets(state, v * cfg["streams"] + stream), 0)


@inlined
def put(cfg, state, v, stream, ts, seq, importance, x):
    """Put a tuple at the end of its bucket; returns its group."""
    g = v * cfg["streams"] + stream
    b = mem.buckets(state, g)
    if cfg["fifo"] and b["count"] == 0:
        b["low"] = x
    buckets.append(cfg, state, b, ts, seq, importance, x, 0)
    return g


@inlined
def take_out(cfg, state, g, x):
    """Take a tuple out of its bucket."""
    b = mem.buckets(state, g)
    first = buckets.remove(cfg, state, b, int(mem.pool(state, x)["place"]), 0)
    if cfg["fifo"] and first != NONE:
        b["low"] = first


@inlined
def _reweigh_other(cfg, state, v, stream):
    priority.reweigh(cfg, state, 1 - stream, 2 * v + 1 - stream)


@in_pairs(_reweigh_other)
@inlined
def reweigh_others(cfg, state, v, stream):
    """A stream's weight of a key has changed: so have the chances of the key's other groups."""
    for other in range(cfg["streams"]):
        if other != stream:
            g = v * cfg["streams"] + other
            if mem.buckets(state, g)["count"] > 0:
                priority.reweigh(cfg, state, other, g)
