"""The probe of a predicate: a stored tuple meets the other window, in the stretches that it may look at.

The search writes all partners at once; results are made of them as far as the output has room.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import CUMULATIVE, ROW
from shedjoin.engine.importance import output_importance
from shedjoin.engine.indirect import indirect
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import probe_many, select
from shedjoin.engine.stages.search import Stretch, needs_all, search
from shedjoin.engine.stages.times import reach
from shedjoin.engine.structures import time_lists

#: Before and after all times.
FIRST, LAST = -(2**62), 2**62


@inlined
def _window(how, stream, ts):
    """Where the partners of a new tuple lie in the other window; in a window of rows all that is stored may be met."""
    other = 1 - stream
    if mem.window_kind(how, other) == ROW:
        return Stretch(FIRST, 0, LAST, 0)
    back, ahead = reach(how, other), reach(how, stream)
    return Stretch(max(ts - back + 1, FIRST), 0, min(ts + ahead, LAST), 0)


@indirect("begin item probe")
def begin(how, st, io, stream, x):
    """Find the partners of a stored tuple."""
    io["probing"] = 1
    io["origin"] = x
    io["given"] = 0
    if how["limited"]:
        probe_many.set_limits(how, st, io, stream, x)
    other, window = 1 - stream, _window(how, stream, mem.card(st, x)["ts"])
    if how["basic"] == 0 or st["stretches"][other] == select.WHOLE:
        io["hits"] = search(how, st, x, other, window, 0)
    else:
        io["hits"] = _search_stretches(how, st, x, other)
    st["probed"] += 1


@kernel
def _search_stretches(how, st, x, other):
    """The partners in what was chosen of a window. It costs what one search of all of it would."""
    looked_up, compared = st["looked_up"], st["compared"]
    first, hits = other * (how["ages"] + 1), 0
    for number in range(st["stretches"][other]):
        one = mem.stretch(st, first + number)
        st["looked_up"] = looked_up
        hits = search(how, st, x, other, Stretch(one["lo_ts"], one["lo_seq"], one["hi_ts"], one["hi_seq"]), hits)
    if st["stretches"][other] == 0:
        return search(how, st, x, other, Stretch(FIRST, 0, FIRST, 0), 0)
    if how["lists"] and needs_all(how, st, x, other):
        st["compared"] = compared + _shortest(how, st, x, other)
    return hits


@kernel
def _shortest(how, st, x, other):
    """Of the lists of a row's items, the fewest tuples in what was chosen of the window."""
    fewest, at, first = LAST, mem.item_at(st)[x], other * (how["ages"] + 1)
    for k in range(at, at + mem.item_count(st)[x]):
        which, tuples = time_lists.find(st, other, mem.items(st)[k]), 0
        if which != time_lists.NO_LIST:
            for number in range(st["stretches"][other]):
                one = mem.stretch(st, first + number)
                a = time_lists.lower(st, which, one["lo_ts"], one["lo_seq"])
                b = time_lists.lower(st, which, one["hi_ts"], one["hi_seq"])
                tuples += time_lists.live_between(st, which, a, b)
        fewest = min(fewest, tuples)
    return fewest


@inlined
def _is_met(how, st, stream, ts, card):
    """Whether a partner was there, and in its window, when the row came."""
    other = 1 - stream
    apart = ts - card["ts"]
    if apart >= reach(how, other) or -apart >= reach(how, stream):
        return False
    return not how["limited"] or st["lo"][other] <= card["seq"] < st["hi"][other]


@indirect("give item results", "truth")
def go_on(how, st, io):
    """Give results until all are given (True) or the output is full (False)."""
    x = int(io["origin"])
    stream, mine, hits = int(mem.pool(st, x)["stream"]), mem.card(st, x), mem.hit(st)
    other, ts = 1 - stream, mine["ts"]
    room, out = io["out_worth_room"], io["results"]
    cumulative, found, counted, total = how["organisation"] == CUMULATIVE, 0, 0, 0.0
    at, learns = io["given"], how["basic"] > 0 and io["sampling"] == 1
    while at < io["hits"] and not (how["emit"] and out == room):
        y = np.int64(hits[at])
        at += 1
        card = mem.card(st, y)
        if not _is_met(how, st, stream, ts, card):
            continue
        found += 1
        if cumulative:
            probe_many.touch(st, y)
            if io["guest"] == NONE:
                probe_many.touch(st, x)
        worth = output_importance(how["output_importance"], mine["importance"], card["importance"])
        if learns:
            st["gained"] += worth
            select.meet(how, st, other, ts, card["ts"], card["seq"], 1)
        if max(ts, card["ts"]) < how["warmup"]:
            continue
        counted += 1
        total += worth
        if how["emit"]:
            mem.set_out_rows(io, stream * room + out, mine["seq"])
            mem.set_out_rows(io, other * room + out, card["seq"])
            mem.set_out_worth(io, out, worth)
            out += 1
    io["given"] = at
    io["results"] = out
    st["results"] += found
    st["matches"] += counted
    st["importance"] += total
    if at < io["hits"]:
        return False
    io["probing"] = 0
    return True
