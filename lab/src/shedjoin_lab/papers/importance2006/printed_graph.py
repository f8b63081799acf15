"""What importance2006 measured: ESJA on das2003's graph as printed, and ODJA that keeps two instants. For Figures 3 to 7 alone.

das2003's graph (section 3.2.1) has a node for each tuple at each instant of its life; the library's leaves out all that cannot
change the optimum. ODJA with two instants knows the best value and not how it came about; the library's keeps the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shedjoin.errors import SpecError
from shedjoin.offline.solver import lemon
from shedjoin.workloads import Workload
from shedjoin.workloads.workload import Columns
from shedjoin_lab.methods import Setting

#: Importances become whole numbers.
UNIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Value:
    """The most importance. No schedule is read, so results are not counted."""

    importance: float
    matches: int = 0
    peak_tuples: int = 0


def esja_as_printed(workload: Workload, setting: Setting) -> Value:
    """The most importance with half of the memory for each stream."""
    half = _half(workload, setting)
    left, right = workload.left, workload.right
    parts = (_one_stream(mine, other, setting.window, half) for mine, other in ((left, right), (right, left)))
    return Value(_together(workload) + sum(parts))


def odja_two_instants(workload: Workload, setting: Setting) -> Value:
    """The same for one tuple of each stream in memory: a state is the tuple that is held."""
    if _half(workload, setting) != 1:
        raise SpecError(f"two instants are kept for M/2 = 1 alone, not for a memory of {setting.memory}")
    left, right = workload.left, workload.right
    parts = (_best_of_one(mine, other, setting.window) for mine, other in ((left, right), (right, left)))
    return Value(_together(workload) + sum(parts))


def _half(workload: Workload, setting: Setting) -> int:
    half, instants = (setting.memory or 0) // 2, int(workload.left["key"].size)
    if workload.right["key"].size != instants or setting.warmup > 0 or not 1 <= half <= setting.window:
        raise SpecError(
            "streams must have one length and be counted from the start, with a memory of 1 to w tuples each"
        )
    return min(half, instants)


def _together(workload: Workload) -> float:
    left, right = workload.left, workload.right
    return float(np.minimum(left["importance"], right["importance"])[left["key"] == right["key"]].sum())


def _best_of_one(mine: Columns, other: Columns, window: int) -> float:
    """`value[row % window]`: the best that can have been gained where this tuple is held."""
    value = np.full(window, -np.inf)
    held = np.zeros(window, np.int64)
    for instant in range(mine["key"].size):
        place = instant % window
        expired = value[place]
        value[place] = -np.inf
        meets = mine["key"][held] == other["key"][instant]
        value += np.where(meets, np.minimum(mine["importance"][held], other["importance"][instant]), 0.0)
        value[place] = max(expired, value.max()) if instant else 0.0
        held[place] = instant
    return float(value.max())


def _one_stream(mine: Columns, other: Columns, window: int, half: int) -> float:
    """The importance of the results of kept tuples."""
    instants = mine["key"].size
    row, age = (part.ravel() for part in np.indices((instants, window)))
    alive = row + age < instants
    row, age = row[alive], age[alive]
    names = np.full((instants, window), -1)
    names[row, age] = np.arange(row.size)
    entry = row.size + np.arange(instants)  # lets one unit of memory hold a tuple, not more
    sink = row.size + instants
    now = row + age
    goes_on = now + 1 < instants
    kept = goes_on & (age + 1 < window)
    # Held until another instant: the tuple meets the partner of that instant, and then is kept or dropped for the newcomer.
    partner = np.minimum(now + 1, instants - 1)
    meets = kept & (mine["key"][row] == other["key"][partner])
    gain = np.where(meets, np.minimum(mine["importance"][row], other["importance"][partner]), 0.0)
    here = names[row, age]
    tail = np.concatenate((here[kept], here[goes_on], here[~goes_on], entry))
    head = np.concatenate(
        (names[row[kept], age[kept] + 1], entry[now[goes_on] + 1], np.full((~goes_on).sum(), sink), names[:, 0])
    )
    gained = np.concatenate((gain[kept], gain[goes_on], np.zeros((~goes_on).sum() + instants)))
    # Every way through takes one of these arcs for each instant: the same toll on all keeps costs from falling below 0.
    whole = np.rint(gained * UNIT).astype(np.int64)
    cost = whole.max(initial=0) - whole
    cost[-instants:] = 0
    supply = np.zeros(sink + 1, np.int64)
    supply[entry[:half]] = 1  # the first tuples fill the memory
    supply[sink] = -half
    flow, _ = lemon(tail, head, np.ones(tail.size, np.int64), cost, supply)
    return float((flow * gained).sum())
