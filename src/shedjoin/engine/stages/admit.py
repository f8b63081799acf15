"""Admission: rows arrive, wait in line, are dropped, and have their turn, one by one.

A slow (virtual) CPU serves the first in line when it is free; dual windows let it stand in the aux-window before it probes. An
instant stays open until a row of another time has its turn. See decision 017.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import DROP_NONE, DROP_SEMANTIC, DROPPED, ITEMS, LATE, MOST, UNPROBED
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import items, storage
from shedjoin.engine.records import GONE, IN_LINE, NEVER, NONE
from shedjoin.engine.stages import (
    adapt,
    aux_window,
    clocks,
    estimate,
    integrated,
    log,
    lots,
    priority,
    select,
    store,
    waiting,
)
from shedjoin.engine.structures import heap, levels

#: Before and after all times.
FIRST, LAST = -(2**62), 2**62

# What is next: a row arrives, the first in line has its turn, the first of the aux-window has it (at a flush), or nothing.
NOTHING, ARRIVES, WORKS, LEAVES = range(4)


# ------------------------------------------------------------------------------------------------------- rows that come


@inlined
def _instant_at(st, number):
    """Where the numbers of an instant stand."""
    return (number & (st["instants_room"] // MOST - 1)) * MOST


@kernel
def lacks_instants(st):
    """Whether there is no room for one more instant from which rows may wait."""
    return (st["instant"] + 3 - waiting.first_instant(st)) * MOST > st["instants_room"]


@kernel
def begin_instant(how, st, io):
    """The rows of one time get their numbers, and know how many came with them."""
    first, n = io["first"], io["row_ts_room"]
    ts, end = mem.row_ts(io, first), first
    st["instant"] += 1
    at = _instant_at(st, st["instant"])
    for stream in range(how["streams"]):
        mem.instants(st)[at + stream] = st["numbered"][stream]
        io["coming"][stream] = st["numbered"][stream]
    while end < n and mem.row_ts(io, end) == ts:
        st["numbered"][mem.row_stream(io, end)] += 1
        end += 1
    io["arrival"] = st["rows"]
    st["rows"] += end - first
    io["at"] = first
    io["end"] = end


@kernel
def following(how, st, io, flushes):
    """What happens next."""
    slow = how["capacity"] > 0.0
    if io["first"] < io["row_ts_room"]:
        if st["line_first"] != NONE and (not slow or st["cpu_free"] < mem.row_ts(io, io["at"])):
            return WORKS
        return ARRIVES
    if st["line_first"] != NONE and (not slow or flushes):
        return WORKS
    return LEAVES if flushes and st["aux_first"] != NONE else NOTHING


@inlined
def is_due(how, st, io):
    """Dual windows: whether speeds are to be measured before this row comes."""
    if how["adapts"] == 0:
        return False
    return st["last_adapt"] == NEVER or mem.row_ts(io, io["at"]) >= st["last_adapt"] + how["adapts"]


@kernel
def come(how, st, io):
    """A row arrives; returns its place in line, or -1 where it was dropped by lot. There is room for it, and in the log."""
    i = io["at"]
    stream = mem.row_stream(io, i)
    st["newest_ts"] = mem.row_ts(io, i)
    seq = io["coming"][stream]
    io["coming"][stream] = seq + 1
    arrival = io["arrival"]
    io["arrival"] = arrival + 1
    io["at"] = i + 1
    if io["at"] == io["end"]:
        io["first"] = io["end"]
    if how["basic"] > 0:
        adapt.come(how, st, io, i)
    if how["dual"]:
        st["came_rows"][stream] += 1
        if how["front"] and lots.draw(st) < st["front_share"]:
            log.record_at(
                how, st, io, stream, seq, st["newest_ts"], mem.row_key(io, i * how["width"]), DROPPED, st["newest_ts"]
            )
            st["dropped"] += 1
            return NONE
    w = waiting.take(st)
    row = mem.waiting(st, w)
    row["arrival"] = arrival
    row["seq"] = seq
    row["number"] = seq
    row["ts"] = st["newest_ts"]
    row["instant"] = st["instant"]
    row["importance"] = mem.row_importance(io, i)
    row["stream"] = stream
    row["bytes"] = mem.row_bytes(io, i)
    row["null"] = 1 if mem.row_null(io, i) else 0
    row["kind"] = mem.row_kind(io, i) if how["types"] > 0 else 0
    row["prio"] = 0.0
    row["expected"] = 0.0
    row["item"] = NONE
    if how["layout"] == ITEMS and row["null"] == 0:
        _keep_items(how, st, io, i, w)
    for a in range(how["width"]):
        mem.waiting_key(st)[w * how["width"] + a] = mem.row_key(io, i * how["width"] + a)
    waiting.enter_line(st, w)
    if how["integrated"]:
        integrated.arrive(how, st, w)
    elif waiting.by_lot(how):
        waiting.enter_list(st, w)
    elif how["drop"] == DROP_SEMANTIC:
        # Of equal rows the newest goes: otherwise the line would serve one stream alone.
        expected = waiting.chance(how, st, w, int(how["drop_by"]))
        waiting.enter_heap(st, w, row["importance"] * expected, -float(arrival))
    return w


@kernel
def _keep_items(how, st, io, i, w):
    """What a row has is kept where it will be stored."""
    row = mem.waiting(st, w)
    x = items.receive(how, st, io, i, int(row["stream"]), row["ts"], row["seq"])
    row["item"] = x
    t = mem.pool(st, x)
    t["arrival"] = row["arrival"]
    t["bytes"] = row["bytes"]
    t["met"] = 0
    t["queued"] = IN_LINE
    t["place"] = w


@kernel
def let_go(how, st, w):
    """A row goes without being stored."""
    row = mem.waiting(st, w)
    if how["layout"] == ITEMS and row["item"] != NONE:
        items.give_place(st, int(row["stream"]), int(row["item"]))
    waiting.give_back(st, w)


@kernel
def is_full(how, st, stream):
    """Whether the line of a stream is too long: in rows, or in time."""
    if how["drop"] == DROP_NONE:
        return False
    if how["queue_tuples"] > 0:
        return st["queued_rows"][stream] > how["queue_tuples"]
    first = mem.waiting(st, st["own_first"][stream])
    return mem.waiting(st, st["line_last"])["ts"] - first["ts"] >= how["queue_span"]


@kernel
def victim(how, st, stream):
    """Which row of a full line goes."""
    if how["drop"] == DROP_SEMANTIC:
        return int(mem.queue_heap(st)[stream, heap.TOP]["item"])
    return int(mem.queue_list(st)[stream, int(lots.draw(st) * st["queued_rows"][stream])])


@kernel
def _leave_queue(how, st, w):
    waiting.leave_line(st, w)
    if how["integrated"]:
        integrated.leave(how, st, w)
    elif waiting.by_lot(how):
        waiting.leave_list(st, w)
    elif how["drop"] == DROP_SEMANTIC:
        waiting.leave_heap(st, w)


@kernel
def drop(how, st, io, w):
    """A row goes from the line. There is room in the log."""
    row = mem.waiting(st, w)
    _leave_queue(how, st, w)
    key = mem.waiting_key(st)[w * how["width"]]
    log.record_at(how, st, io, int(row["stream"]), row["seq"], row["ts"], key, DROPPED, st["newest_ts"])
    st["dropped"] += 1
    let_go(how, st, w)


# ----------------------------------------------------------------------------------------------------- rows in their turn


@kernel
def lacks_levels(how, st):
    """Dual windows: whether there is no room for another number of expected partners."""
    return how["rear"] == 1 and levels.lacks_room(st, int(mem.waiting(st, st["line_first"])["stream"]))


@kernel
def begin_work(how, st, io):
    """The first in line is served."""
    w = int(st["line_first"])
    _leave_queue(how, st, w)
    io["before"] = st["worked"]
    io["newest"] = mem.waiting(st, w)["ts"]
    io["row"] = w
    io["silent"] = 0
    if how["dual"]:
        aux_window.enter(how, st, w)


@kernel
def leave_aux_window(how, st, io):
    w, silent = aux_window.leave(how, st)
    io["row"] = w
    io["silent"] = silent


@kernel
def end_work(how, st, io):
    """The CPU is free for the next."""
    st["fetched"] += 1
    if how["capacity"] > 0.0:
        spent = (st["worked"] - io["before"]) / how["capacity"]
        st["cpu_free"] = max(st["cpu_free"], float(io["newest"])) + spent


@inlined
def must_close(st, io):
    """Whether the row at hand is of another instant than the one that is open."""
    return st["open"] == 1 and st["open_ts"] != mem.waiting(st, io["row"])["ts"]


@kernel
def _set_instant(how, st, io, w):
    """Where the instant of the row at hand begins, and ends."""
    number = mem.waiting(st, w)["instant"]
    if not how["let_in"]:
        at, after = _instant_at(st, number), _instant_at(st, number + 1)
        for stream in range(how["streams"]):
            st["from_number"][stream] = mem.instants(st)[at + stream]
            last = number == st["instant"]
            st["through"][stream] = st["numbered"][stream] if last else mem.instants(st)[after + stream]
    for stream in range(how["streams"]):
        st["arrived"][stream] = max(st["arrived"][stream], st["through"][stream])
        io["old_seq"][stream] = st["from_number"][stream]
    st["turned"] = number


@kernel
def _follow_clocks(how, st):
    """Clocks have moved: what that means for all that is stored and counted."""
    clocks.set_horizons(how, st)
    clocks.set_bases(how, st)
    estimate.let_go(how, st)
    store.expire(how, st)
    estimate.fold(how, st)


@kernel
def begin_turn(how, st, io):
    """A row has its turn; returns whether it is joined, and not late."""
    w = int(io["row"])
    row = mem.waiting(st, w)
    stream, ts = int(row["stream"]), row["ts"]
    if st["open"] == 0:
        st["open"] = 1
        st["open_ts"] = ts
        for one in range(how["streams"]):
            st["opened"][one] = st["taken"][one]
        priority.set_lift(how, st)
    clocks.take_turn(how, st, stream, ts)
    st["taken"][stream] = row["seq"] + 1
    _set_instant(how, st, io, w)
    st["whole"] = 1
    _follow_clocks(how, st)
    if clocks.is_late(st, stream, ts):
        log.record(how, st, io, stream, row["seq"], ts, mem.waiting_key(st)[w * how["width"]], LATE)
        st["late"] += 1
        return False
    st["worked"] += how["update_cost"]
    if row["null"]:
        st["null"] += 1
        return False
    return True


@kernel
def hand_over(how, st, io, i):
    """The row at hand, where the loop finds the rows of a push."""
    w = int(io["row"])
    row = mem.waiting(st, w)
    mem.set_row_stream(io, i, row["stream"])
    mem.set_row_ts(io, i, row["ts"])
    mem.set_row_null(io, i, False)
    mem.set_row_importance(io, i, row["importance"])
    mem.set_row_bytes(io, i, row["bytes"])
    if how["types"] > 0:
        mem.set_row_kind(io, i, row["kind"])
    for a in range(how["width"]):
        mem.set_row_key(io, i * how["width"] + a, mem.waiting_key(st)[w * how["width"] + a])
    st["arrival"] = row["arrival"]


@kernel
def _keep_values(how, st, x, change):
    """The values of a tuple with items are needed until its instant closes, or are not any more."""
    if items.has_values(how):
        for number in range(storage.values_of(how, st, x)):
            mem.kept(st)[storage.value_of(how, st, x, number)] += change


@kernel
def fresh_values(how, st):
    """How many values the tuples of the open instant have."""
    if how["layout"] != ITEMS:
        return st["fresh_count"] * how["parts"]
    total = 0
    for i in range(st["fresh_count"]):
        total += storage.values_of(how, st, int(mem.fresh(st, i)["item"]))
    return total


@kernel
def list_fresh(st, io):
    """All tuples that the open instant brought, those that left again too."""
    for i in range(st["fresh_count"]):
        mem.set_out_fresh(io, i, mem.fresh(st, i)["item"])
    io["fresh"] = st["fresh_count"]


@kernel
def note_fresh(how, st, io, x):
    """A row was stored. Estimators see it when its instant closes, even if it is gone by then."""
    t, row = mem.pool(st, x), mem.waiting(st, io["row"])
    at = st["fresh_count"]
    fresh = mem.fresh(st, at)
    fresh["item"] = x
    fresh["stream"] = t["stream"]
    fresh["number"] = row["number"]
    if how["layout"] == ITEMS:
        _keep_values(how, st, x, 1)
    elif how["weighed"] and how["alone"] == 0:
        for part in range(how["parts"]):
            v = storage.value_of(how, st, x, part)
            mem.fresh_value(st)[at * how["parts"] + part] = v
            if v != NONE:
                mem.kept(st)[v] += 1
    st["fresh_count"] = at + 1
    integrated.keep_priority(how, st, io["row"], x, int(t["stream"]), row["importance"])


@kernel
def note_unprobed(how, st, io, i):
    """Rear shedding: the row at hand does not probe."""
    stream = mem.row_stream(io, i)
    seq = mem.waiting(st, io["row"])["seq"]
    log.record(how, st, io, stream, seq, mem.row_ts(io, i), mem.row_key(io, i * how["width"]), UNPROBED)
    st["unprobed"] += 1
    for other in range(how["streams"]):
        if other != stream:
            select.leave_out(io, stream, seq, other, FIRST, 0, LAST, 0)


# -------------------------------------------------------------------------------------------------- the end of an instant


@kernel
def begin_close(how, st, io):
    """The rows that are left of the open instant, as the stages that follow find them."""
    there = 0
    for i in range(st["fresh_count"]):
        x = int(mem.fresh(st, i)["item"])
        if mem.pool(st, x)["queued"] != GONE:
            mem.set_out_fresh(io, there, x)
            there += 1
        if how["layout"] == ITEMS:
            _keep_values(how, st, x, -1)
        elif how["weighed"] and how["alone"] == 0:
            for part in range(how["parts"]):
                v = int(mem.fresh_value(st)[i * how["parts"] + part])
                if v != NONE:
                    mem.kept(st)[v] -= 1
    io["fresh"] = there
    for stream in range(how["streams"]):
        io["old_seq"][stream] = st["opened"][stream]
    st["whole"] = 1 if waiting.first_instant(st) == st["turned"] else 0


@kernel
def end_close(how, st):
    store.free_gone(how, st)
    st["fresh_count"] = 0
    st["open"] = 0


# --------------------------------------------------------------------------------------------------------- told clocks


@kernel
def tell(how, st):
    """Clocks that were told hold when all rows that came before have had their turn."""
    length = how["streams"] + 1
    while st["told_from"] < st["told_to"]:
        at = st["told_from"] * length
        if mem.told(st)[at] > waiting.first_arrival(st):
            return
        st["told_from"] += 1
        for stream in range(how["streams"]):
            st["clock"][stream] = max(st["clock"][stream], mem.told(st)[at + 1 + stream])
        st["whole"] = 1 if st["open"] == 1 or waiting.first_instant(st) == st["turned"] else 0
        _follow_clocks(how, st)
    st["told_from"] = st["told_to"] = 0
