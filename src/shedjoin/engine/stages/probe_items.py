"""The probe of a predicate: a stored tuple meets the other window, in the stretches that it may look at.

The search writes all partners at once; results are made of them as far as the output has room.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import PAIRS, ROW, SAMPLE
from shedjoin.engine.importance import output_importance
from shedjoin.engine.indirect import indirect
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import probe_many, sampling, select, unmatched
from shedjoin.engine.stages.search import FAR, Stretch, needs_all, search, tuples_between
from shedjoin.engine.stages.times import number_of, reach
from shedjoin.engine.structures import time_lists

#: Before all times.
FIRST = -FAR


@inlined
def _until(cfg, state, stream, ts):
    """Where the row's own window ends, if tuples of a window of rows may lie behind that."""
    other, end = 1 - stream, min(ts + reach(cfg, stream), FAR)
    return end if mem.window_kind(cfg, other) == ROW and state["clock"][other] >= end else FAR


@inlined
def _window(cfg, state, stream, ts):
    """Where the partners of a new tuple lie in the other window; in a window of rows all that is stored may be met."""
    other = 1 - stream
    if mem.window_kind(cfg, other) == ROW:
        return Stretch(FIRST, 0, FAR, 0, _until(cfg, state, stream, ts))
    return Stretch(max(ts - reach(cfg, other) + 1, FIRST), 0, min(ts + reach(cfg, stream), FAR), 0, FAR)


@indirect("begin item probe")
def begin(cfg, state, buffers, stream, x):
    """Find the partners of a stored tuple."""
    buffers["probing"] = 1
    buffers["origin"] = x
    buffers["given"] = 0
    if cfg["limited"]:
        probe_many.set_limits(cfg, state, buffers, stream, x)
    other, ts = 1 - stream, mem.card(state, x)["ts"]
    if cfg["basic"] == 0 or state["stretches"][other] == select.WHOLE:
        buffers["hits"] = search(cfg, state, x, other, _window(cfg, state, stream, ts), 0)
    else:
        buffers["hits"] = _search_stretches(cfg, state, x, other, _until(cfg, state, stream, ts))
    state["probed"] += 1


@kernel
def _search_stretches(cfg, state, x, other, until):
    """The partners in what was chosen of a window. It costs what one search of all of it would."""
    looked_up, compared = state["looked_up"], state["compared"]
    first, hits = other * (cfg["ages"] + 1), 0
    for number in range(state["stretches"][other]):
        one = mem.stretch(state, first + number)
        state["looked_up"] = looked_up
        stretch = Stretch(one["lo_ts"], one["lo_seq"], one["hi_ts"], one["hi_seq"], until)
        hits = search(cfg, state, x, other, stretch, hits)
    if state["stretches"][other] == 0:
        return search(cfg, state, x, other, Stretch(FIRST, 0, FIRST, 0, FAR), 0)
    if cfg["lists"] and needs_all(cfg, state, x, other):
        state["compared"] = compared + _shortest(cfg, state, x, other, until)
    return hits


@kernel
def _shortest(cfg, state, x, other, until):
    """Of the lists of a row's items, the fewest tuples in what was chosen of the window."""
    fewest, at, first = FAR, mem.item_at(state)[x], other * (cfg["ages"] + 1)
    for k in range(at, at + mem.item_count(state)[x]):
        which, tuples = time_lists.find(state, other, mem.items(state)[k]), 0
        if which != time_lists.NO_LIST:
            for number in range(state["stretches"][other]):
                one = mem.stretch(state, first + number)
                a = time_lists.lower(state, which, one["lo_ts"], one["lo_seq"])
                b = time_lists.lower(state, which, one["hi_ts"], one["hi_seq"])
                tuples += tuples_between(cfg, state, other, which, a, b, until)
        fewest = min(fewest, tuples)
    return fewest


@inlined
def _is_met(cfg, state, stream, ts, card):
    """Whether a partner was there, and in its window, when the row came."""
    other = 1 - stream
    apart = ts - card["ts"]
    if apart >= reach(cfg, other) or -apart >= reach(cfg, stream):
        return False
    return not cfg["limited"] or probe_many.is_met(cfg, state, other, int(card["item"]), card["seq"])


@inlined
def _passes(cfg, state, stream, x, y):
    """Whether a row and its partner fulfil the condition."""
    if cfg["where"] == 0:
        return True
    mem.levels(state, 0)["item"] = x
    return probe_many.checked(cfg, state, mem.steps(state, 2 * stream + 1)["first_check"], 1, y)


@indirect("give item results", "truth")
def go_on(cfg, state, buffers):
    """Give results until all are given (True) or the output is full (False)."""
    x = int(buffers["origin"])
    stream, mine, hits = int(mem.pool(state, x)["stream"]), mem.card(state, x), mem.hit(state)
    other, ts = 1 - stream, mine["ts"]
    room, out = buffers["out_worth_room"], buffers["results"]
    follows, found, counted, total = cfg["follows"], 0, 0, 0.0
    pairs = cfg["gives"] == PAIRS
    at, learns = buffers["given"], cfg["basic"] > 0 and buffers["sampling"] == 1
    while at < buffers["hits"] and not (cfg["emit"] and out == room):
        y = np.int64(hits[at])
        at += 1
        card = mem.card(state, y)
        if not _is_met(cfg, state, stream, ts, card) or not _passes(cfg, state, stream, x, y):
            continue
        found += 1
        if cfg["counts"]:
            buffers["results"] = out
            unmatched.meet(cfg, state, buffers, other, card)
            unmatched.meet(cfg, state, buffers, stream, mine)
            out = buffers["results"]
        if follows:
            probe_many.touch(state, y)
            if buffers["guest"] == NONE:
                probe_many.touch(state, x)
        worth = output_importance(cfg["output_importance"], mine["importance"], card["importance"])
        if learns:
            state["gained"] += worth
            select.meet(cfg, state, other, ts, card["ts"], number_of(cfg, state, y, card["seq"]), 1)
        if not pairs or max(ts, card["ts"]) < cfg["warmup"]:
            continue
        counted += 1
        total += worth
        if cfg["emit"]:
            mem.set_out_rows(buffers, stream * room + out, mine["seq"])
            mem.set_out_rows(buffers, other * room + out, card["seq"])
            mem.set_out_worth(buffers, out, worth)
            if cfg["organisation"] == SAMPLE:
                mem.set_out_weight(buffers, out, sampling.inverse(cfg, state, y, other))
                mem.set_out_newest(buffers, out, stream)
            out += 1
    buffers["given"] = at
    buffers["results"] = out
    state["results"] += found if pairs else 0
    state["matches"] += counted
    state["importance"] += total
    if at < buffers["hits"]:
        return False
    buffers["probing"] = 0
    return True
