"""Selective processing: which part of each other window a row is compared with (gedik2007, Algorithm 3).

A window is ordered as its tuples leave it: by time, in row windows by row number. Basic windows are cut on that axis at multiples
of their length. Seen from a row they have an *age*: how many basic windows they lie behind the row, or behind the newest row of a
row window. Ages are counted from the one farthest ahead of the row (0); tuples beyond the first or last count with it.

What is chosen of each window stands in `stretch`, oldest first; `is_inside` says whether a tuple is part of it.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import KEYED, PARTIAL, ROW, TIME
from shedjoin.engine.indirect import indirect
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import doubts, log
from shedjoin.engine.stages.times import reach
from shedjoin.engine.structures import draws, timeline
from shedjoin.engine.structures.timeline import FAR

#: Numbers of a record of what was left out: see records.LEFT_OUT_FIELDS.
FIELDS = 7
#: A window that is compared as a whole has this many stretches.
WHOLE = -1


# ------------------------------------------------------------------------------------------------------ is it inside?


@kernel
def _is_in_stretch(cfg, state, other, ts, seq):
    first = other * (cfg["ages"] + 1)
    if mem.window_kind(cfg, other) == ROW:
        ts = 0
    low, high = 0, state["stretches"][other]
    while low < high:  # the first stretch that ends after the tuple
        middle = (low + high) // 2
        one = mem.stretch(state, first + middle)
        if one["hi_ts"] < ts or (one["hi_ts"] == ts and one["hi_seq"] <= seq):
            low = middle + 1
        else:
            high = middle
    if low == state["stretches"][other]:
        return False
    one = mem.stretch(state, first + low)
    return one["lo_ts"] < ts or (one["lo_ts"] == ts and one["lo_seq"] <= seq)


@inlined
def is_inside(cfg, state, other, ts, seq):
    """Whether the row at hand is compared with a tuple of another window."""
    return state["stretches"][other] == WHOLE or _is_in_stretch(cfg, state, other, ts, seq)


@inlined
def _position(cfg, other, e):
    """Where an entry of a bucket lies on the axis of its window."""
    return e["seq"] if mem.window_kind(cfg, other) == ROW else e["ts"]


@kernel
def skip(cfg, state, other, base, first, mask, at, span):
    """The next place in a bucket, after one that is not inside, where a tuple may be.

    Entries are in the order of arrival: no time is further behind an earlier one than the lag of the stream. Gaps keep theirs.
    """
    by_rows = mem.window_kind(cfg, other) == ROW
    lag = 0 if by_rows else state["line_lag"][other]
    here = _position(cfg, other, mem.entries(state, base + ((first + at) & mask)))
    stretches = other * (cfg["ages"] + 1)
    low, high = 0, state["stretches"][other]
    while low < high:  # the first stretch that this entry, or one after it, may be in
        middle = (low + high) // 2
        one = mem.stretch(state, stretches + middle)
        if (one["hi_seq"] if by_rows else one["hi_ts"]) < here - lag:
            low = middle + 1
        else:
            high = middle
    if low == state["stretches"][other]:
        return span
    one = mem.stretch(state, stretches + low)
    begin = one["lo_seq"] if by_rows else one["lo_ts"]
    low, high = at + 1, span
    while low < high:
        middle = (low + high) // 2
        if _position(cfg, other, mem.entries(state, base + ((first + middle) & mask))) + lag < begin:
            low = middle + 1  # and so is all before it
        else:
            high = middle
    return low


@kernel
def is_all_left_out(cfg, state, stream):
    """Whether nothing of some other window is compared with a row."""
    empty = False
    for other in range(cfg["streams"]):
        empty = empty or (other != stream and state["stretches"][other] == 0)
    return empty


# ------------------------------------------------------------------------------------------------------- the windows


@inlined
def _now(cfg, state, other, ts):
    """Where ages are counted from."""
    return state["arrived"][other] - 1 if mem.window_kind(cfg, other) == ROW else ts


@inlined
def _age_of(cfg, state, other, now, ts, number):
    """The age of a tuple of another window."""
    then = number if mem.window_kind(cfg, other) == ROW else ts
    behind = now // cfg["basic"] - then // cfg["basic"]
    return min(max(behind + cfg["ahead"], 0), cfg["ages"] - 1)


@inlined
def _place(cfg, state, other, number):
    """The first tuple from a time, or a row number, on."""
    return timeline.lower(cfg, state, other, number, number if mem.window_kind(cfg, other) == ROW else -1)


@kernel
def _window(cfg, state, buffers, stream, ts, other):
    """The tuples of another window that a row may meet: from which place to which, of times before which."""
    size = mem.window_size(cfg, other)
    if mem.window_kind(cfg, other) == TIME:
        first = _place(cfg, state, other, ts - size + 1)
        end = _place(cfg, state, other, min(ts + reach(cfg, stream), FAR))
        return first, end, FAR
    # Rows of this instant meet each other, however many they are.
    first = _place(cfg, state, other, min(state["arrived"][other] - size, buffers["old_seq"][other]))
    end, until = state["line_to"][other], FAR
    if mem.window_kind(cfg, stream) == TIME and state["clock"][other] >= ts + mem.window_size(cfg, stream):
        # The row is so far behind that its own window ends before some of these tuples.
        until = ts + mem.window_size(cfg, stream)
        if state["line_torn"][other] <= state["line_from"][other]:
            end, until = timeline.lower_by_time(state, other, until), FAR
    return first, max(first, end), until


@kernel
def _age_begins(cfg, state, other, cell, age, first, end):
    """The first tuple of an age, or of one that is newer."""
    if age == cfg["ages"] - 1:
        return first
    return min(max(_place(cfg, state, other, (cell - age + cfg["ahead"]) * cfg["basic"]), first), end)


@kernel
def _age_ends(cfg, state, other, cell, age, first, end):
    """Where newer ages begin."""
    return end if age == 0 else _age_begins(cfg, state, other, cell, age - 1, first, end)


# -------------------------------------------------------------------------------------------------------- choosing


@inlined
def _set_edge(state, other, at, place):
    mem.age_edge(state)[at] = place
    mem.age_before(state)[at] = timeline.before(state, other, place)


@kernel
def _edge(cfg, state, other, cell, age, first, end):
    """Where an age begins, worked out once in a probe; neighbours share their edges."""
    if mem.age_edge(state)[age + 1] == NONE:
        _set_edge(state, other, age + 1, _age_begins(cfg, state, other, cell, age, first, end))
    return mem.age_edge(state)[age + 1]


@kernel
def _choose(cfg, state, ts, other, first, end, until, fraction):
    """Algorithm 3: the best ages first; of the last one the newest. A part of a tuple is a chance.

    For each age that something is chosen of, `age_from` and `age_to` say what, as places.
    """
    begins, ends, rank, tuples = mem.age_from(state), mem.age_to(state), mem.age_rank(state), mem.age_before(state)
    for age in range(cfg["ages"]):
        begins[age] = NONE
        mem.age_edge(state)[age + 1] = NONE
    _set_edge(state, other, 0, end)
    there = timeline.count(state, other, first, end, until)
    allowed = fraction * there
    left = there
    cell = _now(cfg, state, other, ts) // cfg["basic"]
    for place in range(cfg["ages"]):
        if left == 0:
            return
        age = rank[other * cfg["ages"] + place]
        begin = _edge(cfg, state, other, cell, age, first, end)
        stop = end if age == 0 else _edge(cfg, state, other, cell, age - 1, first, end)
        of_age = tuples[age] - tuples[age + 1] if until == FAR else timeline.count(state, other, begin, stop, until)
        if of_age > allowed:
            some = min(int(allowed + draws.unit(state)), of_age)
            if some > 0:
                begins[age] = timeline.nth_last(state, other, stop, some, until)
                ends[age] = stop
                state["part_size"][other] += some
            return
        if of_age > 0:
            begins[age] = begin
            ends[age] = stop
            state["part_size"][other] += of_age
        allowed -= of_age
        left -= of_age


@inlined
def _seq_of(cfg, state, e):
    """The row number of a tuple of the timeline, which has what row windows count it by."""
    return storage.card(cfg, state, int(e["item"]))["seq"] if cfg["let_in"] else e["seq"]


@kernel
def leave_out(buffers, stream, seq, other, lo_ts, lo_seq, hi_ts, hi_seq):
    """One record: a row was not compared with a stretch of another window."""
    at = buffers["left_out"] * FIELDS
    mem.set_out_left_out(buffers, at, stream)
    mem.set_out_left_out(buffers, at + 1, seq)
    mem.set_out_left_out(buffers, at + 2, other)
    mem.set_out_left_out(buffers, at + 3, lo_ts)
    mem.set_out_left_out(buffers, at + 4, lo_seq)
    mem.set_out_left_out(buffers, at + 5, hi_ts)
    mem.set_out_left_out(buffers, at + 6, hi_seq)
    buffers["left_out"] += 1


@kernel
def _leave_out(cfg, state, buffers, stream, seq, other, first, end, until):
    """Note what is stored between two places as left out; whether there is anything."""
    if first >= end:
        return False
    tuples = timeline.count(state, other, first, end, until)
    if tuples == 0:
        return False
    by_rows = mem.window_kind(cfg, other) == ROW
    oldest = timeline.at(state, other, timeline.nth_last(state, other, end, tuples, until))
    newest = timeline.at(state, other, timeline.nth_last(state, other, end, 1, until))
    lo_ts, hi_ts = (0, 0) if by_rows else (oldest["ts"], newest["ts"])
    leave_out(buffers, stream, seq, other, lo_ts, _seq_of(cfg, state, oldest), hi_ts, _seq_of(cfg, state, newest) + 1)
    return True


@kernel
def _compare(cfg, state, other, first, end, until, apart):
    """Note what is stored between two places as a stretch, or, unless it stands apart, as more of the last one."""
    by_rows = mem.window_kind(cfg, other) == ROW
    if apart or state["stretches"][other] == 0:
        one = mem.stretch(state, other * (cfg["ages"] + 1) + state["stretches"][other])
        tuples = timeline.count(state, other, first, end, until)
        oldest = timeline.at(state, other, timeline.nth_last(state, other, end, tuples, until))
        one["lo_ts"] = 0 if by_rows else oldest["ts"]
        one["lo_seq"] = _seq_of(cfg, state, oldest)
        state["stretches"][other] += 1
    one = mem.stretch(state, other * (cfg["ages"] + 1) + state["stretches"][other] - 1)
    newest = timeline.at(state, other, timeline.nth_last(state, other, end, 1, until))
    one["hi_ts"] = 0 if by_rows else newest["ts"]
    one["hi_seq"] = _seq_of(cfg, state, newest) + 1


@kernel
def _part(cfg, state, buffers, stream, ts, seq, other, fraction):
    """Choose a part of one window; whether something of it is left out."""
    state["stretches"][other] = WHOLE
    if fraction >= 1.0 and cfg["layout"] == KEYED and not buffers["sampling"]:
        return False
    first, end, until = _window(cfg, state, buffers, stream, ts, other)
    if fraction >= 1.0:
        state["part_size"][other] = timeline.count(state, other, first, end, until)
        return False
    state["stretches"][other] = 0
    state["part_size"][other] = 0
    _choose(cfg, state, ts, other, first, end, until, fraction)
    begins, ends = mem.age_from(state), mem.age_to(state)
    partial, apart, begin, compared_to = False, False, NONE, first
    for age in range(cfg["ages"] - 1, -1, -1):  # from the oldest on, neighbours together
        if begins[age] == NONE:
            continue
        if begin == NONE or begins[age] != compared_to:
            if begin != NONE:
                _compare(cfg, state, other, begin, compared_to, until, apart)
            apart = _leave_out(cfg, state, buffers, stream, seq, other, compared_to, begins[age], until)
            partial = partial or apart
            begin = begins[age]
        compared_to = ends[age]
    if begin != NONE:
        _compare(cfg, state, other, begin, compared_to, until, apart)
    rest = _leave_out(cfg, state, buffers, stream, seq, other, compared_to, end, until)
    return partial or rest


@inlined
def _kind(cfg, buffers, i):
    return mem.row_kind(buffers, i) if cfg["types"] > 0 else 0


@indirect("choose part")
def choose(cfg, state, buffers, i, stream, ts, seq):
    """Choose what a row is compared with, and note what it is not."""
    learns = cfg["correlation"] or cfg["direction"] or cfg["types"] > 0
    buffers["sampling"] = 0
    state["gained"] = 0.0
    if learns and draws.unit(state) < state["fraction"] * cfg["sample"]:
        buffers["sampling"] = 1
    kind, partial = _kind(cfg, buffers, i), False
    for other in range(cfg["streams"]):
        if other != stream:
            fraction = state["fractions"][other]
            if cfg["types"] > 0:
                fraction = mem.kind_fraction(state)[other * cfg["kinds"] + kind]
            if buffers["sampling"]:
                fraction = 1.0
            left = _part(cfg, state, buffers, stream, ts, seq, other, fraction)
            partial = partial or left
    if partial:
        log.record(cfg, state, buffers, stream, seq, ts, mem.row_key(buffers, i * cfg["width"]), PARTIAL)
        doubts.doubt(cfg, state, stream, int(buffers["tuple"]))
        state["partial"] += 1


@kernel
def lacks_room(cfg, buffers):
    """Whether what a row leaves out might not fit into the buffer."""
    buffers["wanted"] = (cfg["streams"] - 1) * (cfg["ages"] + 1)
    return buffers["out_left_out_room"] - buffers["left_out"] < buffers["wanted"]


# --------------------------------------------------------------------------------------------------------- learning


@kernel
def meet(cfg, state, other, row_ts, ts, number, times):
    """A tuple is part of results of a row that is learned from."""
    age = _age_of(cfg, state, other, _now(cfg, state, other, row_ts), ts, number)
    mem.age_met(state)[other * cfg["ages"] + age] += times


@indirect("learn part")
def learn(cfg, state, buffers, i, stream, ts):
    """After a complete comparison: of which ages the windows are, and what the results were worth."""
    state["sampled"] += 1
    seen, kind = mem.age_seen(state), _kind(cfg, buffers, i)
    for other in range(cfg["streams"]):
        if other != stream:
            state["samples"][other] += 1
            first, end, until = _window(cfg, state, buffers, stream, ts, other)
            cell = _now(cfg, state, other, ts) // cfg["basic"]
            begin = first
            for age in range(cfg["ages"] - 1, -1, -1):
                stop = _age_ends(cfg, state, other, cell, age, first, end)
                seen[other * cfg["ages"] + age] += timeline.count(state, other, begin, stop, until)
                begin = stop
            at = other * cfg["kinds"] + kind
            mem.kind_gain(state)[at] += state["gained"]
            mem.kind_seen(state)[at] += state["part_size"][other]
