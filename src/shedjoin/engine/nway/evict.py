"""Who goes when the memory of an n-way join is short."""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem as tuples
from shedjoin.engine.codes import RANDOM
from shedjoin.engine.jit import kernel
from shedjoin.engine.nway import order
from shedjoin.engine.state import NONE


@kernel
def used(how, st, group):
    """What counts against a group's cap."""
    if how["groups"] > 1:
        return st["stored_bytes"][group] if how["by_bytes"] else st["resident"][group]
    total = 0
    for stream in range(how["streams"]):
        total += st["stored_bytes"][stream] if how["by_bytes"] else st["resident"][stream]
    return total


@kernel
def lowest(how, st, group):
    """The tuple that a group gives up next."""
    if how["organisation"] == RANDOM:
        return _drawn(how, st, group)
    if how["groups"] > 1:
        return order.lowest(how, st, group)[0]
    return lowest_of_all(how, st)


@kernel
def lowest_of_all(how, st):
    """The lowest of what the streams offer; on equal priority the earlier arrival."""
    lowest, lowest_prio, lowest_arrival = NONE, 0.0, 0
    for stream in range(how["streams"]):
        x, prio, arrival = order.lowest(how, st, stream)
        prio = order.on_one_scale(how, st, stream, prio)
        if x != NONE and (lowest == NONE or prio < lowest_prio or (prio == lowest_prio and arrival < lowest_arrival)):
            lowest, lowest_prio, lowest_arrival = x, prio, arrival
    return lowest


@kernel
def _drawn(how, st, group):
    """RAND: a place in the lists of the group's streams, one after the other."""
    random = st["random"]
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    st["random"] = random
    unit = np.float64(np.int64(random >> np.uint64(11))) * 2.0**-53
    if how["groups"] > 1:
        return int(tuples.dense(st)[group, int(unit * st["resident"][group])])
    total = 0
    for stream in range(how["streams"]):
        total += st["resident"][stream]
    i = int(unit * total)
    stream = 0
    while i >= st["resident"][stream]:
        i -= st["resident"][stream]
        stream += 1
    return int(tuples.dense(st)[stream, i])
