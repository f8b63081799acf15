"""The loop over the blocks of a push and its shed log."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.jit import entry, kernel
from shedjoin.recall.sample.chains import rebuild_chains
from shedjoin.recall.sample.passes import count_missing, read_shed_log, sample_rows
from shedjoin.recall.sample.state import Push, Sample, Selected
from shedjoin.recall.sample.upkeep import end_block


@kernel
def _advance(state, push, first, end):
    """Update clocks and row numbers after a block."""
    stream, ts = push.stream, push.ts
    ones = 0
    clock0, clock1 = state["clock"][0], state["clock"][1]
    for i in range(np.uint64(first), np.uint64(end)):
        ones += stream[i]
        clock0 = max(clock0, ts[i] if stream[i] == 0 else clock0)
        clock1 = max(clock1, ts[i] if stream[i] == 1 else clock1)
    state["clock"][0], state["clock"][1] = clock0, clock1
    if push.seq.size > 0:
        state["arrived"][0], state["arrived"][1] = push.instants[end - 1, 0], push.instants[end - 1, 1]
    else:
        state["arrived"][0] += end - first - ones
        state["arrived"][1] += ones
    state["period_rows"] += end - first


@entry
def follow_push(
    record: NDArray[Any], sample: Sample, selected: Selected, push: Push, log: NDArray[np.void], total: int
) -> int:
    """Update the sample with the rows and the shed log of a push. Returns how many records of the log were read.

    `total`: the number of rows that were followed before.
    """
    state = record[0]
    at: int = read_shed_log(state, sample, selected, push.logged_at, log, 0, total)
    first = 0
    while first < push.ts.size:
        end = min(push.ts.size, first + state["block"] - total % state["block"])
        total += end - first
        sample_rows(state, sample, selected, push, first, end)
        at = read_shed_log(state, sample, selected, push.logged_at, log, at, total)
        count_missing(state, sample, selected, push, first, end)
        _advance(state, push, first, end)
        if total % state["block"] == 0:
            end_block(state, sample)
        first = end
    return at


@entry
def rebuild(record: NDArray[Any], sample: Sample) -> None:
    """Rebuild all chains after a restart: only the table and the key counts are saved."""
    rebuild_chains(record[0], sample)
