"""The records that kernels work on: stored tuples, keys, buckets, heaps, and the state and buffers of each form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from shedjoin.engine.codes import MOST
from shedjoin.engine.handle import marked, pointers

NONE = -1
#: A clock that has not started.
NEVER = -(2**62)

# A stored tuple: half a cache line. Its time, row number and importance are in its entry (see layouts).
TUPLE_RECORD = np.dtype(
    [
        ("arrival", "i8"),
        ("group", "i4"),  # tuples of one stream with one chance of a partner
        ("place", "i4"),  # of its entry
        ("queued", "i4"),  # its place in the ring of expiry; -1: came out of order, is in a heap of its own
        ("bytes", "i4"),
        ("stream", "i4"),
        ("met", "i4"),  # was part of an output in this instant
    ]
)
# What only some policies need of a tuple.
MORE_RECORD = np.dtype(
    [
        ("rank", "f8"),  # the order inside a group
        ("arrival", "i8"),
        ("child", "i4"),  # the pairing heap inside a group
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
        ("recent", "i8"),  # its rows among the recent ones of the stream, which are in `seen`
        ("looked", "i8"),  # how often places had been weighed when it was last looked at (with the first stream)
        ("before", "f8"),  # rows of the stream that came before there was anything to know of it
    ]
)
# A value that estimators count: a key, or a value of an equated attribute.
KEY_RECORD = np.dtype([("key", "i8"), ("next", "i4"), ("held", "i4")])
# Where tuples stand side by side: a ring of entries. In the keyed layout each is a group: two streams fill a cache line.
BUCKET_RECORD = np.dtype(
    [
        ("base", "i4"),
        ("room", "i4"),
        ("first", "i4"),
        ("span", "i4"),  # from the first tuple to the last, gaps included
        ("count", "i4"),
        ("low", "i4"),  # the tuple that goes first, for policies that order groups
        ("weight", "f8"),  # how much its stream is expected to bring of its key
    ]
)
# A group of a join graph: tuples of one stream that agree in all equated attributes. It stands where buckets do.
CELL_RECORD = np.dtype(
    [
        ("stream", "i4"),
        ("next", "i4"),
        ("tail", "i4"),
        ("unused", "i4"),
        ("count", "i4"),
        ("low", "i4"),
        ("weight", "f8"),  # the chance of its tuples
    ]
)
# What a probe reads of a tuple, side by side with the others of its bucket.
ENTRY_RECORD = np.dtype([("ts", "i8"), ("seq", "i8"), ("importance", "f8"), ("item", "i4"), ("partners", "i4")])
# Beside the partners that were counted: the tuple was not compared with all that it might meet.
DOUBT = -(2**31)
#: Lists of empty rings, one for each room that a power of two can be.
FREE_LISTS = 31
HEAP_RECORD = np.dtype([("prio", "f8"), ("rank", "f8"), ("arrival", "i8"), ("item", "i8")])
# A match of the tournament with the line that won it: the two below one share a cache line.
MATCH_RECORD = np.dtype([("weight", "f8"), ("end", "i8"), ("doubt", "i8"), ("winner", "i8")])
LEAF_RECORD = np.dtype([("arrival", "i8"), ("group", "i8")])
# A stamp is what a tuple expires by: its time, or its row number.
EXPIRY_RECORD = np.dtype([("item", "i4"), ("group", "i4"), ("stamp", "i8")])
# Sample: what was evicted by then, and the highest priority that was evicted after.
THRESHOLD_RECORD = np.dtype([("stamp", "i8"), ("prio", "f8")])
# Age: the tuples of one stream and age. What is expected of them is counted in small parts, see stages/ages.py.
COHORT_RECORD = np.dtype([("root", "i8"), ("count", "i8"), ("expected", "i8"), ("prio", "f8"), ("arrival", "i8")])
SEEN_RECORD = np.dtype([("stamp", "i8"), ("value", "i8")])

# An index of a window: its buckets, and the attribute they are by (-1: none, one bucket that is scanned).
INDEX_RECORD = np.dtype([(name, "i8") for name in ("stream", "attr", "first", "many", "modular")])
# One loop of a probe of n streams: which window is looked into, by which value, and what else must hold.
STEP_RECORD = np.dtype(
    [
        (name, "i8")
        for name in (
            "stream",
            "index",
            "by_bucket",  # 1: one bucket, 0: all of the window
            "fresh",  # 1: only new tuples, the loop of the origin
            "limited",  # 1: the origin is bound already, its limits hold
            "shared",  # 1: its bucket holds what shares a value with the origin, see stages/work.py
            "source_level",  # whose attribute the bucket is chosen by
            "source_attr",
            "first_check",
            "checks",  # whether there are any
        )
    ]
)
# A test between two tuples by the levels that bind them, and the tests that follow (or `FAILED`, `PASSED`: see where.py).
CHECK_RECORD = np.dtype(
    [(name, "i8") for name in ("op", "level", "attr", "other_level", "other_attr", "band", "yes", "no")]
)
# Where a probe is in one of its loops, and what that loop has bound.
LEVEL_RECORD = np.dtype(
    [(name, "i8") for name in ("bucket", "last", "at", "key", "hi", "end", "item", "seq")]
    + [("importance", "f8"), ("worth", "f8")]
)

# A list of tuples, and its place in the hash table: half a cache line.
LIST_RECORD = np.dtype(
    [
        ("item", "i8"),
        ("start", "i4"),  # of its entries
        ("room", "i4"),
        ("head", "i4"),  # entries before it are over
        ("length", "i4"),  # of the others
        ("dead", "i4"),  # how many of these belong to no tuple
        ("bitmap", "i2"),  # which one it has; 0: none
        ("tag", "i2"),  # the stream and 1; 0: there is no list here
    ]
)

# A stored tuple in the order in which its window is left, see structures/timeline.py. item -1: it is gone.
TIMELINE_RECORD = np.dtype([("ts", "i8"), ("seq", "i8"), ("item", "i4"), ("unused", "i4")])
# A part of a window that a row is compared with: from `lo` up to, but not including, `hi`. In row windows `ts` is 0.
STRETCH_RECORD = np.dtype([(name, "i8") for name in ("lo_ts", "lo_seq", "hi_ts", "hi_seq")])
# How the work of a probe is counted, by origin and other stream: the index on a value that both have (-1: none).
WORK_RECORD = np.dtype([("index", "i8"), ("attr", "i8")])
#: A stretch of another window that a row was not compared with.
LEFT_OUT_FIELDS = ("stream", "seq", "other", "lo_ts", "lo_seq", "hi_ts", "hi_seq")
LEFT_OUT_RECORD = np.dtype([(name, "i8") for name in LEFT_OUT_FIELDS])
# A row that waits for its turn. Its attributes are in `waiting_key`.
WAITING_RECORD = np.dtype(
    [
        ("arrival", "i8"),
        ("seq", "i8"),
        ("ts", "i8"),
        ("instant", "i8"),  # in which it arrived
        ("number", "i8"),  # what row windows count it by
        ("importance", "f8"),
        ("prio", "f8"),  # where it stands in the order in which rows are dropped
        ("expected", "f8"),  # dual windows: partners that it can expect
        ("stream", "i4"),
        ("bytes", "i4"),
        ("null", "i4"),
        ("kind", "i4"),  # its type
        ("next", "i4"),  # in line, or in the aux-window
        ("back", "i4"),
        ("next_own", "i4"),  # in line, of the same stream
        ("back_own", "i4"),
        ("item", "i4"),  # its place in the pool: of predicates, and where it competes as a member of its group
    ]
)
# A tuple that was stored in the instant that is open, and may have left again.
FRESH_RECORD = np.dtype([("item", "i4"), ("stream", "i4"), ("number", "i8")])
# What `queued` says of places in the pool that hold no stored tuple: one left in the open instant; a row that waits is here.
GONE, IN_LINE = -2, -3

#: What the shed log says of a row, before what it says of each stream: how many rows had arrived when the row left (of a late
#: row: before it came), and, of a late row, up to which time tuples had expired.
SHED_FIELDS = ("stream", "seq", "ts", "key", "when", "tick", "why")


@cache
def shed_record(streams: int) -> np.dtype[Any]:
    """A record of the shed log; kernels see it as whole numbers."""
    return np.dtype([(name, "i8") for name in SHED_FIELDS] + [(name, "i8", (streams,)) for name in ("seen", "expired")])


#: The arrays of a state, by what their length depends on.
POOL_ARRAYS = (
    "pool",
    "more",
    "free",
    "stray",
    "stray_place",
    "dense",
    "prio",
    "since",  # Sample: how many tuples had been evicted when it began to be sampled
    "touched",
    "match",
    "leaf",
    # of join graphs:
    "card",
    "attr",
    "spot",  # where a tuple stands in each index of its stream
    "link",  # a queue inside each cell
    "pending",
    "came",
    "met_on_arrival",  # Met: results of a tuple's own probe
    # of joins that count partners:
    "leaving",  # tuples that have found as many as they may
    "floor",  # by tuple and stream: the first row number that the tuple might meet, of windows of rows
    # of predicates:
    "number",
    "item_at",  # where its items begin
    "item_count",
    "signature",  # a bit for each item
    "hit",  # the partners that a probe found
    "common",  # scratch of a probe: common items of each tuple
    "product",
)
#: Predicates: items of all tuples, and lists of tuples in the order in which they expire.
ITEM_ARRAYS = ("items", "item_weights", "item_values")
LIST_ARRAYS = (
    "lists",
    "list_ts",
    "list_seq",
    "list_slot",
    "bits",
    "planes",
)
VALUE_ARRAYS = ("keys", "heads", "free_keys", "mass", "trail", "part", "weight", "cell_count", "first_cell")
GROUP_ARRAYS = ("buckets", "probed", "cell_values", "cell_links", "cell_heads", "free_cells")
HEAP_ARRAYS = ("heap", "place")
PLAN_ARRAYS = ("steps", "checks", "levels", "part_of", "indexes", "index_buckets")
OTHER_ARRAYS = (
    "entries",
    "entry_key",
    "expiry",
    "seen",
    "sketch",
    "model",
    "until",
    "until_from",
    "marks",
    "filters",
    "thresholds",
    "moments",
    "cohorts",  # Age
    "curve",  # and what it has learned
    "age_pools",  # scratch
)
STATE_ARRAYS = (
    POOL_ARRAYS + ITEM_ARRAYS + LIST_ARRAYS + VALUE_ARRAYS + GROUP_ARRAYS + HEAP_ARRAYS + PLAN_ARRAYS + OTHER_ARRAYS
)

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
    "looked_up",  # lists that probes of predicates, and of joins whose work is counted, looked up
    "evaluations",  # rounds of lazy evaluation
    "expirations",  # rounds of expiry
    "satisfied",  # rows that left because they had found as many partners as they may
    "certain",  # rows that left without a partner, and have none
    "unknown",  # rows that left, or never came in, and may have a partner that was not seen
    "forgotten",  # what estimators could remember no more within the budget: keys, and of some estimators rows
)
NUMBERS = (
    "tick",
    "arrival",
    "free_count",
    "free_key_count",
    "free_cell_count",
    "touched_count",
    "pending_count",
    "leaving_count",
    "first_mark",  # the instant of the first mark
    "last_evaluation",  # the round that was the last
    "last_expiry",
    "peak_tuples",
    "peak_bytes",
    "entry_top",  # entries behind this were never used
    "epoch",  # Decayed: how often weights were folded
    "t0",
    "started",
    "faded",  # Prospect: up to when totals have faded
    "idle_bound",  # keys that an estimator knows and no stored tuple has are at most this many
    "lag",  # how far a stored tuple may lie behind one of its stream that came before it
    "lift_tick",  # cumulative priorities: the instant in which the lift was 0
    # of predicates:
    "item_top",  # items behind this were never used
    "list_top",
    "lists_used",
    "bitmaps_used",
    "known_numbers",  # the histogram of Theta: 0: no number is known, 1: one, 2: more
)
SUMS = (
    "importance",
    "lift",
    "lowest_number",  # the histogram of Theta
    "highest_number",
    "bucket_width",
)
BY_STREAM = (
    "clock",
    "arrived",
    "resident",
    "stored_bytes",
    "caps",
    "ring_from",  # the ring of expiry: counters, of which the low bits are places
    "ring_to",
    "ring_newest",
    "ring_ready",  # up to here, what expiry will need was asked for
    "kept_bytes",  # Sample: of the kept part of memory
    "threshold_count",
    "age_now",  # Age: the step that time is in
    "age_top",  # the most steps that a tuple may have left
    "age_lowest",  # the cohort of the lowest tuple; -1: not known
    "stray_size",
    "seen_head",
    "seen_size",
    "observed",  # Prospect: rows that were counted
    "looked_soon",  # and how many of those seen were looked at again
    "looked_later",
    "horizon",  # no tuple before this comes on any other stream; NEVER while one of them has not begun
    "base",  # what remaining life is counted from
    "oldest",  # rows before this are late
    "limit",  # where the window ends: tuples up to this stamp are over
    # of join graphs:
    "lo",  # row numbers that the new tuple may meet: from this
    "hi",  # up to, and without, this
    "first_index",  # the indexes of a stream stand side by side
    "end_index",
    # of predicates:
    "stored_to",  # the row number after that of the newest stored tuple
    "gone_to",  # tuples before this row number are gone if their window has ended
    "free_places",  # in the pool: of the first stream the even ones, of the second the odd ones
)
#: Sample has a second heap for each stream, behind the first ones.
BY_HEAP = (
    "heap_size",
    "sorted",  # how many of them are in order, see lazy_heap.py
)


# ------------------------------------------------------------------------------------------------ selective processing

#: Totals of joins whose work is counted.
WORK_COUNTERS = (
    "probed",  # rows that probed
    "partial",  # of these, not compared with some stored tuple
    "sampled",  # of these, compared with whole windows to learn where partners are
)
SELECT_NUMBERS = (
    "came",  # rows since the last rate adaptation
    "fetched",  # and how many of them the CPU has processed
    "next_rate",  # when r is adapted next,
    "next_rank",  # and when basic windows are ranked
)
SELECT_FLOATS = (
    "fraction",  # r: the part of the windows that there is CPU for
    "gained",  # the importance of the results of the probe at hand
)
SELECT_BY_STREAM = (
    "line_from",  # the timeline: places before this hold nothing,
    "line_to",  # nor do those from here on
    "line_torn",  # from here on, times rise with row numbers
    "line_newest",  # the largest time since the window was empty,
    "line_lag",  # and how far rows have lagged behind it
    "stretches",  # parts of the window that the row at hand is compared with; -1: all of it
    "part_size",  # tuples in them
    "samples",  # rows that were compared with all of this window since the last ranking
)
SELECT_FLOATS_BY_STREAM = (
    "fractions",  # r of each window
    "mean_density",  # at the last ranking: partners for each tuple of the window looked at,
    "mean_window",  # and how many tuples the window had
)
#: By stream and age, by stream and type, and scratch.
AGE_ARRAYS = ("age_met", "age_seen", "age_share", "age_density")
KIND_ARRAYS = ("kind_gain", "kind_seen", "kind_rows", "kind_sum", "kind_fraction")
SELECT_ARRAYS = (
    *AGE_ARRAYS,
    "age_rank",
    *KIND_ARRAYS,
    *(
        "age_from",
        "age_to",
        "age_edge",
        "age_before",
        "stretch",
        "kind_worth",
        "kind_volume",
        "sack",
        "sack_value",
        "sack_next",
    ),
    *("timeline", "timeline_counts", "work"),
)
#: Kernels that are compiled apart: the state has their addresses.
ITEM_CODES = (
    "store item",
    "remove item",
    "make room for item",
    "receive item",
    "count items",
    "begin item probe",
    "give item results",
    "expect partners",
)
SELECT_CODES = ("choose part", "learn part")
#: Of Prospect, where it is not compiled in.
LEARN_CODES = ("learn key", "look at key", "look at lowest", "is key negligible")
#: Of rows that wait for their turn.
WAIT_CODES = ("take turn",)
CODES = ITEM_CODES + SELECT_CODES + LEARN_CODES + WAIT_CODES


def code_field(name: str) -> str:
    """The field of a state that has the address of a kernel."""
    return f"code of {name}"


def code_fields(dtype: np.dtype[Any]) -> list[str]:
    """The fields of a state that have addresses of kernels."""
    return [field for field in map(code_field, CODES) if field in (dtype.names or ())]


_MANY_ONLY = (
    [(name, "i8") for name in WORK_COUNTERS + SELECT_NUMBERS]
    + [(name, "f8") for name in SELECT_FLOATS]
    + [(name, "i8", (MOST,)) for name in SELECT_BY_STREAM]
    + [(name, "f8", (MOST,)) for name in SELECT_FLOATS_BY_STREAM]
    + pointers(*SELECT_ARRAYS)
    + [(code_field(name), "i8") for name in CODES]
)
# Of joins whose rows wait for their turn: only the form MANY has these.
WAITING_COUNTERS = (
    "dropped",
    "unprobed",  # rows that were stored without a probe
)
WAITING_NUMBERS = (
    "open",  # whether an instant is open: its rows have had their turn, and more may come
    "open_ts",
    "instant",  # the instant that arrived last
    "turned",  # the instant of the row that had its turn last
    "whole",  # whether rows of that instant still meet all of it, whatever the row windows say
    "newest_ts",  # of the row that arrived last
    "last_adapt",  # when speeds were measured
)
WAITING_PLACES = (
    "free_waiting_count",
    "line_first",
    "line_last",
    "aux_first",
    "aux_last",
    "aux_count",
    "fresh_count",
    "gone_count",
    "told_from",
    "told_to",
)
WAITING_FLOATS = ("cpu_free", "worked", "rear_share", "front_share")
WAITING_BY_STREAM = (
    "numbered",  # rows that arrived
    "taken",  # the number after the last row that had its turn
    "opened",  # the same when the instant was opened
    "from_number",  # where the instant of the last turn begins, as row windows count
    "through",  # and ends
    "rows_let_in",  # dual windows: rows that entered the aux-window
    "rows_left",  # and left it
    "came_rows",  # and came since speeds were measured
)
WAITING_LISTS = (
    "queued_rows",
    "queued_bytes",
    "queue_size",  # those of them that are in its heap or list
    "own_first",  # the first in line of a stream
    "own_last",
    "aux_rows",  # rows of a stream in the aux-window, nulls left out
    "let_from",  # rows that the window will hold: counters, of which the low bits are places
    "let_to",
    "let_head",  # and their values
    "let_tail",
    "levels_size",
)
WAITING_ARRAYS = (
    "waiting",
    "free_waiting",
    "waiting_key",
    "queue_heap",
    "queue_list",
    "queue_place",
    "instants",
    "told",
    "fresh",
    "fresh_value",
    "gone",  # by pool place
    "window_number",
    "kept",  # by value
    "stock",
    "windowed",
    "let_ts",
    "let_size",
    "let_value",
    "level",
    "level_count",
    "level_sum",
)


def _waiting() -> list[Any]:
    return [
        *((name, "i8") for name in WAITING_COUNTERS + WAITING_NUMBERS + WAITING_PLACES),
        *((name, "f8") for name in WAITING_FLOATS),
        *((name, "i8", (MOST,)) for name in WAITING_BY_STREAM + WAITING_LISTS),
        *pointers(*WAITING_ARRAYS),
    ]


def _state(streams: int, more: Sequence[Any] = ()) -> np.dtype[Any]:
    return np.dtype(
        [(name, "i8") for name in COUNTERS + NUMBERS]
        + [(name, "f8") for name in SUMS]
        + [("random", "u8"), ("salt", "u8")]
        + [(name, "i8", (streams,)) for name in BY_STREAM]
        + [(name, "i8", (2 * streams,)) for name in BY_HEAP]
        + [("bound", "f8", (2 * streams,)), ("age_least", "f8", (streams,))]
        + [("free_entries", "i8", (FREE_LISTS,))]
        + pointers(*STATE_ARRAYS)
        + list(more)
    )


ROW_ARRAYS = ("stream", "key", "null", "ts", "importance", "bytes")
#: What predicates compare: a number, or `items[offsets[i] : offsets[i + 1]]`.
ROW_VALUES = ("number", "offsets", "items", "weights")
#: Columns of rows that are counted elsewhere, which only the form MANY knows: see row_numbers.py.
NUMBER_ARRAYS = ("seq", "arrived")
OUT_ARRAYS = ("rows", "worth", "weight", "newest", "shed", "trace", "fresh", "ahead")


#: What only the form MANY has: the types of rows, selective processing, and weights of several stored rows.
MORE_ROW_ARRAYS, MORE_OUT_ARRAYS = ("kind",), ("left_out", "inverse")
_MANY_BUFFERS_ONLY = [
    (name, "i8")
    for name in (
        "until",  # a part of a push has this many rows; 0: it is run as a whole
        "since",  # rows since the last part
        "sampling",  # the row at hand is compared with whole windows to learn from it
        "tuple",  # that probes
        "compared",  # what was counted before its probe
        "looked_up",
        "left_out",
    )
] + pointers(*(f"row_{name}" for name in MORE_ROW_ARRAYS), *(f"out_{name}" for name in MORE_OUT_ARRAYS))


def _buffers(streams: int, more: Sequence[Any] = ()) -> np.dtype[Any]:
    """The rows of a push, where the loop is in them, and the buffers it writes to."""
    numbers = (
        "turn",  # what is run: rows, or one of the turns without rows
        "first",
        "end",
        "phase",
        "at",
        "over",
        "fresh",
        "results",
        "shed",
        "traces",
        "wanted",
        "ahead",
        "ready",  # lazy evaluation and expiry of this instant are done
        # of probes of n streams:
        "probing",  # a probe has begun and is not at its end
        "depth",
        "origin",
        "value",  # where the buckets of the key that is probed begin
        "next",  # lazy evaluation: which of the pending tuples is next,
        "stream",  # and whose new tuples are joined
        "fresh_from",  # row numbers from here on are new
        "hits",  # of predicates: how many partners were found,
        "given",  # and how many of them are written
        "found",  # results before the probe
        "guest",  # a tuple that probes here and is stored in another part of the join; -1: none
        # of joins whose rows wait:
        "row",  # whose turn it is
        "silent",  # whether it does not probe
        "newest",  # the time of the row that left the line last
        "arrival",  # the number of the next row to arrive
        "settled",  # the open instant is closed but for its competition
        "back_to",  # the phase that follows this one
    )
    by_stream: tuple[str, ...] = (
        "rows",  # of this instant
        "old_seq",  # the first of them
        "seq",  # the next to be met
        "told",  # clocks from outside
        "coming",  # the number of the next row to arrive
    )
    rows: tuple[str, ...] = ROW_ARRAYS
    if streams == MOST:
        by_stream = (*by_stream, "told_arrived")  # rows that came anywhere, from outside
        rows = (*rows, *ROW_VALUES, *NUMBER_ARRAYS)
    return np.dtype(
        [(name, "i8") for name in numbers]
        + [("before", "f8")]  # what the CPU had done before the row at hand
        + [(name, "i8", (streams,)) for name in by_stream]
        + pointers(*(f"row_{name}" for name in rows), *(f"out_{name}" for name in OUT_ARRAYS))
        + list(more)
    )


#: States and buffers of each form. PLAIN sees the state of PAIR under another type.
MANY_STATE, PAIR_STATE = _state(MOST, [*_MANY_ONLY, *_waiting()]), _state(2)
PLAIN_STATE = marked(PAIR_STATE, "plain")
MANY_BUFFERS, PAIR_BUFFERS = _buffers(MOST, _MANY_BUFFERS_ONLY), _buffers(2)
