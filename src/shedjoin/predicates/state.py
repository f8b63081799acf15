"""What is stored of two streams, as arrays behind one handle: tuples, their items, and lists of tuples in time order.

One pool holds the tuples of both streams, the left one's at even places and the right one's at odd ones, so that half a place
counts through one stream without gaps. Places 0 and 1 are nobody's: an entry of a list is struck out by pointing it to 0.
Lists 0 and 1 hold all tuples of a stream, 2 and 3 those with an empty set; every other list belongs to a stream and an item
(or to a bucket of numbers), and stands at the item's place in a hash table.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine.handle import pointers
from shedjoin.engine.views import by_stream, flat

STREAMS = 2
#: Lists that every store has.
FIXED_LISTS = 4
EMPTIES = 2
NOBODY = 0
NO_LIST = -1

#: The arrays by what their length depends on, with the type of an element.
POOL = {
    "ts": "i8",
    "seq": "i8",  # number among all arrivals
    "row": "i8",  # number in its stream
    "side": "i8",  # its stream
    "kind": "i8",  # its type, for utilities
    "importance": "f8",
    "number": "f8",
    "item_at": "i8",
    "item_len": "i8",
    "sign": "u8",  # a bit for each item, by its hash: what has no bit in common has no item in common
    "prio": "f8",
    "heap_at": "i8",  # its place in the heap of its group
    "place": "i8",  # its place among the members of its stream; -1: not stored
    "acc": "f8",
    "hit": "i8",  # scratch of a probe: the partners found
}
#: One for each two places: scratch of a search of one stream, common items so far. Small, to stay in the cache.
COUNTS = {"count": "u1"}
ITEMS = {"item": "i8", "weight": "f8"}
LISTS = {"l_start": "i8", "l_cap": "i8", "l_head": "i8", "l_count": "i8"}
TABLE = {"t_item": "i8", "t_tag": "i1"}  # tag 0: nobody; 1, 2: an item of stream 0, 1
ENTRIES = {"e_ts": "i8", "e_seq": "i8", "e_slot": "i4"}
BY_STREAM = {"members": "i8", "heap": "i8", "free": "i8"}
ARRAYS = {**POOL, **COUNTS, **ITEMS, **LISTS, **TABLE, **ENTRIES, **BY_STREAM}
#: Made of the others, so no part of a snapshot: see `bitmaps`.
BITS = {"bits": "u8", "planes": "u8", "l_bits": "i8", "bits_used": "i8"}

_NUMBERS = ("item_top", "item_live", "entry_top", "table_used", "dead")
STORE_FIELDS = (
    [(name, "i8") for name in _NUMBERS]
    + [
        ("resident", "i8", (2,)),
        ("free_count", "i8", (2,)),
        ("floor", "i8", (2,)),
    ]  # times below the floor of a stream are over
    + pointers(*ARRAYS, *BITS)
)
STORE_RECORD = np.dtype(STORE_FIELDS)

ts_of = flat("ts", "i8")
seq_of = flat("seq", "i8")
row_of = flat("row", "i8")
side_of = flat("side", "i8")
kind_of = flat("kind", "i8")
importance_of = flat("importance", "f8")
number_of = flat("number", "f8")
item_at_of = flat("item_at", "i8")
item_len_of = flat("item_len", "i8")
sign_of = flat("sign", "u8")
prio_of = flat("prio", "f8")
heap_at_of = flat("heap_at", "i8")
place_of = flat("place", "i8")
count_of = flat("count", "u1")
acc_of = flat("acc", "f8")
free_of = by_stream("free", "i8")
hit_of = flat("hit", "i8")
items_of = flat("item", "i8")
weights_of = flat("weight", "f8")
start_of = flat("l_start", "i8")
cap_of = flat("l_cap", "i8")
head_of = flat("l_head", "i8")
length_of = flat("l_count", "i8")
table_of = flat("t_item", "i8")
tags_of = flat("t_tag", "i1")
entry_ts_of = flat("e_ts", "i8")
entry_seq_of = flat("e_seq", "i8")
entry_slot_of = flat("e_slot", "i4")
members_of = by_stream("members", "i8")
heaps_of = by_stream("heap", "i8")
bits_of = flat("bits", "u8")
planes_of = flat("planes", "u8")
bitmap_of = flat("l_bits", "i8")
bits_used_of = flat("bits_used", "i8")
