"""ODJA's work on the table of memory states, compiled: a line a state, its tuples in order of arrival."""

from __future__ import annotations

import numba
import numpy as np

# Not the engine's `kernel`: these tables are allocated inside.
kernel = numba.njit(cache=True, nogil=True)


@kernel
def expired(held, code, gone, names):
    """Make room (-1) where a tuple is one of the first `gone`; the code of a state is the sum of its tuples' names."""
    for state in range(held.shape[0]):
        for place in range(held.shape[1]):
            if held[state, place] >= gone:
                break  # tuples are in order of arrival, room comes first
            if held[state, place] >= 0:
                code[state] -= names[held[state, place]]
                held[state, place] = -1


@kernel
def gained(held, now):
    """What each state gains in an instant in which holding tuple x gains now[x]."""
    sums = np.zeros(held.shape[0])
    for state in range(held.shape[0]):
        total = 0.0
        for place in range(held.shape[1]):
            if held[state, place] >= 0:
                total += now[held[state, place]]
        sums[state] = total
    return sums


@kernel
def replaced(held, before, place, new):
    """The states `before` with a new tuple instead of the one at their `place`; unchanged where there is no such place."""
    memory = held.shape[1]
    after = np.empty((before.size, memory), held.dtype)
    for state in range(before.size):
        for at in range(memory):
            after[state, at] = held[before[state], at]
        if place[state] < memory:
            for at in range(place[state], memory - 1):
                after[state, at] = after[state, at + 1]
            after[state, memory - 1] = new
    return after
