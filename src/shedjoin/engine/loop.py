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
def _is_crowded(state, size):
    """Whether an index that grows should have more buckets before `size` tuples more are stored."""
    for number in range(state["indexes_room"]):
        index = mem.indexes(state, number)
        if index["modular"] == 0 and index["attr"] >= 0:
            if state["resident"][index["stream"]] + size > CROWDED * index["many"]:
                return True
    return False


@inlined
def _values_of_pair(cfg, buffers, state, size):
    return size


@in_pairs(_values_of_pair)
@inlined
def _values_of_rows(cfg, buffers, state, size):
    """The most values that the rows of an instant can have."""
    if cfg["layout"] != ITEMS:
        return size * cfg["parts"]
    if cfg["predicate"] < FIRST_OF_SETS:
        return size
    if cfg["waits"]:
        return items.values_of_row(state, buffers)
    return mem.row_offsets(buffers)[buffers["end"]] - mem.row_offsets(buffers)[buffers["first"]] + size


@inlined
def _has_places_of_pair(cfg, state, size):
    return state["free_count"] >= size


@in_pairs(_has_places_of_pair)
@inlined
def _has_places(cfg, state, size):
    """Whether the pool has room for this many tuples, whatever their streams."""
    if cfg["layout"] == ITEMS:
        return min(state["free_places"][0], state["free_places"][1]) >= size
    return state["free_count"] >= size


@inlined
def _keys_wanted(cfg, state, buffers, size):
    return NEED_KEYS if state["free_key_count"] < size else DONE


@in_pairs(_keys_wanted)
@kernel
def _layout_wants(cfg, state, buffers, size):
    """What the layout needs for `size` rows."""
    if cfg["evaluate_every"] > 0 and (state["tick"] - state["first_mark"] + 2) * MOST > state["marks_room"]:
        return NEED_MARKS
    if cfg["layout"] == KEYED:
        return NEED_KEYS if state["free_key_count"] < size else DONE
    if cfg["layout"] == ITEMS:
        buffers["wanted"] = _values_of_rows(cfg, buffers, state, size)
        if cfg["waits"] == 0 and state["item_top"] + buffers["wanted"] > state["items_room"]:
            return NEED_ITEMS  # rows that wait have theirs already
        return NEED_KEYS if items.has_values(cfg) and state["free_key_count"] < buffers["wanted"] else DONE
    if _is_crowded(state, size):
        return NEED_BUCKETS
    if cfg["alone"]:
        return DONE
    if cfg["weighed"]:
        buffers["wanted"] = size * cfg["parts"]
        if state["free_key_count"] < buffers["wanted"]:
            return NEED_KEYS
        buffers["wanted"] = size
        if state["free_cell_count"] < size:
            return NEED_CELLS
    return DONE


@inlined
def _nothing_wanted(cfg, state, buffers, size):
    return DONE


@in_pairs(_nothing_wanted)
@kernel
def _selection_wants(cfg, state, buffers, size):
    """What selective processing needs for `size` rows."""
    if cfg["basic"] > 0:
        for stream in range(cfg["streams"]):
            if state["timeline_room"] - state["line_to"][stream] < (size if cfg["waits"] else buffers["rows"][stream]):
                return NEED_TIMELINE
    return DONE


@inlined
def _wants(cfg, state, buffers, size):
    """What has to grow before an instant of `size` rows can begin."""
    buffers["wanted"] = size
    if not _has_places(cfg, state, size):
        return NEED_POOL
    need = _layout_wants(cfg, state, buffers, size)
    if need != DONE:
        return need
    need = _selection_wants(cfg, state, buffers, size)
    if need != DONE:
        return need
    if buffers["out_shed_room"] - buffers["shed"] < size:
        return NEED_SHED
    span = 0
    for stream in range(cfg["streams"]):
        span = max(span, state["ring_to"][stream] - state["ring_from"][stream])
    if state["expiry_room"] - span < size:
        return NEED_EXPIRY
    if cfg["estimator"] == IN_WINDOW or cfg["estimator"] == LEARNED:
        buffers["wanted"] = _values_of_rows(cfg, buffers, state, size)
        for stream in range(cfg["streams"]):
            if state["seen_room"] - state["seen_size"][stream] < buffers["wanted"]:
                return NEED_SEEN
    return DONE


# ------------------------------------------------------------------------------------------------------- an instant


@inlined
def _is_same_instant(cfg, buffers, first, i):
    """Whether nothing came between two rows of one time: what did may have gone to another engine."""
    if cfg["counted_elsewhere"]:
        for stream in range(cfg["streams"]):
            if mem.row_arrived(buffers, first * cfg["streams"] + stream) != mem.row_arrived(
                buffers, i * cfg["streams"] + stream
            ):
                return False
    return True


@inlined
def _find_pair_instant(cfg, buffers, state):
    first, n = buffers["first"], buffers["row_ts_room"]
    ts, end, right = mem.row_ts(buffers, first), first, 0
    while end < n and mem.row_ts(buffers, end) == ts:
        right += mem.row_stream(buffers, end)
        end += 1
    buffers["end"] = end
    buffers["rows"][0] = end - first - right
    buffers["rows"][1] = right


@in_pairs(_find_pair_instant)
@kernel
def _find_instant(cfg, buffers, state):
    """The rows of one time, counted by stream."""
    first, n = buffers["first"], buffers["row_ts_room"]
    ts, end = mem.row_ts(buffers, first), first
    for stream in range(cfg["streams"]):
        buffers["rows"][stream] = 0
    while end < n and mem.row_ts(buffers, end) == ts and _is_same_instant(cfg, buffers, first, end):
        buffers["rows"][mem.row_stream(buffers, end)] += 1
        end += 1
    buffers["end"] = end


@inlined
def _begin(cfg, state, buffers, ts):
    """Late rows, clocks, expiry. A turn that tells clocks begins like an instant without rows."""
    buffers["over"] = 0
    buffers["fresh"] = 0
    adapt.arrive(cfg, state, buffers)
    clocks.begin(cfg, state, buffers, ts)
    if buffers["turn"] == TELL:
        for stream in range(cfg["streams"]):
            state["clock"][stream] = max(state["clock"][stream], buffers["told"][stream])
    clocks.count_elsewhere(cfg, state, buffers)
    state["rows"] += buffers["end"] - buffers["first"]
    rounds.mark(cfg, state, buffers)
    evict.foresee(cfg, state, 1)
    priority.set_lift(cfg, state)
    clocks.set_horizons(cfg, state)
    clocks.set_bases(cfg, state)
    estimate.let_go(cfg, state)
    if cfg["expire_every"] == 0:
        store.expire(cfg, state)
    late = False
    for stream in range(cfg["streams"]):
        late = late or (buffers["rows"][stream] > 0 and clocks.is_late(state, stream, ts))
    if late:
        log.late(cfg, state, buffers, ts)
    estimate.fold(cfg, state)


@unless_plain
@inlined
def _note_fresh(state, buffers, x):
    """Policies and estimators see the new tuples when all rows of the instant are stored."""
    mem.set_out_fresh(buffers, buffers["fresh"], x)
    buffers["fresh"] += 1


@inlined
def _join_pair(cfg, state, buffers, i, v, stream, ts, seq):
    """Probe, then store."""
    found = probe.probe(cfg, state, buffers, i, stream, ts, seq, v)
    x = store.add(cfg, state, buffers, i, v, stream, ts, seq, 1 if found > 0 else 0)
    _note_fresh(state, buffers, x)
    return DONE


@kernel
def _probed(cfg, state, buffers, i):
    """The probe of a row is at its end."""
    if buffers["guest"] != NONE:
        items.dismiss(state, int(buffers["guest"]))
        buffers["guest"] = NONE
    elif cfg["estimator"] == MET:
        mem.met_on_arrival(state)[buffers["tuple"]] = state["results"] - buffers["found"]
    if cfg["basic"] > 0 and buffers["sampling"]:
        select.learn(cfg, state, buffers, i, mem.row_stream(buffers, i), mem.row_ts(buffers, i))
    if cfg["waits"]:
        work.spend(cfg, state, buffers)
    return DONE


@in_pairs(_join_pair)
@kernel
def _join(cfg, state, buffers, i, v, stream, ts, seq):
    """Store, then probe, now or with the next round."""
    if cfg["of_parts"] > 1 and not clocks.is_own(cfg, seq):
        x = items.receive(cfg, state, buffers, i, stream, ts, seq)
        buffers["guest"] = x
    else:
        x = store.add(cfg, state, buffers, i, v, stream, ts, seq, 0)
        _note_fresh(state, buffers, x)
        if cfg["estimator"] == MET:
            mem.met_on_arrival(state)[x] = 0
    if cfg["evaluate_every"] > 0:
        mem.set_pending(state, state["pending_count"], x)
        state["pending_count"] += 1
        return DONE
    return _probe_others(cfg, state, buffers, i, x, v, stream, ts, seq)


@kernel
def _probe_others(cfg, state, buffers, i, x, v, stream, ts, seq):
    """The probe of a tuple that was just stored. Says what it needs when it has stopped halfway."""
    buffers["tuple"] = x
    buffers["found"] = state["results"]
    work.begin(state, buffers)
    if cfg["basic"] > 0:
        select.choose(cfg, state, buffers, i, stream, ts, seq)
    if cfg["layout"] == ITEMS:
        probe_items.begin(cfg, state, buffers, stream, x)
        return _go_on(cfg, state, buffers, i)
    if cfg["counts_work"]:
        work.count(cfg, state, buffers, i, v, stream, ts)
    if cfg["basic"] > 0 and select.is_all_left_out(cfg, state, stream):
        return _probed(cfg, state, buffers, i)
    buffers["value"] = v * cfg["streams"]
    if cfg["layout"] == KEYED and not probe_many.all_there(cfg, state, v, stream):
        return _probed(cfg, state, buffers, i)
    first = mem.steps(state, stream * cfg["streams"])["fresh"]
    buffers["fresh_from"] = seq
    probe_many.begin(cfg, state, buffers, stream, x if first else NONE)
    return _go_on(cfg, state, buffers, i)


@inlined
def _lacks_room_for_pairs(cfg, state, buffers, v, stream):
    """Whether the results of a row may not all fit."""
    if cfg["emit"]:
        partners = mem.buckets(state, 2 * v + 1 - stream)["count"]
        if buffers["out_worth_room"] - buffers["results"] < partners:
            buffers["wanted"] = partners
            return True
    return False


@in_pairs(_lacks_room_for_pairs)
@inlined
def _lacks_room(cfg, state, buffers, v, stream):
    """Probes of n streams can stop and go on."""
    return False


@inlined
def _never(cfg, state, buffers):
    return False


@in_pairs(_never)
@inlined
def _is_probing(cfg, state, buffers):
    """Whether the probe of a row that is stored waits for room."""
    return buffers["probing"] == 1


@inlined
def _done(cfg, state, buffers, i):
    return DONE


@in_pairs(_done)
@inlined
def _go_on(cfg, state, buffers, i):
    """Probe on."""
    over = probe_items.go_on(cfg, state, buffers) if cfg["layout"] == ITEMS else probe_many.go_on(cfg, state, buffers)
    return _probed(cfg, state, buffers, i) if over else NEED_RESULTS


@inlined
def _always(cfg, state, buffers):
    return True


@in_pairs(_always)
@inlined
def _are_counted(cfg, state, buffers):
    """Whether the estimator can count all new tuples."""
    return cfg["layout"] != ITEMS or items.fits_histogram(cfg, state, buffers)


@in_pairs(_never)
@inlined
def _lacks_room_for_stretches(cfg, state, buffers):
    """Whether what a row leaves out might not fit."""
    return cfg["basic"] > 0 and select.lacks_room(cfg, buffers)


@in_pairs(_never)
@inlined
def _is_part_done(cfg, state, buffers):
    """Whether a part of the push ends with this row."""
    if buffers["until"] == 0:
        return False
    buffers["since"] += 1
    if buffers["since"] < buffers["until"]:
        return False
    buffers["since"] = 0
    return True


@inlined
def _meet(cfg, state, buffers, i):
    """One row. Says what it needs when there might not be room: nothing is done yet, or its probe has stopped halfway."""
    if _is_probing(cfg, state, buffers):
        return _go_on(cfg, state, buffers, i)
    if _lacks_room_for_stretches(cfg, state, buffers):
        return NEED_LEFT_OUT
    stream, ts = mem.row_stream(buffers, i), mem.row_ts(buffers, i)
    if clocks.is_late(state, stream, ts):
        state["arrival"] += 1
        return DONE
    if mem.row_null(buffers, i):
        state["null"] += clocks.is_own(cfg, buffers["seq"][stream])
        state["arrival"] += 1
        buffers["seq"][stream] += 1
        return DONE
    v = layout.home(cfg, state, buffers, i)
    if _lacks_room(cfg, state, buffers, v, stream):
        return NEED_RESULTS
    buffers["wanted"] = layout.make_place(cfg, state, buffers, i, v, stream)
    if buffers["wanted"] > 0:
        return NEED_ENTRIES
    seq = clocks.number(cfg, state, buffers, i, stream)
    buffers["seq"][stream] += 1
    if store.is_over(state, stream, stamp_of(cfg, stream, ts, seq)):
        buffers["over"] += 1
    need = _join(cfg, state, buffers, i, v, stream, ts, seq)
    state["arrival"] += 1
    return need


# -------------------------------------------------------------------------------------------------------- competing


@inlined
def _shed(cfg, state, buffers, x, why):
    t, card = mem.pool(state, x), storage.card(cfg, state, x)
    stream = int(t["stream"])
    log.record(cfg, state, buffers, stream, card["seq"], card["ts"], _key_of(cfg, state, x), why)
    store.discard(cfg, state, x, stream)


@inlined
def _key_of_pair(cfg, state, x):
    return mem.keys(state, int(mem.pool(state, x)["group"]) >> 1)["key"]


@in_pairs(_key_of_pair)
@inlined
def _key_of(cfg, state, x):
    """What the shed log calls the key: the first attribute that the join looks at."""
    if cfg["layout"] == KEYED:
        return mem.keys(state, storage.value_of(cfg, state, x, 0))["key"]
    if cfg["layout"] == ITEMS:
        return 0
    return mem.attr(state, x * cfg["width"])


@kernel
def _leave_by_schedule(cfg, state, buffers):
    """Replay: tuples whose time has come leave. Returns NEED_SHED when the log is full."""
    now = float(newest(cfg, state))
    while True:
        x = evict.lowest_of_all(cfg, state)
        if x == NONE or priority.schedule_of(cfg, state, x) > now:
            return DONE
        if log.is_full(buffers):
            return NEED_SHED
        _shed(cfg, state, buffers, x, SCHEDULED)
        state["scheduled"] += 1


@inlined
def _evict(cfg, state, buffers, memory):
    _shed(cfg, state, buffers, evict.lowest(cfg, state, memory), EVICTED)
    state["evicted"] += 1
    evict.foresee_draws(cfg, state, memory)


@in_pairs(_evict)
@inlined
def _give_up(cfg, state, buffers, memory):
    """The lowest of a memory goes: a stored tuple, or a row of a queue that shares it."""
    if cfg["integrated"] == 0:
        _evict(cfg, state, buffers, memory)
        return
    what, item = integrated.lowest(cfg, state, memory)
    if what == integrated.STORED:
        _shed(cfg, state, buffers, item, EVICTED)
        state["evicted"] += 1
    else:
        admit.drop(cfg, state, buffers, item)


@inlined
def _fit(cfg, state, buffers):
    for memory in range(cfg["memories"]):
        while evict.used(cfg, state, memory) > state["caps"][memory]:
            if log.is_full(buffers):
                return NEED_SHED
            _give_up(cfg, state, buffers, memory)
    return DONE


@inlined
def _none_competes(cfg, state, buffers):
    return DONE


@in_plain(_none_competes)
@kernel
def _compete(cfg, state, buffers):
    """Evict until every memory is within its cap. Returns NEED_SHED when the log is full."""
    if cfg["organisation"] == SCHEDULE:
        if _leave_by_schedule(cfg, state, buffers) == NEED_SHED:
            return NEED_SHED
    return _fit(cfg, state, buffers)


@kernel
def _share(cfg, state, buffers):
    """A row has come to a queue that shares the memory: the lowest of both go. Returns NEED_SHED when the log is full."""
    return _fit(cfg, state, buffers)


@inlined
def _finish(cfg, state, buffers, ts):
    """The instant is over: note the peak, the trace, and count on."""
    resident, stored = 0, 0
    for stream in range(cfg["streams"]):
        resident += state["resident"][stream]
        stored += state["stored_bytes"][stream]
    state["peak_tuples"] = max(state["peak_tuples"], resident)
    state["peak_bytes"] = max(state["peak_bytes"], stored)
    if cfg["trace_every"] > 0 and state["tick"] % cfg["trace_every"] == 0:
        at = buffers["traces"] * (cfg["streams"] + 1)
        mem.set_out_trace(buffers, at, ts)
        for stream in range(cfg["streams"]):
            mem.set_out_trace(buffers, at + 1 + stream, state["resident"][stream])
        buffers["traces"] += 1
    state["tick"] += 1


# --------------------------------------------------------------------------------------------------------- the loop


@inlined
def _run(cfg, state, buffers):
    """Instants until the rows are used up (DONE) or something has to be emptied or to grow."""
    n = buffers["row_ts_room"]
    while buffers["first"] < n or buffers["turn"] != ROWS:
        ts = mem.row_ts(buffers, buffers["first"]) if buffers["turn"] == ROWS else NEVER
        if buffers["phase"] == BEGIN:
            if buffers["turn"] == ROWS:
                _find_instant(cfg, buffers, state)
                if not rounds.due(cfg, state, buffers, max(newest(cfg, state), ts)):
                    return NEED_RESULTS
                need = _wants(cfg, state, buffers, buffers["end"] - buffers["first"])
                if need != DONE:
                    return need
            _begin(cfg, state, buffers, ts)
            buffers["at"] = buffers["first"]
            buffers["phase"] = MEET
        if buffers["phase"] == MEET:
            while buffers["at"] < buffers["end"]:
                need = _meet(cfg, state, buffers, buffers["at"])
                if need != DONE:
                    return need
                buffers["at"] += 1
                if _is_part_done(cfg, state, buffers):
                    return PAUSE
            if not _are_counted(cfg, state, buffers):
                return NEED_HISTOGRAM
            evict.foresee(cfg, state, 2)
            estimate.observe(cfg, state, buffers)
            priority.settle(cfg, state, buffers, ts)
            if buffers["over"] > 0 and cfg["expire_every"] == 0:
                store.expire(cfg, state)
            buffers["phase"] = COMPETE
        if buffers["turn"] == TELL:
            return DONE
        if not rounds.ready(cfg, state, buffers):
            return NEED_RESULTS
        if _compete(cfg, state, buffers) == NEED_SHED:
            buffers["wanted"] = 1
            return NEED_SHED
        if buffers["turn"] == SHRINK:
            return DONE
        evict.foresee(cfg, state, 0)
        _finish(cfg, state, buffers, ts)
        buffers["ready"] = 0
        buffers["first"] = buffers["end"]
        buffers["phase"] = BEGIN
    return DONE


# --------------------------------------------------------------------------------------------------- rows that wait


@kernel
def _wants_row(cfg, state, buffers):
    """What has to grow before the row at hand has its turn."""
    need = _wants(cfg, state, buffers, 1)
    if need == DONE and cfg["rear"] and buffers["out_left_out_room"] - buffers["left_out"] < cfg["streams"]:
        buffers["wanted"] = cfg["streams"]
        return NEED_LEFT_OUT
    if need == DONE and cfg["basic"] > 0 and select.lacks_room(cfg, buffers):
        return NEED_LEFT_OUT
    if need == DONE and state["fresh_count"] == state["fresh_room"]:
        return NEED_FRESH
    return need


@kernel
def _wants_arrival(cfg, state, buffers):
    """What has to grow before a row can come."""
    buffers["wanted"] = 1
    if state["free_waiting_count"] == 0:
        return NEED_WAITING
    if buffers["out_shed_room"] - buffers["shed"] < 2:  # by lot, or from a full queue
        return NEED_SHED
    if cfg["layout"] == ITEMS:  # what it has is kept in the pool
        if not _has_places(cfg, state, 1):
            return NEED_POOL
        buffers["wanted"] = items.row_size(cfg, buffers, buffers["at"]) + 1
        return NEED_ITEMS if state["item_top"] + buffers["wanted"] > state["items_room"] else DONE
    if cfg["integrated"]:
        if state["free_count"] == 0:
            return NEED_POOL
        return _layout_wants(cfg, state, buffers, 1)
    return DONE


@kernel
def _wants_work(cfg, state, buffers):
    """What has to grow before the first in line can be served."""
    if cfg["dual"] == 0:
        return DONE
    buffers["wanted"] = cfg["parts"]
    if state["free_key_count"] < buffers["wanted"]:
        return NEED_KEYS
    if aux_window.lacks_room(state, int(mem.waiting(state, state["line_first"])["stream"])):
        return NEED_LET_IN
    return NEED_LEVELS if admit.lacks_levels(cfg, state) else DONE


@kernel
def _close(cfg, state, buffers):
    """All rows of the open instant have had their turn: estimators see them, and tuples compete."""
    if buffers["settled"] == 0:
        buffers["wanted"] = state["fresh_count"]
        if buffers["out_fresh_room"] < buffers["wanted"]:
            return NEED_FRESH
        if cfg["estimator"] == IN_WINDOW or cfg["estimator"] == LEARNED:
            buffers["wanted"] = admit.fresh_values(cfg, state)
            for stream in range(cfg["streams"]):
                if state["seen_room"] - state["seen_size"][stream] < buffers["wanted"]:
                    return NEED_SEEN
        admit.list_fresh(state, buffers)
        if not _are_counted(cfg, state, buffers):
            return NEED_HISTOGRAM
        estimate.observe(cfg, state, buffers)
        admit.begin_close(cfg, state, buffers)
        priority.settle(cfg, state, buffers, state["open_ts"])
        store.expire(cfg, state)
        buffers["settled"] = 1
    if _compete(cfg, state, buffers) == NEED_SHED:
        buffers["wanted"] = 1
        return NEED_SHED
    buffers["settled"] = 0
    _finish(cfg, state, buffers, state["open_ts"])
    admit.end_close(cfg, state)
    return DONE


@kernel
def _meet_row(cfg, state, buffers):
    """The row at hand is stored, and probes. Says what it needs when there is no room, or its probe has stopped halfway."""
    i = buffers["row_ts_room"]  # behind the rows of the push there is room for one
    stream, v = mem.row_stream(buffers, i), 0
    if cfg["layout"] == KEYED:
        v = key_table.find_or_add(cfg, state, mem.row_key(buffers, i), 0)
    if buffers["probing"]:
        return _go_on(cfg, state, buffers, i)
    buffers["wanted"] = layout.make_place(cfg, state, buffers, i, v, stream)
    if buffers["wanted"] > 0:
        return NEED_ENTRIES
    if buffers["silent"]:
        admit.note_unprobed(cfg, state, buffers, i)
    seq = mem.waiting(state, buffers["row"])["seq"]
    x = store.add(cfg, state, buffers, i, v, stream, mem.row_ts(buffers, i), seq, 0)
    admit.note_fresh(cfg, state, buffers, x)
    if cfg["estimator"] == MET:
        mem.met_on_arrival(state)[x] = 0
    return (
        DONE if buffers["silent"] else _probe_others(cfg, state, buffers, i, x, v, stream, mem.row_ts(buffers, i), seq)
    )


@kernel
def _serve(cfg, state, buffers):
    """The row at hand has its turn. Returns DONE, or what it needs."""
    if buffers["phase"] == TURN:
        if admit.must_close(state, buffers):
            need = _close(cfg, state, buffers)
            if need != DONE:
                return need
        need = _wants_row(cfg, state, buffers)
        if need != DONE:
            return need
        if not admit.begin_turn(cfg, state, buffers):
            admit.let_go(cfg, state, int(buffers["row"]))
            buffers["phase"] = buffers["back_to"]
            return DONE
        admit.hand_over(cfg, state, buffers, buffers["row_ts_room"])
        buffers["phase"] = PROBE
    need = _meet_row(cfg, state, buffers)
    if need == DONE:
        waiting.give_back(state, int(buffers["row"]))
        buffers["phase"] = buffers["back_to"]
    return need


@kernel
def _begin_next(cfg, state, buffers):
    """The next thing that happens is begun. Returns DONE, or what it needs."""
    if buffers["turn"] == ROWS and buffers["first"] < buffers["row_ts_room"] and buffers["at"] == buffers["end"]:
        if admit.lacks_instants(state):
            return NEED_INSTANTS
        admit.begin_instant(cfg, state, buffers)
    what = admit.following(cfg, state, buffers, buffers["turn"] == FLUSH)
    if what == admit.WORKS:
        need = _wants_work(cfg, state, buffers)
        if need != DONE:
            return need
        admit.begin_work(cfg, state, buffers)
        buffers["back_to"] = DRAIN if cfg["dual"] else SPENT
        buffers["phase"] = DRAIN if cfg["dual"] else TURN
    elif what == admit.ARRIVES:
        if admit.is_due(cfg, state, buffers):
            return NEED_SPEEDS
        need = _wants_arrival(cfg, state, buffers)
        if need != DONE:
            return need
        w = admit.come(cfg, state, buffers)
        if w != NONE and cfg["integrated"]:
            buffers["phase"] = SHARE
        elif w != NONE and admit.is_full(cfg, state, int(mem.waiting(state, w)["stream"])):
            admit.drop(cfg, state, buffers, admit.victim(cfg, state, int(mem.waiting(state, w)["stream"])))
    elif what == admit.LEAVES:
        admit.leave_aux_window(cfg, state, buffers)
        buffers["back_to"] = BEGIN
        buffers["phase"] = TURN
    else:
        buffers["phase"] = MEET  # nothing is left to do
    return DONE


@kernel
def _run_waiting(cfg, state, buffers):
    """Rows arrive, and have their turn one by one, until the push, or a flush, is at its end (DONE) or something is needed."""
    while buffers["phase"] != MEET:
        need = DONE
        if buffers["phase"] == BEGIN:
            need = _begin_next(cfg, state, buffers)
        elif buffers["phase"] == SHARE:
            need = _share(cfg, state, buffers)
            if need == DONE:
                buffers["phase"] = BEGIN
            buffers["wanted"] = 1
        elif buffers["phase"] == DRAIN:
            if aux_window.is_over(cfg, state, buffers["newest"]):
                admit.leave_aux_window(cfg, state, buffers)
                buffers["phase"] = TURN
            else:
                buffers["phase"] = SPENT
        elif buffers["phase"] == SPENT:
            admit.end_work(cfg, state, buffers)
            admit.tell(cfg, state)
            buffers["phase"] = BEGIN
        else:
            need = _serve(cfg, state, buffers)
        if need != DONE:
            return need
    if buffers["turn"] == FLUSH and buffers["settled"] == 0:
        admit.tell(cfg, state)
    return _close(cfg, state, buffers) if buffers["turn"] == FLUSH and state["open"] else DONE


@kernel
def _rejoin(cfg, state, buffers):
    """Rows that wait compete with what is stored, after that was put in order anew."""
    w = NONE if cfg["organisation"] == RANDOM else int(state["line_first"])  # lots fall on a list that is there
    while w != NONE:
        if buffers["turn"] == REJOIN:
            integrated.enter_as_it_was(cfg, state, w)
        else:
            integrated.enter(cfg, state, w)
        w = int(mem.waiting(state, w)["next"])
    return DONE


@indirect("take turn", "whole", cold_entry)
def _take_turn(cfg, state, buffers):
    """What is run where rows wait."""
    if buffers["turn"] == TELL:
        admit.tell(cfg, state)
        return DONE
    if buffers["turn"] == CLOSE:
        return _close(cfg, state, buffers) if state["open"] else DONE
    if buffers["turn"] == REJOIN or buffers["turn"] == COMPETE_ANEW:
        return _rejoin(cfg, state, buffers)
    return _run_waiting(cfg, state, buffers)


@kernel
def _put_in_order(cfg, state, buffers):
    layout.renew_all(cfg, state)
    priority.settle(cfg, state, buffers, NEVER)
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
def advance_many(settings, states, rows):
    """The form MANY: takes SETTINGS_RECORD and MANY_STATE."""
    cfg, state, buffers = settings[0], states[0], rows[0]
    if buffers["turn"] == ORDER:
        return _put_in_order(cfg, state, buffers)
    if buffers["turn"] == FRACTION:
        adapt.set_fractions(cfg, state)
        return DONE
    if cfg["waits"] and buffers["turn"] != SHRINK:
        return _take_turn(cfg, state, buffers)
    if buffers["turn"] == FLUSH:
        return DONE if cfg["evaluate_every"] == 0 or rounds.evaluate(cfg, state, buffers) else NEED_RESULTS
    if buffers["turn"] == TELL and buffers["phase"] == BEGIN:
        time = newest(cfg, state)
        for stream in range(cfg["streams"]):
            time = max(time, buffers["told"][stream])
        if not rounds.due(cfg, state, buffers, time):
            return NEED_RESULTS
    return _run(cfg, state, buffers)


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


def advance(cfg: NDArray[Any], state: Handle, buffers: Handle) -> int:
    """Run instants until the rows are used up (DONE) or something has to be emptied or to grow, in the form that fits."""
    rows = buffers.for_kernel()
    if state.record.dtype == MANY_STATE:
        return int(advance_many(cfg, state.for_kernel(), rows))
    if not is_plain(cfg):
        return int(advance_pair(cfg.view(PAIR_SETTINGS), state.for_kernel(), rows))
    if buffers["turn"] in (SHRINK, ORDER):  # an exact join keeps all
        return DONE
    return int(advance_plain(cfg.view(PLAIN_SETTINGS), state.seen_as(PLAIN_STATE).for_kernel(), rows))


def forget(cfg: NDArray[Any], state: Handle) -> None:
    """Let go of values of which nothing is stored or remembered."""
    if state.record.dtype == PAIR_STATE:
        forget_pair(cfg.view(PAIR_SETTINGS), state.for_kernel())
    else:
        forget_many(cfg, state.for_kernel())
