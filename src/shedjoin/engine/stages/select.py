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
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import log
from shedjoin.engine.stages.times import reach
from shedjoin.engine.structures import draws, timeline
from shedjoin.engine.structures.timeline import FAR

#: Numbers of a record of what was left out: see records.LEFT_OUT_FIELDS.
FIELDS = 7
#: A window that is compared as a whole has this many stretches.
WHOLE = -1


# ------------------------------------------------------------------------------------------------------ is it inside?


@kernel
def _is_in_stretch(how, st, other, ts, seq):
    first = other * (how["ages"] + 1)
    if mem.window_kind(how, other) == ROW:
        ts = 0
    low, high = 0, st["stretches"][other]
    while low < high:  # the first stretch that ends after the tuple
        middle = (low + high) // 2
        one = mem.stretch(st, first + middle)
        if one["hi_ts"] < ts or (one["hi_ts"] == ts and one["hi_seq"] <= seq):
            low = middle + 1
        else:
            high = middle
    if low == st["stretches"][other]:
        return False
    one = mem.stretch(st, first + low)
    return one["lo_ts"] < ts or (one["lo_ts"] == ts and one["lo_seq"] <= seq)


@inlined
def is_inside(how, st, other, ts, seq):
    """Whether the row at hand is compared with a tuple of another window."""
    return st["stretches"][other] == WHOLE or _is_in_stretch(how, st, other, ts, seq)


@inlined
def _position(how, other, e):
    """Where an entry of a bucket lies on the axis of its window."""
    return e["seq"] if mem.window_kind(how, other) == ROW else e["ts"]


@kernel
def skip(how, st, other, base, first, mask, at, span):
    """The next place in a bucket, after one that is not inside, where a tuple may be.

    Entries are in the order of arrival: no time is further behind an earlier one than the lag of the stream. Gaps keep theirs.
    """
    by_rows = mem.window_kind(how, other) == ROW
    lag = 0 if by_rows else st["line_lag"][other]
    here = _position(how, other, mem.entries(st, base + ((first + at) & mask)))
    stretches = other * (how["ages"] + 1)
    low, high = 0, st["stretches"][other]
    while low < high:  # the first stretch that this entry, or one after it, may be in
        middle = (low + high) // 2
        one = mem.stretch(st, stretches + middle)
        if (one["hi_seq"] if by_rows else one["hi_ts"]) < here - lag:
            low = middle + 1
        else:
            high = middle
    if low == st["stretches"][other]:
        return span
    one = mem.stretch(st, stretches + low)
    begin = one["lo_seq"] if by_rows else one["lo_ts"]
    low, high = at + 1, span
    while low < high:
        middle = (low + high) // 2
        if _position(how, other, mem.entries(st, base + ((first + middle) & mask))) + lag < begin:
            low = middle + 1  # and so is all before it
        else:
            high = middle
    return low


@kernel
def is_all_left_out(how, st, stream):
    """Whether nothing of some other window is compared with a row."""
    empty = False
    for other in range(how["streams"]):
        empty = empty or (other != stream and st["stretches"][other] == 0)
    return empty


# ------------------------------------------------------------------------------------------------------- the windows


@inlined
def _now(how, st, other, ts):
    """Where ages are counted from."""
    return st["arrived"][other] - 1 if mem.window_kind(how, other) == ROW else ts


@inlined
def _age_of(how, st, other, now, ts, seq):
    """The age of a tuple of another window."""
    then = seq if mem.window_kind(how, other) == ROW else ts
    behind = now // how["basic"] - then // how["basic"]
    return min(max(behind + how["ahead"], 0), how["ages"] - 1)


@inlined
def _place(how, st, other, number):
    """The first tuple from a time, or a row number, on."""
    return timeline.lower(how, st, other, number, number if mem.window_kind(how, other) == ROW else -1)


@kernel
def _window(how, st, io, stream, ts, other):
    """The tuples of another window that a row may meet: from which place to which, of times before which."""
    size = mem.window_size(how, other)
    if mem.window_kind(how, other) == TIME:
        first = _place(how, st, other, ts - size + 1)
        end = _place(how, st, other, min(ts + reach(how, stream), FAR))
        return first, end, FAR
    # Rows of this instant meet each other, however many they are.
    first = _place(how, st, other, min(st["arrived"][other] - size, io["old_seq"][other]))
    end, until = st["line_to"][other], FAR
    if mem.window_kind(how, stream) == TIME and st["clock"][other] >= ts + mem.window_size(how, stream):
        # The row is so far behind that its own window ends before some of these tuples.
        until = ts + mem.window_size(how, stream)
        if st["line_torn"][other] <= st["line_from"][other]:
            end, until = timeline.lower_by_time(st, other, until), FAR
    return first, max(first, end), until


@kernel
def _age_begins(how, st, other, cell, age, first, end):
    """The first tuple of an age, or of one that is newer."""
    if age == how["ages"] - 1:
        return first
    return min(max(_place(how, st, other, (cell - age + how["ahead"]) * how["basic"]), first), end)


@kernel
def _age_ends(how, st, other, cell, age, first, end):
    """Where newer ages begin."""
    return end if age == 0 else _age_begins(how, st, other, cell, age - 1, first, end)


# -------------------------------------------------------------------------------------------------------- choosing


@inlined
def _set_edge(st, other, at, place):
    mem.age_edge(st)[at] = place
    mem.age_before(st)[at] = timeline.before(st, other, place)


@kernel
def _edge(how, st, other, cell, age, first, end):
    """Where an age begins, worked out once in a probe; neighbours share their edges."""
    if mem.age_edge(st)[age + 1] == NONE:
        _set_edge(st, other, age + 1, _age_begins(how, st, other, cell, age, first, end))
    return mem.age_edge(st)[age + 1]


@kernel
def _choose(how, st, ts, other, first, end, until, fraction):
    """Algorithm 3: the best ages first; of the last one the newest. A part of a tuple is a chance.

    For each age that something is chosen of, `age_from` and `age_to` say what, as places.
    """
    begins, ends, rank, tuples = mem.age_from(st), mem.age_to(st), mem.age_rank(st), mem.age_before(st)
    for age in range(how["ages"]):
        begins[age] = NONE
        mem.age_edge(st)[age + 1] = NONE
    _set_edge(st, other, 0, end)
    there = timeline.count(st, other, first, end, until)
    allowed = fraction * there
    left = there
    cell = _now(how, st, other, ts) // how["basic"]
    for place in range(how["ages"]):
        if left == 0:
            return
        age = rank[other * how["ages"] + place]
        begin = _edge(how, st, other, cell, age, first, end)
        stop = end if age == 0 else _edge(how, st, other, cell, age - 1, first, end)
        of_age = tuples[age] - tuples[age + 1] if until == FAR else timeline.count(st, other, begin, stop, until)
        if of_age > allowed:
            some = min(int(allowed + draws.unit(st)), of_age)
            if some > 0:
                begins[age] = timeline.nth_last(st, other, stop, some, until)
                ends[age] = stop
                st["part_size"][other] += some
            return
        if of_age > 0:
            begins[age] = begin
            ends[age] = stop
            st["part_size"][other] += of_age
        allowed -= of_age
        left -= of_age


@kernel
def leave_out(io, stream, seq, other, lo_ts, lo_seq, hi_ts, hi_seq):
    """One record: a row was not compared with a stretch of another window."""
    at = io["left_out"] * FIELDS
    mem.set_out_left_out(io, at, stream)
    mem.set_out_left_out(io, at + 1, seq)
    mem.set_out_left_out(io, at + 2, other)
    mem.set_out_left_out(io, at + 3, lo_ts)
    mem.set_out_left_out(io, at + 4, lo_seq)
    mem.set_out_left_out(io, at + 5, hi_ts)
    mem.set_out_left_out(io, at + 6, hi_seq)
    io["left_out"] += 1


@kernel
def _leave_out(how, st, io, stream, seq, other, first, end, until):
    """Note what is stored between two places as left out; whether there is anything."""
    if first >= end:
        return False
    tuples = timeline.count(st, other, first, end, until)
    if tuples == 0:
        return False
    by_rows = mem.window_kind(how, other) == ROW
    oldest = timeline.at(st, other, timeline.nth_last(st, other, end, tuples, until))
    newest = timeline.at(st, other, timeline.nth_last(st, other, end, 1, until))
    lo_ts, hi_ts = (0, 0) if by_rows else (oldest["ts"], newest["ts"])
    leave_out(io, stream, seq, other, lo_ts, oldest["seq"], hi_ts, newest["seq"] + 1)
    return True


@kernel
def _compare(how, st, other, first, end, until, apart):
    """Note what is stored between two places as a stretch, or, unless it stands apart, as more of the last one."""
    by_rows = mem.window_kind(how, other) == ROW
    if apart or st["stretches"][other] == 0:
        one = mem.stretch(st, other * (how["ages"] + 1) + st["stretches"][other])
        tuples = timeline.count(st, other, first, end, until)
        oldest = timeline.at(st, other, timeline.nth_last(st, other, end, tuples, until))
        one["lo_ts"] = 0 if by_rows else oldest["ts"]
        one["lo_seq"] = oldest["seq"]
        st["stretches"][other] += 1
    one = mem.stretch(st, other * (how["ages"] + 1) + st["stretches"][other] - 1)
    newest = timeline.at(st, other, timeline.nth_last(st, other, end, 1, until))
    one["hi_ts"] = 0 if by_rows else newest["ts"]
    one["hi_seq"] = newest["seq"] + 1


@kernel
def _part(how, st, io, stream, ts, seq, other, fraction):
    """Choose a part of one window; whether something of it is left out."""
    st["stretches"][other] = WHOLE
    if fraction >= 1.0 and how["layout"] == KEYED and not io["sampling"]:
        return False
    first, end, until = _window(how, st, io, stream, ts, other)
    if fraction >= 1.0:
        st["part_size"][other] = timeline.count(st, other, first, end, until)
        return False
    st["stretches"][other] = 0
    st["part_size"][other] = 0
    _choose(how, st, ts, other, first, end, until, fraction)
    begins, ends = mem.age_from(st), mem.age_to(st)
    partial, apart, begin, compared_to = False, False, NONE, first
    for age in range(how["ages"] - 1, -1, -1):  # from the oldest on, neighbours together
        if begins[age] == NONE:
            continue
        if begin == NONE or begins[age] != compared_to:
            if begin != NONE:
                _compare(how, st, other, begin, compared_to, until, apart)
            apart = _leave_out(how, st, io, stream, seq, other, compared_to, begins[age], until)
            partial = partial or apart
            begin = begins[age]
        compared_to = ends[age]
    if begin != NONE:
        _compare(how, st, other, begin, compared_to, until, apart)
    rest = _leave_out(how, st, io, stream, seq, other, compared_to, end, until)
    return partial or rest


@inlined
def _kind(how, io, i):
    return mem.row_kind(io, i) if how["types"] > 0 else 0


@indirect("choose part")
def choose(how, st, io, i, stream, ts, seq):
    """Choose what a row is compared with, and note what it is not."""
    learns = how["correlation"] or how["direction"] or how["types"] > 0
    io["sampling"] = 0
    st["gained"] = 0.0
    if learns and draws.unit(st) < st["fraction"] * how["sample"]:
        io["sampling"] = 1
    kind, partial = _kind(how, io, i), False
    for other in range(how["streams"]):
        if other != stream:
            fraction = st["fractions"][other]
            if how["types"] > 0:
                fraction = mem.kind_fraction(st)[other * how["kinds"] + kind]
            if io["sampling"]:
                fraction = 1.0
            left = _part(how, st, io, stream, ts, seq, other, fraction)
            partial = partial or left
    if partial:
        log.record(how, st, io, stream, seq, ts, mem.row_key(io, i * how["width"]), PARTIAL)
        st["partial"] += 1


@kernel
def lacks_room(how, io):
    """Whether what a row leaves out might not fit into the buffer."""
    io["wanted"] = (how["streams"] - 1) * (how["ages"] + 1)
    return io["out_left_out_room"] - io["left_out"] < io["wanted"]


# --------------------------------------------------------------------------------------------------------- learning


@kernel
def meet(how, st, other, row_ts, ts, seq, times):
    """A tuple is part of results of a row that is learned from."""
    age = _age_of(how, st, other, _now(how, st, other, row_ts), ts, seq)
    mem.age_met(st)[other * how["ages"] + age] += times


@indirect("learn part")
def learn(how, st, io, i, stream, ts):
    """After a complete comparison: of which ages the windows are, and what the results were worth."""
    st["sampled"] += 1
    seen, kind = mem.age_seen(st), _kind(how, io, i)
    for other in range(how["streams"]):
        if other != stream:
            st["samples"][other] += 1
            first, end, until = _window(how, st, io, stream, ts, other)
            cell = _now(how, st, other, ts) // how["basic"]
            begin = first
            for age in range(how["ages"] - 1, -1, -1):
                stop = _age_ends(how, st, other, cell, age, first, end)
                seen[other * how["ages"] + age] += timeline.count(st, other, begin, stop, until)
                begin = stop
            at = other * how["kinds"] + kind
            mem.kind_gain(st)[at] += st["gained"]
            mem.kind_seen(st)[at] += st["part_size"][other]
