"""The probe of two keyed streams: a new row meets the stored tuples of its key on the other stream."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import PAIRS, SAMPLE
from shedjoin.engine.forms import in_plain, unless_plain
from shedjoin.engine.importance import output_importance
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import priority, sampling, unmatched
from shedjoin.engine.stages.probe_many import holds
from shedjoin.engine.stages.times import lag, reach
from shedjoin.engine.where import PASSED


@inlined
def _attribute(cfg, state, buffers, i, level, attr, x):
    """An attribute of the row, which is not stored yet, or of a tuple."""
    if level == 0:
        return mem.row_key(buffers, i * cfg["width"] + attr)
    return mem.attr(state, x * cfg["width"] + attr)


@inlined
def _all_pass(cfg, state, buffers, i, stream, x):
    return True


@in_plain(_all_pass)
@kernel
def _passes(cfg, state, buffers, i, stream, x):
    """Whether a row and a stored tuple of its key fulfil the condition."""
    at = mem.steps(state, 2 * stream + 1)["first_check"]
    while at >= 0:
        check = mem.checks(state, at)
        mine = _attribute(cfg, state, buffers, i, check["level"], check["attr"], x)
        other = _attribute(cfg, state, buffers, i, check["other_level"], check["other_attr"], x)
        at = check["yes"] if holds(check["op"], mine, other, check["band"]) else check["no"]
    return at == PASSED


@unless_plain
@inlined
def _note_weight(cfg, state, buffers, at, x, stream):
    mem.set_out_weight(buffers, at, sampling.inverse(cfg, state, x, stream))
    mem.set_out_newest(buffers, at, 1 - stream)


@inlined
def probe(cfg, state, buffers, i, stream, ts, seq, v):
    """Write the results of a row; returns how many partners it found."""
    other = 1 - stream
    importance = mem.row_importance(buffers, i)
    back, ahead = reach(cfg, other), reach(cfg, stream)
    too_new = ahead + lag(state)
    found = 0
    counted = 0
    total = 0.0
    at, room = buffers["results"], buffers["out_worth_room"]
    follows, sampled = cfg["follows"], cfg["organisation"] == SAMPLE
    pairs, counts = cfg["gives"] == PAIRS, cfg["counts"] and mem.counted(cfg, other)
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
        if -apart >= too_new:
            break  # later arrivals are older by the lag at most: all too new (one stream runs ahead)
        if apart < back and -apart < ahead and (cfg["where"] == 0 or _passes(cfg, state, buffers, i, stream, x)):
            found += 1
            if counts:
                unmatched.meet(cfg, state, buffers, other, t)
            worth = output_importance(cfg["output_importance"], importance, t["importance"])
            if pairs and max(ts, t["ts"]) >= cfg["warmup"]:
                counted += 1
                total += worth
                if cfg["emit"]:
                    mem.set_out_rows(buffers, stream * room + at, seq)
                    mem.set_out_rows(buffers, other * room + at, t["seq"])
                    mem.set_out_worth(buffers, at, worth)
                    if sampled:
                        _note_weight(cfg, state, buffers, at, x, other)
                    at += 1
            if follows:
                if t["seq"] >= buffers["old_seq"][other] or cfg["where"]:
                    mem.pool(state, x)["met"] = 1
                else:
                    mem.fetch_prio(state, x)  # it will gain
    if found > 0:
        # Rows of one instant, stream and key meet the same older tuples: those gain once.
        if follows and mem.probed(state, g) != state["tick"]:
            mem.set_probed(state, g, state["tick"])
            priority.touch(state, g)
        if pairs:
            buffers["results"] = at
            state["results"] += found
        state["matches"] += counted
        state["importance"] += total
    return found
