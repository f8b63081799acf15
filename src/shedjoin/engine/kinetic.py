"""A kinetic tournament: the lowest of many falling lines at any time, without looking at all of them.

Each key has the line weight * (end - time). Every match of the tournament knows the first time at which its outcome
could change (`doubt`); only matches in doubt are played again. Each stream has a tournament of its own.
"""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.heap import lower
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.state import NONE

SURE = 2**62
EPSILON = 2.0**-52


@inlined
def _first_doubt(low, high, at_low, at_high, time):
    """The first time at which line `high` could be the lower one in floating point."""
    fall = high["weight"] - low["weight"]
    if not fall > 0.0:
        return SURE
    # The guard covers every rounding between here and there, so that a float comparison never surprises.
    lead = (at_high - at_low) - 8.0 * EPSILON * abs(at_high)
    if not lead > fall:
        return time + 1
    steps = lead / fall * (1.0 - 4.0 * EPSILON)
    return time + math.ceil(steps) if steps < 2.0**60 else SURE


@inlined
def _play(st, stream, node, time):
    winner, doubt = mem.winner(st), mem.doubt(st)
    a, b = winner[stream, 2 * node], winner[stream, 2 * node + 1]
    until = min(doubt[stream, 2 * node], doubt[stream, 2 * node + 1])
    if a == NONE or b == NONE:
        winner[stream, node] = b if a == NONE else a
        doubt[stream, node] = until
        return
    x, y = mem.line(st)[stream, a], mem.line(st)[stream, b]
    at_x = x["weight"] * (x["end"] - time)
    at_y = y["weight"] * (y["end"] - time)
    if lower(at_y, y["end"], y["arrival"], at_x, x["end"], x["arrival"]):
        winner[stream, node] = b
        doubt[stream, node] = min(_first_doubt(y, x, at_y, at_x, time), until)
    else:
        winner[stream, node] = a
        doubt[stream, node] = min(_first_doubt(x, y, at_x, at_y, time), until)


@kernel
def enter(st, stream, leaf, present):
    """A key's line changed, appeared or went away."""
    winner, doubt = mem.winner(st), mem.doubt(st)
    time = st["base"][stream]
    node = st["winner_room"] // 2 + leaf
    winner[stream, node] = leaf if present else NONE
    doubt[stream, node] = SURE
    node >>= 1
    while node >= 1:
        old_winner, old_doubt = winner[stream, node], doubt[stream, node]
        _play(st, stream, node, time)
        if winner[stream, node] == old_winner and doubt[stream, node] == old_doubt and old_winner != leaf:
            return
        node >>= 1


@kernel
def replay_all(st, stream):
    """Play the whole tournament again."""
    for node in range(st["winner_room"] // 2 - 1, 0, -1):
        _play(st, stream, node, st["base"][stream])


@kernel
def lowest(st, stream):
    """The leaf with the lowest line now; -1 when there is none."""
    doubt = mem.doubt(st)
    time = st["base"][stream]
    if doubt[stream, 1] <= time:
        half = st["winner_room"] // 2
        node = 1
        while True:
            if 2 * node < half and doubt[stream, 2 * node] <= time:
                node = 2 * node
            elif 2 * node < half and doubt[stream, 2 * node + 1] <= time:
                node = 2 * node + 1
            else:
                _play(st, stream, node, time)
                if node == 1:
                    break
                node >>= 1
    return int(mem.winner(st)[stream, 1])
