"""The probe of two keyed streams: a new row meets the stored tuples of its key on the other stream."""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import PAIRS, SAMPLE
from shedjoin.engine.forms import in_plain, unless_plain
from shedjoin.engine.importance import output_importance
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import priority, sampling, unmatched
from shedjoin.engine.stages.compare import ones
from shedjoin.engine.stages.probe_many import holds
from shedjoin.engine.stages.times import lag, reach
from shedjoin.engine.where import FAILED, PASSED

#: How many tuples are tested before pairs are looked at: a bit each.
BLOCK = 64


@inlined
def _attribute(cfg, state, buffers, i, level, attr, x):
    """An attribute of the row, which is not stored yet, or of a tuple."""
    if level == 0:
        return mem.row_key(buffers, i * cfg["width"] + attr)
    return mem.attr(state, x * cfg["width"] + attr)


@kernel
def _decided(cfg, state, buffers, i, at, x):
    """Where a row and a stored tuple of its key arrive from a test on. Without a tuple (`NONE`): at the first test of one."""
    while at >= 0:
        check = mem.checks(state, at)
        if x == NONE and check["other_level"] > 0:
            break
        mine = _attribute(cfg, state, buffers, i, check["level"], check["attr"], x)
        other = _attribute(cfg, state, buffers, i, check["other_level"], check["other_attr"], x)
        at = check["yes"] if holds(check["op"], mine, other, check["band"]) else check["no"]
    return at


@unless_plain
@inlined
def _note_weight(cfg, state, buffers, at, x, stream):
    mem.set_out_weight(buffers, at, sampling.inverse(cfg, state, x, stream))
    mem.set_out_newest(buffers, at, 1 - stream)


@inlined
def _asked(cfg, stream):
    """What is done with a result, read once a row: counted, given, followed by the policy, weighed."""
    counts = cfg["counts"] and mem.counted(cfg, 1 - stream)
    return counts, cfg["gives"] == PAIRS, cfg["follows"], cfg["organisation"] == SAMPLE


@inlined
def _meet(cfg, state, buffers, asked, t, stream, ts, seq, importance, at):
    """A row and a stored tuple are a result, which has its place at `at`. Says whether it is given, and its worth."""
    counts, pairs, follows, sampled = asked
    other = 1 - stream
    x = int(t["item"])
    given, worth = 0, 0.0
    if counts:
        unmatched.meet(cfg, state, buffers, other, t)
    if pairs and max(ts, t["ts"]) >= cfg["warmup"]:
        given, worth = 1, output_importance(cfg["output_importance"], importance, t["importance"])
        if cfg["emit"]:
            room = buffers["out_worth_room"]
            mem.set_out_rows(buffers, stream * room + at, seq)
            mem.set_out_rows(buffers, other * room + at, t["seq"])
            mem.set_out_worth(buffers, at, worth)
            if sampled:
                _note_weight(cfg, state, buffers, at, x, other)
    if follows:
        if t["seq"] >= buffers["old_seq"][other] or cfg["where"]:
            mem.pool(state, x)["met"] = 1
        else:
            mem.fetch_prio(state, x)  # it will gain
    return given, worth


@inlined
def _add_up(cfg, state, buffers, g, found, counted, total):
    """The results of a row, added to those of the join."""
    if found > 0:
        # Rows of one instant, stream and key meet the same older tuples: those gain once.
        if cfg["follows"] and mem.probed(state, g) != state["tick"]:
            mem.set_probed(state, g, state["tick"])
            priority.touch(state, g)
        if cfg["gives"] == PAIRS:
            state["results"] += found
            if cfg["emit"]:
                buffers["results"] += counted
        state["matches"] += counted
        state["importance"] += total
    return found


@inlined
def _not_tested(cfg, state, buffers, i, stream, ts, seq, v):
    return 0


@in_plain(_not_tested)
@kernel
def _probe_tested(cfg, state, buffers, i, stream, ts, seq, v):
    """The same with a condition, whose first test is made of a block of tuples before any pair is looked at.

    No processor guesses which pairs will pass, and a branch for each that is guessed wrong takes longer than the test.
    """
    b = mem.buckets(state, 2 * v + 1 - stream)
    base, first, last_place = int(b["base"]), int(b["first"]), int(b["room"]) - 1
    state["compared"] += b["count"]
    begin = _decided(cfg, state, buffers, i, mem.steps(state, 2 * stream + 1)["first_check"], NONE)
    if begin == FAILED:
        return 0
    op, attr, band, yes, no, mine = 0, NONE, 0, begin, begin, np.int64(0)
    if begin >= 0 and mem.checks(state, begin)["level"] == 0:
        check = mem.checks(state, begin)
        op, attr, band, yes, no = check["op"], check["other_attr"], check["band"], check["yes"], check["no"]
        mine = mem.row_key(buffers, i * cfg["width"] + check["attr"])
    back, ahead = reach(cfg, 1 - stream), reach(cfg, stream)
    too_new = ahead + lag(state)
    importance, asked = mem.row_importance(buffers, i), _asked(cfg, stream)
    found, counted, total, at = 0, 0, 0.0, buffers["results"]
    for start in range(0, b["span"], BLOCK):
        there, held = np.uint64(0), np.uint64(0)
        for k in range(min(BLOCK, b["span"] - start)):
            t = mem.entries(state, base + ((first + start + k) & last_place))
            if t["item"] == NONE:
                continue
            apart = ts - t["ts"]
            if -apart >= too_new:
                break  # later arrivals are older by the lag at most: all too new (one stream runs ahead)
            there |= np.uint64((apart < back) & (-apart < ahead)) << np.uint64(k)
            if attr != NONE:
                other = mem.attr(state, int(t["item"]) * cfg["width"] + attr)
                held |= np.uint64(holds(op, mine, other, band)) << np.uint64(k)
        if no == FAILED:
            there &= held
        while there != 0:
            k = int(ones((there - np.uint64(1)) & ~there))  # the lowest bit that is set
            there &= there - np.uint64(1)
            t = mem.entries(state, base + ((first + start + k) & last_place))
            goes_to = yes if (held >> np.uint64(k)) & np.uint64(1) != 0 else no
            if goes_to >= 0:
                goes_to = _decided(cfg, state, buffers, i, goes_to, int(t["item"]))
            if goes_to == PASSED:
                found += 1
                given, worth = _meet(cfg, state, buffers, asked, t, stream, ts, seq, importance, at + counted)
                counted += given
                total += worth
    return _add_up(cfg, state, buffers, 2 * v + 1 - stream, found, counted, total)


@inlined
def probe(cfg, state, buffers, i, stream, ts, seq, v):
    """Write the results of a row; returns how many partners it found."""
    if cfg["where"]:
        return _probe_tested(cfg, state, buffers, i, stream, ts, seq, v)
    b = mem.buckets(state, 2 * v + 1 - stream)
    base, first, last_place = int(b["base"]), int(b["first"]), int(b["room"]) - 1
    state["compared"] += b["count"]
    back, ahead = reach(cfg, 1 - stream), reach(cfg, stream)
    too_new = ahead + lag(state)
    importance, asked = mem.row_importance(buffers, i), _asked(cfg, stream)
    found, counted, total, at = 0, 0, 0.0, buffers["results"]
    for k in range(b["span"]):
        t = mem.entries(state, base + ((first + k) & last_place))
        if t["item"] == NONE:
            continue
        apart = ts - t["ts"]
        if -apart >= too_new:
            break  # later arrivals are older by the lag at most: all too new (one stream runs ahead)
        if apart < back and -apart < ahead:
            found += 1
            given, worth = _meet(cfg, state, buffers, asked, t, stream, ts, seq, importance, at + counted)
            counted += given
            total += worth
    return _add_up(cfg, state, buffers, 2 * v + 1 - stream, found, counted, total)
