"""A kinetic tournament: the lowest of many falling lines at any time, without looking at all of them.

Each key has the line weight * (end - time). Every match of the tournament knows the first time at which its outcome
could change (`doubt`); only matches in doubt are played again.
"""

from __future__ import annotations

import math

from shedjoin.engine.heap import lower
from shedjoin.engine.jit import kernel
from shedjoin.engine.state import NONE

SURE = 2**62
EPSILON = 2.0**-52


@kernel
def _first_doubt(low, high, time):
    """The first time at which line `high` could be the lower one in floating point."""
    fall = high["weight"] - low["weight"]
    if not fall > 0.0:
        return SURE
    above = high["weight"] * (high["end"] - time)
    # The guard covers every rounding between here and there, so that a float comparison never surprises.
    lead = (above - low["weight"] * (low["end"] - time)) - 8.0 * EPSILON * abs(above)
    steps = lead / fall * (1.0 - 4.0 * EPSILON)
    if steps >= 2.0**60:
        return SURE
    if not steps > 1.0:
        return time + 1
    return time + math.ceil(steps)


@kernel
def _play(winner, doubt, line, node, time):
    a, b = winner[2 * node], winner[2 * node + 1]
    if a == NONE or b == NONE:
        winner[node] = b if a == NONE else a
        doubt[node] = min(doubt[2 * node], doubt[2 * node + 1])
        return
    x, y = line[a], line[b]
    at_a = x["weight"] * (x["end"] - time)
    at_b = y["weight"] * (y["end"] - time)
    if lower(at_b, y["end"], y["arrival"], at_a, x["end"], x["arrival"]):
        a, x, y = b, y, x
    winner[node] = a
    doubt[node] = min(_first_doubt(x, y, time), doubt[2 * node], doubt[2 * node + 1])


@kernel
def enter(winner, doubt, line, slot, present, time):
    """A key's line changed, appeared or went away."""
    node = winner.size // 2 + slot
    winner[node] = slot if present else NONE
    doubt[node] = SURE
    node >>= 1
    while node >= 1:
        old_winner, old_doubt = winner[node], doubt[node]
        _play(winner, doubt, line, node, time)
        if winner[node] == old_winner and doubt[node] == old_doubt and old_winner != slot:
            return
        node >>= 1


@kernel
def replay_all(winner, doubt, line, time):
    """Play the whole tournament again."""
    for node in range(winner.size // 2 - 1, 0, -1):
        _play(winner, doubt, line, node, time)


@kernel
def lowest(winner, doubt, line, time):
    """The key with the lowest line now; -1 when there is none."""
    if doubt[1] <= time:
        half = winner.size // 2
        node = 1
        while True:
            if 2 * node < half and doubt[2 * node] <= time:
                node = 2 * node
            elif 2 * node < half and doubt[2 * node + 1] <= time:
                node = 2 * node + 1
            else:
                _play(winner, doubt, line, node, time)
                if node == 1:
                    break
                node >>= 1
    return int(winner[1])
