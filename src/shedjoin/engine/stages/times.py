"""Times: the newest of all streams, and when a tuple's window ends."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import ROW, TIME
from shedjoin.engine.forms import in_pairs, in_plain
from shedjoin.engine.jit import inlined


@inlined
def _newest_of_pair(cfg, state):
    return max(state["clock"][0], state["clock"][1])


@in_pairs(_newest_of_pair)
@inlined
def newest(cfg, state):
    """The largest time seen on any stream."""
    time = state["clock"][0]
    for stream in range(1, cfg["streams"]):
        time = max(time, state["clock"][stream])
    return time


@inlined
def _in_order(state):
    return 0


@in_plain(_in_order)
@inlined
def lag(state):
    """How far a tuple may lie behind one of its stream that came before it: the lateness, or more if rows were later still."""
    return state["lag"]


@inlined
def reach(cfg, stream):
    """How far back in time a stream's tuples are met; a window of rows lets everything pass that is stored."""
    return mem.window_size(cfg, stream) if mem.window_kind(cfg, stream) == TIME else 2**62


@inlined
def _row_number(cfg, state, x, seq):
    return seq


@in_pairs(_row_number)
@inlined
def number_of(cfg, state, x, seq):
    """What row windows count a tuple by: its row number, or its number among the rows that were let in."""
    return mem.window_number(state)[x] if cfg["let_in"] else seq


@inlined
def stamp_of(cfg, stream, ts, seq):
    """What a tuple expires by."""
    return seq if mem.window_kind(cfg, stream) == ROW else ts


@inlined
def end_of_life(cfg, stream, ts, seq):
    """What `base` is counted up to before the tuple expires."""
    size = mem.window_size(cfg, stream)
    return seq + size + 1 if mem.window_kind(cfg, stream) == ROW else ts + size


@inlined
def half_lives(cfg, state, time):
    """Decayed: a row of this time weighs 2 to the power of this."""
    return (time - state["t0"]) / cfg["half_life"] - cfg["fold_at"] * state["epoch"]
