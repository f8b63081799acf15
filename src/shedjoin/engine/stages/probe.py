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
def probe(cfg, state, buffers, i, stream, ts, seq, v):
    """Write the results of a row; returns how many partners it found."""
    other = 1 - stream
    importance = mem.row_importance(buffers, i)
    back, ahead = reach(cfg, other), reach(cfg, stream)
    found = 0
    counted = 0
    total = 0.0
    at, room = buffers["results"], buffers["out_worth_room"]
    cumulative = cfg["organisation"] == CUMULATIVE
    g = 2 * v + other
    b = mem.buckets(state, g)
    base, first, last_place = int(b["base"]), int(b["first"]), int(b["room"]) - 1
    state["compared"] += b["count"]
    for k in range(b["span"]):
        t = mem.entries(state, base + ((first + k) & last_place))
        x = int(t["item"])
        if x == NONE:
            continue
        apart = ts - t["ts"]
        if -apart >= ahead + cfg["lateness"]:
            break  # later arrivals are at most the lateness older than this one: all too new (one stream runs ahead)
        if apart < back and -apart < ahead:
            found += 1
            worth = output_importance(cfg["output_importance"], importance, t["importance"])
            if max(ts, t["ts"]) >= cfg["warmup"]:
                counted += 1
                total += worth
                if cfg["emit"]:
                    mem.set_out_rows(buffers, stream * room + at, seq)
                    mem.set_out_rows(buffers, other * room + at, t["seq"])
                    mem.set_out_worth(buffers, at, worth)
                    at += 1
            if cumulative:
                if t["seq"] >= buffers["old_seq"][other]:
                    mem.pool(state, x)["met"] = 1
                else:
                    mem.fetch_prio(state, x)  # it will gain
    if found > 0:
        # Rows of one instant, stream and key meet the same older tuples: those gain once.
        if cumulative and mem.probed(state, g) != state["tick"]:
            mem.set_probed(state, g, state["tick"])
            priority.touch(state, g)
        buffers["results"] = at
        state["results"] += found
        state["matches"] += counted
        state["importance"] += total
    return found
