"""Rows that wait for a virtual CPU, or in the aux-window: they arrive, and have their turn one by one."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import IN_WINDOW, ITEMS, KEYED, LEARNED, MET, RANDOM
from shedjoin.engine.indirect import indirect
from shedjoin.engine.jit import cold_entry, kernel
from shedjoin.engine.layouts import items, layout
from shedjoin.engine.protocol import (
    BEGIN,
    CLOSE,
    COMPETE_ANEW,
    DONE,
    DRAIN,
    FLUSH,
    MEET,
    NEED_ENTRIES,
    NEED_FRESH,
    NEED_HISTOGRAM,
    NEED_INSTANTS,
    NEED_ITEMS,
    NEED_KEYS,
    NEED_LEFT_OUT,
    NEED_LET_IN,
    NEED_LEVELS,
    NEED_POOL,
    NEED_RESULTS,
    NEED_SEEN,
    NEED_SHED,
    NEED_SPEEDS,
    NEED_WAITING,
    PAUSE,
    PROBE,
    REJOIN,
    ROWS,
    SHARE,
    SPENT,
    TELL,
    TURN,
)
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import (
    admit,
    aux_window,
    competition,
    doubts,
    estimate,
    instant,
    integrated,
    priority,
    room,
    rounds,
    select,
    store,
    waiting,
)
from shedjoin.engine.structures import key_table


@kernel
def _wants_row(cfg, state, buffers):
    """What has to grow before the row at hand has its turn."""
    need = _wants_expiry(cfg, state, buffers)
    if need == DONE:
        need = room.wants(cfg, state, buffers, 1)
    if need == DONE and cfg["rear"] and buffers["out_left_out_room"] - buffers["left_out"] < cfg["streams"]:
        buffers["wanted"] = cfg["streams"]
        return NEED_LEFT_OUT
    if need == DONE and cfg["basic"] > 0 and select.lacks_room(cfg, buffers):
        return NEED_LEFT_OUT
    if need == DONE and state["fresh_count"] == state["fresh_room"]:
        return NEED_FRESH
    return need


@kernel
def _wants_expiry(cfg, state, buffers):
    """Room for all that may expire, and for the row at hand: where rows have their turn one by one, expiry is not interrupted."""
    if not cfg["counts"]:
        return DONE
    most = 2
    for stream in range(cfg["streams"]):
        most += state["resident"][stream]
    buffers["wanted"] = most
    if cfg["emit"] and buffers["out_worth_room"] - buffers["results"] < most:
        return NEED_RESULTS
    return NEED_SHED if buffers["out_shed_room"] - buffers["shed"] < most else DONE


@kernel
def _wants_arrival(cfg, state, buffers):
    """What has to grow before a row can come."""
    buffers["wanted"] = 1
    if state["free_waiting_count"] == 0:
        return NEED_WAITING
    if buffers["out_shed_room"] - buffers["shed"] < 2:  # by lot, or from a full queue
        return NEED_SHED
    if cfg["layout"] == ITEMS:  # what it has is kept in the pool
        if not room.has_places(cfg, state, 1):
            return NEED_POOL
        buffers["wanted"] = items.row_size(cfg, buffers, buffers["at"]) + 1
        return NEED_ITEMS if state["item_top"] + buffers["wanted"] > state["items_room"] else DONE
    if cfg["integrated"]:
        if state["free_count"] == 0:
            return NEED_POOL
        return room.layout_wants(cfg, state, buffers, 1)
    return DONE


@kernel
def _wants_work(cfg, state, buffers):
    """What has to grow before the first in line can be served."""
    if cfg["dual"] == 0:
        return DONE
    w = int(state["line_first"])
    buffers["wanted"] = waiting.values_of(cfg, state, w)
    if state["free_key_count"] < buffers["wanted"]:
        return NEED_KEYS
    if aux_window.lacks_room(state, int(mem.waiting(state, w)["stream"]), buffers["wanted"]):
        return NEED_LET_IN
    return NEED_LEVELS if admit.lacks_levels(cfg, state) else DONE


@kernel
def _close(cfg, state, buffers):
    """All rows of the open instant have had their turn: estimators see them, and tuples compete."""
    if buffers["settled"] == 0:
        need = _wants_expiry(cfg, state, buffers)
        if need != DONE:
            return need
        buffers["wanted"] = state["fresh_count"]
        if buffers["out_fresh_room"] < buffers["wanted"]:
            return NEED_FRESH
        if cfg["estimator"] == IN_WINDOW or cfg["estimator"] == LEARNED:
            buffers["wanted"] = admit.fresh_values(cfg, state)
            for stream in range(cfg["streams"]):
                if state["seen_room"] - state["seen_size"][stream] < buffers["wanted"]:
                    return NEED_SEEN
        admit.list_fresh(state, buffers)
        if not instant.are_counted(cfg, state, buffers):
            return NEED_HISTOGRAM
        estimate.observe(cfg, state, buffers)
        admit.begin_close(cfg, state, buffers)
        priority.settle(cfg, state, buffers, state["open_ts"])
        if cfg["counts"]:
            store.let_satisfied_go(cfg, state)
        if cfg["expire_every"] == 0 or rounds.is_over_cap(cfg, state):
            store.expire(cfg, state, buffers)
        buffers["settled"] = 1
    if competition.compete(cfg, state, buffers) == NEED_SHED:
        buffers["wanted"] = 1
        return NEED_SHED
    buffers["settled"] = 0
    instant.finish(cfg, state, buffers, state["open_ts"])
    admit.end_close(cfg, state)
    return DONE


@kernel
def _meet_row(cfg, state, buffers):
    """The row at hand is stored, and probes. Says what it needs when there is no room, or its probe has stopped halfway."""
    i = buffers["row_ts_room"]  # behind the rows of the push there is room for one
    stream, v = mem.row_stream(buffers, i), 0
    if cfg["layout"] == KEYED:
        v = key_table.find_or_add(cfg, state, mem.row_key(buffers, i * cfg["width"]), 0)
    if buffers["probing"]:
        return instant.go_on(cfg, state, buffers, i)
    buffers["wanted"] = layout.make_place(cfg, state, buffers, i, v, stream)
    if buffers["wanted"] > 0:
        return NEED_ENTRIES
    if buffers["silent"]:
        admit.note_unprobed(cfg, state, buffers, i)
    seq = mem.waiting(state, buffers["row"])["seq"]
    x = store.add(cfg, state, buffers, i, v, stream, mem.row_ts(buffers, i), seq, 0)
    doubts.come_late(cfg, state, stream, x, mem.row_ts(buffers, i))
    admit.note_fresh(cfg, state, buffers, x)
    if buffers["silent"]:
        doubts.doubt(cfg, state, stream, x)
    if cfg["estimator"] == MET:
        mem.met_on_arrival(state)[x] = 0
    return (
        DONE
        if buffers["silent"]
        else instant.probe_others(cfg, state, buffers, i, x, v, stream, mem.row_ts(buffers, i), seq)
    )


@kernel
def _serve(cfg, state, buffers):
    """The row at hand has its turn. Returns DONE, or what it needs."""
    if buffers["phase"] == TURN:
        if admit.must_close(state, buffers):
            need = _close(cfg, state, buffers)
            if need != DONE:
                return need
        need = _wants_row(cfg, state, buffers)
        if need != DONE:
            return need
        if not admit.begin_turn(cfg, state, buffers):
            admit.let_go(cfg, state, int(buffers["row"]))
            buffers["phase"] = buffers["back_to"]
            return DONE
        admit.hand_over(cfg, state, buffers, buffers["row_ts_room"])
        buffers["phase"] = PROBE
    need = _meet_row(cfg, state, buffers)
    if need == DONE:
        waiting.give_back(state, int(buffers["row"]))
        buffers["phase"] = buffers["back_to"]
    return need


@kernel
def _begin_next(cfg, state, buffers):
    """The next thing that happens is begun. Returns DONE, or what it needs."""
    if buffers["turn"] == ROWS and buffers["first"] < buffers["row_ts_room"] and buffers["at"] == buffers["end"]:
        if admit.lacks_instants(state):
            return NEED_INSTANTS
        admit.begin_instant(cfg, state, buffers)
    what = admit.following(cfg, state, buffers, buffers["turn"] == FLUSH, admit.newest_told(cfg, buffers))
    if what == admit.WORKS:
        need = _wants_work(cfg, state, buffers)
        if need != DONE:
            return need
        admit.begin_work(cfg, state, buffers)
        buffers["back_to"] = DRAIN if cfg["dual"] else SPENT
        buffers["phase"] = DRAIN if cfg["dual"] else TURN
    elif what == admit.ARRIVES:
        if admit.is_due(cfg, state, buffers):
            return NEED_SPEEDS
        need = _wants_arrival(cfg, state, buffers)
        if need != DONE:
            return need
        w = admit.come(cfg, state, buffers)
        if w != NONE and cfg["integrated"]:
            buffers["phase"] = SHARE
        elif w != NONE and admit.is_full(cfg, state, int(mem.waiting(state, w)["stream"])):
            admit.drop(cfg, state, buffers, admit.victim(cfg, state, int(mem.waiting(state, w)["stream"])))
    elif what == admit.LEAVES:
        admit.leave_aux_window(cfg, state, buffers)
        buffers["back_to"] = BEGIN
        buffers["phase"] = TURN
    else:
        buffers["phase"] = MEET  # nothing is left to do
    return DONE


@kernel
def _run_waiting(cfg, state, buffers):
    """Rows arrive, and have their turn one by one, until the push, or a flush, is at its end (DONE) or something is needed.

    Clocks that are told let rows out of the aux-window, and hold when all that came before have had their turn.
    """
    while buffers["phase"] != MEET:
        need = DONE
        if buffers["phase"] == BEGIN:
            need = _begin_next(cfg, state, buffers)
        elif buffers["phase"] == SHARE:
            need = competition.share(cfg, state, buffers)
            if need == DONE:
                buffers["phase"] = BEGIN
            buffers["wanted"] = 1
        elif buffers["phase"] == DRAIN:
            if aux_window.is_over(cfg, state, buffers["newest"]):
                admit.leave_aux_window(cfg, state, buffers)
                buffers["phase"] = TURN
            else:
                buffers["phase"] = SPENT
        elif buffers["phase"] == SPENT:
            need = _wants_expiry(cfg, state, buffers)
            if need == DONE:
                admit.end_work(cfg, state, buffers)
                admit.tell(cfg, state, buffers)
                buffers["phase"] = BEGIN
        else:
            need = _serve(cfg, state, buffers)
            if need == DONE and instant.is_part_done(cfg, state, buffers):
                return PAUSE
        if need != DONE:
            return need
    if (buffers["turn"] == FLUSH and buffers["settled"] == 0) or buffers["turn"] == TELL:
        need = _wants_expiry(cfg, state, buffers)
        if need != DONE:
            return need
        admit.tell(cfg, state, buffers)
    return _close(cfg, state, buffers) if buffers["turn"] == FLUSH and state["open"] else DONE


@kernel
def _rejoin(cfg, state, buffers):
    """Rows that wait compete with what is stored, after that was put in order anew."""
    w = NONE if cfg["organisation"] == RANDOM else int(state["line_first"])  # lots fall on a list that is there
    while w != NONE:
        if buffers["turn"] == REJOIN:
            integrated.enter_as_it_was(cfg, state, w)
        else:
            integrated.enter(cfg, state, w)
        w = int(mem.waiting(state, w)["next"])
    if buffers["turn"] == COMPETE_ANEW and integrated.keeps_priority(cfg):
        w = int(state["aux_first"])
        while w != NONE:
            integrated.prefer_anew(cfg, state, w)
            w = int(mem.waiting(state, w)["next"])
    return DONE


@indirect("take turn", "whole", cold_entry)
def take_turn(cfg, state, buffers):
    """What is run where rows wait."""
    if buffers["turn"] == CLOSE:
        return _close(cfg, state, buffers) if state["open"] else DONE
    if buffers["turn"] == REJOIN or buffers["turn"] == COMPETE_ANEW:
        return _rejoin(cfg, state, buffers)
    return _run_waiting(cfg, state, buffers)
