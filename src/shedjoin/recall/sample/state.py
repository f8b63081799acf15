"""The state of the recall sample: its rows, the indexes that find them, and the numbers that control sampling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: A row whose key never arrives on the other stream is sampled with this share of the usual probability.
FLOOR = 0.25
#: Key counts cover at most this many rows, less a block. Then they are halved, so the count of one key fits into 16 bits.
COUNTED_ROWS = 1 << 16
#: The longest block, in rows.
LONGEST_BLOCK = 1 << 10

# Work is measured in pairs found, about ten nanoseconds each: what an arriving row may cost on average, and what it costs to
# insert a row into the sample and to mark a sampled row as shed.
ALLOWED_WORK = 0.5
INSERT_WORK = 10
SHED_WORK = 6

# The states of a sampled row.
STORED, SHED, EXPIRED = range(3)

#: What is counted for each sampled row, and summed over all: missing results and their importance, in total and decayed.
COUNTS = ("missing", "missing_importance", "recent", "recent_importance")
#: For each of these there are sums of the estimates, of their squares and of their cubes.
POWERS = 3

# Both records are saved as bytes: their fields may be renamed, but not moved.
ROW_RECORD = np.dtype(
    [
        ("key", "i8"),
        ("ts", "i8"),
        ("seq", "i8"),
        ("shed_at", "i8"),  # rows of the other stream that had arrived when it was shed: these did join it
        ("importance", "f8"),
        ("probability", "f8"),  # with which it is (still) in the sample
        *((name, "f8") for name in COUNTS),  # each missing pair counts 1 / probability
        ("next", "i4"),  # in the chain of `stored_heads` or `shed_heads`
        ("stream", "i2"),
        ("state", "i2"),
    ]
)
STATE_RECORD = np.dtype(
    [
        ("window_kind", "i8", (2,)),
        ("window_size", "i8", (2,)),
        ("lateness", "i8"),
        ("max_skew", "i8"),  # or NONE
        ("output_importance", "i8"),
        ("seed", "u8"),
        ("clock", "i8", (2,)),
        ("arrived", "i8", (2,)),
        ("block", "i8"),  # rows, a power of two
        ("used", "i8"),  # rows of the table
        ("scale", "f8"),  # probabilities are in proportion to it, see `shedjoin.recall.pairs`
        ("counted", "i8"),  # rows in `key_counts`
        ("partners", "i8"),  # summed over the rows of this block: the count of their key on the other stream
        ("inverse_mean", "f8"),  # 1 / the mean of that
        ("period_rows", "i8"),  # rows since the last adjustment of `scale`
        ("period_work", "i8"),  # work since then
        ("period", "i8"),  # rows between two adjustments, at most
        ("credit", "f8"),  # work that was allowed and not done: quiet times pay for busy ones
        ("credit_limit", "f8"),
        ("recent_weight", "f8"),  # of a pair found now, in the decayed counts; 1 in the first push
        ("shed", "i8"),
        ("block_shed", "i8"),  # in this block
        ("unit", "f8"),  # 1 / p - 1 of a row that expects no partners, summed over shed rows
        ("sums", "f8", (len(COUNTS), POWERS)),  # of rows that were removed
    ]
)


class Sample(NamedTuple):
    """The sampled rows and the indexes that find them. All but the table and the key counts can be rebuilt."""

    table: NDArray[np.void]
    # By stream and hash of the key. Keys with equal hashes share a slot.
    key_counts: NDArray[np.uint16]  # recent rows of the key
    tags: NDArray[np.uint16]  # a bit for each tag of the shed rows in the chain
    shed_heads: NDArray[np.int32]  # chains of shed rows
    # By the draw of the row:
    stored_heads: NDArray[np.int32]  # chains of stored rows
    bitmap: NDArray[np.uint64]  # a bit for each stored row, small enough for the L1 cache


class Selected(NamedTuple):
    """What the first step of a pass selects: places in the push or in the log, row numbers, counts of partners."""

    place: NDArray[np.int64]
    seq: NDArray[np.int64]
    partners: NDArray[np.int64]


class Push(NamedTuple):
    """The columns of a push."""

    stream: NDArray[np.int64]
    key: NDArray[np.int64]
    skip: NDArray[np.bool_]  # rows with null keys
    ts: NDArray[np.int64]
    importance: NDArray[np.float64]
    # Of late rows: up to which time rows of the other stream had expired. Empty if no row is late.
    expired: NDArray[np.int64]
    # For row windows only: rows of each stream that had arrived by the end of the row's instant.
    instants: NDArray[np.int64]
    # Where rows are counted elsewhere: their numbers, and how many rows had come here when each record of the log was written.
    seq: NDArray[np.int64]
    logged_at: NDArray[np.int64]
