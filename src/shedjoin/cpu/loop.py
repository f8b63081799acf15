"""The loop of a join on any predicate: arrive, wait, probe, store, compete.

It stands beside the two-way loop of equi-joins (docs/decisions/013): the steps are the same, but here a row may have to wait
for the CPU, a probe is a search through lists that costs far more than all around it, and what it may look at is limited.
"""

from __future__ import annotations

from shedjoin.cpu import needs, queue
from shedjoin.cpu import state as cs
from shedjoin.cpu.arrive import arrive
from shedjoin.cpu.codes import FOREVER
from shedjoin.cpu.memory import compete, expire
from shedjoin.cpu.process import process
from shedjoin.cpu.queue import NO_ROW
from shedjoin.cpu.shed_log import has_no_room
from shedjoin.engine.jit import entry


@entry
def advance(settings, state, traffic):
    """Run rows until all have arrived (and, on a flush, are processed), or until something is needed."""
    how, st, io = settings[0], state[0], traffic[0]
    slow = how["capacity"] > 0.0
    while True:
        arrives = io["at"] < io["end"]
        until = FOREVER
        if arrives:
            until = cs.row_ts_of(io)[io["at"]]
        if arrives or io["flush"] or not slow:
            while io["first"] != NO_ROW and (not slow or st["cpu_free"] < until):
                row = io["first"]
                before = st["worked"]
                need = process(how, st, io, row)
                if need != needs.DONE:
                    return need
                queue.leave(how, st, io, row)
                st["fetched"][cs.stream_of(io)[row]] += 1
                if slow:
                    begin = max(st["cpu_free"], float(cs.row_ts_of(io)[row]))
                    st["cpu_free"] = begin + (st["worked"] - before) / how["capacity"]
                io["since"] += 1
                if io["since"] == io["until"]:
                    io["since"] = 0
                    return needs.PAUSE
        if not arrives:
            break
        if has_no_room(io):
            return needs.SHED
        arrive(how, st, io, io["at"])
        io["at"] += 1
    # On a slow CPU the instant may not be over: rows of it may still wait.
    if (io["flush"] or not slow) and not compete(how, st, io):
        return needs.SHED
    return needs.DONE


@entry
def tell_clocks(settings, state, left, right):
    """Set the clocks to at least these (NEVER says nothing) and let go of what has expired by them."""
    how, st = settings[0], state[0]
    st["clock"][0] = max(st["clock"][0], left)
    st["clock"][1] = max(st["clock"][1], right)
    expire(how, st)
