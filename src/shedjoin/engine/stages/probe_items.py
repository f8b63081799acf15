"""The probe of a predicate: a stored tuple meets the other window, in the stretches that it may look at.

The search writes all partners at once; results are made of them as far as the output has room.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import CUMULATIVE, ROW
from shedjoin.engine.importance import output_importance
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import probe_many
from shedjoin.engine.stages.search import Stretch, search
from shedjoin.engine.stages.times import reach

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


@kernel
def begin(how, st, io, stream, x):
    """Find the partners of a stored tuple."""
    io["probing"] = 1
    io["origin"] = x
    io["given"] = 0
    if how["limited"]:
        probe_many.set_limits(how, st, io, stream, x)
    io["hits"] = search(how, st, x, 1 - stream, _window(how, stream, mem.card(st, x)["ts"]), 0)


@inlined
def _is_met(how, st, stream, ts, card):
    """Whether a partner was there, and in its window, when the row came."""
    other = 1 - stream
    apart = ts - card["ts"]
    if apart >= reach(how, other) or -apart >= reach(how, stream):
        return False
    return not how["limited"] or st["lo"][other] <= card["seq"] < st["hi"][other]


@kernel
def go_on(how, st, io):
    """Give results until all are given (True) or the output is full (False)."""
    x = int(io["origin"])
    stream, mine, hits = int(mem.pool(st, x)["stream"]), mem.card(st, x), mem.hit(st)
    other, ts = 1 - stream, mine["ts"]
    room, out = io["out_worth_room"], io["results"]
    cumulative, found, counted, total = how["organisation"] == CUMULATIVE, 0, 0, 0.0
    at = io["given"]
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
        if max(ts, card["ts"]) < how["warmup"]:
            continue
        worth = output_importance(how["output_importance"], mine["importance"], card["importance"])
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
