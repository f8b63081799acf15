"""The arrays behind the handles, as kernels see them."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.codes import PLAIN, PLAIN_SETTINGS, SETTINGS_RECORD
from shedjoin.engine.handle import STREAMS
from shedjoin.engine.state import (
    EXPIRY_RECORD,
    HEAP_RECORD,
    KEY_RECORD,
    LEAF_RECORD,
    MATCH_RECORD,
    MORE_RECORD,
    SEEN_RECORD,
    SHED_RECORD,
    SHELF_RECORD,
    SIDES_RECORD,
    TRAIL_RECORD,
    TUPLE_RECORD,
)
from shedjoin.engine.views import by_stream, constants, fetcher, flat, reader, records, wide, writer

constants(SETTINGS_RECORD)
constants(PLAIN_SETTINGS, PLAIN)

pool = records("pool", TUPLE_RECORD)  # stored tuples
more = records("more", MORE_RECORD)  # beside the pool
free = reader("free", np.int32)  # unused places in the pool, a stack
set_free = writer("free", np.int32)
keys = records("keys", KEY_RECORD)  # the keys that are known
sides = records("sides", SIDES_RECORD)  # what each stream has of a key
shelf = records("shelf", SHELF_RECORD)  # the tuples of each key side by side
probed = by_stream("probed", np.int64)  # the last instant in which a stream's tuples of a key were met
mass = by_stream("mass", np.float64)  # Decayed: the counts behind the weights
trail = records("trail", TRAIL_RECORD)  # Prospect: one stream's counts, then the other's
buckets = reader("buckets", np.int32)  # hash of a key -> the first of its chain in `keys`
set_bucket = writer("buckets", np.int32)
free_keys = flat("free_keys", np.int32)
heap = by_stream("heap", HEAP_RECORD)  # the policy's heap of keys, or queue of tuples (front.py)
place = by_stream("place", np.int32)  # where an item stands in `heap`, `dense` or the tournament
expiry = records("expiry", EXPIRY_RECORD)  # tuples in the order in which they expire: one stream's, then the next's
stray = by_stream("stray", HEAP_RECORD)  # tuples that came out of order, by time
stray_place = flat("stray_place", np.int32)
dense = by_stream("dense", np.int32)  # RAND's lists; LIFE's leaves, the free ones last
match = records("match", MATCH_RECORD)  # LIFE's kinetic tournament: one stream's matches, then the other's
leaf = by_stream("leaf", LEAF_RECORD)  # the keys that play in it
seen = by_stream("seen", SEEN_RECORD)  # InWindow's and Prospect's memory of arrivals
sketch = flat("sketch", np.int64)  # CountMin: stream, row, column
model = by_stream("model", np.float64)  # what Prospect has learned, see learn.py
touched = flat("touched", np.int64)  # what was met in this instant: a key and stream; of n streams, a tuple
cumulated = flat("cumulated", np.float64)  # logs of cumulative priorities, lifted
until0 = flat("until0", np.int64)  # Replay's schedule
until1 = flat("until1", np.int64)

fetch_sides = fetcher("sides", SIDES_RECORD)
fetch_key = fetcher("keys", KEY_RECORD)
fetch_probed = fetcher("probed", np.int64)
fetch_tuple = fetcher("pool", TUPLE_RECORD)
fetch_more = fetcher("more", MORE_RECORD)
fetch_cumulated = fetcher("cumulated", np.float64)
fetch_expiry = fetcher("expiry", EXPIRY_RECORD)
fetch_dense = fetcher("dense", np.int32)
fetch_place = fetcher("place", np.int32)
fetch_shelf = fetcher("shelf", SHELF_RECORD)

row_stream = reader("row_stream", np.int64, below=STREAMS)
row_key = reader("row_key", np.int64)
row_null = reader("row_null", np.bool_)
row_ts = reader("row_ts", np.int64)
row_importance = reader("row_importance", np.float64)
row_bytes = reader("row_bytes", np.int64)
row_ahead = reader("row_ahead", np.int64)  # slots of the next rows
set_row_ahead = writer("row_ahead", np.int64)

set_out_left = writer("out_left", np.int64)
set_out_right = writer("out_right", np.int64)
set_out_worth = writer("out_worth", np.float64)
set_out_fresh = writer("out_fresh", np.int64)
out_fresh = reader("out_fresh", np.int64)
out_shed = flat("out_shed", SHED_RECORD)
out_trace = wide("out_trace", np.int64, 3)
