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
from shedjoin.engine.structures import levels


@inlined
def _place(state, counter):
    return counter & (state["let_ts_room"] - 1)


@inlined
def lacks_room(state, stream, values):
    """Whether the ring of rows that a window will hold is full, or that of their values, of which some more come."""
    rows = state["let_to"][stream] - state["let_from"][stream]
    held = state["let_tail"][stream] - state["let_head"][stream]
    return rows >= state["let_ts_room"] or held + values > state["let_value_room"]


@kernel
def _count(cfg, state, stream, counter, change):
    """A value of the histogram comes or goes."""
    v = int(mem.let_value(state)[stream, counter & (state["let_value_room"] - 1)])
    mem.windowed(state)[v * cfg["streams"] + stream] += change
    mem.kept(state)[v] += int(change)


@kernel
def _let_in(cfg, state, w):
    """A row counts in the histogram of its window."""
    row = mem.waiting(state, w)
    stream = int(row["stream"])
    to, tail = state["let_to"][stream], state["let_tail"][stream]
    for number in range(waiting.values_of(cfg, state, w)):
        v = waiting.find_value(cfg, state, w, number)
        if v != NONE:
            mem.let_value(state)[stream, state["let_tail"][stream] & (state["let_value_room"] - 1)] = v
            _count(cfg, state, stream, state["let_tail"][stream], 1.0)
            state["let_tail"][stream] += 1
    mem.let_ts(state)[stream, _place(state, to)] = row["ts"]
    mem.let_size(state)[stream, _place(state, to)] = state["let_tail"][stream] - tail
    state["let_to"][stream] = to + 1


@kernel
def _let_go(cfg, state, ts):
    """Rows that the windows will not hold any more."""
    for stream in range(cfg["streams"]):
        size = mem.window_range(cfg, stream)
        while state["let_from"][stream] < state["let_to"][stream]:
            first = state["let_from"][stream]
            if mem.window_kind(cfg, stream) == TIME:
                if mem.let_ts(state)[stream, _place(state, first)] > ts - size:
                    break
            elif state["let_to"][stream] - first <= size:
                break
            for _ in range(mem.let_size(state)[stream, _place(state, first)]):
                _count(cfg, state, stream, state["let_head"][stream], -1.0)
                state["let_head"][stream] += 1
            state["let_from"][stream] = first + 1


@kernel
def enter(cfg, state, w):
    """From the line into the aux-window. There is room for it, and for its values."""
    row = mem.waiting(state, w)
    stream = int(row["stream"])
    if cfg["let_in"]:
        row["number"] = state["rows_let_in"][stream]
    state["rows_let_in"][stream] += 1
    row["expected"] = waiting.chance(cfg, state, w, BY_WINDOW)
    link(state, w)
    if cfg["rear"] and not row["null"]:
        levels.add(state, stream, row["expected"], 1)
    _let_in(cfg, state, w)
    _let_go(cfg, state, row["ts"])


@kernel
def link(state, w):
    """To the end of the aux-window."""
    row = mem.waiting(state, w)
    row["next"] = NONE
    row["back"] = state["aux_last"]
    if state["aux_last"] == NONE:
        state["aux_first"] = w
    else:
        mem.waiting(state, state["aux_last"])["next"] = w
    state["aux_last"] = w
    state["aux_count"] += 1
    state["aux_rows"][row["stream"]] += 0 if row["null"] else 1


@kernel
def is_over(cfg, state, ts):
    """Whether it holds more than it should when a row of this time has entered. No row leaves before its whole instant is in."""
    if mem.window_kind(cfg, 0) == TIME:
        return is_left_behind(cfg, state, ts)
    if state["aux_first"] == NONE or mem.waiting(state, state["aux_first"])["ts"] == ts:
        return False
    total = 0
    for stream in range(cfg["streams"]):
        total += mem.window_size(cfg, stream)
    return state["aux_count"] > total


@kernel
def is_left_behind(cfg, state, time):
    """Whether its first row came a window or more before this time; windows of rows know no time."""
    if state["aux_first"] == NONE or mem.window_kind(cfg, 0) != TIME:
        return False
    longest = 0
    for stream in range(cfg["streams"]):
        longest = max(longest, mem.window_size(cfg, stream))
    return mem.waiting(state, state["aux_first"])["ts"] <= time - longest


@kernel
def _sheds(state, stream, expected):
    """Of the stream's rows in the aux-window a share does not probe: those with fewest partners, lots at the border."""
    at = levels.find(state, stream, expected)
    fewer = levels.below(state, stream, at)
    equal = mem.level_count(state)[stream, at]
    border = state["rear_share"] * state["aux_rows"][stream]
    if fewer >= border:
        return False
    return fewer + equal <= border or lots.draw(state) * equal < border - fewer


@kernel
def _count_instant(cfg, state, w):
    """Row windows count the rows that were let in: where the first row's instant begins and ends among them."""
    instant = mem.waiting(state, w)["instant"]
    for stream in range(cfg["streams"]):
        state["from_number"][stream] = state["through"][stream] = state["rows_left"][stream]
    while w != NONE and mem.waiting(state, w)["instant"] == instant:
        state["through"][mem.waiting(state, w)["stream"]] += 1
        w = int(mem.waiting(state, w)["next"])


@kernel
def leave(cfg, state):
    """(row, whether it does not probe): the first row has its turn."""
    w = int(state["aux_first"])
    row = mem.waiting(state, w)
    stream = int(row["stream"])
    silent = False
    if cfg["rear"] and not row["null"]:
        silent = _sheds(state, stream, row["expected"])
        levels.add(state, stream, row["expected"], -1)
    if cfg["let_in"] and row["instant"] != state["turned"]:
        _count_instant(cfg, state, w)
    after = int(row["next"])
    state["aux_first"] = after
    if after == NONE:
        state["aux_last"] = NONE
    else:
        mem.waiting(state, after)["back"] = NONE
    state["aux_count"] -= 1
    state["aux_rows"][stream] -= 0 if row["null"] else 1
    state["rows_left"][stream] += 1
    return w, 1 if silent else 0
