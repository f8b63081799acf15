"""A kinetic tournament: the lowest of many falling lines at any time, without looking at all of them.

Each group has the line weight * (end - time). Every match of the tournament knows the first time at which its outcome
could change (`doubt`); only matches in doubt are played again. Each stream has a tournament of its own.
"""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE

SURE = 2**62
EPSILON = 2.0**-52
#: Steps beyond these are beyond every time.
FAR = 2.0**60


@inlined
def _first_doubt(fall, at_low, at_high, time):
    """The first time at which the line that is high now, and falls faster by `fall`, could be the lower one.

    Written without branches: which way they would go is random, and a wrong guess costs more than the division.
    """
    # The guard covers every rounding between here and there, so that a float comparison never surprises.
    lead = (at_high - at_low) - 8.0 * EPSILON * abs(at_high)
    steps = lead / (fall if fall > 0.0 else 1.0) * (1.0 - 4.0 * EPSILON)
    # What is too large for a float gives no number (NaN): then look again at once.
    doubt = time + math.ceil(min(steps if steps > 1.0 else 1.0, FAR))
    return doubt if fall > 0.0 else SURE


@inlined
def _earlier(state, stream, x, y):
    """Of two lines at the same height: the one that ends first, then the one that arrived first."""
    if x["end"] != y["end"]:
        return x["end"] < y["end"]
    leaf = mem.leaf(state)
    return leaf[stream, x["winner"]]["arrival"] < leaf[stream, y["winner"]]["arrival"]


@inlined
def _set(match, weight, end, winner, doubt):
    match["weight"] = weight
    match["end"] = end
    match["winner"] = winner
    match["doubt"] = doubt


@inlined
def _play(state, stream, start, node, time):
    """The winner of the two matches below goes up."""
    match = mem.match(state, start + node)
    x, y = mem.match(state, start + 2 * node), mem.match(state, start + 2 * node + 1)
    until = min(x["doubt"], y["doubt"])
    if x["winner"] == NONE:
        _set(match, y["weight"], y["end"], y["winner"], until)
    elif y["winner"] == NONE:
        _set(match, x["weight"], x["end"], x["winner"], until)
    else:
        at_x = x["weight"] * (x["end"] - time)
        at_y = y["weight"] * (y["end"] - time)
        first = at_x < at_y
        if at_x == at_y:
            first = _earlier(state, stream, x, y)
        low, high = (x["weight"], y["weight"]) if first else (y["weight"], x["weight"])
        doubt = _first_doubt(high - low, min(at_x, at_y), max(at_x, at_y), time)
        end = x["end"] if first else y["end"]
        winner = x["winner"] if first else y["winner"]
        _set(match, low, end, winner, min(doubt, until))


@kernel
def _play_above(state, stream, leaf):
    """Play the matches of a leaf again, up to where nothing changes."""
    start, time = stream * state["match_room"], state["base"][stream]
    node = (state["match_room"] // 2 + leaf) >> 1
    while node >= 1:
        match = mem.match(state, start + node)
        winner, doubt = match["winner"], match["doubt"]
        _play(state, stream, start, node, time)
        if winner != leaf and match["winner"] == winner and match["doubt"] == doubt:
            return
        node >>= 1


@inlined
def _leaf_match(state, stream, leaf):
    return mem.match(state, stream * state["match_room"] + state["match_room"] // 2 + leaf)


@inlined
def enter(state, stream, leaf, weight, end):
    """A group's line appeared or changed."""
    _set(_leaf_match(state, stream, leaf), weight, end, leaf, SURE)
    _play_above(state, stream, leaf)


@inlined
def leave(state, stream, leaf):
    """A group's line went away."""
    _leaf_match(state, stream, leaf)["winner"] = NONE
    _play_above(state, stream, leaf)


@kernel
def replay_all(state, stream):
    """Play the whole tournament again."""
    for node in range(state["match_room"] // 2 - 1, 0, -1):
        _play(state, stream, stream * state["match_room"], node, state["base"][stream])


@inlined
def lowest_before(state, stream):
    """The group that won the final match when it was last played; there must have been one."""
    return int(mem.leaf(state)[stream, mem.match(state, stream * state["match_room"] + 1)["winner"]]["group"])


@kernel
def lowest(state, stream):
    """The final match: its winner is the lowest line now, -1 when there is none."""
    start, time = stream * state["match_room"], state["base"][stream]
    if mem.match(state, start + 1)["doubt"] <= time:
        half = state["match_room"] // 2
        node = 1
        while True:
            if 2 * node < half and mem.match(state, start + 2 * node)["doubt"] <= time:
                node = 2 * node
            elif 2 * node < half and mem.match(state, start + 2 * node + 1)["doubt"] <= time:
                node = 2 * node + 1
            else:
                _play(state, stream, start, node, time)
                if node == 1:
                    break
                node >>= 1
    return mem.match(state, start + 1)
