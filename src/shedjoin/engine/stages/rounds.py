"""Lazy evaluation and lazy expiry: new tuples are joined, and expired ones removed, in rounds (golab2003)."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import ITEMS, MOST, SCHEDULE
from shedjoin.engine.forms import in_pairs, only_many
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.protocol import DONE, NEED_RESULTS
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import clocks, evict, priority, probe_items, probe_many, store, waiting
from shedjoin.engine.stages.times import newest

#: What `ready` has done of an instant: it may have stopped halfway.
EXPIRING, READY = 1, 2


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
    if cfg["counts"]:
        store.let_satisfied_go(cfg, state)
    return True


@kernel
def expire(cfg, state, buffers, time):
    """Expire, if a time belongs to another round than the last: by the clocks as they are, which do not know of it yet."""
    if cfg["expire_every"] > 0 and _round(time, cfg["expire_every"]) > state["last_expiry"]:
        need = store.expire(cfg, state, buffers)
        if need != DONE:
            return need
        state["last_expiry"] = _round(time, cfg["expire_every"])
    return DONE


@inlined
def _none_due(cfg, state, buffers, time):
    return DONE


@in_pairs(_none_due)
@kernel
def due(cfg, state, buffers, time):
    """Evaluate, and then expire, if a time belongs to another round than the last, or if late rows come: the log says what had
    expired before them. Returns DONE, or what it needs."""
    if cfg["evaluate_every"] > 0 and state["rows"] > 0:
        if _round(time, cfg["evaluate_every"]) > state["last_evaluation"]:
            if not evaluate(cfg, state, buffers):
                return NEED_RESULTS
    if cfg["evaluate_every"] > 0:
        state["last_evaluation"] = max(state["last_evaluation"], _round(time, cfg["evaluate_every"]))
    need = expire(cfg, state, buffers, time)
    if need != DONE:
        return need
    if (cfg["evaluate_every"] > 0 or cfg["expire_every"] > 0) and clocks.are_late(cfg, state, buffers):
        if state["pending_count"] > 0 and not evaluate(cfg, state, buffers):
            return NEED_RESULTS
        return store.expire(cfg, state, buffers)
    return DONE


@only_many
@inlined
def mark(cfg, state, buffers):
    """Note how many rows had come when this instant began."""
    if cfg["evaluate_every"] > 0 and buffers["end"] > buffers["first"]:
        for stream in range(cfg["streams"]):
            mem.set_marks(state, (state["tick"] - state["first_mark"]) * MOST + stream, buffers["old_seq"][stream])


@kernel
def is_over_cap(cfg, state):
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
    return DONE


@in_pairs(_always_ready)
@kernel
def ready(cfg, state, buffers):
    """Before anything is shed, what waits is joined and what has expired is removed. Returns DONE, or what it needs."""
    if buffers["ready"] == READY or (cfg["evaluate_every"] == 0 and cfg["expire_every"] == 0):
        return DONE
    if buffers["ready"] == EXPIRING or is_over_cap(cfg, state):
        state["tick"] += 1  # this instant counts as over: all its rows are there
        done = state["pending_count"] == 0 or evaluate(cfg, state, buffers)
        state["tick"] -= 1
        if not done:
            return NEED_RESULTS
        if cfg["waits"]:
            waiting.keep_instant(state)
        buffers["ready"] = EXPIRING
        need = store.expire(cfg, state, buffers)
        if need != DONE:
            return need
    buffers["ready"] = READY
    return DONE
