"""The arrays behind the handles of an n-way join, as kernels see them."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.nway.state import (
    BUCKET_RECORD,
    CARD_RECORD,
    CELL_RECORD,
    CHECK_RECORD,
    INDEX_RECORD,
    LEVEL_RECORD,
    NSHED_RECORD,
    RING_RECORD,
    SETTINGS_RECORD,
    SLOT_RECORD,
    STEP_RECORD,
)
from shedjoin.engine.views import constants, flat, reader, records, writer

constants(SETTINGS_RECORD)

card = records("card", CARD_RECORD)
ring = records("ring", RING_RECORD)
ring_key = reader("ring_key", np.int64)  # the values alone, side by side: most of a scan reads nothing else
set_ring_key = writer("ring_key", np.int64)
buckets = records("buckets", BUCKET_RECORD)
indexes = records("indexes", INDEX_RECORD)
steps = records("steps", STEP_RECORD)
checks = records("checks", CHECK_RECORD)
levels = records("levels", LEVEL_RECORD)
slots = records("slots", SLOT_RECORD)
cells = records("cells", CELL_RECORD)
out_shed = records("out_shed", NSHED_RECORD)

attr = reader("attr", np.int64)
set_attr = writer("attr", np.int64)
spot = reader("spot", np.int32)
set_spot = writer("spot", np.int32)
pending = reader("pending", np.int32)
set_pending = writer("pending", np.int32)
marks = reader("marks", np.int64)
set_marks = writer("marks", np.int64)
link = flat("link", np.int32)  # (tuple, 0: older or 1: newer)
slot_buckets = flat("slot_buckets", np.int32)
free_slots = flat("free_slots", np.int32)
weight = flat("weight", np.float64)  # (slot, stream)
mass = flat("mass", np.float64)
slot_cells = flat("slot_cells", np.int32)  # (slot, stream): the first cell with this value
cell_slots = flat("cell_slots", np.int32)  # (cell, part)
cell_links = flat("cell_links", np.int32)  # (cell, part, 0: before or 1: after)
cell_buckets = flat("cell_buckets", np.int32)
free_cells = flat("free_cells", np.int32)
part_of = flat("part_of", np.int32)  # (part, stream): the attribute, -1 where the stream has no part in it
sketch = flat("sketch", np.int64)
until = flat("until", np.int64)
until_from = flat("until_from", np.int64)

row_stream = reader("row_stream", np.int64)
row_ts = reader("row_ts", np.int64)
row_null = reader("row_null", np.bool_)
row_importance = reader("row_importance", np.float64)
row_bytes = reader("row_bytes", np.int64)
row_attr = reader("row_attr", np.int64)
row_seq = reader("row_seq", np.int64)
row_slot = reader("row_slot", np.int64)
set_row_seq = writer("row_seq", np.int64)
set_row_slot = writer("row_slot", np.int64)
out_rows = reader("out_rows", np.int64)
set_out_rows = writer("out_rows", np.int64)
set_out_worth = writer("out_worth", np.float64)
set_out_fresh = writer("out_fresh", np.int64)
out_fresh = flat("out_fresh", np.int64)
