"""The probe of two keyed streams: a new row meets the stored tuples of its key on the other stream."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import CUMULATIVE
from shedjoin.engine.importance import output_importance
from shedjoin.engine.jit import inlined
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import priority
from shedjoin.engine.stages.times import reach


@inlined
def probe(how, st, io, i, stream, ts, seq, v):
    """Write the results of a row; returns how many partners it found."""
    other = 1 - stream
    importance = mem.row_importance(io, i)
    back, ahead = reach(how, other), reach(how, stream)
    found = 0
    counted = 0
    total = 0.0
    at, room = io["results"], io["out_worth_room"]
    cumulative = how["organisation"] == CUMULATIVE
    g = 2 * v + other
    b = mem.buckets(st, g)
    base, first, last_place = int(b["base"]), int(b["first"]), int(b["room"]) - 1
    st["compared"] += b["count"]
    for k in range(b["span"]):
        t = mem.entries(st, base + ((first + k) & last_place))
        x = int(t["item"])
        if x == NONE:
            continue
        apart = ts - t["ts"]
        if -apart >= ahead + how["lateness"]:
            break  # later arrivals are at most the lateness older than this one: all too new (one stream runs ahead)
        if apart < back and -apart < ahead:
            found += 1
            worth = output_importance(how["output_importance"], importance, t["importance"])
            if max(ts, t["ts"]) >= how["warmup"]:
                counted += 1
                total += worth
                if how["emit"]:
                    mem.set_out_rows(io, stream * room + at, seq)
                    mem.set_out_rows(io, other * room + at, t["seq"])
                    mem.set_out_worth(io, at, worth)
                    at += 1
            if cumulative:
                if t["seq"] >= io["old_seq"][other]:
                    mem.pool(st, x)["met"] = 1
                else:
                    mem.fetch_prio(st, x)  # it will gain
    if found > 0:
        # Rows of one instant, stream and key meet the same older tuples: those gain once.
        if cumulative and mem.probed(st, g) != st["tick"]:
            mem.set_probed(st, g, st["tick"])
            priority.touch(st, g)
        io["results"] = at
        st["results"] += found
        st["matches"] += counted
        st["importance"] += total
    return found
