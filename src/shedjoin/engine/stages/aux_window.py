"""Dual windows (dual2006): rows stand in an aux-window while histograms tell how many partners they will meet.

The histograms count, by value, the rows that each window will hold when the row that entered last probes. When a row leaves the
aux-window, it may be shed at the rear: it is stored without a probe.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import BY_WINDOW, TIME
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import lots, waiting
from shedjoin.engine.structures import key_table, levels


@inlined
def _place(st, counter):
    return counter & (st["let_ts_room"] - 1)


@inlined
def lacks_room(st, stream):
    """Whether the ring of rows that a window will hold is full."""
    return st["let_to"][stream] - st["let_from"][stream] >= st["let_ts_room"]


@kernel
def _count(how, st, stream, counter, change):
    """A row of the histogram comes or goes."""
    for part in range(how["parts"]):
        v = int(mem.let_value(st)[(stream * st["let_ts_room"] + _place(st, counter)) * how["parts"] + part])
        if v != NONE:
            mem.windowed(st)[v * how["streams"] + stream] += change
            mem.kept(st)[v] += int(change)


@kernel
def _let_in(how, st, w):
    """A row counts in the histogram of its window."""
    row = mem.waiting(st, w)
    stream = int(row["stream"])
    to = st["let_to"][stream]
    mem.let_ts(st)[stream, _place(st, to)] = row["ts"]
    for part in range(how["parts"]):
        attr, v = waiting.attr_of(st, part, stream), NONE
        if attr >= 0 and not row["null"]:
            v = key_table.find_or_add(how, st, mem.waiting_key(st)[w * how["width"] + attr], part)
        mem.let_value(st)[(stream * st["let_ts_room"] + _place(st, to)) * how["parts"] + part] = v
    _count(how, st, stream, to, 1.0)
    st["let_to"][stream] = to + 1


@kernel
def _let_go(how, st, ts):
    """Rows that the windows will not hold any more."""
    for stream in range(how["streams"]):
        size = mem.window_size(how, stream)
        while st["let_from"][stream] < st["let_to"][stream]:
            first = st["let_from"][stream]
            if mem.window_kind(how, stream) == TIME:
                if mem.let_ts(st)[stream, _place(st, first)] > ts - size:
                    break
            elif st["let_to"][stream] - first <= size:
                break
            _count(how, st, stream, first, -1.0)
            st["let_from"][stream] = first + 1


@kernel
def enter(how, st, w):
    """From the line into the aux-window. There is room for it, and for its values."""
    row = mem.waiting(st, w)
    stream = int(row["stream"])
    if how["let_in"]:
        row["number"] = st["rows_let_in"][stream]
    st["rows_let_in"][stream] += 1
    row["expected"] = waiting.chance(how, st, w, BY_WINDOW)
    link(st, w)
    if how["rear"] and not row["null"]:
        levels.add(st, stream, row["expected"], 1)
    _let_in(how, st, w)
    _let_go(how, st, row["ts"])


@kernel
def link(st, w):
    """To the end of the aux-window."""
    row = mem.waiting(st, w)
    row["next"] = NONE
    row["back"] = st["aux_last"]
    if st["aux_last"] == NONE:
        st["aux_first"] = w
    else:
        mem.waiting(st, st["aux_last"])["next"] = w
    st["aux_last"] = w
    st["aux_count"] += 1
    st["aux_rows"][row["stream"]] += 0 if row["null"] else 1


@kernel
def is_over(how, st, ts):
    """Whether it holds more than it should when a row of this time has entered. No row leaves before its whole instant is in."""
    if st["aux_first"] == NONE:
        return False
    first = mem.waiting(st, st["aux_first"])["ts"]
    if first == ts:
        return False
    longest, total = 0, 0
    for stream in range(how["streams"]):
        longest = max(longest, mem.window_size(how, stream))
        total += mem.window_size(how, stream)
    return first <= ts - longest if mem.window_kind(how, 0) == TIME else st["aux_count"] > total


@kernel
def _sheds(st, stream, expected):
    """Of the stream's rows in the aux-window a share does not probe: those with fewest partners, lots at the border."""
    at = levels.find(st, stream, expected)
    fewer = levels.below(st, stream, at)
    equal = mem.level_count(st)[stream, at]
    border = st["rear_share"] * st["aux_rows"][stream]
    if fewer >= border:
        return False
    return fewer + equal <= border or lots.draw(st) * equal < border - fewer


@kernel
def _count_instant(how, st, w):
    """Row windows count the rows that were let in: where the first row's instant begins and ends among them."""
    instant = mem.waiting(st, w)["instant"]
    for stream in range(how["streams"]):
        st["from_number"][stream] = st["through"][stream] = st["rows_left"][stream]
    while w != NONE and mem.waiting(st, w)["instant"] == instant:
        st["through"][mem.waiting(st, w)["stream"]] += 1
        w = int(mem.waiting(st, w)["next"])


@kernel
def leave(how, st):
    """(row, whether it does not probe): the first row has its turn."""
    w = int(st["aux_first"])
    row = mem.waiting(st, w)
    stream = int(row["stream"])
    silent = False
    if how["rear"] and not row["null"]:
        silent = _sheds(st, stream, row["expected"])
        levels.add(st, stream, row["expected"], -1)
    if how["let_in"] and row["instant"] != st["turned"]:
        _count_instant(how, st, w)
    after = int(row["next"])
    st["aux_first"] = after
    if after == NONE:
        st["aux_last"] = NONE
    else:
        mem.waiting(st, after)["back"] = NONE
    st["aux_count"] -= 1
    st["aux_rows"][stream] -= 0 if row["null"] else 1
    st["rows_left"][stream] += 1
    return w, 1 if silent else 0
