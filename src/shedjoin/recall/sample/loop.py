"""A push's rows and its shed log run past the witnesses, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.jit import entry, kernel
from shedjoin.recall.sample.chains import link_all
from shedjoin.recall.sample.passes import draw, probe, read
from shedjoin.recall.sample.state import Notes, Push, Sample
from shedjoin.recall.sample.upkeep import end_block


@kernel
def _go_on(st, stream, ts, first, end):
    """Clocks and row numbers after a block. (A late row is behind the effective clock of its stream: it moves nothing.)"""
    ones = 0
    clock0, clock1 = st["clock"][0], st["clock"][1]
    for i in range(np.uint64(first), np.uint64(end)):
        ones += stream[i]
        clock0 = max(clock0, ts[i] if stream[i] == 0 else clock0)
        clock1 = max(clock1, ts[i] if stream[i] == 1 else clock1)
    st["clock"][0], st["clock"][1] = clock0, clock1
    st["arrived"][0] += end - first - ones
    st["arrived"][1] += ones
    st["rows"] += end - first


@entry
def follow(state: NDArray[Any], sample: Sample, notes: Notes, push: Push, log: NDArray[np.void]) -> int:
    """Run a push's rows and its shed log past the witnesses. Returns how many records of the log fitted the rows."""
    st = state[0]
    total = st["arrived"][0] + st["arrived"][1]
    at: int = read(st, sample, notes, log, 0, total)
    first = 0
    while first < push.ts.size:
        end = min(push.ts.size, first + st["block"] - total % st["block"])
        total += end - first
        draw(st, sample, notes, push, first, end)
        at = read(st, sample, notes, log, at, total)
        probe(st, sample, notes, push, first, end)
        _go_on(st, push.stream, push.ts, first, end)
        if total % st["block"] == 0:
            end_block(st, sample)
        first = end
    return at


@entry
def link_up(state: NDArray[Any], sample: Sample) -> None:
    """Make all chains anew: after a restart, nothing but the table and the counts is there."""
    link_all(state[0], sample)
