"""What a join takes in memory: for each stored row, for each key, and before the first. From the sizes of the arrays.

A budget that counts rows and keys by these numbers bounds the memory of the arrays, see `within`. Such a join has tight arrays:
they are at most a quarter larger than what is in them, or the next power of two where they have to be one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from shedjoin.budget import Budget
from shedjoin.engine import growth, memory
from shedjoin.engine.codes import DECAYED, HISTORY, IN_WINDOW, KEYED, LEARNED
from shedjoin.engine.plan import Plan
from shedjoin.engine.records import BUCKET_RECORD, ENTRY_RECORD, EXPIRY_RECORD, SEEN_RECORD

#: Arrays of so many tuples or values are compared, to see what one takes. Right above a power of two they take most.
FEW, MANY = memory.STEP, 4096 + memory.STEP
#: How much larger a tight array may be than what was in it when it grew, also when it must be a power of two, and the arena of
#: entries, which has rings of twice what is in them; then the same of other arrays.
TIGHT = (1.25, 2.5, 2.5)
LOOSE = (2.0, 4.0, 8.0)
#: Of a budget, estimators may take this part for what they remember beside stored rows.
REMEMBERED = 1 / 8


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes.

    Attributes
    ----------
    row
        The most that a stored row takes in the arrays.
    key
        The most that a key takes on a stream where it has rows, where rows are stored by it; else that is part of `row`.
    remembered
        What an estimator takes for each of the `Budget.keys` that it may remember. 0: it remembers none.
    """

    row: int
    key: int
    remembered: int

    @classmethod
    def of(cls, plan: Plan, *, tight: bool = True) -> Footprint:
        """`tight`: of a budget that counts what rows take."""
        cfg = plan.settings(None, warmup=0, trace_every=0, emit=True)
        cfg["row_bytes"] = 1  # which makes arrays tight
        slack, rounded, entries = TIGHT if tight and memory.is_tight(cfg) else LOOSE
        keyed = cfg[0]["layout"] == KEYED
        streams, parts = plan.streams, max(int(cfg[0]["parts"]), 1)
        of_tuple = (_arrays(cfg, MANY, FEW) - _arrays(cfg, FEW, FEW)) / (MANY - FEW)
        of_value = (_arrays(cfg, FEW, MANY) - _arrays(cfg, FEW, FEW)) / (MANY - FEW)
        value = math.ceil(slack * of_value)
        entry = ENTRY_RECORD.itemsize + (0 if keyed else 8)
        row = slack * of_tuple + rounded * streams * EXPIRY_RECORD.itemsize
        row += entries * entry * max(int(cfg[0]["spots"]), 1)
        if not keyed:  # buckets of indexes, and the values of a row of its own
            row += 2 * BUCKET_RECORD.itemsize * int(cfg[0]["spots"]) + (parts * value if cfg[0]["weighed"] else 0)
        if keyed and not plan.counts_keys:
            row += value
        seen = 2 * SEEN_RECORD.itemsize  # in a ring, whose room is a power of two
        remembered = {
            HISTORY: parts * value,
            DECAYED: parts * value,
            IN_WINDOW: streams * (value + seen),
            LEARNED: (1 + streams) * value + streams * seen,
        }
        return cls(
            math.ceil(row),
            value if plan.counts_keys else 0,
            remembered.get(int(cfg[0]["estimator"]), 0) if plan.admission is None else 0,
        )


def _arrays(cfg: NDArray[Any], tuples: int, values: int) -> int:
    sizes = memory.Sizes(tuples, values)
    made = memory.pool_arrays(cfg, sizes, strays=True), memory.value_arrays(cfg, sizes), memory.order_arrays(cfg, sizes)
    return sum(array.nbytes for arrays in made for array in arrays.values())


def empty_bytes(plan: Plan) -> int:
    """What a join takes before the first row, its filters of shed rows included."""
    cfg = plan.settings(plan.budget, warmup=0, trace_every=0, emit=True)
    state = memory.allocate(plan, cfg, 0, runs=False)
    growth.hold_strays(cfg, state)
    return sum(array.nbytes for array in state.arrays.values())


def within(budget: Budget, footprint: Footprint) -> Budget:
    """The budget that keeps what grows with rows and keys within these bytes, the `bytes` of rows included.

    Examples
    --------
    >>> within(Budget(bytes=1_000_000), Footprint(row=250, key=400, remembered=800))
    Budget(tuples=None, bytes=875200, allocation='variable', shares=None, keys=156, row_bytes=250, key_bytes=400)
    """
    whole = int(budget.bytes or 0)
    keys = budget.keys
    if keys is None and footprint.remembered:
        keys = max(int(whole * REMEMBERED) // footprint.remembered, 1)
    left = max(whole - (keys or 0) * footprint.remembered, 1)
    return replace(budget, bytes=left, keys=keys, row_bytes=footprint.row, key_bytes=footprint.key)
