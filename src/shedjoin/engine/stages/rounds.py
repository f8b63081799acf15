"""Lazy evaluation and lazy expiry: new tuples are joined, and expired ones removed, in rounds (golab2003)."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import ITEMS, MOST, SCHEDULE
from shedjoin.engine.forms import in_pairs, only_many
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import evict, priority, probe_items, probe_many, store
from shedjoin.engine.stages.times import newest


@inlined
def _round(time, every):
    """The number of the round that a time belongs to."""
    return time // every


@inlined
def _begin(how, st, io, stream, x):
    if how["layout"] == ITEMS:
        probe_items.begin(how, st, io, stream, x)
    else:
        probe_many.begin(how, st, io, stream, x)


@inlined
def _go_on(how, st, io):
    return probe_items.go_on(how, st, io) if how["layout"] == ITEMS else probe_many.go_on(how, st, io)


@kernel
def evaluate(how, st, io):
    """Join all that is pending, stream by stream. False when the output is full: call again."""
    n = how["streams"]
    while io["stream"] < n:
        stream = io["stream"]
        if io["probing"]:
            if not _go_on(how, st, io):
                return False
        if mem.steps(st, stream * n)["fresh"]:
            while io["next"] < st["pending_count"]:
                x = int(mem.pending(st, io["next"]))
                io["next"] += 1
                if mem.pool(st, x)["stream"] == stream:
                    _begin(how, st, io, stream, x)
                    if not _go_on(how, st, io):
                        return False
        elif io["next"] == 0:
            io["next"] = 1
            # Row numbers of a stream rise with arrival: its first pending tuple is where the new ones begin.
            for place in range(st["pending_count"]):
                x = int(mem.pending(st, place))
                if mem.pool(st, x)["stream"] == stream:
                    io["fresh_from"] = storage.card(how, st, x)["seq"]
                    probe_many.begin(how, st, io, stream, NONE)
                    if not _go_on(how, st, io):
                        return False
                    break
        io["stream"] += 1
        io["next"] = 0
    io["stream"] = 0
    st["pending_count"] = 0
    st["first_mark"] = st["tick"]
    st["evaluations"] += 1
    return True


@inlined
def _none_due(how, st, io, time):
    return True


@in_pairs(_none_due)
@kernel
def due(how, st, io, time):
    """Evaluate, and then expire, if a time belongs to another round than the last. False: the output is full."""
    if how["evaluate_every"] > 0 and st["rows"] > 0:
        if _round(time, how["evaluate_every"]) > st["last_evaluation"]:
            if not evaluate(how, st, io):
                return False
    if how["evaluate_every"] > 0:
        st["last_evaluation"] = max(st["last_evaluation"], _round(time, how["evaluate_every"]))
    if how["expire_every"] > 0 and _round(time, how["expire_every"]) > st["last_expiry"]:
        # By the clocks as they are: nothing is known of this instant yet.
        store.expire(how, st)
        st["last_expiry"] = _round(time, how["expire_every"])
    return True


@only_many
@inlined
def mark(how, st, io):
    """Note how many rows had come when this instant began."""
    if how["evaluate_every"] > 0 and io["end"] > io["first"]:
        for stream in range(how["streams"]):
            mem.set_marks(st, (st["tick"] - st["first_mark"]) * MOST + stream, io["old_seq"][stream])


@kernel
def _is_over_cap(how, st):
    """Whether something has to be given up at the end of this instant."""
    over = False
    if how["organisation"] == SCHEDULE:
        x = evict.lowest_of_all(how, st)
        over = x != NONE and priority.schedule_of(how, st, x) <= float(newest(how, st))
    for memory in range(how["memories"]):
        over = over or evict.used(how, st, memory) > st["caps"][memory]
    return over


@inlined
def _always_ready(how, st, io):
    return True


@in_pairs(_always_ready)
@kernel
def ready(how, st, io):
    """Before anything is shed, what waits is joined and what has expired is removed. False: the output is full."""
    if io["ready"] or (how["evaluate_every"] == 0 and how["expire_every"] == 0):
        return True
    if _is_over_cap(how, st):
        st["tick"] += 1  # this instant counts as over: all its rows are there
        done = st["pending_count"] == 0 or evaluate(how, st, io)
        st["tick"] -= 1
        if not done:
            return False
        store.expire(how, st)
    io["ready"] = 1
    return True
