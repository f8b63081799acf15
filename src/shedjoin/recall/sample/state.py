"""What is remembered: the table of rows, the ways to them, and the numbers that steer the sampling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: A row of a key that the other stream never brings is kept with this share of the usual probability.
FLOOR = 0.25
#: Keys are counted over at most so many rows, less a block: then all counts are halved. One key can have them all, in 16 bits.
MEMORY = 1 << 16
#: The longest block.
LONGEST_BLOCK = 1 << 10

# What is allowed for a row, and what things cost, in pairs found: some ten nanoseconds each.
ALLOWED = 0.5
REMEMBER = 10
ACTIVATE = 6

# What a place in the table holds.
WAITING, ACTIVE, OVER = range(3)

#: What a witness, and all of them together, have counted: results and importance, since the start and faded.
COUNTS = ("results", "worth", "recent", "recent_worth")
#: Sums over witnesses, for each of the above: of the estimates, of their squares, of their cubes.
POWERS = 3

WITNESS_RECORD = np.dtype(
    [
        ("key", "i8"),
        ("ts", "i8"),
        ("seq", "i8"),
        ("since", "i8"),  # rows of the other stream that had come when it was shed: those did meet it
        ("importance", "f8"),
        ("keep", "f8"),  # the probability with which it is (still) here
        *((name, "f8") for name in COUNTS),  # each missing pair counts 1 / keep
        ("next", "i4"),  # waiting: in `rows`; active: in `cells`
        ("stream", "i2"),
        ("state", "i2"),
    ]
)
STATE_RECORD = np.dtype(
    [
        ("kind", "i8", (2,)),  # the windows
        ("size", "i8", (2,)),
        ("lateness", "i8"),
        ("max_skew", "i8"),  # NONE: none
        ("output_importance", "i8"),
        ("seed", "u8"),
        ("clock", "i8", (2,)),
        ("arrived", "i8", (2,)),
        ("block", "i8"),  # rows, a power of two
        ("used", "i8"),  # places of the table
        ("scale", "f8"),  # a usual row is kept with this probability
        ("counted", "i8"),  # rows in the counts of the cells
        ("others", "i8"),  # what the rows of this block found counted for the other stream
        ("gain", "f8"),  # one over the mean of that
        ("rows", "i8"),  # since the last look round
        ("work", "i8"),  # done since then
        ("period", "i8"),
        ("bank", "f8"),  # work allowed and not done: a quiet time is saved up for a busy one,
        ("savings", "f8"),  # up to this
        ("fade", "f8"),  # a recent pair counts so many times as one in the first push
        ("shed", "i8"),
        ("shed_now", "i8"),  # in this block
        ("unit", "f8"),  # what rows without expectations would stand for beside themselves, summed over shed rows
        ("sums", "f8", (len(COUNTS), POWERS)),  # of witnesses that are gone
    ]
)


class Sample(NamedTuple):
    """The rows that are remembered, and the ways to them. All but the table and the counts can be made anew."""

    table: NDArray[np.void]
    # By key (hashed into cells: keys that share one share it) and stream, in place 2 * cell + stream:
    counts: NDArray[np.uint16]  # how often the stream brought it of late
    tags: NDArray[np.uint16]  # which keys its witnesses may be of
    heads: NDArray[np.int32]  # its witnesses
    # By the row's lot:
    rows: NDArray[np.int32]  # waiting rows
    sieve: NDArray[np.uint64]  # one bit for each, small enough for the nearest cache


class Notes(NamedTuple):
    """What a pass lists for later: a row of the push or a record of the log, its number, what it found counted."""

    row: NDArray[np.int64]
    seq: NDArray[np.int64]
    other: NDArray[np.int64]


class Push(NamedTuple):
    """The columns of a push."""

    stream: NDArray[np.int64]
    key: NDArray[np.int64]
    skip: NDArray[np.bool_]  # rows with a null key and late rows
    ts: NDArray[np.int64]
    importance: NDArray[np.float64]
    # For row windows only: what had arrived of each stream by the end of each row's instant.
    instants: NDArray[np.int64]
