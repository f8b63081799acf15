"""Expiry of sampled rows."""

from __future__ import annotations

from shedjoin.engine.codes import TIME
from shedjoin.engine.jit import inlined
from shedjoin.engine.records import NONE


@inlined
def _horizon(state, stream):
    """A time before which the other stream brings no more rows, late ones excepted."""
    clock = state["clock"][1 - stream]
    if state["max_skew"] != NONE:
        clock = max(clock, max(state["clock"][0], state["clock"][1]) - state["max_skew"])
    return clock - state["lateness"]


@inlined
def is_expired(state, stream, ts, seq):
    """Whether no later row can join this one. The clock of a stream without rows is below all times."""
    if state["window_kind"][stream] == TIME:
        return ts + state["window_size"][stream] <= _horizon(state, stream)
    return seq < state["arrived"][stream] - state["window_size"][stream]
