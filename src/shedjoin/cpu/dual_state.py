"""The records of a join with dual windows: its state, and the rows of a push. Its settings are in `dual_codes`."""

from __future__ import annotations

import numpy as np

from shedjoin.cpu.state import SHED_FIELDS
from shedjoin.engine.handle import pointers
from shedjoin.engine.views import by_stream, flat, wide
from shedjoin.predicates.state import STORE_FIELDS

COUNTERS = ("rows", "null", "results", "matches", "dropped", "probed", "unprobed", "expired", "processed")
_MORE = ("arrival", "hist_used", "aux_from", "aux_to", "next_adapt", "last_adapt", "instant")
#: The aux-window, in order of arrival.
AUX = {
    "aux_key": "i8",
    "aux_ts": "i8",
    "aux_stream": "i8",
    "aux_row": "i8",
    "aux_worth": "f8",
    "aux_expected": "i8",
}
#: The window-histograms, and the values that they count in their order.
HIST = {"hist_key": "i8", "hist_tag": "i1", "hist_count": "i8"}
RINGS = {"ring_key": "i8", "ring_ts": "i8"}
STATE_RECORD = np.dtype(
    [
        *STORE_FIELDS,
        *((name, "i8") for name in COUNTERS + _MORE),
        ("importance_sum", "f8"),
        ("worked", "f8"),
        ("work", "f8"),  # for the row at hand
        ("cpu_free", "f8"),
        ("rear", "f8"),  # k_r
        ("front", "f8"),  # k_f
        ("random", "u8"),
        ("arrived", "i8", (2,)),
        ("came", "i8", (2,)),
        ("entered", "i8", (2,)),  # into the join-window
        ("instant_first", "i8", (2,)),  # the first row of each stream that entered in the instant at hand
        ("in_aux", "i8", (2,)),
        ("ring_from", "i8", (2,)),
        ("ring_to", "i8", (2,)),
        *pointers(*AUX, *HIST, *RINGS, "tree"),
    ]
)
aux_key_of = flat("aux_key", "i8")
aux_ts_of = flat("aux_ts", "i8")
aux_stream_of = flat("aux_stream", "i8")
aux_row_of = flat("aux_row", "i8")
aux_worth_of = flat("aux_worth", "f8")
aux_expected_of = flat("aux_expected", "i8")
hist_key_of = flat("hist_key", "i8")
hist_tag_of = flat("hist_tag", "i1")
hist_count_of = flat("hist_count", "i8")
ring_key_of = by_stream("ring_key", "i8")
ring_ts_of = by_stream("ring_ts", "i8")
tree_of = by_stream("tree", "i8")

ROWS = {"stream": "i8", "key": "i8", "ts": "i8", "number": "i8", "importance": "f8", "chance": "f8"}
OUT = {"out_left": "i8", "out_right": "i8", "out_worth": "f8"}
_PLACES = ("at", "end", "line_from", "line_to", "flush", "pairs", "shed", "wanted", "part", "inside", "now")
IO_RECORD = np.dtype(
    [(name, "i8") for name in _PLACES]
    + [("effort", "i8", (2,))]
    + pointers(*(f"row_{name}" for name in ROWS), "line", *OUT, "out_shed")
)
stream_of = flat("row_stream", "i8")
key_of = flat("row_key", "i8")
ts_of = flat("row_ts", "i8")
number_of = flat("row_number", "i8")
importance_of = flat("row_importance", "f8")
chance_of = flat("row_chance", "f8")
line_of = flat("line", "i8")
out_left_of = flat("out_left", "i8")
out_right_of = flat("out_right", "i8")
out_worth_of = flat("out_worth", "f8")
shed_of = wide("out_shed", "i8", SHED_FIELDS)
