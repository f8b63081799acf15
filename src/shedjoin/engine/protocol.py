"""What the loop and the engine say to each other: what is run, where it is, and what it needs."""

from __future__ import annotations

# What `advance` answers.
(
    DONE,
    NEED_RESULTS,
    NEED_SHED,
    NEED_POOL,
    NEED_KEYS,
    NEED_CELLS,
    NEED_SEEN,
    NEED_ENTRIES,
    NEED_EXPIRY,
    NEED_MARKS,
    NEED_BUCKETS,
    NEED_ITEMS,
    NEED_HISTOGRAM,
    NEED_LEFT_OUT,
    NEED_TIMELINE,
    NEED_STRAYS,
    PAUSE,  # nothing: a part of the push is done
    # of joins whose rows wait:
    NEED_WAITING,
    NEED_INSTANTS,
    NEED_FRESH,
    NEED_LET_IN,
    NEED_LEVELS,
    NEED_SPEEDS,
    NEED_THRESHOLDS,
    NEED_FORGET,  # keys of which nothing is stored, see stages/remember.py
) = range(25)

# What is run: rows, or a turn without rows. TELL: clocks that rows elsewhere have moved. SHRINK: memory is made to fit a budget
# that changed between two pushes, as part of the last instant. FLUSH: what waits for lazy evaluation, or for its turn, is joined.
# ORDER: groups, and the tuples in `out_fresh`, are put in order anew. FRACTION: r has changed. CLOSE: the open instant is closed.
# END: the input is over, and so are all windows.
# REJOIN: rows that wait compete with what is stored, with the priorities they had; COMPETE_ANEW: with new ones.
ROWS, TELL, SHRINK, FLUSH, ORDER, FRACTION, CLOSE, REJOIN, COMPETE_ANEW, END = range(10)

# Where `advance` is in an instant.
# Before rows are met, and before they compete, tuples expire.
BEGIN, MEET, COMPETE = range(3)
# Where it is with a row that waited: in the aux-window, at its turn, probing; at the end of its work; or sharing a memory.
DRAIN, TURN, PROBE, SPENT, SHARE = range(3, 8)
EXPIRE, EXPIRE_AGAIN = range(8, 10)
