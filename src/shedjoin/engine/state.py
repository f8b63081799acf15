"""The records that kernels work on: stored tuples, keys, heaps, and the three handles `how`, `st` and `io`."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.handle import pointers

NONE = -1
#: A clock that has not started.
NEVER = -(2**62)

# A stored tuple: one cache line.
TUPLE_RECORD = np.dtype(
    [
        ("ts", "i8"),
        ("seq", "i8"),
        ("importance", "f8"),
        ("arrival", "i8"),
        ("next", "i4"),  # tuples of one stream and key, oldest first
        ("prev", "i4"),
        ("later", "i4"),  # tuples of one stream in the order in which they expire
        ("earlier", "i4"),
        ("slot", "i4"),  # its key
        ("bytes", "i4"),
        ("stream", "i4"),
        ("strayed", "i4"),  # came out of order: expires through a heap of its own
    ]
)
# What only some policies need of a tuple.
MORE_RECORD = np.dtype(
    [
        ("rank", "f8"),  # the order inside a key; for cumulative priorities, the priority itself
        ("arrival", "i8"),
        ("mark", "i8"),  # the last instant in which it was part of an output
        ("child", "i4"),  # the pairing heap inside a key
        ("sibling", "i4"),
        ("back", "i4"),
        ("unused", "i4"),
    ]
)
# A key and what each stream has of it: one cache line.
KEY_RECORD = np.dtype(
    [
        ("key", "i8"),
        ("next", "i4"),  # in its bucket
        ("held", "i4"),  # by an estimator
        ("head", "i4", (2,)),
        ("tail", "i4", (2,)),
        ("count", "i4", (2,)),
        ("root", "i4", (2,)),
        ("weight", "f8", (2,)),
    ]
)
HEAP_RECORD = np.dtype([("prio", "f8"), ("rank", "f8"), ("arrival", "i8"), ("item", "i8")])
LINE_RECORD = np.dtype([("weight", "f8"), ("end", "i8"), ("arrival", "i8"), ("slot", "i8")])
SEEN_RECORD = np.dtype([("stamp", "i8"), ("slot", "i8")])
SHED_RECORD = np.dtype(
    [(name, "i8") for name in ("stream", "seq", "ts", "key", "when", "tick", "why", "seen0", "seen1")]
)

#: The arrays of a state, by what their length depends on.
POOL_ARRAYS = ("pool", "more", "free", "stray", "stray_place", "dense", "touched", "winner", "doubt", "line")
KEY_ARRAYS = ("keys", "mass", "buckets", "free_keys")
HEAP_ARRAYS = ("heap", "place")
OTHER_ARRAYS = ("ring", "sketch", "until0", "until1")
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
    "epoch",  # Decayed: how often weights were folded
    "t0",
    "started",
)
_BY_STREAM = (
    "clock",
    "arrived",
    "resident",
    "stored_bytes",
    "caps",
    "head",  # the next to expire
    "tail",
    "heap_size",
    "stray_size",
    "ring_head",
    "ring_size",
    "base",  # what remaining life is counted from
    "oldest",  # rows before this are late
)
STATE_RECORD = np.dtype(
    [(name, "i8") for name in COUNTERS + _NUMBERS]
    + [("importance", "f8"), ("random", "u8")]
    + [(name, "i8", (2,)) for name in _BY_STREAM]
    + pointers(*STATE_ARRAYS)
)

ROW_ARRAYS = ("stream", "key", "null", "ts", "importance", "bytes", "seq", "slot")
OUT_ARRAYS = ("left", "right", "worth", "shed", "trace", "fresh")
# The rows of a push, where the loop is in them, and the buffers it writes to.
IO_RECORD = np.dtype(
    [(name, "i8") for name in ("first", "end", "phase", "at", "old", "fresh", "pairs", "shed", "traces", "wanted")]
    + pointers(*(f"row_{name}" for name in ROW_ARRAYS), *(f"out_{name}" for name in OUT_ARRAYS))
)
