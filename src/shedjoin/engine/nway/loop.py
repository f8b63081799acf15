"""The loop of an n-way join: late? expire, store, walk the other windows, weigh, compete. See docs/nway.md.

`advance` runs until its input is used up or a buffer is full; it then says what it needs and goes on from where it was.
"""

from __future__ import annotations

from shedjoin.engine import mem as tuples
from shedjoin.engine.codes import EVICTED, IN_WINDOW, LATE, SCHEDULE, SCHEDULED
from shedjoin.engine.jit import entry, inlined, kernel
from shedjoin.engine.nway import evict, mem, order, store, walk, weigh
from shedjoin.engine.nway.state import MOST
from shedjoin.engine.order import set_lift
from shedjoin.engine.state import NEVER, NONE

# What `advance` answers.
(
    DONE,
    NEED_RESULTS,
    NEED_SHED,
    NEED_POOL,
    NEED_SLOTS,
    NEED_CELLS,
    NEED_SEEN,
    NEED_RINGS,
    NEED_EXPIRY,
    NEED_MARKS,
    NEED_BUCKETS,
) = range(11)

# Where `advance` is in an instant; FLUSH and SHRINK run no rows.
BEGIN, MEET, COMPETE, SHRINK, FLUSH = range(5)

# An index that chooses its buckets itself has no more than so many tuples in each, on average.
CROWDED = 2


@inlined
def _record(how, st, io, stream, seq, ts, key, why):
    record = mem.out_shed(io, io["shed"])
    record["stream"] = stream
    record["seq"] = seq
    record["ts"] = ts
    record["key"] = key
    record["when"] = store.now(how, st)
    record["tick"] = st["tick"]
    record["why"] = why
    for other in range(MOST):
        record["seen"][other] = st["arrived"][other] if other < how["streams"] else 0
    io["shed"] += 1


@inlined
def _crowded(st, size):
    """Whether an index that grows should have more buckets before `size` tuples more are stored."""
    for number in range(st["indexes_room"]):
        index = mem.indexes(st, number)
        if index["modular"] == 0 and index["attr"] >= 0:
            if st["resident"][index["stream"]] + size > CROWDED * index["many"]:
                return True
    return False


@kernel
def _wants(how, st, io, size):
    """What has to grow before an instant of `size` rows can begin."""
    io["wanted"] = size
    if st["free_count"] < size:
        return NEED_POOL
    if _crowded(st, size):
        return NEED_BUCKETS
    if how["weighed"]:
        if st["free_slot_count"] < size * how["parts"]:
            io["wanted"] = size * how["parts"]
            return NEED_SLOTS
        if st["free_cell_count"] < size:
            return NEED_CELLS
    if io["out_shed_room"] - io["shed"] < size:
        return NEED_SHED
    span, seen = 0, 0
    for stream in range(how["streams"]):
        span = max(span, st["ring_to"][stream] - st["ring_from"][stream])
        seen = max(seen, st["seen_size"][stream])
    if st["expiry_room"] - span < size:
        return NEED_EXPIRY
    if how["estimator"] == IN_WINDOW and st["seen_room"] - seen < size * how["parts"]:
        io["wanted"] = size * how["parts"]
        return NEED_SEEN
    if how["evaluate_every"] > 0 and (st["tick"] - st["first_mark"] + 2) * MOST > st["marks_room"]:
        return NEED_MARKS
    return DONE


@inlined
def _round(time, every):
    """The number of the round that a time belongs to."""
    return time // every


@kernel
def _evaluate(how, st, io):
    """Join all that is pending, stream by stream. False when the output is full: call again."""
    n = how["streams"]
    while io["stream"] < n:
        stream = io["stream"]
        if io["walking"]:
            if not walk.go_on(how, st, io):
                return False
        if mem.steps(st, stream * n)["fresh"]:
            while io["next"] < st["pending_count"]:
                x = int(mem.pending(st, io["next"]))
                io["next"] += 1
                if tuples.pool(st, x)["stream"] == stream:
                    walk.begin(how, st, io, stream, x)
                    if not walk.go_on(how, st, io):
                        return False
        elif io["next"] == 0:
            io["next"] = 1
            # Row numbers of a stream rise with arrival: its first pending tuple is where the new ones begin.
            for place in range(st["pending_count"]):
                x = int(mem.pending(st, place))
                if tuples.pool(st, x)["stream"] == stream:
                    io["fresh_from"] = mem.card(st, x)["seq"]
                    walk.begin(how, st, io, stream, NONE)
                    if not walk.go_on(how, st, io):
                        return False
                    break
        io["stream"] += 1
        io["next"] = 0
    io["stream"] = 0
    st["pending_count"] = 0
    st["first_mark"] = st["tick"]
    st["evaluations"] += 1
    return True


@kernel
def _rounds(how, st, io, time):
    """Lazy evaluation, and lazy expiry after it, when a time belongs to another round than the last. False: output full."""
    if how["evaluate_every"] > 0 and st["rows"] > 0:
        if _round(time, how["evaluate_every"]) > st["last_evaluation"]:
            if not _evaluate(how, st, io):
                return False
    if how["evaluate_every"] > 0:
        st["last_evaluation"] = max(st["last_evaluation"], _round(time, how["evaluate_every"]))
    if how["expire_every"] > 0 and _round(time, how["expire_every"]) > st["last_expiry"]:
        # By the clocks as they are: nothing is known of this instant yet.
        store.expire(how, st)
        st["last_expiry"] = _round(time, how["expire_every"])
    return True


@kernel
def _begin(how, st, io):
    """Late rows, clocks, expiry. A late row is marked by slot -2, one with a null by -1."""
    first, end = io["first"], io["end"]
    ts = mem.row_ts(io, first)
    io["over"] = 0
    io["fresh"] = 0
    newest = store.now(how, st)
    for stream in range(how["streams"]):
        st["before"][stream] = st["arrived"][stream]
        st["oldest"][stream] = store.effective_clock(how, st, stream, newest) - how["lateness"]
        if how["evaluate_every"] > 0:
            mem.set_marks(st, (st["tick"] - st["first_mark"]) * MOST + stream, st["arrived"][stream])
    for i in range(first, end):
        stream = mem.row_stream(io, i)
        late = ts < st["oldest"][stream]
        mem.set_row_slot(io, i - first, -2 if late else -1)
        mem.set_row_seq(io, i - first, st["arrived"][stream])
        st["arrived"][stream] += 1
        if not late:
            st["clock"][stream] = max(st["clock"][stream], ts)
    st["rows"] += end - first
    set_lift(how, st)
    store.set_bases(how, st)
    weigh.let_go(how, st)
    if how["expire_every"] == 0:
        store.expire(how, st)
    for i in range(first, end):
        if mem.row_slot(io, i - first) == -2:
            key = mem.row_attr(io, i * how["width"])
            _record(how, st, io, mem.row_stream(io, i), mem.row_seq(io, i - first), ts, key, LATE)
            st["late"] += 1
    weigh.fold(how, st, store.now(how, st))


@inlined
def _meet(how, st, io, i):
    """One row: store it, then walk the other windows, now or with the next round."""
    if io["walking"]:
        if not walk.go_on(how, st, io):
            return NEED_RESULTS
    else:
        place = i - io["first"]
        if mem.row_slot(io, place) == -2 or mem.row_null(io, i):
            if mem.row_slot(io, place) != -2:
                st["null"] += 1
            st["arrival"] += 1
            return DONE
        lacks = store.lacks(how, st, io, i)
        if lacks > 0:
            io["wanted"] = lacks
            return NEED_RINGS
        seq = mem.row_seq(io, place)
        x = store.add(how, st, io, i, seq)
        mem.set_row_slot(io, place, x)
        mem.set_out_fresh(io, io["fresh"], x)
        io["fresh"] += 1
        st["arrival"] += 1
        stream = mem.row_stream(io, i)
        stamp = seq if st["kind"][stream] == 1 else mem.row_ts(io, i)
        if stamp <= st["limit"][stream]:
            io["over"] += 1
        if how["evaluate_every"] > 0:
            mem.set_pending(st, st["pending_count"], x)
            st["pending_count"] += 1
            return DONE
        first = mem.steps(st, stream * how["streams"])["fresh"]
        io["fresh_from"] = seq
        walk.begin(how, st, io, stream, x if first else NONE)
        if not walk.go_on(how, st, io):
            return NEED_RESULTS
    return DONE


@inlined
def _shed(how, st, io, x, why):
    card, t = mem.card(st, x), tuples.pool(st, x)
    _record(how, st, io, t["stream"], card["seq"], card["ts"], mem.attr(st, x * how["width"]), why)
    store.discard(how, st, x)


@kernel
def _leave_by_schedule(how, st, io):
    """Replay: whoever's time has come. Returns NEED_SHED when the log is full."""
    time = float(store.now(how, st))
    while True:
        x = evict.lowest_of_all(how, st)
        if x == NONE or order.schedule_of(st, x) > time:
            return DONE
        if io["shed"] == io["out_shed_room"]:
            return NEED_SHED
        _shed(how, st, io, x, SCHEDULED)
        st["scheduled"] += 1


@kernel
def _crammed(how, st):
    """Whether something has to be given up at the end of this instant."""
    over = False
    if how["organisation"] == SCHEDULE:
        x = evict.lowest_of_all(how, st)
        over = x != NONE and order.schedule_of(st, x) <= float(store.now(how, st))
    for group in range(how["groups"]):
        over = over or evict.used(how, st, group) > st["caps"][group]
    return over


@kernel
def _bring_forward(how, st, io):
    """Join what waits and remove what has expired before anything is shed. False when the output is full: call again."""
    st["tick"] += 1  # this instant counts as over: all its rows are there
    done = st["pending_count"] == 0 or _evaluate(how, st, io)
    st["tick"] -= 1
    if done:
        store.expire(how, st)
    return done


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
    return DONE


@inlined
def _finish(how, st):
    resident, stored = 0, 0
    for stream in range(how["streams"]):
        resident += st["resident"][stream]
        stored += st["stored_bytes"][stream]
    st["peak_tuples"] = max(st["peak_tuples"], resident)
    st["peak_bytes"] = max(st["peak_bytes"], stored)
    st["tick"] += 1


@kernel
def _run(how, st, io):
    """Instants until the rows are used up (DONE) or something has to be emptied or to grow."""
    n = io["row_ts_room"]
    while io["first"] < n:
        first = io["first"]
        if io["phase"] == BEGIN:
            end = first + 1
            while end < n and mem.row_ts(io, end) == mem.row_ts(io, first):
                end += 1
            io["end"] = end
            if how["evaluate_every"] > 0 or how["expire_every"] > 0:
                if not _rounds(how, st, io, max(store.now(how, st), mem.row_ts(io, first))):
                    return NEED_RESULTS
            need = _wants(how, st, io, end - first)
            if need != DONE:
                return need
            _begin(how, st, io)
            io["at"] = first
            io["phase"] = MEET
        if io["phase"] == MEET:
            while io["at"] < io["end"]:
                need = _meet(how, st, io, io["at"])
                if need != DONE:
                    return need
                io["at"] += 1
            weigh.see(how, st, io, first, io["end"], store.now(how, st))
            order.settle(how, st, io)
            if io["over"] > 0 and how["expire_every"] == 0:
                store.expire(how, st)
            io["phase"] = COMPETE
        if (how["evaluate_every"] > 0 or how["expire_every"] > 0) and io["ready"] == 0:
            if _crammed(how, st) and not _bring_forward(how, st, io):
                return NEED_RESULTS
            io["ready"] = 1
        if _compete(how, st, io) == NEED_SHED:
            io["wanted"] = 1
            return NEED_SHED
        io["ready"] = 0
        _finish(how, st)
        io["first"] = io["end"]
        io["phase"] = BEGIN
    return DONE


@entry
def advance(settings, state, rows):
    """Run instants until the rows are used up (DONE) or something has to be emptied or to grow.

    In the phase FLUSH, no rows are run: what is pending is joined. In the phase SHRINK memory is made to fit a budget that
    changed between two pushes, as part of the last instant; nothing is pending then.
    """
    how, st, io = settings[0], state[0], rows[0]
    if io["phase"] == SHRINK:
        if how["expire_every"] > 0 and _crammed(how, st):
            store.expire(how, st)
        st["tick"] -= 1
        need = _compete(how, st, io)
        st["tick"] += 1
        return need
    if io["phase"] == FLUSH:
        return DONE if how["evaluate_every"] == 0 or _evaluate(how, st, io) else NEED_RESULTS
    return _run(how, st, io)


@entry
def advance_clocks(settings, state, rows, told):
    """Set the clocks to at least these (NEVER says nothing), join what is due by them, and let go of what has expired."""
    how, st, io = settings[0], state[0], rows[0]
    time = store.now(how, st)
    for stream in range(how["streams"]):
        time = max(time, told[stream])
    if time == NEVER:
        return DONE
    if not _rounds(how, st, io, time):
        return NEED_RESULTS
    for stream in range(how["streams"]):
        st["clock"][stream] = max(st["clock"][stream], told[stream])
    store.set_bases(how, st)
    weigh.let_go(how, st)
    if how["expire_every"] == 0:
        store.expire(how, st)
    return DONE
