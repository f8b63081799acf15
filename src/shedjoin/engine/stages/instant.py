"""An instant: late rows, clocks and expiry; then its rows are met one by one, each probes and is stored."""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import DROPPED_ROW, ITEMS, KEYED, MET, PAIRS
from shedjoin.engine.forms import in_pairs, in_plain, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import items, layout, storage
from shedjoin.engine.protocol import DONE, NEED_ENTRIES, NEED_LEFT_OUT, NEED_RESULTS, NEED_SHED, TELL
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import (
    adapt,
    clocks,
    doubts,
    estimate,
    evict,
    log,
    priority,
    probe,
    probe_items,
    probe_many,
    rounds,
    select,
    store,
    unmatched,
    work,
)
from shedjoin.engine.stages.times import stamp_of


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
def find(cfg, buffers, state):
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
def begin(cfg, state, buffers, ts):
    """The clocks of an instant. A turn that tells clocks begins like an instant without rows."""
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


@inlined
def _has_room(cfg, state, buffers):
    return True


@in_plain(_has_room)
@inlined
def _has_room_for_late(cfg, state, buffers):
    """Whether the log has room for the rows of the instant; tuples that expired may have taken it."""
    return buffers["out_shed_room"] - buffers["shed"] >= buffers["end"] - buffers["first"]


@inlined
def expire(cfg, state, buffers, ts):
    """The rest of the beginning. Returns DONE, or what it needs to go on."""
    if cfg["expire_every"] == 0:
        need = store.expire(cfg, state, buffers)
        if need != DONE:
            return need
    if not _has_room_for_late(cfg, state, buffers):
        buffers["wanted"] = buffers["end"] - buffers["first"]
        return NEED_SHED
    late = False
    for stream in range(cfg["streams"]):
        late = late or (buffers["rows"][stream] > 0 and clocks.is_late(state, stream, ts))
    if late:
        log.late(cfg, state, buffers, ts)
    estimate.fold(cfg, state)
    return DONE


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
    unmatched.meet_many(cfg, state, buffers, stream, x, found)
    doubts.come_late(cfg, state, stream, x, ts)
    _note_fresh(state, buffers, x)
    return DONE


@inlined
def _found(cfg, state, buffers):
    """How many results the probe of a row has found, whether or not the join gives all of them."""
    if cfg["gives"] == PAIRS:
        return state["results"] - buffers["found"]
    return doubts.number_of(np.int64(storage.card(cfg, state, int(buffers["tuple"]))["partners"]))


@kernel
def _probed(cfg, state, buffers, i):
    """The probe of a row is at its end."""
    if buffers["guest"] != NONE:
        items.dismiss(state, int(buffers["guest"]))
        buffers["guest"] = NONE
    elif cfg["estimator"] == MET:
        mem.met_on_arrival(state)[buffers["tuple"]] = _found(cfg, state, buffers)
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
        doubts.come_late(cfg, state, stream, x, ts)
        _note_fresh(state, buffers, x)
        if cfg["estimator"] == MET:
            mem.met_on_arrival(state)[x] = 0
    if cfg["evaluate_every"] > 0:
        mem.set_pending(state, state["pending_count"], x)
        state["pending_count"] += 1
        return DONE
    return probe_others(cfg, state, buffers, i, x, v, stream, ts, seq)


@kernel
def probe_others(cfg, state, buffers, i, x, v, stream, ts, seq):
    """The probe of a tuple that was just stored. Says what it needs when it has stopped halfway."""
    buffers["tuple"] = x
    buffers["found"] = state["results"]
    work.begin(state, buffers)
    if cfg["basic"] > 0:
        select.choose(cfg, state, buffers, i, stream, ts, seq)
    if cfg["layout"] == ITEMS:
        probe_items.begin(cfg, state, buffers, stream, x)
        return go_on(cfg, state, buffers, i)
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
    return go_on(cfg, state, buffers, i)


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
def go_on(cfg, state, buffers, i):
    """Probe on."""
    over = probe_items.go_on(cfg, state, buffers) if cfg["layout"] == ITEMS else probe_many.go_on(cfg, state, buffers)
    return _probed(cfg, state, buffers, i) if over else NEED_RESULTS


@inlined
def _always(cfg, state, buffers):
    return True


@in_pairs(_always)
@inlined
def are_counted(cfg, state, buffers):
    """Whether the estimator can count all new tuples."""
    return cfg["layout"] != ITEMS or items.fits_histogram(cfg, state, buffers)


@in_pairs(_never)
@inlined
def _lacks_room_for_stretches(cfg, state, buffers):
    """Whether what a row leaves out might not fit."""
    return cfg["basic"] > 0 and select.lacks_room(cfg, buffers)


@in_pairs(_never)
@inlined
def is_part_done(cfg, state, buffers):
    """Whether a part of the push ends with this row."""
    if buffers["until"] == 0:
        return False
    buffers["since"] += 1
    if buffers["since"] < buffers["until"]:
        return False
    buffers["since"] = 0
    return True


@inlined
def meet(cfg, state, buffers, i):
    """One row. Says what it needs when there might not be room: nothing is done yet, or its probe has stopped halfway."""
    if _is_probing(cfg, state, buffers):
        return go_on(cfg, state, buffers, i)
    if _lacks_room_for_stretches(cfg, state, buffers):
        return NEED_LEFT_OUT
    stream, ts = mem.row_stream(buffers, i), mem.row_ts(buffers, i)
    if mem.row_null(buffers, i):
        if unmatched.lacks_room(cfg, buffers):
            return NEED_RESULTS
        seq = clocks.number(cfg, state, buffers, i, stream)
        if mem.row_null(buffers, i) == DROPPED_ROW:
            doubts.lose_row(cfg, state, buffers, i, stream, ts, seq)
        else:
            unmatched.give_null(cfg, state, buffers, stream, seq, ts, mem.row_importance(buffers, i))
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


@unless_plain
@inlined
def let_satisfied_go(cfg, state):
    """Tuples that have found all partners that they may leave; lazy evaluation finds them later."""
    if cfg["counts"] and cfg["evaluate_every"] == 0:
        store.let_satisfied_go(cfg, state)


@unless_plain
@inlined
def _trace(cfg, state, buffers, ts):
    if cfg["trace_every"] > 0 and state["tick"] % cfg["trace_every"] == 0:
        at = buffers["traces"] * (cfg["streams"] + 1)
        mem.set_out_trace(buffers, at, ts)
        for stream in range(cfg["streams"]):
            mem.set_out_trace(buffers, at + 1 + stream, state["resident"][stream])
        buffers["traces"] += 1


@inlined
def finish(cfg, state, buffers, ts):
    """The instant is over: note the peak, the trace, and count on."""
    resident, stored = 0, 0
    for stream in range(cfg["streams"]):
        resident += state["resident"][stream]
        stored += state["stored_bytes"][stream]
    state["peak_tuples"] = max(state["peak_tuples"], resident)
    state["peak_bytes"] = max(state["peak_bytes"], stored)
    _trace(cfg, state, buffers, ts)
    state["tick"] += 1
