"""The records that kernels work on: stored tuples, keys, heaps, and the three handles `how`, `st` and `io`."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.handle import marked, pointers

NONE = -1
#: A clock that has not started.
NEVER = -(2**62)

# A stored tuple: half a cache line. Its time, row number and importance are on its key's shelf.
TUPLE_RECORD = np.dtype(
    [
        ("arrival", "i8"),
        ("slot", "i4"),  # its key
        ("place", "i4"),  # on the shelves
        ("queued", "i4"),  # its place in the order of expiry; -1: came out of order, is in a heap of its own
        ("bytes", "i4"),
        ("stream", "i4"),
        ("met", "i4"),  # was part of an output in the instant of its arrival
    ]
)
# What only some policies need of a tuple.
MORE_RECORD = np.dtype(
    [
        ("rank", "f8"),  # the order inside a key
        ("arrival", "i8"),
        ("child", "i4"),  # the pairing heap inside a key
        ("sibling", "i4"),
        ("back", "i4"),
        ("ahead", "i4"),  # the sibling's sibling when it was linked; nothing depends on it
    ]
)
# What Prospect remembers of a key on a stream: one cache line.
TRAIL_RECORD = np.dtype(
    [
        ("mass", "f8", (4,)),  # counts: of all time, then decayed ones from slow to fast
        ("last", "i8"),  # when its last row came
        ("recent", "i8"),  # its rows among the late ones of the stream, which are in `seen`
        ("looked", "i8"),  # how often places had been weighed when it was last looked at (with the first stream)
        ("before", "f8"),  # rows of the stream that came before there was anything to know of it
    ]
)
KEY_RECORD = np.dtype(
    [
        ("key", "i8"),
        ("next", "i4"),  # in its bucket
        ("held", "i4"),  # by an estimator
    ]
)
# What each stream has of a key: one cache line.
SIDES_RECORD = np.dtype(
    [
        ("shelf", "i4", (2,)),  # where the tuples are, see shelf.py
        ("room", "i4", (2,)),
        ("first", "i4", (2,)),
        ("span", "i4", (2,)),  # from the first tuple to the last, gaps included
        ("count", "i4", (2,)),
        ("low", "i4", (2,)),  # the tuple that goes first, for policies that order keys
        ("weight", "f8", (2,)),
    ]
)
# What a probe reads of a tuple, side by side with the others of its key and stream.
SHELF_RECORD = np.dtype([("ts", "i8"), ("seq", "i8"), ("importance", "f8"), ("item", "i4"), ("unused", "i4")])
#: Lists of empty shelves, one for each room that a power of two can be.
SHELF_LISTS = 31
HEAP_RECORD = np.dtype([("prio", "f8"), ("rank", "f8"), ("arrival", "i8"), ("item", "i8")])
# A match of the tournament with the line that won it: the two below one share a cache line.
MATCH_RECORD = np.dtype([("weight", "f8"), ("end", "i8"), ("doubt", "i8"), ("winner", "i8")])
LEAF_RECORD = np.dtype([("arrival", "i8"), ("slot", "i8")])
# A stamp is what a tuple expires by: its time, or its row number.
EXPIRY_RECORD = np.dtype([("item", "i4"), ("slot", "i4"), ("stamp", "i8")])
SEEN_RECORD = np.dtype([("stamp", "i8"), ("slot", "i8")])
SHED_RECORD = np.dtype(
    [(name, "i8") for name in ("stream", "seq", "ts", "key", "when", "tick", "why", "seen0", "seen1")]
)

#: The arrays of a state, by what their length depends on.
POOL_ARRAYS = (
    "pool",
    "more",
    "free",
    "stray",
    "stray_place",
    "dense",
    "cumulated",
    "touched",
    "match",
    "leaf",
)
KEY_ARRAYS = ("keys", "sides", "mass", "trail", "buckets", "free_keys", "probed")
HEAP_ARRAYS = ("heap", "place")
OTHER_ARRAYS = ("shelf", "expiry", "seen", "sketch", "model", "until0", "until1")
STATE_ARRAYS = POOL_ARRAYS + KEY_ARRAYS + HEAP_ARRAYS + OTHER_ARRAYS

#: Totals since the beginning of the join.
COUNTERS = ("rows", "null", "late", "results", "expired", "evicted", "scheduled", "matches")
_NUMBERS = (
    "tick",
    "arrival",
    "free_count",
    "free_key_count",
    "touched_count",
    "peak_tuples",
    "peak_bytes",
    "shelf_top",  # what lies behind this was never used
    "epoch",  # Decayed: how often weights were folded
    "t0",
    "started",
    "faded",  # Prospect: up to when totals have faded
    "lift_tick",  # cumulative priorities: the instant in which the lift was 0
)
_BY_STREAM = (
    "clock",
    "arrived",
    "resident",
    "stored_bytes",
    "caps",
    "ring_from",  # the ring of expiry: counters, of which the low bits are places
    "ring_to",
    "ring_newest",
    "ring_ready",  # up to here, what expiry will need was asked for
    "heap_size",
    "front",  # so many of them are in order, see front.py
    "stray_size",
    "seen_head",
    "seen_size",
    "observed",  # Prospect: rows that were counted
    "looked_soon",  # and how many of those seen were looked at again
    "looked_later",
    "base",  # what remaining life is counted from
    "oldest",  # rows before this are late
    "limit",  # where the window ends: tuples up to this stamp are over
)
STATE_RECORD = np.dtype(
    [(name, "i8") for name in COUNTERS + _NUMBERS]
    + [("importance", "f8"), ("lift", "f8"), ("random", "u8")]
    + [(name, "i8", (2,)) for name in _BY_STREAM]
    + [("bound", "f8", (2,))]
    + [("free_shelf", "i8", (SHELF_LISTS,))]
    + pointers(*STATE_ARRAYS)
)

#: The same state, as the form PLAIN of the loop sees it.
PLAIN_STATE = marked(STATE_RECORD, "plain")

ROW_ARRAYS = ("stream", "key", "null", "ts", "importance", "bytes", "ahead")
OUT_ARRAYS = ("left", "right", "worth", "shed", "trace", "fresh")
# The rows of a push, where the loop is in them, and the buffers it writes to.
IO_RECORD = np.dtype(
    [
        (name, "i8")
        for name in ("first", "end", "phase", "at", "over", "fresh", "pairs", "shed", "traces", "wanted", "ahead")
    ]
    + [(name, "i8", (2,)) for name in ("old_seq", "seq")]  # the first rows of the instant, the next rows to be met
    + pointers(*(f"row_{name}" for name in ROW_ARRAYS), *(f"out_{name}" for name in OUT_ARRAYS))
)
