"""The loop of several joins behind one queue, on one CPU."""

from __future__ import annotations

from shedjoin.cpu import needs, queue
from shedjoin.cpu import state as cs
from shedjoin.cpu.arrive import come, statistics
from shedjoin.cpu.codes import FOREVER, LOWEST, NO_ONE
from shedjoin.cpu.memory import compete
from shedjoin.cpu.process import process
from shedjoin.cpu.queue import NO_ROW
from shedjoin.cpu.shed_log import has_no_room, record
from shedjoin.engine.codes import DROPPED
from shedjoin.engine.jit import entry, kernel


@kernel
def _arrive(settings, states, traffics, joins, row):
    """A row comes in for several joins; all their statistics say how much it is worth."""
    how, st, io = settings[0], states[0], traffics[0]
    prio = 0.0
    for k in range(joins):
        come(settings[k], states[k], traffics[k], row)
        if how["queue_victim"] == LOWEST:
            prio += cs.row_importance_of(traffics[k])[row] * statistics(settings[k], states[k], traffics[k], row)
    cs.row_prio_of(io)[row] = prio
    queue.join(how, st, io, row)
    stream = cs.stream_of(io)[row]
    if how["queue_victim"] == NO_ONE or not queue.is_full(how, st, io, stream):
        return
    gone = queue.victim(how, st, io, stream)
    queue.leave(how, st, io, gone)
    for k in range(joins):
        one = traffics[k]
        ts, number = cs.row_ts_of(one)[gone], cs.row_number_in_stream_of(one)[gone]
        record(states[k], one, stream, number, ts, DROPPED)
        states[k]["dropped"] += 1


@entry
def advance(settings, states, traffics, joins):
    """As `loop.advance`, for several joins; the queue and the CPU are those of the first. A need is `io["who"]`'s."""
    how, st, io = settings[0], states[0], traffics[0]
    while True:
        arrives = io["at"] < io["end"]
        until = FOREVER
        if arrives:
            until = cs.row_ts_of(io)[io["at"]]
        while (arrives or io["flush"]) and io["first"] != NO_ROW and st["cpu_free"] < until:
            row = io["first"]
            while io["done"] < joins:  # after a need, go on with the join that had it
                k = io["done"]
                before = states[k]["worked"]
                need = process(settings[k], states[k], traffics[k], row)
                if need != needs.DONE:
                    io["who"] = k
                    return need
                io["work"] += states[k]["worked"] - before
                states[k]["fetched"][cs.stream_of(io)[row]] += 1
                io["done"] += 1
            queue.leave(how, st, io, row)
            begin = max(st["cpu_free"], float(cs.row_ts_of(io)[row]))
            st["cpu_free"] = begin + io["work"] / how["capacity"]
            io["done"] = 0
            io["work"] = 0.0
        if not arrives:
            break
        for k in range(joins):
            if has_no_room(traffics[k]):
                io["who"] = k
                return needs.SHED
        _arrive(settings, states, traffics, joins, io["at"])
        io["at"] += 1
    while io["flush"] and io["done"] < joins:
        k = io["done"]
        if not compete(settings[k], states[k], traffics[k]):
            io["who"] = k
            return needs.SHED
        io["done"] += 1
    return needs.DONE
