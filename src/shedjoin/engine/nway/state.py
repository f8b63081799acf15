"""The records of an n-way join. Fields that other kernels of the engine read have the names they have there."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.handle import pointers
from shedjoin.engine.state import SHELF_LISTS

#: The most streams that a join can have.
MOST = 16

# What a tuple is; where it stands is in the pool's record (engine.state.TUPLE_RECORD).
CARD_RECORD = np.dtype([("ts", "i8"), ("seq", "i8"), ("importance", "f8"), ("tick", "i8")])
# What a probe reads of a tuple, side by side with the others of its bucket.
RING_RECORD = np.dtype(
    [("key", "i8"), ("ts", "i8"), ("seq", "i8"), ("importance", "f8"), ("item", "i4"), ("unused", "i4")]
)
BUCKET_RECORD = np.dtype([(name, "i4") for name in ("base", "room", "first", "span", "count", "unused")])
# An index of a stream's window: its buckets, and the attribute they are by (-1: none, one bucket that is scanned).
INDEX_RECORD = np.dtype([(name, "i8") for name in ("stream", "attr", "first", "many", "modular")])
# One loop of a plan: which window is looked into, by which value, and what else must hold.
STEP_RECORD = np.dtype(
    [
        (name, "i8")
        for name in (
            "stream",
            "index",
            "by_bucket",  # 1: one bucket, 0: all of the window
            "fresh",  # 1: only new tuples, the loop of the origin
            "limited",  # 1: the origin is bound already, its limits hold
            "source_level",  # whose attribute the bucket is chosen by
            "source_attr",
            "first_check",
            "checks",
        )
    ]
)
CHECK_RECORD = np.dtype([(name, "i8") for name in ("op", "attr", "level", "other_attr", "band")])
# Where a walk is in one of its loops, and what that loop has bound.
LEVEL_RECORD = np.dtype(
    [(name, "i8") for name in ("bucket", "last", "at", "key", "hi", "end", "item", "seq")]
    + [("importance", "f8"), ("worth", "f8")]
)
SLOT_RECORD = np.dtype([("key", "i8"), ("next", "i4"), ("held", "i4"), ("cells", "i4"), ("part", "i4")])
# The tuples of one stream with the same values in all attributes that are equated.
CELL_RECORD = np.dtype(
    [
        ("matches", "f8"),
        ("stream", "i4"),
        ("count", "i4"),
        ("low", "i4"),
        ("next", "i4"),
        ("tail", "i4"),
        ("unused", "i4"),
    ]
)
NSHED_RECORD = np.dtype(
    [(name, "i8") for name in ("stream", "seq", "ts", "key", "when", "tick", "why")] + [("seen", "i8", (MOST,))]
)

POOL_ARRAYS = (
    "pool",
    "card",
    "attr",
    "spot",  # where a tuple stands in each index of its stream
    "link",  # a queue inside each cell
    "more",
    "free",
    "stray",
    "stray_place",
    "dense",
    "cumulated",
    "touched",
    "match",
    "leaf",
    "pending",
)
KEY_ARRAYS = ("slots", "slot_buckets", "free_slots", "weight", "mass", "slot_cells")
CELL_ARRAYS = ("cells", "cell_slots", "cell_links", "cell_buckets", "free_cells")
HEAP_ARRAYS = ("heap", "place")
PLAN_ARRAYS = ("steps", "checks", "levels", "part_of")
OTHER_ARRAYS = ("indexes", "buckets", "ring", "ring_key", "expiry", "seen", "sketch", "marks", "until", "until_from")
STATE_ARRAYS = POOL_ARRAYS + KEY_ARRAYS + CELL_ARRAYS + HEAP_ARRAYS + PLAN_ARRAYS + OTHER_ARRAYS

#: Totals since the beginning of the join.
COUNTERS = (
    "rows",
    "null",
    "late",
    "results",
    "expired",
    "evicted",
    "scheduled",
    "matches",
    "compared",  # tuples looked at by probes
    "evaluations",  # rounds of lazy evaluation
    "expirations",  # rounds of expiry
)
_NUMBERS = (
    "tick",
    "arrival",
    "free_count",
    "free_slot_count",
    "free_cell_count",
    "touched_count",
    "pending_count",
    "first_mark",  # the instant of the first mark
    "last_evaluation",  # the round that was the last
    "last_expiry",
    "peak_tuples",
    "peak_bytes",
    "ring_top",
    "epoch",
    "t0",
    "started",
    "lift_tick",
)
BY_STREAM = (
    "kind",
    "window",
    "first_index",  # the indexes of a stream stand side by side
    "end_index",
    "clock",
    "arrived",
    "before",  # rows that had arrived before this instant
    "resident",
    "stored_bytes",
    "caps",
    "ring_from",
    "ring_to",
    "ring_newest",
    "ring_ready",
    "heap_size",
    "front",  # so many of them are in order, see engine/front.py
    "stray_size",
    "seen_head",
    "seen_size",
    "horizon",  # no tuple before this comes on any other stream; NEVER while one of them has not begun
    "base",
    "oldest",
    "limit",
    "lo",  # row numbers that the new tuple may meet: from this
    "hi",  # up to, and without, this
    "factors",  # how many weights make the matches of a tuple
)
STATE_RECORD = np.dtype(
    [(name, "i8") for name in COUNTERS + _NUMBERS]
    + [("importance", "f8"), ("lift", "f8"), ("random", "u8")]
    + [(name, "i8", (MOST,)) for name in BY_STREAM]
    + [("bound", "f8", (MOST,))]
    + [("free_ring", "i8", (SHELF_LISTS,))]
    + pointers(*STATE_ARRAYS)
)

_SETTINGS = (
    "streams",
    "width",  # attributes of a row
    "spots",  # the most indexes that a stream has
    "parts",  # sets of attributes that must be equal
    "organisation",
    "combine",
    "fifo",
    "estimator",
    "sketch_width",
    "depth",
    "lateness",
    "max_skew",
    "output_importance",
    "groups",
    "by_bytes",
    "warmup",
    "emit",
    "evaluate_every",
    "expire_every",
    "limited",  # whether row numbers have to be looked at
    "weighed",  # whether cells are kept
)
SETTINGS_RECORD = np.dtype(
    [(name, "f8") for name in ("importance", "matches", "life", "gain", "log_loss", "half_life", "fold_at")]
    + [(name, "i8") for name in _SETTINGS]
)

ROW_ARRAYS = ("stream", "ts", "null", "importance", "bytes", "attr", "seq", "slot")
IO_RECORD = np.dtype(
    [
        (name, "i8")
        for name in (
            "first",
            "end",
            "phase",
            "at",
            "over",
            "fresh",
            "results",
            "shed",
            "wanted",
            "walking",  # the walk has begun and is not at its end
            "depth",
            "origin",
            "found",
            "stream",  # lazy evaluation: whose new tuples are joined
            "next",  # and which of the pending ones is next
            "fresh_from",  # row numbers from here on are new
            "ready",  # lazy evaluation and expiry of this instant are done
        )
    ]
    + pointers(*(f"row_{name}" for name in ROW_ARRAYS), "out_rows", "out_worth", "out_shed", "out_fresh")
)
