"""The records of a join that is short of CPU: its state, and the rows of a push. Its settings are in `codes`."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.handle import pointers
from shedjoin.engine.records import shed_record
from shedjoin.engine.views import by_stream, flat, wide
from shedjoin.predicates.state import STORE_FIELDS

SHED_FIELDS = shed_record(2).itemsize // 8

#: Totals since the beginning of the join.
COUNTERS = (
    "rows",
    "null",
    "late",
    "results",
    "expired",
    "evicted",
    "dropped",  # by the queue
    "matches",
    "probed",  # rows that were compared with something or had nothing to be compared with
    "partial",  # of these, compared with a part of the window only
    "sampled",  # of these, compared with all of it to learn where the partners are
    "compared",  # tuples or entries of lists looked at
    "looked_up",
    "adapted",
)
_MORE = ("arrival", "last_ts", "next_rate", "next_rank", "peak_tuples", "processed")
STATE_ARRAYS = {
    "age_met": "f8",
    "age_seen": "f8",
    "age_share": "f8",
    "age_density": "f8",
    "age_rank": "i8",
    "age_from": "i8",
    "age_to": "i8",
    "age_take": "i8",
}
KIND_ARRAYS = {
    "kind_gain": "f8",
    "kind_seen": "f8",
    "kind_rows": "f8",
    "kind_sum": "f8",  # of importance
    "kind_fraction": "f8",
    "kind_worth": "f8",
    "kind_volume": "f8",
}
#: Scratch of the knapsack: one place for each stream and type.
SACK_ARRAYS = {"sack_heap": "i8", "sack_at": "i8", "sack_prio": "f8", "sack_seq": "i8", "sack_next": "i8"}
STATE_RECORD = np.dtype(
    [
        *STORE_FIELDS,
        *((name, "i8") for name in COUNTERS + _MORE),
        ("importance_sum", "f8"),
        ("worked", "f8"),  # CPU units spent
        ("cpu_free", "f8"),  # when the virtual CPU has done what it took
        ("fraction", "f8"),  # r
        ("random", "u8"),
        ("clock", "i8", (2,)),
        ("arrived", "i8", (2,)),
        ("taken", "i8", (2,)),  # the row after the last that was processed
        ("in_queue", "i8", (2,)),
        ("caps", "i8", (2,)),
        ("heap_size", "i8", (2,)),
        ("came", "i8", (2,)),  # since the last rate adaptation
        ("fetched", "i8", (2,)),
        ("samples", "i8", (2,)),  # rows compared with all of this stream's window since the last ranking
        ("mean_density", "f8", (2,)),  # at the last ranking: partners for each tuple of the window looked at
        ("mean_window", "f8", (2,)),  # and how many tuples the window had
        ("fractions", "f8", (2,)),  # r_1, r_2: how much of each window is looked at
        *pointers(*STATE_ARRAYS, *KIND_ARRAYS, *SACK_ARRAYS),
    ]
)
met_of = by_stream("age_met", "f8")
seen_of = by_stream("age_seen", "f8")
share_of = by_stream("age_share", "f8")
density_of = by_stream("age_density", "f8")
rank_of = by_stream("age_rank", "i8")
from_of = flat("age_from", "i8")
to_of = flat("age_to", "i8")
take_of = flat("age_take", "i8")
gain_of = by_stream("kind_gain", "f8")
kind_seen_of = by_stream("kind_seen", "f8")
kind_rows_of = by_stream("kind_rows", "f8")
kind_fraction_of = by_stream("kind_fraction", "f8")
kind_worth_of = by_stream("kind_worth", "f8")
kind_sum_of = by_stream("kind_sum", "f8")
kind_volume_of = by_stream("kind_volume", "f8")
sack_heap_of = flat("sack_heap", "i8")
sack_at_of = flat("sack_at", "i8")
sack_prio_of = flat("sack_prio", "f8")
sack_seq_of = flat("sack_seq", "i8")
sack_next_of = flat("sack_next", "i8")

#: The rows of a push: those that waited in the queue first, then new ones.
ROWS = {
    "stream": "i8",
    "ts": "i8",
    "seq": "i8",
    "number_in_stream": "i8",
    "null": "?",
    "importance": "f8",
    "kind": "i8",
    "number": "f8",
    "offsets": "i8",
    "items": "i8",
    "weights": "f8",
    "prio": "f8",
}
#: Where the queue keeps its links: the line in order of arrival, and each stream's heap.
QUEUE = {"q_next": "i8", "q_back": "i8", "q_at": "i8"}
OUT = {"out_left": "i8", "out_right": "i8", "out_worth": "f8"}
IO_RECORD = np.dtype(
    [
        (name, "i8")
        for name in (
            "at",
            "end",
            "first",
            "last",
            "flush",
            "pairs",
            "shed",
            "wanted",
            "part",
            "until",
            "since",
            "who",
            "done",
        )
    ]
    + [("work", "f8"), ("effort", "i8", (2,))]
    + pointers(*(f"row_{name}" for name in ROWS), *QUEUE, "q_heap", *OUT, "out_shed")
)
stream_of = flat("row_stream", "i8")
row_ts_of = flat("row_ts", "i8")
row_seq_of = flat("row_seq", "i8")
row_number_in_stream_of = flat("row_number_in_stream", "i8")
null_of = flat("row_null", "?")
row_importance_of = flat("row_importance", "f8")
row_kind_of = flat("row_kind", "i8")
row_number_of = flat("row_number", "f8")
offsets_of = flat("row_offsets", "i8")
row_items_of = flat("row_items", "i8")
row_weights_of = flat("row_weights", "f8")
row_prio_of = flat("row_prio", "f8")
next_of = flat("q_next", "i8")
back_of = flat("q_back", "i8")
queue_at_of = flat("q_at", "i8")
queue_heap_of = by_stream("q_heap", "i8")
out_left_of = flat("out_left", "i8")
out_right_of = flat("out_right", "i8")
out_worth_of = flat("out_worth", "f8")
#: Records of the shed log, as columns in the order of `engine.records.shed_record`.
shed_of = wide("out_shed", "i8", SHED_FIELDS)
