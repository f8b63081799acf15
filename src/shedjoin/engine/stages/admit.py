"""Admission: rows arrive, wait in line, are dropped, and have their turn, one by one.

A slow (virtual) CPU serves the first in line when it is free; dual windows let it stand in the aux-window before it probes. An
instant stays open until a row of another time has its turn. See decision 017.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import DROP_NONE, DROP_SEMANTIC, DROPPED, ITEMS, MOST, UNPROBED
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import items, storage
from shedjoin.engine.protocol import TELL
from shedjoin.engine.records import GONE, IN_LINE, NEVER, NONE
from shedjoin.engine.stages import (
    adapt,
    aux_window,
    clocks,
    doubts,
    estimate,
    integrated,
    log,
    lots,
    priority,
    rounds,
    select,
    store,
    unmatched,
    waiting,
)
from shedjoin.engine.stages.times import newest
from shedjoin.engine.structures import heap, levels

#: Before and after all times.
FIRST, LAST = -(2**62), 2**62

# What is next: a row arrives, the first in line has its turn, the first of the aux-window has it (at a flush), or nothing.
NOTHING, ARRIVES, WORKS, LEAVES = range(4)


# ------------------------------------------------------------------------------------------------------- rows that come


@inlined
def _instant_at(state, number):
    """Where the numbers of an instant stand."""
    return (number & (state["instants_room"] // MOST - 1)) * MOST


@kernel
def lacks_instants(state):
    """Whether there is no room for one more instant from which rows may wait."""
    return (state["instant"] + 3 - waiting.first_instant(state)) * MOST > state["instants_room"]


@kernel
def begin_instant(cfg, state, buffers):
    """The rows of one time get their numbers, and know how many came with them."""
    first, n = buffers["first"], buffers["row_ts_room"]
    ts, end = mem.row_ts(buffers, first), first
    state["instant"] += 1
    at = _instant_at(state, state["instant"])
    for stream in range(cfg["streams"]):
        mem.instants(state)[at + stream] = state["numbered"][stream]
        buffers["coming"][stream] = state["numbered"][stream]
    while end < n and mem.row_ts(buffers, end) == ts:
        state["numbered"][mem.row_stream(buffers, end)] += 1
        end += 1
    buffers["arrival"] = state["rows"]
    state["rows"] += end - first
    buffers["at"] = first
    buffers["end"] = end


@kernel
def following(cfg, state, buffers, flushes, time):
    """What happens next. `time`: clocks that were told with these rows have come this far."""
    slow = cfg["capacity"] > 0.0
    if buffers["first"] < buffers["row_ts_room"]:
        if state["line_first"] != NONE and (not slow or state["cpu_free"] < mem.row_ts(buffers, buffers["at"])):
            return WORKS
        return ARRIVES
    if state["line_first"] != NONE and (not slow or flushes):
        return WORKS
    leaves = flushes or (cfg["dual"] == 1 and aux_window.is_left_behind(cfg, state, time))
    return LEAVES if leaves and state["aux_first"] != NONE else NOTHING


@inlined
def is_due(cfg, state, buffers):
    """Dual windows: whether speeds are to be measured before this row comes."""
    if cfg["adapts"] == 0:
        return False
    return state["last_adapt"] == NEVER or mem.row_ts(buffers, buffers["at"]) >= state["last_adapt"] + cfg["adapts"]


@kernel
def come(cfg, state, buffers):
    """A row arrives; returns its place in line, or -1 where it was dropped by lot. There is room for it, and in the log."""
    i = buffers["at"]
    stream = mem.row_stream(buffers, i)
    state["newest_ts"] = mem.row_ts(buffers, i)
    seq = buffers["coming"][stream]
    buffers["coming"][stream] = seq + 1
    arrival = buffers["arrival"]
    buffers["arrival"] = arrival + 1
    buffers["at"] = i + 1
    if buffers["at"] == buffers["end"]:
        buffers["first"] = buffers["end"]
    if cfg["basic"] > 0:
        adapt.come(cfg, state, buffers, i)
    if cfg["dual"]:
        state["came_rows"][stream] += 1
        if cfg["front"] and lots.draw(state) < state["front_share"]:
            log.record_at(
                cfg,
                state,
                buffers,
                stream,
                seq,
                state["newest_ts"],
                mem.row_key(buffers, i * cfg["width"]),
                DROPPED,
                state["newest_ts"],
            )
            doubts.lose_row(cfg, state, buffers, i, stream, state["newest_ts"], seq)
            state["dropped"] += 1
            return NONE
    w = waiting.take(state)
    row = mem.waiting(state, w)
    row["arrival"] = arrival
    row["seq"] = seq
    row["number"] = seq
    row["ts"] = state["newest_ts"]
    row["instant"] = state["instant"]
    row["importance"] = mem.row_importance(buffers, i)
    row["stream"] = stream
    row["bytes"] = mem.row_bytes(buffers, i)
    row["null"] = 1 if mem.row_null(buffers, i) else 0
    row["kind"] = mem.row_kind(buffers, i) if cfg["types"] > 0 else 0
    row["prio"] = 0.0
    row["expected"] = 0.0
    row["item"] = NONE
    if cfg["layout"] == ITEMS and row["null"] == 0:
        _keep_items(cfg, state, buffers, i, w)
    for a in range(cfg["width"]):
        mem.waiting_key(state)[w * cfg["width"] + a] = mem.row_key(buffers, i * cfg["width"] + a)
    waiting.enter_line(state, w)
    if cfg["integrated"]:
        integrated.arrive(cfg, state, w)
    elif waiting.by_lot(cfg):
        waiting.enter_list(state, w)
    elif cfg["drop"] == DROP_SEMANTIC:
        # Of equal rows the newest goes: otherwise the line would serve one stream alone.
        expected = waiting.chance(cfg, state, w, int(cfg["drop_by"]))
        waiting.enter_heap(state, w, row["importance"] * expected, -float(arrival))
    return w


@kernel
def _keep_items(cfg, state, buffers, i, w):
    """What a row has is kept where it will be stored."""
    row = mem.waiting(state, w)
    x = items.receive(cfg, state, buffers, i, int(row["stream"]), row["ts"], row["seq"])
    row["item"] = x
    t = mem.pool(state, x)
    t["arrival"] = row["arrival"]
    t["bytes"] = row["bytes"]
    t["met"] = 0
    t["queued"] = IN_LINE
    t["place"] = w


@kernel
def let_go(cfg, state, w):
    """A row goes without being stored."""
    row = mem.waiting(state, w)
    if cfg["layout"] == ITEMS and row["item"] != NONE:
        items.give_place(state, int(row["stream"]), int(row["item"]))
    waiting.give_back(state, w)


@kernel
def is_full(cfg, state, stream):
    """Whether the line of a stream is too long: in rows, or in time."""
    if cfg["drop"] == DROP_NONE:
        return False
    if cfg["queue_tuples"] > 0:
        return state["queued_rows"][stream] > cfg["queue_tuples"]
    first = mem.waiting(state, state["own_first"][stream])
    return mem.waiting(state, state["line_last"])["ts"] - first["ts"] >= cfg["queue_span"]


@kernel
def victim(cfg, state, stream):
    """Which row of a full line goes."""
    if cfg["drop"] == DROP_SEMANTIC:
        return int(mem.queue_heap(state)[stream, heap.TOP]["item"])
    return int(mem.queue_list(state)[stream, int(lots.draw(state) * state["queued_rows"][stream])])


@kernel
def _leave_queue(cfg, state, w):
    waiting.leave_line(state, w)
    if cfg["integrated"]:
        integrated.leave(cfg, state, w)
    elif waiting.by_lot(cfg):
        waiting.leave_list(state, w)
    elif cfg["drop"] == DROP_SEMANTIC:
        waiting.leave_heap(state, w)


@kernel
def _lose(cfg, state, w):
    """What a row that goes unjoined might have met is not certain any more."""
    row = mem.waiting(state, w)
    stream = int(row["stream"])
    value = mem.waiting_key(state)[w * cfg["width"] + doubts.shed_attr(cfg, stream)]
    doubts.lose(cfg, state, stream, value, row["null"], row["ts"], row["seq"])
    if cfg["layout"] == ITEMS and row["item"] != NONE:
        doubts.lose_waiting(cfg, state, stream, int(row["item"]))


@kernel
def drop(cfg, state, buffers, w):
    """A row goes from the line. There is room in the log."""
    row = mem.waiting(state, w)
    _leave_queue(cfg, state, w)
    key = mem.waiting_key(state)[w * cfg["width"]]
    log.record_at(cfg, state, buffers, int(row["stream"]), row["seq"], row["ts"], key, DROPPED, state["newest_ts"])
    _lose(cfg, state, w)
    state["dropped"] += 1
    let_go(cfg, state, w)


# ----------------------------------------------------------------------------------------------------- rows in their turn


@kernel
def lacks_levels(cfg, state):
    """Dual windows: whether there is no room for another number of expected partners."""
    return cfg["rear"] == 1 and levels.lacks_room(state, int(mem.waiting(state, state["line_first"])["stream"]))


@kernel
def begin_work(cfg, state, buffers):
    """The first in line is served."""
    w = int(state["line_first"])
    _leave_queue(cfg, state, w)
    buffers["before"] = state["worked"]
    buffers["newest"] = mem.waiting(state, w)["ts"]
    buffers["row"] = w
    buffers["silent"] = 0
    if cfg["dual"]:
        aux_window.enter(cfg, state, w)


@kernel
def leave_aux_window(cfg, state, buffers):
    w, silent = aux_window.leave(cfg, state)
    buffers["row"] = w
    buffers["silent"] = silent


@kernel
def end_work(cfg, state, buffers):
    """The CPU is free for the next."""
    state["fetched"] += 1
    if cfg["capacity"] > 0.0:
        spent = (state["worked"] - buffers["before"]) / cfg["capacity"]
        state["cpu_free"] = max(state["cpu_free"], float(buffers["newest"])) + spent


@inlined
def must_close(state, buffers):
    """Whether the row at hand is of another instant than the one that is open."""
    return state["open"] == 1 and state["open_ts"] != mem.waiting(state, buffers["row"])["ts"]


@kernel
def _set_instant(cfg, state, buffers, w):
    """Where the instant of the row at hand begins, and ends."""
    number = mem.waiting(state, w)["instant"]
    if not cfg["let_in"]:
        at, after = _instant_at(state, number), _instant_at(state, number + 1)
        for stream in range(cfg["streams"]):
            state["from_number"][stream] = mem.instants(state)[at + stream]
            last = number == state["instant"]
            state["through"][stream] = state["numbered"][stream] if last else mem.instants(state)[after + stream]
    for stream in range(cfg["streams"]):
        buffers["old_seq"][stream] = state["from_number"][stream]
    state["turned"] = number
    state["whole"] = 1


@kernel
def _follow_clocks(cfg, state, buffers):
    """Clocks have moved: what that means for all that is stored and counted. There is room for all that may expire."""
    clocks.set_horizons(cfg, state)
    clocks.set_bases(cfg, state)
    estimate.let_go(cfg, state)
    if cfg["expire_every"] == 0:
        store.expire(cfg, state, buffers)
    estimate.fold(cfg, state)


@kernel
def begin_turn(cfg, state, buffers):
    """A row has its turn; returns whether it is joined."""
    w = int(buffers["row"])
    row = mem.waiting(state, w)
    stream, ts = int(row["stream"]), row["ts"]
    _set_instant(cfg, state, buffers, w)
    if state["open"] == 0:
        rounds.expire(cfg, state, buffers, max(newest(cfg, state), ts))
        state["open"] = 1
        state["open_ts"] = ts
        for one in range(cfg["streams"]):
            state["opened"][one] = state["taken"][one]
        priority.set_lift(cfg, state)
    clocks.take_turn(cfg, state, stream, ts)
    if cfg["expire_every"] > 0 and clocks.is_late(state, stream, ts):
        store.expire(cfg, state, buffers)
    state["taken"][stream] = row["seq"] + 1
    for one in range(cfg["streams"]):
        state["arrived"][one] = max(state["arrived"][one], state["through"][one])
    _follow_clocks(cfg, state, buffers)
    if clocks.is_late(state, stream, ts):
        log.record_late(cfg, state, buffers, stream, row["seq"], ts, mem.waiting_key(state)[w * cfg["width"]])
    state["worked"] += cfg["update_cost"]
    if row["null"]:
        unmatched.give_null(cfg, state, buffers, stream, row["seq"], ts, row["importance"])
        state["null"] += 1
        return False
    return True


@kernel
def hand_over(cfg, state, buffers, i):
    """The row at hand, where the loop finds the rows of a push."""
    w = int(buffers["row"])
    row = mem.waiting(state, w)
    mem.set_row_stream(buffers, i, row["stream"])
    mem.set_row_ts(buffers, i, row["ts"])
    mem.set_row_null(buffers, i, 0)
    mem.set_row_importance(buffers, i, row["importance"])
    mem.set_row_bytes(buffers, i, row["bytes"])
    if cfg["types"] > 0:
        mem.set_row_kind(buffers, i, row["kind"])
    for a in range(cfg["width"]):
        mem.set_row_key(buffers, i * cfg["width"] + a, mem.waiting_key(state)[w * cfg["width"] + a])
    state["arrival"] = row["arrival"]


@kernel
def _keep_values(cfg, state, x, change):
    """The values of a tuple with items are needed until its instant closes, or are not any more."""
    if items.has_values(cfg):
        for number in range(storage.values_of(cfg, state, x)):
            mem.kept(state)[storage.value_of(cfg, state, x, number)] += change


@kernel
def fresh_values(cfg, state):
    """How many values the tuples of the open instant have."""
    if cfg["layout"] != ITEMS:
        return state["fresh_count"] * cfg["parts"]
    total = 0
    for i in range(state["fresh_count"]):
        total += storage.values_of(cfg, state, int(mem.fresh(state, i)["item"]))
    return total


@kernel
def list_fresh(state, buffers):
    """All tuples that the open instant brought, those that left again too."""
    for i in range(state["fresh_count"]):
        mem.set_out_fresh(buffers, i, mem.fresh(state, i)["item"])
    buffers["fresh"] = state["fresh_count"]


@kernel
def note_fresh(cfg, state, buffers, x):
    """A row was stored. Estimators see it when its instant closes, even if it is gone by then."""
    t, row = mem.pool(state, x), mem.waiting(state, buffers["row"])
    at = state["fresh_count"]
    fresh = mem.fresh(state, at)
    fresh["item"] = x
    fresh["stream"] = t["stream"]
    fresh["number"] = row["number"]
    if cfg["layout"] == ITEMS:
        _keep_values(cfg, state, x, 1)
    elif cfg["weighed"] and cfg["alone"] == 0:
        for part in range(cfg["parts"]):
            v = storage.value_of(cfg, state, x, part)
            mem.fresh_value(state)[at * cfg["parts"] + part] = v
            if v != NONE:
                mem.kept(state)[v] += 1
    state["fresh_count"] = at + 1
    integrated.keep_priority(cfg, state, buffers["row"], x, int(t["stream"]), row["importance"])


@kernel
def note_unprobed(cfg, state, buffers, i):
    """Rear shedding: the row at hand does not probe."""
    stream = mem.row_stream(buffers, i)
    seq = mem.waiting(state, buffers["row"])["seq"]
    log.record(
        cfg, state, buffers, stream, seq, mem.row_ts(buffers, i), mem.row_key(buffers, i * cfg["width"]), UNPROBED
    )
    state["unprobed"] += 1
    for other in range(cfg["streams"]):
        if other != stream:
            select.leave_out(buffers, stream, seq, other, FIRST, 0, LAST, 0)


# -------------------------------------------------------------------------------------------------- the end of an instant


@kernel
def begin_close(cfg, state, buffers):
    """The rows that are left of the open instant, as the stages that follow find them."""
    there = 0
    for i in range(state["fresh_count"]):
        x = int(mem.fresh(state, i)["item"])
        if mem.pool(state, x)["queued"] != GONE:
            mem.set_out_fresh(buffers, there, x)
            there += 1
        if cfg["layout"] == ITEMS:
            _keep_values(cfg, state, x, -1)
        elif cfg["weighed"] and cfg["alone"] == 0:
            for part in range(cfg["parts"]):
                v = int(mem.fresh_value(state)[i * cfg["parts"] + part])
                if v != NONE:
                    mem.kept(state)[v] -= 1
    buffers["fresh"] = there
    for stream in range(cfg["streams"]):
        buffers["old_seq"][stream] = state["opened"][stream]
    waiting.keep_instant(state)


@kernel
def end_close(cfg, state):
    store.free_gone(cfg, state)
    state["fresh_count"] = 0
    state["open"] = 0


# --------------------------------------------------------------------------------------------------------- told clocks


@kernel
def newest_told(cfg, buffers):
    """The largest time that a turn tells."""
    time = NEVER
    if buffers["turn"] == TELL:
        for stream in range(cfg["streams"]):
            time = max(time, buffers["told"][stream])
    return time


@kernel
def tell(cfg, state, buffers):
    """Clocks that were told hold when all rows that came before have had their turn. There is room for all that may expire."""
    length, time = cfg["streams"] + 1, newest(cfg, state)
    while state["told_from"] < state["told_to"]:
        at = state["told_from"] * length
        if mem.told(state)[at] > waiting.first_arrival(state):
            return
        state["told_from"] += 1
        waiting.keep_instant(state)
        if state["open"]:
            state["whole"] = 1
        for stream in range(cfg["streams"]):
            time = max(time, mem.told(state)[at + 1 + stream])
        rounds.expire(cfg, state, buffers, time)
        for stream in range(cfg["streams"]):
            state["clock"][stream] = max(state["clock"][stream], mem.told(state)[at + 1 + stream])
        _follow_clocks(cfg, state, buffers)
    state["told_from"] = state["told_to"] = 0
