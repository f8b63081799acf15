"""Tuples compete: the lowest leave until every memory is within its cap."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import EVICTED, SAMPLE, SCHEDULE, SCHEDULED
from shedjoin.engine.forms import in_pairs, in_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.protocol import DONE, NEED_SHED, NEED_THRESHOLDS
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import admit, doubts, evict, integrated, log, priority, sampling, store
from shedjoin.engine.stages.times import newest


@inlined
def _shed(cfg, state, buffers, x, why):
    t, card = mem.pool(state, x), storage.card(cfg, state, x)
    stream = int(t["stream"])
    log.record(cfg, state, buffers, stream, card["seq"], card["ts"], storage.logged_key(cfg, state, x), why)
    doubts.shed(cfg, state, stream, x)
    store.discard(cfg, state, x, stream)


@kernel
def _leave_by_schedule(cfg, state, buffers):
    """Replay: tuples whose time has come leave. Returns NEED_SHED when the log is full."""
    now = float(newest(cfg, state))
    while True:
        x = evict.lowest_of_all(cfg, state)
        if x == NONE or priority.schedule_of(cfg, state, x) > now:
            return DONE
        if log.is_full(buffers):
            return NEED_SHED
        _shed(cfg, state, buffers, x, SCHEDULED)
        state["scheduled"] += 1


@inlined
def _evict(cfg, state, buffers, memory):
    x = evict.lowest(cfg, state, memory)
    if cfg["organisation"] == SAMPLE:
        sampling.note_evicted(cfg, state, x)
    _shed(cfg, state, buffers, x, EVICTED)
    state["evicted"] += 1
    evict.foresee_draws(cfg, state, memory)


@in_pairs(_evict)
@inlined
def _give_up(cfg, state, buffers, memory):
    """The lowest of a memory goes: a stored tuple, or a row of a queue that shares it."""
    if cfg["integrated"] == 0:
        _evict(cfg, state, buffers, memory)
        return
    what, item = integrated.lowest(cfg, state, memory)
    if what == integrated.STORED:
        _shed(cfg, state, buffers, item, EVICTED)
        state["evicted"] += 1
    else:
        admit.drop(cfg, state, buffers, item)


@inlined
def _fit(cfg, state, buffers):
    for memory in range(cfg["memories"]):
        if cfg["organisation"] == SAMPLE:
            sampling.divide(cfg, state, memory)
        while evict.used(cfg, state, memory) > state["caps"][memory]:
            if log.is_full(buffers):
                return NEED_SHED
            if cfg["organisation"] == SAMPLE and sampling.lacks_room(cfg, state):
                return NEED_THRESHOLDS
            _give_up(cfg, state, buffers, memory)
    return DONE


@inlined
def _none_competes(cfg, state, buffers):
    return DONE


@in_plain(_none_competes)
@kernel
def compete(cfg, state, buffers):
    """Evict until every memory is within its cap. Says what it needs when there might not be room for what it notes."""
    if cfg["organisation"] == SCHEDULE:
        if _leave_by_schedule(cfg, state, buffers) == NEED_SHED:
            return NEED_SHED
    return _fit(cfg, state, buffers)


@kernel
def share(cfg, state, buffers):
    """A row has come to a queue that shares the memory: the lowest of both go. Returns NEED_SHED when the log is full."""
    return _fit(cfg, state, buffers)
