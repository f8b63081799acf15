"""The loop that every tuple goes through: late? expire, probe, store, weigh, compete. See docs/semantics.md.

`advance` runs until its input is used up or a buffer is full; it then says what it needs and goes on from where it was.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import keytable, mem, order, store, weigh
from shedjoin.engine.codes import (
    CUMULATIVE,
    EVICTED,
    IN_MEMORY,
    IN_WINDOW,
    LATE,
    RANDOM,
    SCHEDULE,
    SCHEDULED,
    TABLE,
    TIME,
)
from shedjoin.engine.handle import STREAMS
from shedjoin.engine.jit import entry, inlined, kernel
from shedjoin.engine.state import NONE

# What `advance` answers.
DONE, NEED_PAIRS, NEED_SHED, NEED_POOL, NEED_KEYS, NEED_RING = range(6)

# Where `advance` is in an instant.
BEGIN, MEET, COMPETE, SHRINK = range(4)


@inlined
def _record(st, io, stream, seq, ts, key, why):
    record = mem.out_shed(io)[io["shed"]]
    record["stream"] = stream
    record["seq"] = seq
    record["ts"] = ts
    record["key"] = key
    record["when"] = max(st["clock"][0], st["clock"][1])
    record["tick"] = st["tick"]
    record["why"] = why
    record["seen0"] = st["arrived"][0]
    record["seen1"] = st["arrived"][1]
    io["shed"] += 1


@inlined
def _wants(how, st, io, size):
    """What has to grow before an instant of `size` rows can begin."""
    io["wanted"] = size
    if st["free_count"] < size:
        return NEED_POOL
    if st["free_key_count"] < size:
        return NEED_KEYS
    if io["out_shed_room"] - io["shed"] < size:
        return NEED_SHED
    if how["estimator"] == IN_WINDOW and st["ring_room"] - max(st["ring_size"][0], st["ring_size"][1]) < size:
        return NEED_RING
    return DONE


@inlined
def _look_ahead(st, io, i):
    """Ask for what later rows will need: with a large memory, waiting for it would be most of the work."""
    n = io["row_ts_room"]
    keys = mem.row_key(io)
    if i + 12 < n:
        keytable.fetch_bucket(st, keys[i + 12])
        keytable.fetch_key(st, keys[i + 8])
        keytable.fetch_tuples(st, keys[i + 4], mem.row_stream(io)[i + 4])


@inlined
def _begin(how, st, io):
    """Late rows, clocks, expiry. A late row is marked by slot -2, a null key by -1."""
    first, end = io["first"], io["end"]
    ts = mem.row_ts(io)[first]
    oldest = st["oldest"]
    for stream in range(STREAMS):
        oldest[stream] = store.effective_clock(how, st, stream) - how["lateness"]
    for i in range(first, end):
        stream = mem.row_stream(io)[i]
        mem.row_slot(io)[i - first] = -2 if ts < oldest[stream] else NONE
        mem.row_seq(io)[i - first] = st["arrived"][stream]
        st["arrived"][stream] += 1
        if mem.row_slot(io)[i - first] == NONE:
            st["clock"][stream] = max(st["clock"][stream], ts)
    st["rows"] += end - first
    io["fresh"] = 0
    io["old"] = st["arrival"]
    store.set_bases(how, st)
    weigh.let_go(how, st)
    store.expire(how, st)
    for i in range(first, end):
        if mem.row_slot(io)[i - first] == -2:
            _record(st, io, mem.row_stream(io)[i], mem.row_seq(io)[i - first], ts, mem.row_key(io)[i], LATE)
            st["late"] += 1
    weigh.fold(how, st)


@inlined
def _output_importance(code, a, b):
    if code == 0:
        return min(a, b)
    if code == 1:
        return max(a, b)
    if code == 2:
        return a + b
    if code == 3:
        return a * b
    return (a + b) / 2.0


@inlined
def _probe(how, st, io, i, slot):
    """Meet the stored tuples of the other stream; returns how many there were."""
    stream = mem.row_stream(io)[i]
    other = 1 - stream
    ts, seq, importance = mem.row_ts(io)[i], mem.row_seq(io)[i - io["first"]], mem.row_importance(io)[i]
    # A row window lets everything pass that is stored.
    back = order.window_size(how, other) if order.window_kind(how, other) == TIME else 2**62
    ahead = order.window_size(how, stream) if order.window_kind(how, stream) == TIME else 2**62
    tick = st["tick"]
    found = 0
    counted = 0
    total = 0.0
    at = io["pairs"]
    x = int(mem.keys(st, slot)["head"][other])
    while x != NONE:
        t = mem.pool(st, x)
        apart = ts - t["ts"]
        if -apart >= ahead + how["lateness"]:
            break  # later arrivals are at most the lateness older than this one: all too new (one stream runs ahead)
        if apart < back and -apart < ahead:
            found += 1
            worth = _output_importance(how["output_importance"], importance, t["importance"])
            if max(ts, t["ts"]) >= how["warmup"]:
                counted += 1
                total += worth
                if how["emit"]:
                    mem.out_left(io)[at] = seq if stream == 0 else t["seq"]
                    mem.out_right(io)[at] = t["seq"] if stream == 0 else seq
                    mem.out_worth(io)[at] = worth
                    at += 1
            if how["organisation"] == CUMULATIVE and mem.more(st, x)["mark"] != tick:
                mem.more(st, x)["mark"] = tick
                if t["arrival"] < io["old"]:
                    mem.touched(st)[st["touched_count"]] = x
                    st["touched_count"] += 1
        x = int(t["next"])
    io["pairs"] = at
    st["results"] += found
    st["matches"] += counted
    st["importance"] += total
    return found


@inlined
def _meet(how, st, io, i):
    """One row: probe, then store. Returns NEED_PAIRS, untouched, when the results might not fit."""
    _look_ahead(st, io, i)
    place = i - io["first"]
    if mem.row_slot(io)[place] == -2 or mem.row_null(io)[i]:
        if mem.row_null(io)[i] and mem.row_slot(io)[place] != -2:
            st["null"] += 1
        st["arrival"] += 1
        return DONE
    stream = mem.row_stream(io)[i]
    slot = keytable.find_or_add(st, mem.row_key(io)[i])
    if how["emit"]:
        partners = mem.keys(st, slot)["count"][1 - stream]
        if io["out_left_room"] - io["pairs"] < partners:
            io["wanted"] = partners
            return NEED_PAIRS
    found = _probe(how, st, io, i, slot)
    mark = st["tick"] if found > 0 else NONE
    mem.out_fresh(io)[io["fresh"]] = store.add(
        how,
        st,
        stream,
        slot,
        mem.row_ts(io)[i],
        mem.row_seq(io)[place],
        mem.row_importance(io)[i],
        mem.row_bytes(io)[i],
        mark,
    )
    mem.row_slot(io)[place] = slot
    io["fresh"] += 1
    st["arrival"] += 1
    return DONE


@inlined
def _weigh(how, st, io, first, end):
    """The estimator sees the instant's rows."""
    if how["estimator"] == TABLE or how["estimator"] == IN_MEMORY:
        return
    for i in range(first, end):
        slot = mem.row_slot(io)[i - first]
        if slot >= 0:
            weigh.observe(how, st, mem.row_stream(io)[i], slot, mem.row_key(io)[i], mem.row_seq(io)[i - first])
    for i in range(first, end):
        slot = mem.row_slot(io)[i - first]
        if slot >= 0:
            weigh.refresh(how, st, slot, mem.row_key(io)[i])
    weigh.let_go(how, st)


@kernel
def _random_tuple(how, st, group):
    """RAND's choice within a group."""
    x = st["random"]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    st["random"] = x
    unit = np.float64(np.int64(x >> np.uint64(11))) * 2.0**-53
    if how["groups"] == STREAMS:
        return int(mem.dense(st)[group, int(unit * st["resident"][group])])
    i = int(unit * (st["resident"][0] + st["resident"][1]))
    stream = 0
    while i >= st["resident"][stream]:
        i -= st["resident"][stream]
        stream += 1
    return int(mem.dense(st)[stream, i])


@kernel
def _lowest_of_all(how, st):
    """The lowest of what the streams offer; on equal priority the earlier arrival."""
    lowest, lowest_prio, lowest_arrival = NONE, 0.0, 0
    for stream in range(STREAMS):
        x, prio, arrival = order.lowest(how, st, stream)
        if x != NONE and (lowest == NONE or prio < lowest_prio or (prio == lowest_prio and arrival < lowest_arrival)):
            lowest, lowest_prio, lowest_arrival = x, prio, arrival
    return lowest


@kernel
def _lowest(how, st, group):
    """The tuple that a group gives up next."""
    if how["organisation"] == RANDOM:
        return _random_tuple(how, st, group)
    if how["groups"] == STREAMS:
        return order.lowest(how, st, group)[0]
    return _lowest_of_all(how, st)


@inlined
def _used(how, st, group):
    held = st["stored_bytes"] if how["by_bytes"] else st["resident"]
    return held[group] if how["groups"] == STREAMS else held[0] + held[1]


@inlined
def _shed(how, st, io, x, why):
    t = mem.pool(st, x)
    _record(st, io, t["stream"], t["seq"], t["ts"], mem.keys(st, t["slot"])["key"], why)
    store.discard(how, st, x)


@kernel
def _leave_by_schedule(how, st, io):
    """Replay: whoever's time has come. Returns NEED_SHED when the log is full."""
    now = float(max(st["clock"][0], st["clock"][1]))
    while True:
        x = _lowest_of_all(how, st)
        if x == NONE or mem.heap(st)[mem.pool(st, x)["stream"], 0]["prio"] > now:
            return DONE
        if io["shed"] == io["out_shed_room"]:
            return NEED_SHED
        _shed(how, st, io, x, SCHEDULED)
        st["scheduled"] += 1


@kernel
def _compete(how, st, io):
    """Evict until every group is within its cap. Returns NEED_SHED when the log is full."""
    if how["organisation"] == SCHEDULE:
        if _leave_by_schedule(how, st, io) == NEED_SHED:
            return NEED_SHED
    for group in range(how["groups"]):
        while _used(how, st, group) > st["caps"][group]:
            if io["shed"] == io["out_shed_room"]:
                return NEED_SHED
            _shed(how, st, io, _lowest(how, st, group), EVICTED)
            st["evicted"] += 1
    return DONE


@inlined
def _finish(how, st, io, ts):
    """The instant is over: note the peak, the trace, and count on."""
    resident = st["resident"][0] + st["resident"][1]
    st["peak_tuples"] = max(st["peak_tuples"], resident)
    st["peak_bytes"] = max(st["peak_bytes"], st["stored_bytes"][0] + st["stored_bytes"][1])
    if how["trace_every"] > 0 and st["tick"] % how["trace_every"] == 0:
        at = io["traces"]
        mem.out_trace(io)[at, 0] = ts
        mem.out_trace(io)[at, 1] = st["resident"][0]
        mem.out_trace(io)[at, 2] = st["resident"][1]
        io["traces"] += 1
    st["tick"] += 1


@entry
def advance(settings, state, rows):
    """Run instants until the rows are used up (DONE) or something has to be emptied or to grow.

    In the phase SHRINK, no rows are run: memory is made to fit a budget that changed between two pushes, as part of the
    last instant.
    """
    how, st, io = settings[0], state[0], rows[0]
    if io["phase"] == SHRINK:
        st["tick"] -= 1
        need = _compete(how, st, io)
        st["tick"] += 1
        return need
    n = io["row_ts_room"]
    while io["first"] < n:
        first = io["first"]
        if io["phase"] == BEGIN:
            end = first + 1
            while end < n and mem.row_ts(io)[end] == mem.row_ts(io)[first]:
                end += 1
            io["end"] = end
            need = _wants(how, st, io, end - first)
            if need != DONE:
                return need
            _begin(how, st, io)
            io["at"] = first
            io["phase"] = MEET
        if io["phase"] == MEET:
            while io["at"] < io["end"]:
                if _meet(how, st, io, io["at"]) == NEED_PAIRS:
                    return NEED_PAIRS
                io["at"] += 1
            _weigh(how, st, io, first, io["end"])
            order.settle(how, st, mem.out_fresh(io), io["fresh"])
            store.expire(how, st)
            io["phase"] = COMPETE
        if _compete(how, st, io) == NEED_SHED:
            io["wanted"] = 1
            return NEED_SHED
        _finish(how, st, io, mem.row_ts(io)[first])
        io["first"] = io["end"]
        io["phase"] = BEGIN
    return DONE
