"""The loop that every tuple goes through: late? expire, probe, store, weigh, compete. See docs/semantics.md.

`advance` runs until its input is used up or a buffer is full; it then says what it needs and goes on from where it was.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from shedjoin.engine import evict, heap, keytable, mem, order, pairing, shelf, store, weigh
from shedjoin.engine.codes import (
    CUMULATIVE,
    EVICTED,
    IN_MEMORY,
    IN_WINDOW,
    KEY,
    LATE,
    LEARNED,
    LIFE,
    PLAIN_SETTINGS,
    SCHEDULE,
    SCHEDULED,
    TABLE,
)
from shedjoin.engine.forms import in_plain, is_plain, unless_plain
from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.engine.importance import output_importance
from shedjoin.engine.jit import entry, inlined, kernel
from shedjoin.engine.state import NONE, PLAIN_STATE

# What `advance` answers.
DONE, NEED_PAIRS, NEED_SHED, NEED_POOL, NEED_KEYS, NEED_SEEN, NEED_SHELVES, NEED_EXPIRY = range(8)

# So many rows are looked up ahead: a power of two.
AHEAD = 16

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
    span = max(st["ring_to"][0] - st["ring_from"][0], st["ring_to"][1] - st["ring_from"][1])
    if st["expiry_room"] - span < size:
        return NEED_EXPIRY
    remembers = how["estimator"] == IN_WINDOW or how["estimator"] == LEARNED
    if remembers and st["seen_room"] - max(st["seen_size"][0], st["seen_size"][1]) < size:
        return NEED_SEEN
    return DONE


@kernel
def _look_ahead(how, st, io, first):
    """Look up the keys of the next rows, and ask for what they will need, while other rows have work to do.

    In loops of their own, so that the processor waits for many at a time: with a large memory, waiting for each in
    turn would be most of the work.
    """
    end = min(first + AHEAD, io["row_ts_room"])
    for i in range(first, end):
        slot = keytable.find(st, mem.row_key(io, i))
        mem.set_row_ahead(io, i & (AHEAD - 1), slot)
        mem.fetch_sides(st, slot)  # harmless where there is none
    for i in range(first, end):
        slot = mem.row_ahead(io, i & (AHEAD - 1))
        if slot != NONE:
            keytable.fetch_shelves(st, slot, mem.row_stream(io, i))
            if how["organisation"] == CUMULATIVE:
                mem.fetch_probed(st, (1 - mem.row_stream(io, i)) * st["probed_room"] + slot)
            elif how["organisation"] == KEY or how["organisation"] == LIFE:
                pairing.fetch(st, mem.sides(st, slot)["low"][mem.row_stream(io, i)])
    io["ahead"] = end


@inlined
def _is_late(st, stream, ts):
    """Whether rows of this instant, which has begun, are late."""
    return ts < st["oldest"][stream]


@kernel
def _note_late(st, io, ts):
    seen = io["seq"]
    for i in range(io["first"], io["end"]):
        stream = mem.row_stream(io, i)
        if _is_late(st, stream, ts):
            _record(st, io, stream, seen[stream], ts, mem.row_key(io, i), LATE)
            st["late"] += 1
            seen[stream] += 1


@inlined
def _begin(how, st, io, right):
    """Late rows, clocks, expiry. `right` rows of the instant are of the right stream."""
    first, end = io["first"], io["end"]
    ts = mem.row_ts(io, first)
    io["over"] = 0
    for stream in range(STREAMS):
        st["oldest"][stream] = store.effective_clock(how, st, stream) - how["lateness"]
    for stream in range(STREAMS):
        rows = right if stream == 1 else end - first - right
        io["old_seq"][stream] = io["seq"][stream] = st["arrived"][stream]
        st["arrived"][stream] += rows
        if rows > 0 and not _is_late(st, stream, ts):
            st["clock"][stream] = max(st["clock"][stream], ts)
    st["rows"] += end - first
    io["fresh"] = 0
    evict.foresee(how, st, 1)
    order.set_lift(how, st)
    store.set_bases(how, st)
    weigh.let_go(how, st)
    store.expire(how, st)
    if _is_late(st, 0, ts) or _is_late(st, 1, ts):
        _note_late(st, io, ts)
    weigh.fold(how, st)


@inlined
def _probe(how, st, io, i, stream, seq, slot):
    """Meet the stored tuples of the other stream; returns how many there were."""
    other = 1 - stream
    ts, importance = mem.row_ts(io, i), mem.row_importance(io, i)
    back, ahead = order.reach(how, other), order.reach(how, stream)
    found = 0
    counted = 0
    total = 0.0
    at = io["pairs"]
    cumulative = how["organisation"] == CUMULATIVE
    side = mem.sides(st, slot)
    base, first, last_place = int(side["shelf"][other]), int(side["first"][other]), int(side["room"][other]) - 1
    for k in range(side["span"][other]):
        t = mem.shelf(st, base + ((first + k) & last_place))
        x = int(t["item"])
        if x == NONE:
            continue
        apart = ts - t["ts"]
        if -apart >= ahead + how["lateness"]:
            break  # later arrivals are at most the lateness older than this one: all too new (one stream runs ahead)
        if apart < back and -apart < ahead:
            found += 1
            worth = output_importance(how["output_importance"], importance, t["importance"])
            if max(ts, t["ts"]) >= how["warmup"]:
                counted += 1
                total += worth
                if how["emit"]:
                    mem.set_out_left(io, at, seq if stream == 0 else t["seq"])
                    mem.set_out_right(io, at, t["seq"] if stream == 0 else seq)
                    mem.set_out_worth(io, at, worth)
                    at += 1
            if cumulative:
                if t["seq"] >= io["old_seq"][other]:
                    mem.pool(st, x)["met"] = 1
                else:
                    mem.fetch_cumulated(st, x)  # it will gain
    if found > 0:
        # Rows of one instant, stream and key meet the same older tuples: those gain once.
        if cumulative and mem.probed(st)[other, slot] != st["tick"]:
            mem.probed(st)[other, slot] = st["tick"]
            order.touch(st, other, slot)
        io["pairs"] = at
        st["results"] += found
        st["matches"] += counted
        st["importance"] += total
    return found


@unless_plain
@inlined
def _note_fresh(st, io, x):
    """Policies and estimators see the new tuples when all rows of the instant are stored."""
    mem.set_out_fresh(io, io["fresh"], x)
    io["fresh"] += 1


@inlined
def _meet(how, st, io, i):
    """One row: probe, then store. Says what it needs, and has done nothing yet, when there might not be room."""
    if i >= io["ahead"]:
        _look_ahead(how, st, io, i)
    stream, ts = mem.row_stream(io, i), mem.row_ts(io, i)
    if _is_late(st, stream, ts):
        st["arrival"] += 1
        return DONE
    if mem.row_null(io, i):
        st["null"] += 1
        st["arrival"] += 1
        io["seq"][stream] += 1
        return DONE
    slot = mem.row_ahead(io, i & (AHEAD - 1))
    if slot == NONE:  # it may have come since
        slot = keytable.find_or_add(st, mem.row_key(io, i))
    if how["emit"]:
        partners = mem.sides(st, slot)["count"][1 - stream]
        if io["out_left_room"] - io["pairs"] < partners:
            io["wanted"] = partners
            return NEED_PAIRS
    io["wanted"] = shelf.make_place(st, slot, stream)
    if io["wanted"] > 0:
        return NEED_SHELVES
    seq = io["seq"][stream]
    io["seq"][stream] = seq + 1
    found = _probe(how, st, io, i, stream, seq, slot)
    x = store.add(
        how, st, stream, slot, ts, seq, mem.row_importance(io, i), mem.row_bytes(io, i), 1 if found > 0 else 0
    )
    _note_fresh(st, io, x)
    if store.is_over(st, stream, store.stamp_of(how, stream, ts, seq)):
        io["over"] += 1
    st["arrival"] += 1
    return DONE


@unless_plain
@inlined
def _weigh(how, st, io):
    """The estimator sees the new tuples."""
    if how["estimator"] == TABLE or how["estimator"] == IN_MEMORY:
        return
    for i in range(io["fresh"]):
        weigh.observe(how, st, mem.out_fresh(io, i))
    for i in range(io["fresh"]):
        weigh.refresh(how, st, int(mem.pool(st, mem.out_fresh(io, i))["slot"]))
    weigh.let_go(how, st)


@inlined
def _shed(how, st, io, x, why):
    t, card = mem.pool(st, x), shelf.of(st, x)
    stream = int(t["stream"])
    _record(st, io, stream, card["seq"], card["ts"], mem.keys(st, t["slot"])["key"], why)
    store.discard(how, st, x, stream)


@kernel
def _leave_by_schedule(how, st, io):
    """Replay: whoever's time has come. Returns NEED_SHED when the log is full."""
    now = float(max(st["clock"][0], st["clock"][1]))
    while True:
        x = evict.lowest_of_all(how, st)
        if x == NONE or mem.heap(st)[mem.pool(st, x)["stream"], heap.TOP]["prio"] > now:
            return DONE
        if io["shed"] == io["out_shed_room"]:
            return NEED_SHED
        _shed(how, st, io, x, SCHEDULED)
        st["scheduled"] += 1


@inlined
def _none_competes(how, st, io):
    return DONE


@in_plain(_none_competes)
@kernel
def _compete(how, st, io):
    """Evict until every group is within its cap. Returns NEED_SHED when the log is full."""
    if how["organisation"] == SCHEDULE:
        if _leave_by_schedule(how, st, io) == NEED_SHED:
            return NEED_SHED
    for group in range(how["groups"]):
        while evict.used(how, st, group) > st["caps"][group]:
            if io["shed"] == io["out_shed_room"]:
                return NEED_SHED
            _shed(how, st, io, evict.lowest(how, st, group), EVICTED)
            st["evicted"] += 1
            evict.foresee_draws(how, st, group)
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


@inlined
def _run(how, st, io):
    """Instants until the rows are used up (DONE) or something has to be emptied or to grow."""
    n = io["row_ts_room"]
    while io["first"] < n:
        first = io["first"]
        if io["phase"] == BEGIN:
            ts, end, right = mem.row_ts(io, first), first, 0
            while end < n and mem.row_ts(io, end) == ts:
                right += mem.row_stream(io, end)
                end += 1
            io["end"] = end
            need = _wants(how, st, io, end - first)
            if need != DONE:
                return need
            _begin(how, st, io, right)
            io["at"] = first
            io["phase"] = MEET
        if io["phase"] == MEET:
            while io["at"] < io["end"]:
                need = _meet(how, st, io, io["at"])
                if need != DONE:
                    return need
                io["at"] += 1
            evict.foresee(how, st, 2)
            _weigh(how, st, io)
            order.settle(how, st, io, mem.row_ts(io, first))
            if io["over"] > 0:
                store.expire(how, st)
            io["phase"] = COMPETE
        if _compete(how, st, io) == NEED_SHED:
            io["wanted"] = 1
            return NEED_SHED
        evict.foresee(how, st, 0)
        _finish(how, st, io, mem.row_ts(io, first))
        io["first"] = io["end"]
        io["phase"] = BEGIN
    return DONE


@entry
def advance_plain(settings, state, rows):
    """The form PLAIN: takes PLAIN_SETTINGS and PLAIN_STATE."""
    return _run(settings[0], state[0], rows[0])


@entry
def advance_pair(settings, state, rows):
    """The form PAIR: takes SETTINGS_RECORD and STATE_RECORD.

    In the phase SHRINK, no rows are run: memory is made to fit a budget that changed between two pushes, as part of the
    last instant. (Inside `_run`, the same lines double the time that this takes to compile.)
    """
    how, st, io = settings[0], state[0], rows[0]
    if io["phase"] == SHRINK:
        st["tick"] -= 1
        need = _compete(how, st, io)
        st["tick"] += 1
        return need
    return _run(how, st, io)


def advance(how: NDArray[Any], state: Handle, io: Handle) -> int:
    """Run instants until the rows are used up (DONE) or something has to be emptied or to grow, in the form that fits."""
    if not is_plain(how):
        return int(advance_pair(how, state.for_kernel(), io.for_kernel()))
    if io["phase"] == SHRINK:  # an exact join keeps all
        return DONE
    return int(advance_plain(how.view(PLAIN_SETTINGS), state.seen_as(PLAIN_STATE).for_kernel(), io.for_kernel()))
