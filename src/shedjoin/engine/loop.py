"""The loop that every tuple goes through: late? expire, probe, store, estimate, evict. See docs/semantics.md.

`advance` runs until its input is used up or a buffer is full; it then says what it needs and goes on from where it was. One
source serves all joins; it is compiled in forms, see forms.py.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from shedjoin.engine import mem
from shedjoin.engine.codes import (
    EVICTED,
    FIRST_OF_SETS,
    IN_WINDOW,
    ITEMS,
    KEYED,
    LEARNED,
    MET,
    MOST,
    PAIR_SETTINGS,
    PLAIN_SETTINGS,
    RANDOM,
    SCHEDULE,
    SCHEDULED,
)
from shedjoin.engine.forms import in_pairs, in_plain, is_plain, unless_plain
from shedjoin.engine.handle import Handle
from shedjoin.engine.indirect import indirect
from shedjoin.engine.jit import cold_entry, entry, hot_entry, inlined, kernel
from shedjoin.engine.layouts import items, layout, storage
from shedjoin.engine.records import MANY_STATE, NEVER, NONE, PAIR_STATE, PLAIN_STATE
from shedjoin.engine.stages import (
    adapt,
    admit,
    aux_window,
    clocks,
    estimate,
    evict,
    integrated,
    log,
    priority,
    probe,
    probe_items,
    probe_many,
    rounds,
    select,
    store,
    waiting,
    work,
)
from shedjoin.engine.stages.times import newest, stamp_of
from shedjoin.engine.structures import key_table, kinetic_tournament

# What `advance` answers.
(
    DONE,
    NEED_RESULTS,
    NEED_SHED,
    NEED_POOL,
    NEED_KEYS,
    NEED_CELLS,
    NEED_SEEN,
    NEED_ENTRIES,
    NEED_EXPIRY,
    NEED_MARKS,
    NEED_BUCKETS,
    NEED_ITEMS,
    NEED_HISTOGRAM,
    NEED_LEFT_OUT,
    NEED_TIMELINE,
    PAUSE,  # nothing: a part of the push is done
    # of joins whose rows wait:
    NEED_WAITING,
    NEED_INSTANTS,
    NEED_FRESH,
    NEED_LET_IN,
    NEED_LEVELS,
    NEED_SPEEDS,
) = range(22)

# What is run: rows, or a turn without rows. TELL: clocks that rows elsewhere have moved. SHRINK: memory is made to fit a budget
# that changed between two pushes, as part of the last instant. FLUSH: what waits for lazy evaluation, or for its turn, is joined.
# ORDER: groups, and the tuples in `out_fresh`, are put in order anew. FRACTION: r has changed. CLOSE: the open instant is closed.
# REJOIN: rows that wait compete with what is stored, with the priorities they had; COMPETE_ANEW: with new ones.
ROWS, TELL, SHRINK, FLUSH, ORDER, FRACTION, CLOSE, REJOIN, COMPETE_ANEW = range(9)

# Where `advance` is in an instant.
BEGIN, MEET, COMPETE = range(3)
# Where it is with a row that waited: in the aux-window, at its turn, probing; at the end of its work; or sharing a memory.
DRAIN, TURN, PROBE, SPENT, SHARE = range(3, 8)

# An index that chooses its buckets itself keeps at most this many tuples in a bucket, on average.
CROWDED = 2


# ------------------------------------------------------------------------------------------------------ room for all


@kernel
def _is_crowded(st, size):
    """Whether an index that grows should have more buckets before `size` tuples more are stored."""
    for number in range(st["indexes_room"]):
        index = mem.indexes(st, number)
        if index["modular"] == 0 and index["attr"] >= 0:
            if st["resident"][index["stream"]] + size > CROWDED * index["many"]:
                return True
    return False


@inlined
def _values_of_pair(how, io, st, size):
    return size


@in_pairs(_values_of_pair)
@inlined
def _values_of_rows(how, io, st, size):
    """The most values that the rows of an instant can have."""
    if how["layout"] != ITEMS:
        return size * how["parts"]
    if how["predicate"] < FIRST_OF_SETS:
        return size
    if how["waits"]:
        return items.values_of_row(st, io)
    return mem.row_offsets(io)[io["end"]] - mem.row_offsets(io)[io["first"]] + size


@inlined
def _has_places_of_pair(how, st, size):
    return st["free_count"] >= size


@in_pairs(_has_places_of_pair)
@inlined
def _has_places(how, st, size):
    """Whether the pool has room for this many tuples, whatever their streams."""
    if how["layout"] == ITEMS:
        return min(st["free_places"][0], st["free_places"][1]) >= size
    return st["free_count"] >= size


@inlined
def _keys_wanted(how, st, io, size):
    return NEED_KEYS if st["free_key_count"] < size else DONE


@in_pairs(_keys_wanted)
@kernel
def _layout_wants(how, st, io, size):
    """What the layout needs for `size` rows."""
    if how["evaluate_every"] > 0 and (st["tick"] - st["first_mark"] + 2) * MOST > st["marks_room"]:
        return NEED_MARKS
    if how["layout"] == KEYED:
        return NEED_KEYS if st["free_key_count"] < size else DONE
    if how["layout"] == ITEMS:
        io["wanted"] = _values_of_rows(how, io, st, size)
        if how["waits"] == 0 and st["item_top"] + io["wanted"] > st["items_room"]:
            return NEED_ITEMS  # rows that wait have theirs already
        return NEED_KEYS if items.has_values(how) and st["free_key_count"] < io["wanted"] else DONE
    if _is_crowded(st, size):
        return NEED_BUCKETS
    if how["alone"]:
        return DONE
    if how["weighed"]:
        io["wanted"] = size * how["parts"]
        if st["free_key_count"] < io["wanted"]:
            return NEED_KEYS
        io["wanted"] = size
        if st["free_cell_count"] < size:
            return NEED_CELLS
    return DONE


@inlined
def _nothing_wanted(how, st, io, size):
    return DONE


@in_pairs(_nothing_wanted)
@kernel
def _selection_wants(how, st, io, size):
    """What selective processing needs for `size` rows."""
    if how["basic"] > 0:
        for stream in range(how["streams"]):
            if st["timeline_room"] - st["line_to"][stream] < (size if how["waits"] else io["rows"][stream]):
                return NEED_TIMELINE
    return DONE


@inlined
def _wants(how, st, io, size):
    """What has to grow before an instant of `size` rows can begin."""
    io["wanted"] = size
    if not _has_places(how, st, size):
        return NEED_POOL
    need = _layout_wants(how, st, io, size)
    if need != DONE:
        return need
    need = _selection_wants(how, st, io, size)
    if need != DONE:
        return need
    if io["out_shed_room"] - io["shed"] < size:
        return NEED_SHED
    span = 0
    for stream in range(how["streams"]):
        span = max(span, st["ring_to"][stream] - st["ring_from"][stream])
    if st["expiry_room"] - span < size:
        return NEED_EXPIRY
    if how["estimator"] == IN_WINDOW or how["estimator"] == LEARNED:
        io["wanted"] = _values_of_rows(how, io, st, size)
        for stream in range(how["streams"]):
            if st["seen_room"] - st["seen_size"][stream] < io["wanted"]:
                return NEED_SEEN
    return DONE


# ------------------------------------------------------------------------------------------------------- an instant


@inlined
def _is_same_instant(how, io, first, i):
    """Whether nothing came between two rows of one time: what did may have gone to another engine."""
    if how["counted_elsewhere"]:
        for stream in range(how["streams"]):
            if mem.row_arrived(io, first * how["streams"] + stream) != mem.row_arrived(io, i * how["streams"] + stream):
                return False
    return True


@inlined
def _find_pair_instant(how, io, st):
    first, n = io["first"], io["row_ts_room"]
    ts, end, right = mem.row_ts(io, first), first, 0
    while end < n and mem.row_ts(io, end) == ts:
        right += mem.row_stream(io, end)
        end += 1
    io["end"] = end
    io["rows"][0] = end - first - right
    io["rows"][1] = right


@in_pairs(_find_pair_instant)
@kernel
def _find_instant(how, io, st):
    """The rows of one time, counted by stream."""
    first, n = io["first"], io["row_ts_room"]
    ts, end = mem.row_ts(io, first), first
    for stream in range(how["streams"]):
        io["rows"][stream] = 0
    while end < n and mem.row_ts(io, end) == ts and _is_same_instant(how, io, first, end):
        io["rows"][mem.row_stream(io, end)] += 1
        end += 1
    io["end"] = end


@inlined
def _begin(how, st, io, ts):
    """Late rows, clocks, expiry. A turn that tells clocks begins like an instant without rows."""
    io["over"] = 0
    io["fresh"] = 0
    adapt.arrive(how, st, io)
    clocks.begin(how, st, io, ts)
    if io["turn"] == TELL:
        for stream in range(how["streams"]):
            st["clock"][stream] = max(st["clock"][stream], io["told"][stream])
    clocks.count_elsewhere(how, st, io)
    st["rows"] += io["end"] - io["first"]
    rounds.mark(how, st, io)
    evict.foresee(how, st, 1)
    priority.set_lift(how, st)
    clocks.set_horizons(how, st)
    clocks.set_bases(how, st)
    estimate.let_go(how, st)
    if how["expire_every"] == 0:
        store.expire(how, st)
    late = False
    for stream in range(how["streams"]):
        late = late or (io["rows"][stream] > 0 and clocks.is_late(st, stream, ts))
    if late:
        log.late(how, st, io, ts)
    estimate.fold(how, st)


@unless_plain
@inlined
def _note_fresh(st, io, x):
    """Policies and estimators see the new tuples when all rows of the instant are stored."""
    mem.set_out_fresh(io, io["fresh"], x)
    io["fresh"] += 1


@inlined
def _join_pair(how, st, io, i, v, stream, ts, seq):
    """Probe, then store."""
    found = probe.probe(how, st, io, i, stream, ts, seq, v)
    x = store.add(how, st, io, i, v, stream, ts, seq, 1 if found > 0 else 0)
    _note_fresh(st, io, x)
    return DONE


@kernel
def _probed(how, st, io, i):
    """The probe of a row is at its end."""
    if io["guest"] != NONE:
        items.dismiss(st, int(io["guest"]))
        io["guest"] = NONE
    elif how["estimator"] == MET:
        mem.met_on_arrival(st)[io["tuple"]] = st["results"] - io["found"]
    if how["basic"] > 0 and io["sampling"]:
        select.learn(how, st, io, i, mem.row_stream(io, i), mem.row_ts(io, i))
    if how["waits"]:
        work.spend(how, st, io)
    return DONE


@in_pairs(_join_pair)
@kernel
def _join(how, st, io, i, v, stream, ts, seq):
    """Store, then probe, now or with the next round."""
    if how["of_parts"] > 1 and not clocks.is_own(how, seq):
        x = items.receive(how, st, io, i, stream, ts, seq)
        io["guest"] = x
    else:
        x = store.add(how, st, io, i, v, stream, ts, seq, 0)
        _note_fresh(st, io, x)
        if how["estimator"] == MET:
            mem.met_on_arrival(st)[x] = 0
    if how["evaluate_every"] > 0:
        mem.set_pending(st, st["pending_count"], x)
        st["pending_count"] += 1
        return DONE
    return _probe_others(how, st, io, i, x, v, stream, ts, seq)


@kernel
def _probe_others(how, st, io, i, x, v, stream, ts, seq):
    """The probe of a tuple that was just stored. Says what it needs when it has stopped halfway."""
    io["tuple"] = x
    io["found"] = st["results"]
    work.begin(st, io)
    if how["basic"] > 0:
        select.choose(how, st, io, i, stream, ts, seq)
    if how["layout"] == ITEMS:
        probe_items.begin(how, st, io, stream, x)
        return _go_on(how, st, io, i)
    if how["counts_work"]:
        work.count(how, st, io, i, v, stream, ts)
    if how["basic"] > 0 and select.is_all_left_out(how, st, stream):
        return _probed(how, st, io, i)
    io["value"] = v * how["streams"]
    if how["layout"] == KEYED and not probe_many.all_there(how, st, v, stream):
        return _probed(how, st, io, i)
    first = mem.steps(st, stream * how["streams"])["fresh"]
    io["fresh_from"] = seq
    probe_many.begin(how, st, io, stream, x if first else NONE)
    return _go_on(how, st, io, i)


@inlined
def _lacks_room_for_pairs(how, st, io, v, stream):
    """Whether the results of a row may not all fit."""
    if how["emit"]:
        partners = mem.buckets(st, 2 * v + 1 - stream)["count"]
        if io["out_worth_room"] - io["results"] < partners:
            io["wanted"] = partners
            return True
    return False


@in_pairs(_lacks_room_for_pairs)
@inlined
def _lacks_room(how, st, io, v, stream):
    """Probes of n streams can stop and go on."""
    return False


@inlined
def _never(how, st, io):
    return False


@in_pairs(_never)
@inlined
def _is_probing(how, st, io):
    """Whether the probe of a row that is stored waits for room."""
    return io["probing"] == 1


@inlined
def _done(how, st, io, i):
    return DONE


@in_pairs(_done)
@inlined
def _go_on(how, st, io, i):
    """Probe on."""
    over = probe_items.go_on(how, st, io) if how["layout"] == ITEMS else probe_many.go_on(how, st, io)
    return _probed(how, st, io, i) if over else NEED_RESULTS


@inlined
def _always(how, st, io):
    return True


@in_pairs(_always)
@inlined
def _are_counted(how, st, io):
    """Whether the estimator can count all new tuples."""
    return how["layout"] != ITEMS or items.fits_histogram(how, st, io)


@in_pairs(_never)
@inlined
def _lacks_room_for_stretches(how, st, io):
    """Whether what a row leaves out might not fit."""
    return how["basic"] > 0 and select.lacks_room(how, io)


@in_pairs(_never)
@inlined
def _is_part_done(how, st, io):
    """Whether a part of the push ends with this row."""
    if io["until"] == 0:
        return False
    io["since"] += 1
    if io["since"] < io["until"]:
        return False
    io["since"] = 0
    return True


@inlined
def _meet(how, st, io, i):
    """One row. Says what it needs when there might not be room: nothing is done yet, or its probe has stopped halfway."""
    if _is_probing(how, st, io):
        return _go_on(how, st, io, i)
    if _lacks_room_for_stretches(how, st, io):
        return NEED_LEFT_OUT
    stream, ts = mem.row_stream(io, i), mem.row_ts(io, i)
    if clocks.is_late(st, stream, ts):
        st["arrival"] += 1
        return DONE
    if mem.row_null(io, i):
        st["null"] += clocks.is_own(how, io["seq"][stream])
        st["arrival"] += 1
        io["seq"][stream] += 1
        return DONE
    v = layout.home(how, st, io, i)
    if _lacks_room(how, st, io, v, stream):
        return NEED_RESULTS
    io["wanted"] = layout.make_place(how, st, io, i, v, stream)
    if io["wanted"] > 0:
        return NEED_ENTRIES
    seq = clocks.number(how, st, io, i, stream)
    io["seq"][stream] += 1
    if store.is_over(st, stream, stamp_of(how, stream, ts, seq)):
        io["over"] += 1
    need = _join(how, st, io, i, v, stream, ts, seq)
    st["arrival"] += 1
    return need


# -------------------------------------------------------------------------------------------------------- competing


@inlined
def _shed(how, st, io, x, why):
    t, card = mem.pool(st, x), storage.card(how, st, x)
    stream = int(t["stream"])
    log.record(how, st, io, stream, card["seq"], card["ts"], _key_of(how, st, x), why)
    store.discard(how, st, x, stream)


@inlined
def _key_of_pair(how, st, x):
    return mem.keys(st, int(mem.pool(st, x)["group"]) >> 1)["key"]


@in_pairs(_key_of_pair)
@inlined
def _key_of(how, st, x):
    """What the shed log calls the key: the first attribute that the join looks at."""
    if how["layout"] == KEYED:
        return mem.keys(st, storage.value_of(how, st, x, 0))["key"]
    if how["layout"] == ITEMS:
        return 0
    return mem.attr(st, x * how["width"])


@kernel
def _leave_by_schedule(how, st, io):
    """Replay: tuples whose time has come leave. Returns NEED_SHED when the log is full."""
    now = float(newest(how, st))
    while True:
        x = evict.lowest_of_all(how, st)
        if x == NONE or priority.schedule_of(how, st, x) > now:
            return DONE
        if log.is_full(io):
            return NEED_SHED
        _shed(how, st, io, x, SCHEDULED)
        st["scheduled"] += 1


@inlined
def _evict(how, st, io, memory):
    _shed(how, st, io, evict.lowest(how, st, memory), EVICTED)
    st["evicted"] += 1
    evict.foresee_draws(how, st, memory)


@in_pairs(_evict)
@inlined
def _give_up(how, st, io, memory):
    """The lowest of a memory goes: a stored tuple, or a row of a queue that shares it."""
    if how["integrated"] == 0:
        _evict(how, st, io, memory)
        return
    what, item = integrated.lowest(how, st, memory)
    if what == integrated.STORED:
        _shed(how, st, io, item, EVICTED)
        st["evicted"] += 1
    else:
        admit.drop(how, st, io, item)


@inlined
def _fit(how, st, io):
    for memory in range(how["memories"]):
        while evict.used(how, st, memory) > st["caps"][memory]:
            if log.is_full(io):
                return NEED_SHED
            _give_up(how, st, io, memory)
    return DONE


@inlined
def _none_competes(how, st, io):
    return DONE


@in_plain(_none_competes)
@kernel
def _compete(how, st, io):
    """Evict until every memory is within its cap. Returns NEED_SHED when the log is full."""
    if how["organisation"] == SCHEDULE:
        if _leave_by_schedule(how, st, io) == NEED_SHED:
            return NEED_SHED
    return _fit(how, st, io)


@kernel
def _share(how, st, io):
    """A row has come to a queue that shares the memory: the lowest of both go. Returns NEED_SHED when the log is full."""
    return _fit(how, st, io)


@inlined
def _finish(how, st, io, ts):
    """The instant is over: note the peak, the trace, and count on."""
    resident, stored = 0, 0
    for stream in range(how["streams"]):
        resident += st["resident"][stream]
        stored += st["stored_bytes"][stream]
    st["peak_tuples"] = max(st["peak_tuples"], resident)
    st["peak_bytes"] = max(st["peak_bytes"], stored)
    if how["trace_every"] > 0 and st["tick"] % how["trace_every"] == 0:
        at = io["traces"] * (how["streams"] + 1)
        mem.set_out_trace(io, at, ts)
        for stream in range(how["streams"]):
            mem.set_out_trace(io, at + 1 + stream, st["resident"][stream])
        io["traces"] += 1
    st["tick"] += 1


# --------------------------------------------------------------------------------------------------------- the loop


@inlined
def _run(how, st, io):
    """Instants until the rows are used up (DONE) or something has to be emptied or to grow."""
    n = io["row_ts_room"]
    while io["first"] < n or io["turn"] != ROWS:
        ts = mem.row_ts(io, io["first"]) if io["turn"] == ROWS else NEVER
        if io["phase"] == BEGIN:
            if io["turn"] == ROWS:
                _find_instant(how, io, st)
                if not rounds.due(how, st, io, max(newest(how, st), ts)):
                    return NEED_RESULTS
                need = _wants(how, st, io, io["end"] - io["first"])
                if need != DONE:
                    return need
            _begin(how, st, io, ts)
            io["at"] = io["first"]
            io["phase"] = MEET
        if io["phase"] == MEET:
            while io["at"] < io["end"]:
                need = _meet(how, st, io, io["at"])
                if need != DONE:
                    return need
                io["at"] += 1
                if _is_part_done(how, st, io):
                    return PAUSE
            if not _are_counted(how, st, io):
                return NEED_HISTOGRAM
            evict.foresee(how, st, 2)
            estimate.observe(how, st, io)
            priority.settle(how, st, io, ts)
            if io["over"] > 0 and how["expire_every"] == 0:
                store.expire(how, st)
            io["phase"] = COMPETE
        if io["turn"] == TELL:
            return DONE
        if not rounds.ready(how, st, io):
            return NEED_RESULTS
        if _compete(how, st, io) == NEED_SHED:
            io["wanted"] = 1
            return NEED_SHED
        if io["turn"] == SHRINK:
            return DONE
        evict.foresee(how, st, 0)
        _finish(how, st, io, ts)
        io["ready"] = 0
        io["first"] = io["end"]
        io["phase"] = BEGIN
    return DONE


# --------------------------------------------------------------------------------------------------- rows that wait


@kernel
def _wants_row(how, st, io):
    """What has to grow before the row at hand has its turn."""
    need = _wants(how, st, io, 1)
    if need == DONE and how["rear"] and io["out_left_out_room"] - io["left_out"] < how["streams"]:
        io["wanted"] = how["streams"]
        return NEED_LEFT_OUT
    if need == DONE and how["basic"] > 0 and select.lacks_room(how, io):
        return NEED_LEFT_OUT
    if need == DONE and st["fresh_count"] == st["fresh_room"]:
        return NEED_FRESH
    return need


@kernel
def _wants_arrival(how, st, io):
    """What has to grow before a row can come."""
    io["wanted"] = 1
    if st["free_waiting_count"] == 0:
        return NEED_WAITING
    if io["out_shed_room"] - io["shed"] < 2:  # by lot, or from a full queue
        return NEED_SHED
    if how["layout"] == ITEMS:  # what it has is kept in the pool
        if not _has_places(how, st, 1):
            return NEED_POOL
        io["wanted"] = items.row_size(how, io, io["at"]) + 1
        return NEED_ITEMS if st["item_top"] + io["wanted"] > st["items_room"] else DONE
    if how["integrated"]:
        if st["free_count"] == 0:
            return NEED_POOL
        return _layout_wants(how, st, io, 1)
    return DONE


@kernel
def _wants_work(how, st, io):
    """What has to grow before the first in line can be served."""
    if how["dual"] == 0:
        return DONE
    io["wanted"] = how["parts"]
    if st["free_key_count"] < io["wanted"]:
        return NEED_KEYS
    if aux_window.lacks_room(st, int(mem.waiting(st, st["line_first"])["stream"])):
        return NEED_LET_IN
    return NEED_LEVELS if admit.lacks_levels(how, st) else DONE


@kernel
def _close(how, st, io):
    """All rows of the open instant have had their turn: estimators see them, and tuples compete."""
    if io["settled"] == 0:
        io["wanted"] = st["fresh_count"]
        if io["out_fresh_room"] < io["wanted"]:
            return NEED_FRESH
        if how["estimator"] == IN_WINDOW or how["estimator"] == LEARNED:
            io["wanted"] = admit.fresh_values(how, st)
            for stream in range(how["streams"]):
                if st["seen_room"] - st["seen_size"][stream] < io["wanted"]:
                    return NEED_SEEN
        admit.list_fresh(st, io)
        if not _are_counted(how, st, io):
            return NEED_HISTOGRAM
        estimate.observe(how, st, io)
        admit.begin_close(how, st, io)
        priority.settle(how, st, io, st["open_ts"])
        store.expire(how, st)
        io["settled"] = 1
    if _compete(how, st, io) == NEED_SHED:
        io["wanted"] = 1
        return NEED_SHED
    io["settled"] = 0
    _finish(how, st, io, st["open_ts"])
    admit.end_close(how, st)
    return DONE


@kernel
def _meet_row(how, st, io):
    """The row at hand is stored, and probes. Says what it needs when there is no room, or its probe has stopped halfway."""
    i = io["row_ts_room"]  # behind the rows of the push there is room for one
    stream, v = mem.row_stream(io, i), 0
    if how["layout"] == KEYED:
        v = key_table.find_or_add(how, st, mem.row_key(io, i), 0)
    if io["probing"]:
        return _go_on(how, st, io, i)
    io["wanted"] = layout.make_place(how, st, io, i, v, stream)
    if io["wanted"] > 0:
        return NEED_ENTRIES
    if io["silent"]:
        admit.note_unprobed(how, st, io, i)
    seq = mem.waiting(st, io["row"])["seq"]
    x = store.add(how, st, io, i, v, stream, mem.row_ts(io, i), seq, 0)
    admit.note_fresh(how, st, io, x)
    if how["estimator"] == MET:
        mem.met_on_arrival(st)[x] = 0
    return DONE if io["silent"] else _probe_others(how, st, io, i, x, v, stream, mem.row_ts(io, i), seq)


@kernel
def _serve(how, st, io):
    """The row at hand has its turn. Returns DONE, or what it needs."""
    if io["phase"] == TURN:
        if admit.must_close(st, io):
            need = _close(how, st, io)
            if need != DONE:
                return need
        need = _wants_row(how, st, io)
        if need != DONE:
            return need
        if not admit.begin_turn(how, st, io):
            admit.let_go(how, st, int(io["row"]))
            io["phase"] = io["back_to"]
            return DONE
        admit.hand_over(how, st, io, io["row_ts_room"])
        io["phase"] = PROBE
    need = _meet_row(how, st, io)
    if need == DONE:
        waiting.give_back(st, int(io["row"]))
        io["phase"] = io["back_to"]
    return need


@kernel
def _begin_next(how, st, io):
    """The next thing that happens is begun. Returns DONE, or what it needs."""
    if io["turn"] == ROWS and io["first"] < io["row_ts_room"] and io["at"] == io["end"]:
        if admit.lacks_instants(st):
            return NEED_INSTANTS
        admit.begin_instant(how, st, io)
    what = admit.following(how, st, io, io["turn"] == FLUSH)
    if what == admit.WORKS:
        need = _wants_work(how, st, io)
        if need != DONE:
            return need
        admit.begin_work(how, st, io)
        io["back_to"] = DRAIN if how["dual"] else SPENT
        io["phase"] = DRAIN if how["dual"] else TURN
    elif what == admit.ARRIVES:
        if admit.is_due(how, st, io):
            return NEED_SPEEDS
        need = _wants_arrival(how, st, io)
        if need != DONE:
            return need
        w = admit.come(how, st, io)
        if w != NONE and how["integrated"]:
            io["phase"] = SHARE
        elif w != NONE and admit.is_full(how, st, int(mem.waiting(st, w)["stream"])):
            admit.drop(how, st, io, admit.victim(how, st, int(mem.waiting(st, w)["stream"])))
    elif what == admit.LEAVES:
        admit.leave_aux_window(how, st, io)
        io["back_to"] = BEGIN
        io["phase"] = TURN
    else:
        io["phase"] = MEET  # nothing is left to do
    return DONE


@kernel
def _run_waiting(how, st, io):
    """Rows arrive, and have their turn one by one, until the push, or a flush, is at its end (DONE) or something is needed."""
    while io["phase"] != MEET:
        need = DONE
        if io["phase"] == BEGIN:
            need = _begin_next(how, st, io)
        elif io["phase"] == SHARE:
            need = _share(how, st, io)
            if need == DONE:
                io["phase"] = BEGIN
            io["wanted"] = 1
        elif io["phase"] == DRAIN:
            if aux_window.is_over(how, st, io["newest"]):
                admit.leave_aux_window(how, st, io)
                io["phase"] = TURN
            else:
                io["phase"] = SPENT
        elif io["phase"] == SPENT:
            admit.end_work(how, st, io)
            admit.tell(how, st)
            io["phase"] = BEGIN
        else:
            need = _serve(how, st, io)
        if need != DONE:
            return need
    if io["turn"] == FLUSH and io["settled"] == 0:
        admit.tell(how, st)
    return _close(how, st, io) if io["turn"] == FLUSH and st["open"] else DONE


@kernel
def _rejoin(how, st, io):
    """Rows that wait compete with what is stored, after that was put in order anew."""
    w = NONE if how["organisation"] == RANDOM else int(st["line_first"])  # lots fall on a list that is there
    while w != NONE:
        if io["turn"] == REJOIN:
            integrated.enter_as_it_was(how, st, w)
        else:
            integrated.enter(how, st, w)
        w = int(mem.waiting(st, w)["next"])
    return DONE


@indirect("take turn", "whole", cold_entry)
def _take_turn(how, st, io):
    """What is run where rows wait."""
    if io["turn"] == TELL:
        admit.tell(how, st)
        return DONE
    if io["turn"] == CLOSE:
        return _close(how, st, io) if st["open"] else DONE
    if io["turn"] == REJOIN or io["turn"] == COMPETE_ANEW:
        return _rejoin(how, st, io)
    return _run_waiting(how, st, io)


@kernel
def _put_in_order(how, st, io):
    layout.renew_all(how, st)
    priority.settle(how, st, io, NEVER)
    return DONE


@hot_entry
def advance_plain(settings, state, rows):
    """The form PLAIN: takes PLAIN_SETTINGS and PLAIN_STATE."""
    return _run(settings[0], state[0], rows[0])


@hot_entry
def advance_pair(settings, state, rows):
    """The form PAIR: takes PAIR_SETTINGS and PAIR_STATE."""
    if rows[0]["turn"] == ORDER:
        return _put_in_order(settings[0], state[0], rows[0])
    return _run(settings[0], state[0], rows[0])


@entry
def advance_many(settings, state, rows):
    """The form MANY: takes SETTINGS_RECORD and MANY_STATE."""
    how, st, io = settings[0], state[0], rows[0]
    if io["turn"] == ORDER:
        return _put_in_order(how, st, io)
    if io["turn"] == FRACTION:
        adapt.set_fractions(how, st)
        return DONE
    if how["waits"] and io["turn"] != SHRINK:
        return _take_turn(how, st, io)
    if io["turn"] == FLUSH:
        return DONE if how["evaluate_every"] == 0 or rounds.evaluate(how, st, io) else NEED_RESULTS
    if io["turn"] == TELL and io["phase"] == BEGIN:
        time = newest(how, st)
        for stream in range(how["streams"]):
            time = max(time, io["told"][stream])
        if not rounds.due(how, st, io, time):
            return NEED_RESULTS
    return _run(how, st, io)


@entry
def forget_pair(settings, state):
    """Let go of values of which nothing is stored or remembered, in the forms of two keyed streams."""
    estimate.sweep(settings[0], state[0])
    key_table.forget_idle(settings[0], state[0])


@entry
def forget_many(settings, state):
    estimate.sweep(settings[0], state[0])
    key_table.forget_idle(settings[0], state[0])


@entry
def _replay_pair(state):
    for stream in range(2):
        kinetic_tournament.replay_all(state[0], stream)


@entry
def _replay_many(state):
    for stream in range(MOST):
        if state[0]["heap_size"][stream] > 0:
            kinetic_tournament.replay_all(state[0], stream)


def replay(state: Handle) -> None:
    """Play LIFE's tournaments again, from the leaves up."""
    (_replay_pair if state.record.dtype == PAIR_STATE else _replay_many)(state.for_kernel())


def advance(how: NDArray[Any], state: Handle, io: Handle) -> int:
    """Run instants until the rows are used up (DONE) or something has to be emptied or to grow, in the form that fits."""
    buffers = io.for_kernel()
    if state.record.dtype == MANY_STATE:
        return int(advance_many(how, state.for_kernel(), buffers))
    if not is_plain(how):
        return int(advance_pair(how.view(PAIR_SETTINGS), state.for_kernel(), buffers))
    if io["turn"] in (SHRINK, ORDER):  # an exact join keeps all
        return DONE
    return int(advance_plain(how.view(PLAIN_SETTINGS), state.seen_as(PLAIN_STATE).for_kernel(), buffers))


def forget(how: NDArray[Any], state: Handle) -> None:
    """Let go of values of which nothing is stored or remembered."""
    if state.record.dtype == PAIR_STATE:
        forget_pair(how.view(PAIR_SETTINGS), state.for_kernel())
    else:
        forget_many(how, state.for_kernel())
