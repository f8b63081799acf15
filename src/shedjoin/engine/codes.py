"""The integer codes that kernels switch on, and the settings that policies and estimators boil down to.

A policy is a code and a few numbers, never a function handed to a kernel: numba's on-disk cache then holds in every
new process.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shedjoin.engine.handle import marked
from shedjoin.join_type import FIRSTS as FIRSTS
from shedjoin.join_type import PAIRS as PAIRS

# How a policy's tuples are organised so that the lowest is found without a scan.
KEEP = 0  # nothing is ever evicted
RANDOM = 1  # a list a stream, swap-remove
TUPLE = 2  # a lazily sorted heap of tuples (lazy_heap.py); priorities are fixed at arrival
KEY = 3  # a heap of groups (tuples of one key and stream), tuples ordered inside each group
LIFE = 4  # a kinetic tournament of groups: priorities fall with time
CUMULATIVE = 5  # the same heap; tuples that produce output are touched
SCHEDULE = 6  # the same heap, by the time they leave
SAMPLE = 7  # two such heaps: tuples that are kept by their weight, and tuples that are sampled
AGE = 8  # cohorts of tuples of one age, tuples ordered inside each; those that produce output are touched
#: What follows the output of each instant.
FOLLOWING = (CUMULATIVE, AGE)
#: How many steps of AGE a window is cut into.
AGE_STEPS = 64

# How importance, weight and life make a priority.
SUM = 0
PRODUCT = 1
LOGSUM = 2

# Estimators.
TABLE = 0
IN_MEMORY = 1
HISTORY = 2
IN_WINDOW = 3
DECAYED = 4
COUNT_MIN = 5
LEARNED = 6
MET = 7  # no weights: the results that a tuple's own probe found

# Window kinds.
TIME = 0
ROW = 1

# Layouts: how tuples are stored so that a probe finds partners.
KEYED = 0  # a common key: a bucket for each key and stream
INDEXED = 1  # a join graph: an index for each equated attribute of each window
ITEMS = 2  # a predicate on numbers or sets: time-ordered lists of items or buckets of numbers

# Predicates of two streams. On numbers:
NO_PREDICATE = -1
BAND = 0  # |left - right| <= bound
LESS = 1  # left < right + bound, and so on
LESS_EQUAL = 2
GREATER = 3
GREATER_EQUAL = 4
NOT_EQUAL = 5
# On sets; a single value is a set of one item.
SAME = 6  # a key: stored by its value, or by the hash of its set
SUBSET = 7  # left in right
SUPERSET = 8  # right in left
OVERLAP = 9  # at least `bound` common items
# On weighted sets.
INNER = 10  # sum of products of the weights of common items >= bound
#: Codes below this look at a number, the others at items.
FIRST_OF_SETS = SAME

# Which row goes from a full queue.
DROP_NONE, DROP_RANDOM, DROP_SEMANTIC = range(3)
# What the partners of a row that waits are counted by: an estimator's weights, stored tuples, or what the windows will hold.
BY_WEIGHT, BY_STOCK, BY_WINDOW = range(3)

#: The most streams that a join can have.
MOST = 16
#: The most items that a set can have.
MOST_ITEMS = 2**15 - 1

# The importance of an output from that of its inputs.
IMPORTANCE = {"min": 0, "max": 1, "sum": 2, "product": 3, "mean": 4}

# What a row that joins nothing is: it has a null, or was dropped before it came.
NULL_ROW, DROPPED_ROW = 1, 2

# Why a row is in the shed log.
EVICTED = 0
LATE = 1
SCHEDULED = 2
DROPPED = 3  # by a full queue, before it was processed
PARTIAL = 4  # stored, but compared with a part of the opposite window only
UNPROBED = 5  # stored, but compared with nothing
UNKNOWN = 6  # expired without a partner, but one of them may have been shed
WHY = ("evicted", "late", "schedule", "dropped", "partial", "unprobed", "unknown")


class Order(NamedTuple):
    """How a policy orders tuples: its organisation and the numbers in its priority."""

    organisation: int
    combine: int = PRODUCT
    importance: float = 0.0  # exponent or factor `a`
    matches: float = 0.0  # exponent or factor `b`
    life: float = 0.0  # exponent or factor `c`
    gain: float = 0.0
    loss: float = 1.0
    keep: float = 0.0  # the part of memory that samples nothing


class Weigher(NamedTuple):
    """What an estimator boils down to."""

    code: int
    half_life: float = 1.0
    width: int = 1
    depth: int = 1


_NUMBERS = (
    *("importance", "matches", "life", "gain", "log_loss", "half_life", "span", "fold_at", "bound"),
    "keep",
    "floor",  # Sample: the least number of partners that a tuple is weighed by
)
#: Of joins whose rows wait for their turn, see stages/admit.py: the speed of the CPU (0: none is slow) and what costs how much.
_COSTS = ("capacity", "probe_cost", "comparison_cost", "lookup_cost", "update_cost")
_ADMISSION = (
    "waits",  # rows wait, for the CPU or in the aux-window, and have their turn one by one
    "queue_tuples",  # how many rows of a stream may wait; 0: no bound
    "queue_span",  # or how long
    "drop",  # which of them goes: see below
    "drop_by",  # and what its partners are counted by
    "integrated",  # rows that wait share the budget, and compete with what is stored
    "dual",  # rows stand in an aux-window before they probe
    "rear",  # dual windows: some rows do not probe
    "front",  # and some are dropped by lot
    "adapts",  # and how many of them follows the speeds
    "let_in",  # row windows count the rows that were let in
    "shared_key",  # all streams share one key, however it is stored
    "where",  # results have to pass tests, whatever the layout
)
_CODES = (
    "streams",
    "layout",
    "width",  # attributes of a row
    "spots",  # the most indexes that a stream has
    "parts",  # sets of attributes that must be equal
    "organisation",
    "combine",
    "follows",  # tuples that produce output are touched
    "fifo",  # inside a group, the oldest is the lowest
    "estimator",
    "sketch_width",
    "depth",
    "by_rows",  # Prospect counts time in rows, windows being of rows
    "lateness",
    "max_skew",  # -1: none
    "output_importance",
    "memories",  # 0: no budget; 1: one memory; else one a stream
    "by_bytes",
    "warmup",
    "trace_every",
    "emit",
    "evaluate_every",  # 0: results come with the tuple that completes them
    "expire_every",
    "limited",  # whether row numbers decide who may be met
    "weighed",  # whether groups and weights are kept
    "alone",  # each tuple is a group
    "predicate",
    "lists",  # whether a predicate has lists; otherwise windows are scanned
    "part",  # a join that is split: rows whose number leaves this when divided by `of_parts` are stored here, all probe
    "of_parts",
    "counted_elsewhere",  # rows come with their numbers, which count what went to other engines too
)
#: Settings of each stream; `mem` reads them.
_BY_STREAM = (
    "kind",
    "window",  # zero or less where only older tuples of the other stream are met
    "range",  # how many times there are at which partners may lie
    "factors",  # how many weights make the chance of a tuple
    "age_step",  # of AGE: how long a tuple is of one age
)
#: Selective processing; behind all others, so that those of two keyed streams stay where they are.
_SELECTIVE = (
    "basic",  # length of a basic window; 0: rows are compared with whole windows
    "ages",  # how many ages a basic window may have
    "ahead",  # how many of them lie in the probing row's future
    "rate",
    "follows_rate",  # r follows the share of rows that the CPU could process
    "correlation",
    "direction",
    "types",  # types of rows; 0: utilities are not looked at
    "kinds",  # the same, at least 1
    "rate_every",
    "rank_every",
    "counts_work",  # `compared` and `looked_up` count the work of decision 017
)
_SELECTIVE_NUMBERS = ("boost", "sample")
#: Joins that count the partners of their rows, see stages/unmatched.py.
_PARTNERS = (
    "counts",  # whether any row's partners are counted; 0: nothing below is looked at
    "gives",
    "gives_unmatched",  # rows that certainly have no partner are results
)
_PARTNERS_BY_STREAM = (
    "counted",  # whether the partners of its rows are counted
    "judged",  # whether its rows without a partner are judged: certain or unknown
    "most",  # its rows leave once they have found this many partners; 0: no limit
    "filter",  # which filter has its shed rows; -1: none
    "shed_attr",  # by which attribute; -1: all have one value
    "asked_attr",  # and the attribute of a judged row that is looked for in it
)
#: Everything a kernel needs to know that does not change while it runs.
SETTINGS_RECORD = np.dtype(
    [(name, "f8") for name in _NUMBERS + _COSTS]
    + [(name, "i8") for name in _CODES + _ADMISSION]
    + [(name, "i8", (MOST,)) for name in _BY_STREAM]
    + [(name, "i8") for name in _SELECTIVE]
    + [(name, "f8") for name in _SELECTIVE_NUMBERS]
    + [(name, "i8") for name in _PARTNERS]
    + [(name, "i8", (MOST,)) for name in _PARTNERS_BY_STREAM]
)
#: The settings of the form PAIR: two streams on a common key, results at once.
PAIR = {
    "streams": 2,
    "layout": KEYED,
    "parts": 1,
    "spots": 1,
    "evaluate_every": 0,
    "expire_every": 0,
    "limited": 0,
    "weighed": 1,
    "alone": 0,
    "predicate": NO_PREDICATE,
    "lists": 0,
    "part": 0,
    "of_parts": 1,
    "basic": 0,
    "counts_work": 0,
    "counted_elsewhere": 0,
    "waits": 0,
    "integrated": 0,
    "let_in": 0,
}
#: The settings of the form PLAIN: of such joins the exact one, by time, of streams that are each in order.
PLAIN = PAIR | {
    "width": 1,
    "where": 0,
    "organisation": KEEP,
    "follows": 0,
    "fifo": 0,
    "estimator": TABLE,
    "kind": TIME,
    "lateness": 0,
    "max_skew": -1,
    "output_importance": IMPORTANCE["min"],
    "memories": 0,
    "trace_every": 0,
    "counts": 0,
    "gives": PAIRS,
}
PAIR_SETTINGS = marked(SETTINGS_RECORD, "pair")
PLAIN_SETTINGS = marked(SETTINGS_RECORD, "plain")
