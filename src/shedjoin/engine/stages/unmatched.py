"""Partners: how many a tuple has found, when it leaves because of that, and whether a tuple without one has none.

A tuple that expires without a partner is *certain* to have none if it was compared with everything that it might meet, and no
row that it might have met was shed. Filters remember shed rows, see structures/shed_filter.py. All else is *unknown*.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import FIRSTS, ROW, UNKNOWN
from shedjoin.engine.forms import in_plain, only_many, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.protocol import DONE, NEED_RESULTS, NEED_SHED
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import doubts, log, shed_values

# ---------------------------------------------------------------------------------------------------- rows given alone


@inlined
def lacks_room(cfg, buffers):
    """Whether there is no room for a row that is given alone."""
    if cfg["counts"] and cfg["emit"] and buffers["results"] == buffers["out_worth_room"]:
        buffers["wanted"] = 1
        return True
    return False


@kernel
def give_alone(cfg, state, buffers, stream, seq, ts, importance):
    """A result of one row: the others have no number. There is room for it."""
    state["results"] += 1
    if ts < cfg["warmup"]:
        return
    state["matches"] += 1
    state["importance"] += importance
    if cfg["emit"]:
        at, room = buffers["results"], buffers["out_worth_room"]
        for other in range(cfg["streams"]):
            mem.set_out_rows(buffers, other * room + at, seq if other == stream else NONE)
        mem.set_out_worth(buffers, at, importance)
        buffers["results"] = at + 1


# ------------------------------------------------------------------------------------------------------------ partners


@inlined
def _leaves_with(cfg, state, stream, x):
    """A tuple has found as many partners as it may: it leaves when the instant closes."""
    mem.leaving(state)[state["leaving_count"]] = x
    state["leaving_count"] += 1


@unless_plain
@kernel
def meet(cfg, state, buffers, stream, card):
    """A tuple has found another partner. Where only first partners count, its row may be a result: there is room for it."""
    if not mem.counted(cfg, stream):
        return
    card["partners"] += 1
    found = doubts.number_of(np.int64(card["partners"]))
    if cfg["gives"] == FIRSTS and stream == 0 and found == 1:
        give_alone(cfg, state, buffers, stream, card["seq"], card["ts"], card["importance"])
    if found == mem.most(cfg, stream):
        _leaves_with(cfg, state, stream, int(card["item"]))


@unless_plain
@inlined
def meet_many(cfg, state, buffers, stream, x, found):
    """The same for a new tuple whose probe is at its end."""
    if cfg["counts"] and mem.counted(cfg, stream) and found > 0:
        card = storage.card(cfg, state, x)
        card["partners"] = found
        if cfg["gives"] == FIRSTS and stream == 0:
            give_alone(cfg, state, buffers, stream, card["seq"], card["ts"], card["importance"])
        if 0 < mem.most(cfg, stream) <= found:
            _leaves_with(cfg, state, stream, x)


@only_many
@inlined
def meet_all(cfg, state, buffers, origin, depth, x):
    """The same for all tuples of a result: what is bound in the loops down to this depth, and the innermost."""
    if not cfg["counts"]:
        return
    for level in range(depth):
        stream = mem.steps(state, origin * cfg["streams"] + level)["stream"]
        meet(cfg, state, buffers, stream, storage.card(cfg, state, int(mem.levels(state, level)["item"])))
    stream = mem.steps(state, origin * cfg["streams"] + depth)["stream"]
    meet(cfg, state, buffers, stream, storage.card(cfg, state, x))


# ----------------------------------------------------------------------------------------------------------- certainty


@inlined
def note_floor(cfg, state, stream, x, old_seq, other):
    """Windows of rows: the first row number of another stream that a new tuple may meet."""
    mem.floor(state)[x * cfg["streams"] + other] = min(state["arrived"][other] - mem.window_size(cfg, other), old_seq)


@unless_plain
@inlined
def enter(cfg, state, buffers, stream, x):
    """A judged tuple is stored."""
    if cfg["counts"] and state["floor_room"] > 1 and mem.judged(cfg, stream):
        for other in range(cfg["streams"]):
            if other != stream and mem.window_kind(cfg, other) == ROW:
                note_floor(cfg, state, stream, x, buffers["old_seq"][other], other)


@kernel
def _may_have_missed(cfg, state, stream, x, ts):
    """Whether a row was shed that a tuple might have met."""
    for other in range(cfg["streams"]):
        if other == stream or mem.filter_of(cfg, other) < 0:
            continue
        stamp = ts - mem.window_size(cfg, other)
        if mem.window_kind(cfg, other) == ROW:
            stamp = mem.floor(state)[x * cfg["streams"] + other] - 1
        if shed_values.has_after(cfg, state, x, other, stamp):
            return True
    return False


@inlined
def _nothing_to_say(cfg, state, buffers, stream, x):
    return DONE


@in_plain(_nothing_to_say)
@kernel
def expire(cfg, state, buffers, stream, x):
    """A tuple is about to expire. Returns what is needed to say whether it has no partner, most often nothing."""
    card = storage.card(cfg, state, x)
    partners = np.int64(card["partners"])
    if doubts.number_of(partners) > 0:
        return DONE
    if partners == 0 and not _may_have_missed(cfg, state, stream, x, card["ts"]):
        if cfg["gives_unmatched"]:
            if lacks_room(cfg, buffers):
                return NEED_RESULTS
            give_alone(cfg, state, buffers, stream, card["seq"], card["ts"], card["importance"])
        state["certain"] += 1
        return DONE
    if log.is_full(buffers):
        buffers["wanted"] = 1
        return NEED_SHED
    log.record(cfg, state, buffers, stream, card["seq"], card["ts"], storage.logged_key(cfg, state, x), UNKNOWN)
    state["unknown"] += 1
    return DONE


@unless_plain
@inlined
def give_null(cfg, state, buffers, stream, seq, ts, importance):
    """A row with a null has no partner, ever. There is room for it."""
    if cfg["counts"] and mem.judged(cfg, stream):
        state["certain"] += 1
        if cfg["gives_unmatched"]:
            give_alone(cfg, state, buffers, stream, seq, ts, importance)
