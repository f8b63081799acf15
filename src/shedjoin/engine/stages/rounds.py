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
def _begin(cfg, state, buffers, stream, x):
    if cfg["layout"] == ITEMS:
        probe_items.begin(cfg, state, buffers, stream, x)
    else:
        probe_many.begin(cfg, state, buffers, stream, x)


@inlined
def _go_on(cfg, state, buffers):
    return probe_items.go_on(cfg, state, buffers) if cfg["layout"] == ITEMS else probe_many.go_on(cfg, state, buffers)


@kernel
def evaluate(cfg, state, buffers):
    """Join all that is pending, stream by stream. False when the output is full: call again."""
    n = cfg["streams"]
    while buffers["stream"] < n:
        stream = buffers["stream"]
        if buffers["probing"]:
            if not _go_on(cfg, state, buffers):
                return False
        if mem.steps(state, stream * n)["fresh"]:
            while buffers["next"] < state["pending_count"]:
                x = int(mem.pending(state, buffers["next"]))
                buffers["next"] += 1
                if mem.pool(state, x)["stream"] == stream:
                    _begin(cfg, state, buffers, stream, x)
                    if not _go_on(cfg, state, buffers):
                        return False
        elif buffers["next"] == 0:
            buffers["next"] = 1
            # Row numbers of a stream rise with arrival: its first pending tuple is where the new ones begin.
            for place in range(state["pending_count"]):
                x = int(mem.pending(state, place))
                if mem.pool(state, x)["stream"] == stream:
                    buffers["fresh_from"] = storage.card(cfg, state, x)["seq"]
                    probe_many.begin(cfg, state, buffers, stream, NONE)
                    if not _go_on(cfg, state, buffers):
                        return False
                    break
        buffers["stream"] += 1
        buffers["next"] = 0
    buffers["stream"] = 0
    state["pending_count"] = 0
    state["first_mark"] = state["tick"]
    state["evaluations"] += 1
    return True


@inlined
def _none_due(cfg, state, buffers, time):
    return True


@in_pairs(_none_due)
@kernel
def due(cfg, state, buffers, time):
    """Evaluate, and then expire, if a time belongs to another round than the last. False: the output is full."""
    if cfg["evaluate_every"] > 0 and state["rows"] > 0:
        if _round(time, cfg["evaluate_every"]) > state["last_evaluation"]:
            if not evaluate(cfg, state, buffers):
                return False
    if cfg["evaluate_every"] > 0:
        state["last_evaluation"] = max(state["last_evaluation"], _round(time, cfg["evaluate_every"]))
    if cfg["expire_every"] > 0 and _round(time, cfg["expire_every"]) > state["last_expiry"]:
        # By the clocks as they are: nothing is known of this instant yet.
        store.expire(cfg, state)
        state["last_expiry"] = _round(time, cfg["expire_every"])
    return True


@only_many
@inlined
def mark(cfg, state, buffers):
    """Note how many rows had come when this instant began."""
    if cfg["evaluate_every"] > 0 and buffers["end"] > buffers["first"]:
        for stream in range(cfg["streams"]):
            mem.set_marks(state, (state["tick"] - state["first_mark"]) * MOST + stream, buffers["old_seq"][stream])


@kernel
def _is_over_cap(cfg, state):
    """Whether something has to be given up at the end of this instant."""
    over = False
    if cfg["organisation"] == SCHEDULE:
        x = evict.lowest_of_all(cfg, state)
        over = x != NONE and priority.schedule_of(cfg, state, x) <= float(newest(cfg, state))
    for memory in range(cfg["memories"]):
        over = over or evict.used(cfg, state, memory) > state["caps"][memory]
    return over


@inlined
def _always_ready(cfg, state, buffers):
    return True


@in_pairs(_always_ready)
@kernel
def ready(cfg, state, buffers):
    """Before anything is shed, what waits is joined and what has expired is removed. False: the output is full."""
    if buffers["ready"] or (cfg["evaluate_every"] == 0 and cfg["expire_every"] == 0):
        return True
    if _is_over_cap(cfg, state):
        state["tick"] += 1  # this instant counts as over: all its rows are there
        done = state["pending_count"] == 0 or evaluate(cfg, state, buffers)
        state["tick"] -= 1
        if not done:
            return False
        store.expire(cfg, state)
    buffers["ready"] = 1
    return True
