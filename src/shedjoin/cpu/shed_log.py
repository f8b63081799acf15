"""The shed log of a join on any predicate."""

from __future__ import annotations

from shedjoin.cpu import state as cs
from shedjoin.engine.jit import inlined, kernel


@kernel
def log(st, io, stream, number, ts, why):
    """One record of the shed log."""
    log = cs.shed_of(io)
    at = io["shed"]
    log[at, 0] = stream
    log[at, 1] = number
    log[at, 2] = ts
    log[at, 3] = 0
    log[at, 4] = max(st["clock"][0], st["clock"][1])
    log[at, 5] = st["processed"]
    log[at, 6] = why
    log[at, 7] = st["taken"][0]
    log[at, 8] = st["taken"][1]
    io["shed"] = at + 1


@inlined
def is_full(io):
    """Whether there may be no room for what one row adds: two records at most."""
    return io["shed"] + 2 > io["out_shed_room"]
