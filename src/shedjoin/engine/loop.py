"""The loop that every tuple goes through: late? expire, probe, store, estimate, evict. See docs/semantics.md.

`advance` runs until its input is used up or a buffer is full; it then says what it needs and goes on from where it was. One
source serves all joins; it is compiled in forms, see forms.py.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from shedjoin.engine import mem
from shedjoin.engine.codes import MOST, PAIR_SETTINGS, PLAIN_SETTINGS
from shedjoin.engine.forms import is_plain
from shedjoin.engine.handle import Handle
from shedjoin.engine.jit import entry, hot_entry, inlined, kernel
from shedjoin.engine.layouts import layout
from shedjoin.engine.protocol import (
    BEGIN,
    COMPETE,
    DONE,
    END,
    EXPIRE,
    EXPIRE_AGAIN,
    FLUSH,
    FRACTION,
    MEET,
    NEED_FORGET,
    NEED_HISTOGRAM,
    NEED_RESULTS,
    ORDER,
    PAUSE,
    ROWS,
    SHRINK,
    TELL,
)
from shedjoin.engine.records import MANY_STATE, NEVER, PAIR_STATE, PLAIN_STATE
from shedjoin.engine.stages import (
    adapt,
    competition,
    estimate,
    evict,
    instant,
    priority,
    remember,
    room,
    rounds,
    serve,
    store,
)
from shedjoin.engine.stages.times import newest
from shedjoin.engine.structures import key_table, kinetic_tournament


@inlined
def _run(cfg, state, buffers):
    """Instants until the rows are used up (DONE) or something has to be emptied or to grow."""
    n = buffers["row_ts_room"]
    while buffers["first"] < n or buffers["turn"] != ROWS:
        ts = mem.row_ts(buffers, buffers["first"]) if buffers["turn"] == ROWS else NEVER
        if buffers["phase"] == BEGIN:
            if buffers["turn"] == ROWS:
                instant.find(cfg, buffers, state)
                need = rounds.due(cfg, state, buffers, max(newest(cfg, state), ts))
                if need != DONE:
                    return need
                need = room.wants(cfg, state, buffers, buffers["end"] - buffers["first"])
                if need != DONE:
                    return need
            instant.begin(cfg, state, buffers, ts)
            buffers["phase"] = EXPIRE
        if buffers["phase"] == EXPIRE:
            need = instant.expire(cfg, state, buffers, ts)
            if need != DONE:
                return need
            buffers["at"] = buffers["first"]
            buffers["phase"] = MEET
        if buffers["phase"] == MEET:
            while buffers["at"] < buffers["end"]:
                need = instant.meet(cfg, state, buffers, buffers["at"])
                if need != DONE:
                    return need
                buffers["at"] += 1
                if instant.is_part_done(cfg, state, buffers):
                    return PAUSE
            if not instant.are_counted(cfg, state, buffers):
                return NEED_HISTOGRAM
            evict.foresee(cfg, state, 2)
            estimate.observe(cfg, state, buffers)
            priority.settle(cfg, state, buffers, ts)
            buffers["phase"] = EXPIRE_AGAIN
        if buffers["phase"] == EXPIRE_AGAIN:
            instant.let_satisfied_go(cfg, state)
            if buffers["over"] > 0 and cfg["expire_every"] == 0:
                need = store.expire(cfg, state, buffers)
                if need != DONE:
                    return need
            buffers["phase"] = COMPETE
        if buffers["turn"] == TELL:
            return NEED_FORGET if remember.is_due(cfg, state) else DONE
        need = rounds.ready(cfg, state, buffers)
        if need != DONE:
            return need
        need = competition.compete(cfg, state, buffers)
        if need != DONE:
            buffers["wanted"] = 1
            return need
        if remember.is_due(cfg, state):
            return NEED_FORGET
        if buffers["turn"] == SHRINK:
            return DONE
        evict.foresee(cfg, state, 0)
        instant.finish(cfg, state, buffers, ts)
        buffers["ready"] = 0
        buffers["first"] = buffers["end"]
        buffers["phase"] = BEGIN
    return DONE


@kernel
def _put_in_order(cfg, state, buffers):
    layout.renew_all(cfg, state)
    priority.settle(cfg, state, buffers, NEVER)
    return DONE


@hot_entry
def advance_plain(settings, state, rows):
    """The form PLAIN: takes PLAIN_SETTINGS and PLAIN_STATE."""
    return _run(settings[0], state[0], rows[0])


@hot_entry
def advance_pair(settings, state, rows):
    """The form PAIR: takes PAIR_SETTINGS and PAIR_STATE."""
    if rows[0]["turn"] == ORDER:
        return _put_in_order(settings[0], state[0], rows[0])
    if rows[0]["turn"] == END:
        return store.expire(settings[0], state[0], rows[0])
    return _run(settings[0], state[0], rows[0])


@entry
def advance_many(settings, states, rows):
    """The form MANY: takes SETTINGS_RECORD and MANY_STATE."""
    cfg, state, buffers = settings[0], states[0], rows[0]
    if buffers["turn"] == ORDER:
        return _put_in_order(cfg, state, buffers)
    if buffers["turn"] == FRACTION:
        adapt.set_fractions(cfg, state)
        return DONE
    if buffers["turn"] == END:
        return store.expire(cfg, state, buffers)
    if cfg["waits"] and buffers["turn"] != SHRINK:
        return serve.take_turn(cfg, state, buffers)
    if buffers["turn"] == FLUSH:
        return DONE if cfg["evaluate_every"] == 0 or rounds.evaluate(cfg, state, buffers) else NEED_RESULTS
    if buffers["turn"] == TELL and buffers["phase"] == BEGIN:
        time = newest(cfg, state)
        for stream in range(cfg["streams"]):
            time = max(time, buffers["told"][stream])
        need = rounds.due(cfg, state, buffers, time)
        if need != DONE:
            return need
    return _run(cfg, state, buffers)


@entry
def forget_pair(settings, state):
    """Let go of values of which nothing is stored or remembered, in the forms of two keyed streams."""
    estimate.sweep(settings[0], state[0])
    key_table.forget_idle(settings[0], state[0])


@entry
def forget_many(settings, state):
    estimate.sweep(settings[0], state[0])
    key_table.forget_idle(settings[0], state[0])


@entry
def _replay_pair(state):
    for stream in range(2):
        kinetic_tournament.replay_all(state[0], stream)


@entry
def _replay_many(state):
    for stream in range(MOST):
        if state[0]["heap_size"][stream] > 0:
            kinetic_tournament.replay_all(state[0], stream)


def replay(state: Handle) -> None:
    """Play LIFE's tournaments again, from the leaves up."""
    (_replay_pair if state.record.dtype == PAIR_STATE else _replay_many)(state.for_kernel())


def advance(cfg: NDArray[Any], state: Handle, buffers: Handle) -> int:
    """Run instants until the rows are used up (DONE) or something has to be emptied or to grow, in the form that fits."""
    rows = buffers.for_kernel()
    if state.record.dtype == MANY_STATE:
        return int(advance_many(cfg, state.for_kernel(), rows))
    if not is_plain(cfg) or state.arrays["stray_place"].size > 1:  # a row came out of order
        return int(advance_pair(cfg.view(PAIR_SETTINGS), state.for_kernel(), rows))
    if buffers["turn"] in (SHRINK, ORDER, END):  # an exact join keeps all, and gives nothing but pairs
        return DONE
    return int(advance_plain(cfg.view(PLAIN_SETTINGS), state.seen_as(PLAIN_STATE).for_kernel(), rows))


def forget(cfg: NDArray[Any], state: Handle) -> None:
    """Let go of values of which nothing is stored or remembered."""
    if state.record.dtype == PAIR_STATE:
        forget_pair(cfg.view(PAIR_SETTINGS), state.for_kernel())
    else:
        forget_many(cfg, state.for_kernel())
