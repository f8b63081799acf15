"""The arrays behind the handles, as kernels see them."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.codes import MOST, PAIR, PAIR_SETTINGS, PLAIN, PLAIN_SETTINGS, SETTINGS_RECORD
from shedjoin.engine.records import (
    BUCKET_RECORD,
    CELL_RECORD,
    CHECK_RECORD,
    COHORT_RECORD,
    ENTRY_RECORD,
    EXPIRY_RECORD,
    FRESH_RECORD,
    HEAP_RECORD,
    INDEX_RECORD,
    KEY_RECORD,
    LEAF_RECORD,
    LEVEL_RECORD,
    LIST_RECORD,
    MATCH_RECORD,
    MORE_RECORD,
    SEEN_RECORD,
    STEP_RECORD,
    STRETCH_RECORD,
    THRESHOLD_RECORD,
    TIMELINE_RECORD,
    TRAIL_RECORD,
    TUPLE_RECORD,
    WAITING_RECORD,
    WORK_RECORD,
)
from shedjoin.engine.views import by_stream, constants, fetcher, flat, reader, records, setting, writer

constants(SETTINGS_RECORD)
constants(PAIR_SETTINGS, PAIR)
constants(PLAIN_SETTINGS, PLAIN)

window_kind = setting("kind")
window_size = setting("window")
window_range = setting("range")
factors = setting("factors")
age_step = setting("age_step")
counted = setting("counted")
judged = setting("judged")
most = setting("most")
filter_of = setting("filter")
shed_attr = setting("shed_attr")
asked_attr = setting("asked_attr")

pool = records("pool", TUPLE_RECORD)  # stored tuples
more = records("more", MORE_RECORD)  # beside the pool
free = reader("free", np.int32)  # unused places in the pool, a stack
set_free = writer("free", np.int32)
entries = records("entries", ENTRY_RECORD)  # the tuples of each bucket side by side
keys = records("keys", KEY_RECORD)  # the values that are known
heads = reader("heads", np.int32)  # hash of a value -> the first of its chain in `keys`
set_head = writer("heads", np.int32)
free_keys = reader("free_keys", np.int32)
set_free_key = writer("free_keys", np.int32)
buckets = records("buckets", BUCKET_RECORD)  # by group: value * streams + stream
probed = reader("probed", np.int64)  # by group: the last instant in which its tuples were met
set_probed = writer("probed", np.int64)
mass = reader("mass", np.float64)  # Decayed: the counts behind the weights, by value * streams + stream
set_mass = writer("mass", np.float64)
trail = records("trail", TRAIL_RECORD)  # Prospect, by group
heap = by_stream("heap", HEAP_RECORD)  # the policy's heap of groups, or lazily sorted heap of tuples
place = flat("place", np.int32)  # where a group or a tuple stands in `heap`, `dense` or the tournament
expiry = records("expiry", EXPIRY_RECORD)  # tuples in the order in which they expire: one stream's, then the next's
stray = by_stream("stray", HEAP_RECORD)  # tuples that came out of order, by time
stray_place = flat("stray_place", np.int32)
dense = by_stream("dense", np.int32)  # RAND's lists; LIFE's leaves, the free ones last
match = records("match", MATCH_RECORD)  # LIFE's kinetic tournament: one stream's matches, then the next's
leaf = by_stream("leaf", LEAF_RECORD)  # the groups that play in it
seen = by_stream("seen", SEEN_RECORD)  # InWindow's and Prospect's memory of arrivals
sketch = flat("sketch", np.int64)  # CountMin: part, stream, row, column
model = by_stream("model", np.float64)  # what Prospect has learned, see learn.py
touched = flat("touched", np.int64)  # what was met in this instant: groups of two streams, tuples of more
prio = flat("prio", np.float64)  # priorities of tuples; cumulative ones are logs, lifted
since = flat("since", np.int64)  # Sample; Age: whether the tuple has found partners
thresholds = by_stream("thresholds", THRESHOLD_RECORD)  # priorities that were evicted, falling
moments = by_stream("moments", np.float64)  # of what new tuples expect, the newest most: how many, sum, sum of squares
cohorts = by_stream("cohorts", COHORT_RECORD)  # Age
curve = by_stream("curve", np.float64)
age_pools = by_stream("age_pools", np.float64)
until = reader("until", np.int64)  # Replay's schedule, one stream's after the other's
until_from = reader("until_from", np.int64)

# Join graphs.
card = records("card", ENTRY_RECORD)  # what the entries of a tuple say
attr = reader("attr", np.int64)
set_attr = writer("attr", np.int64)
spot = reader("spot", np.int32)
set_spot = writer("spot", np.int32)
link = flat("link", np.int32)  # (tuple, 0: older or 1: newer)
pending = reader("pending", np.int32)
set_pending = writer("pending", np.int32)
came = reader("came", np.int64)  # the instant of a tuple
set_came = writer("came", np.int64)
marks = reader("marks", np.int64)  # rows of each stream that had come when an instant began
set_marks = writer("marks", np.int64)
entry_key = reader("entry_key", np.int64)  # the values alone, side by side: most of a scan reads nothing else
set_entry_key = writer("entry_key", np.int64)
part = reader("part", np.int32)  # the set of equated attributes that a value belongs to
set_part = writer("part", np.int32)
weight = flat("weight", np.float64)  # by value * streams + stream
cell_count = flat("cell_count", np.int32)  # cells that hold a value
first_cell = flat("first_cell", np.int32)  # by value * streams + stream: the first cell with this value
cells = records("buckets", CELL_RECORD)
cell_values = flat("cell_values", np.int32)  # (cell, part)
cell_links = flat("cell_links", np.int32)  # (cell, part, 0: before or 1: after)
cell_heads = flat("cell_heads", np.int32)
free_cells = flat("free_cells", np.int32)
part_of = reader("part_of", np.int32)  # (part, stream): the attribute, -1 where the stream has no part in it
indexes = records("indexes", INDEX_RECORD)
index_buckets = records("index_buckets", BUCKET_RECORD)
steps = records("steps", STEP_RECORD)
checks = records("checks", CHECK_RECORD)
levels = records("levels", LEVEL_RECORD)

met_on_arrival = flat("met_on_arrival", np.int64)  # Met

# Joins that count partners.
leaving = flat("leaving", np.int32)  # tuples that leave when the instant closes
floor = flat("floor", np.int64)  # by tuple * streams + stream
filters = by_stream("filters", np.int64)  # by filter and cell: the largest stamp of a shed row, see shed_filter.py

# Predicates.
number = flat("number", np.float64)
item_at = flat("item_at", np.int64)
item_count = flat("item_count", np.int64)
signature = flat("signature", np.uint64)
hit = flat("hit", np.int32)
common = flat("common", np.uint8)  # by half a place, see layouts/items.py
product = flat("product", np.float64)
items = flat("items", np.int64)
item_weights = flat("item_weights", np.float64)
item_values = flat("item_values", np.int32)  # the numbers of a tuple's values, and last that of all rows
lists = records("lists", LIST_RECORD)  # those that every stream has, then a hash table
list_ts = flat("list_ts", np.int64)  # 0 in windows of rows
list_seq = flat("list_seq", np.int64)
list_slot = flat("list_slot", np.int32)
bits = flat("bits", np.uint64)
planes = flat("planes", np.uint64)
# Selective processing.
timeline = records("timeline", TIMELINE_RECORD)  # one stream's, then the next's
timeline_counts = reader("timeline_counts", np.int32)  # a Fenwick tree for each stream
set_timeline_count = writer("timeline_counts", np.int32)
age_met = flat("age_met", np.float64)  # by stream * ages + age: partners that samples met,
age_seen = flat("age_seen", np.float64)  # tuples that they were compared with,
age_share = flat("age_share", np.float64)  # the age's share of the window at the last ranking,
age_density = flat("age_density", np.float64)  # and the partners for each of its tuples
age_rank = flat("age_rank", np.int64)  # by stream * ages + place: the ages, best first
age_from = flat("age_from", np.int64)  # by age: the part of it that is chosen, as places in the timeline
age_to = flat("age_to", np.int64)
age_edge = flat(
    "age_edge", np.int64
)  # by age + 1: where it begins in the timeline (0: where the window ends); -1: not known yet
age_before = flat("age_before", np.int64)  # and how many tuples are stored before that
kind_gain = flat("kind_gain", np.float64)  # by stream * kinds + type of a row that probes it: what samples brought,
kind_seen = flat("kind_seen", np.float64)  # and the tuples that they were compared with
kind_fraction = flat("kind_fraction", np.float64)  # the part of the window that such rows are compared with
kind_worth = flat("kind_worth", np.float64)  # what a comparison brings such a row
kind_volume = flat("kind_volume", np.float64)  # and how many comparisons with the whole window there are
kind_rows = flat("kind_rows", np.float64)  # by stream * kinds + type: the stream's own rows,
kind_sum = flat("kind_sum", np.float64)  # and their importance
stretch = records("stretch", STRETCH_RECORD)  # by stream * (ages + 1) + number: oldest first
sack = flat("sack", np.int64)  # the knapsack's heap of (stream, type)
sack_value = flat("sack_value", np.float64)
sack_next = flat("sack_next", np.int64)
work = records("work", WORK_RECORD)  # by origin * streams + other
# Joins whose rows wait for their turn.
waiting = records("waiting", WAITING_RECORD)
free_waiting = flat("free_waiting", np.int32)  # unused places, a stack
waiting_key = flat("waiting_key", np.int64)  # (row, attribute)
queue_heap = by_stream("queue_heap", HEAP_RECORD)  # the rows in line of each stream, the next to be dropped on top
queue_list = by_stream("queue_list", np.int32)  # or in no order, where lots decide
queue_place = flat("queue_place", np.int32)
instants = flat("instants", np.int64)  # (instant, stream): rows that had come when it began
told = flat("told", np.int64)  # (clocks that were told, 0: rows that came before, then a time a stream)
fresh = records("fresh", FRESH_RECORD)
fresh_value = flat("fresh_value", np.int32)  # (fresh, part)
gone = flat("gone", np.int32)  # places in the pool that are free when the instant closes
window_number = flat("window_number", np.int64)  # what row windows count a tuple by, where that is not its row number
kept = flat("kept", np.int32)  # by value: rows of the histograms and of the open instant that have it
stock = flat("stock", np.int32)  # by value * streams + stream: stored tuples
windowed = flat("windowed", np.float64)  # by value * streams + stream: rows that the window will hold
let_ts = by_stream("let_ts", np.int64)  # rows that the windows will hold, a ring a stream
let_size = by_stream("let_size", np.int32)  # how many values each has
let_value = by_stream("let_value", np.int32)  # and the values, in a ring of their own
level = by_stream("level", np.float64)  # numbers of partners that rows of the aux-window expect, in order
level_count = by_stream("level_count", np.int64)  # how many expect each
level_sum = by_stream("level_sum", np.int64)  # a Fenwick tree of these

fetch_bucket = fetcher("buckets", BUCKET_RECORD)
fetch_key = fetcher("keys", KEY_RECORD)
fetch_probed = fetcher("probed", np.int64)
fetch_tuple = fetcher("pool", TUPLE_RECORD)
fetch_more = fetcher("more", MORE_RECORD)
fetch_prio = fetcher("prio", np.float64)
fetch_expiry = fetcher("expiry", EXPIRY_RECORD)
fetch_dense = fetcher("dense", np.int32)
fetch_place = fetcher("place", np.int32)
fetch_entry = fetcher("entries", ENTRY_RECORD)
fetch_list = fetcher("lists", LIST_RECORD)
fetch_list_ts = fetcher("list_ts", np.int64)
fetch_list_seq = fetcher("list_seq", np.int64)
fetch_list_slot = fetcher("list_slot", np.int32)
fetch_row_stream = fetcher("row_stream", np.int64)
fetch_row_key = fetcher("row_key", np.int64)
fetch_row_null = fetcher("row_null", np.uint8)
fetch_row_ts = fetcher("row_ts", np.int64)
fetch_row_importance = fetcher("row_importance", np.float64)
fetch_row_bytes = fetcher("row_bytes", np.int64)

row_stream = reader("row_stream", np.int64, below=MOST)
row_key = reader("row_key", np.int64)  # (row, attribute)
row_null = reader("row_null", np.uint8)  # NULL_ROW, DROPPED_ROW, or 0
row_ts = reader("row_ts", np.int64)
row_importance = reader("row_importance", np.float64)
row_bytes = reader("row_bytes", np.int64)
row_number = flat("row_number", np.float64)
row_offsets = flat("row_offsets", np.int64)
row_items = flat("row_items", np.int64)
row_weights = flat("row_weights", np.float64)
row_kind = reader("row_kind", np.int64)
row_seq = reader("row_seq", np.int64)  # of rows that are counted elsewhere
row_arrived = reader("row_arrived", np.int64)  # (row, stream)
set_row_stream = writer("row_stream", np.int64)
set_row_key = writer("row_key", np.int64)
set_row_null = writer("row_null", np.uint8)
set_row_ts = writer("row_ts", np.int64)
set_row_importance = writer("row_importance", np.float64)
set_row_bytes = writer("row_bytes", np.int64)
set_row_kind = writer("row_kind", np.int64)

out_ahead = reader("out_ahead", np.int64)  # the values of the next rows
set_out_ahead = writer("out_ahead", np.int64)
out_rows = reader("out_rows", np.int64)  # (stream, result)
set_out_rows = writer("out_rows", np.int64)
set_out_worth = writer("out_worth", np.float64)
set_out_weight = writer("out_weight", np.float64)
set_out_newest = writer("out_newest", np.int8)  # the stream whose row found the result
set_out_inverse = writer("out_inverse", np.float64)  # (stream, result), of three and more streams
set_out_fresh = writer("out_fresh", np.int64)
out_fresh = reader("out_fresh", np.int64)
set_out_shed = writer("out_shed", np.int64)  # (record, field)
set_out_left_out = writer("out_left_out", np.int64)  # (record, field)
set_out_trace = writer("out_trace", np.int64)  # (line, 0: time, then what is stored of each stream)
