"""The arrays behind the handles, as kernels see them."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.handle import by_stream, fetcher, flat, records, wide
from shedjoin.engine.state import (
    HEAP_RECORD,
    KEY_RECORD,
    LINE_RECORD,
    MORE_RECORD,
    SEEN_RECORD,
    SHED_RECORD,
    TUPLE_RECORD,
)

pool = records("pool", TUPLE_RECORD)  # stored tuples
more = records("more", MORE_RECORD)  # beside the pool
free = flat("free", np.int32)  # unused places in the pool, a stack
keys = records("keys", KEY_RECORD)  # the keys that are known
mass = by_stream("mass", np.float64)  # Decayed: the counts behind the weights
buckets = flat("buckets", np.int32)  # hash of a key -> the first of its chain in `keys`
free_keys = flat("free_keys", np.int32)
heap = by_stream("heap", HEAP_RECORD)  # the policy's heap of tuples or keys
place = by_stream("place", np.int32)  # where an item stands in `heap`, `dense` or the tournament
stray = by_stream("stray", HEAP_RECORD)  # tuples that came out of order, by time
stray_place = flat("stray_place", np.int32)
dense = by_stream("dense", np.int32)  # RAND's lists; LIFE's leaves, the free ones last
winner = by_stream("winner", np.int32)  # LIFE's kinetic tournament
doubt = by_stream("doubt", np.int64)
line = by_stream("line", LINE_RECORD)
ring = by_stream("ring", SEEN_RECORD)  # InWindow's memory of arrivals
sketch = flat("sketch", np.int64)  # CountMin: stream, row, column
touched = flat("touched", np.int32)  # stored tuples that are part of an output of this instant
until0 = flat("until0", np.int64)  # Replay's schedule
until1 = flat("until1", np.int64)

fetch_bucket = fetcher("buckets", np.int32)
fetch_key = fetcher("keys", KEY_RECORD)
fetch_tuple = fetcher("pool", TUPLE_RECORD)

row_stream = flat("row_stream", np.int64)
row_key = flat("row_key", np.int64)
row_null = flat("row_null", np.bool_)
row_ts = flat("row_ts", np.int64)
row_importance = flat("row_importance", np.float64)
row_bytes = flat("row_bytes", np.int64)
row_seq = flat("row_seq", np.int64)
row_slot = flat("row_slot", np.int64)

out_left = flat("out_left", np.int64)
out_right = flat("out_right", np.int64)
out_worth = flat("out_worth", np.float64)
out_shed = flat("out_shed", SHED_RECORD)
out_trace = wide("out_trace", np.int64, 3)
out_fresh = flat("out_fresh", np.int64)
