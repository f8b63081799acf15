"""Times: the newest of all streams, and when a tuple's window ends."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import ROW, TIME
from shedjoin.engine.forms import in_pairs
from shedjoin.engine.jit import inlined


@inlined
def _newest_of_pair(how, st):
    return max(st["clock"][0], st["clock"][1])


@in_pairs(_newest_of_pair)
@inlined
def newest(how, st):
    """The largest time seen on any stream."""
    time = st["clock"][0]
    for stream in range(1, how["streams"]):
        time = max(time, st["clock"][stream])
    return time


@inlined
def reach(how, stream):
    """How far back in time a stream's tuples are met; a window of rows lets everything pass that is stored."""
    return mem.window_size(how, stream) if mem.window_kind(how, stream) == TIME else 2**62


@inlined
def _row_number(how, st, x, seq):
    return seq


@in_pairs(_row_number)
@inlined
def number_of(how, st, x, seq):
    """What row windows count a tuple by: its row number, or its number among the rows that were let in."""
    return mem.window_number(st)[x] if how["let_in"] else seq


@inlined
def stamp_of(how, stream, ts, seq):
    """What a tuple expires by."""
    return seq if mem.window_kind(how, stream) == ROW else ts


@inlined
def end_of_life(how, stream, ts, seq):
    """What `base` is counted up to before the tuple expires."""
    size = mem.window_size(how, stream)
    return seq + size + 1 if mem.window_kind(how, stream) == ROW else ts + size


@inlined
def half_lives(how, st, time):
    """Decayed: a row of this time weighs 2 to the power of this."""
    return (time - st["t0"]) / how["half_life"] - how["fold_at"] * st["epoch"]
