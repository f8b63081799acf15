"""Until when a row can still be met."""

from __future__ import annotations

from shedjoin.engine.codes import TIME
from shedjoin.engine.jit import inlined
from shedjoin.engine.state import NONE


@inlined
def _horizon(st, stream):
    """No row of the other stream before this is still to come, unless it is late."""
    clock = st["clock"][1 - stream]
    if st["max_skew"] != NONE:
        clock = max(clock, max(st["clock"][0], st["clock"][1]) - st["max_skew"])
    return clock - st["lateness"]


@inlined
def is_over(st, stream, ts, seq):
    """Whether no later row can meet this one. A clock that has not started is far below all times."""
    if st["kind"][stream] == TIME:
        return ts + st["size"][stream] <= _horizon(st, stream)
    return seq < st["arrived"][stream] - st["size"][stream]
