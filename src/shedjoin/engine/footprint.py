"""What a stored tuple may take in the arrays of a join, and what a join takes before the first: from the sizes of the arrays.

Arrays grow by doubling, so there may be two places for each tuple. A key of its own is the worst case: it has a place in the
tables of keys, and a ring of entries.
"""

from __future__ import annotations

import math

from shedjoin.engine import memory
from shedjoin.engine.plan import Plan
from shedjoin.engine.records import BUCKET_RECORD, EXPIRY_RECORD
from shedjoin.engine.structures.buckets import SMALLEST

#: Arrays are made for so many tuples to see what one takes.
MANY = 4096
#: Places for each tuple: in most arrays, and in the arena of entries, whose rings are moved when it grows.
PLACES, ARENA = 2, 4


def tuple_bytes(plan: Plan) -> int:
    """The most that a stored tuple takes, a key of its own included."""
    cfg = plan.settings(plan.budget, warmup=0, trace_every=0, emit=True)
    sizes = memory.Sizes(MANY, MANY)
    made = memory.pool_arrays(cfg, sizes, strays=True), memory.value_arrays(cfg, sizes), memory.order_arrays(cfg, sizes)
    each = sum(array.nbytes for arrays in made for array in arrays.values()) / MANY + EXPIRY_RECORD.itemsize
    ring = SMALLEST * sum(array.nbytes for array in memory.arena(cfg, MANY).values()) / MANY
    indexes = 0 if memory.is_keyed(cfg) else max(int(cfg[0]["spots"]), 1)
    return math.ceil(PLACES * (each + indexes * BUCKET_RECORD.itemsize) + ARENA * max(indexes, 1) * ring)


def empty_bytes(plan: Plan) -> int:
    """What a join takes before the first row, its filters of shed rows included."""
    cfg = plan.settings(plan.budget, warmup=0, trace_every=0, emit=True)
    return sum(array.nbytes for array in memory.allocate(plan, cfg, 0, runs=False).arrays.values())
