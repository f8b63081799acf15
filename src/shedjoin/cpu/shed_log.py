"""The shed log of a join on any predicate."""

from __future__ import annotations

from shedjoin.cpu import state as cs
from shedjoin.engine.jit import inlined, kernel


@kernel
def record(st, io, stream, number, ts, why):
    """One record of the shed log."""
    records = cs.shed_of(io)
    at = io["shed"]
    records[at, 0] = stream
    records[at, 1] = number
    records[at, 2] = ts
    records[at, 3] = 0
    records[at, 4] = max(st["clock"][0], st["clock"][1])
    records[at, 5] = st["processed"]
    records[at, 6] = why
    records[at, 7] = st["taken"][0]
    records[at, 8] = st["taken"][1]
    io["shed"] = at + 1


@inlined
def has_no_room(io):
    """Whether there may be no room for what one row adds: two records at most."""
    return io["shed"] + 2 > io["out_shed_room"]
