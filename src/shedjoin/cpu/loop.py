"""The loop of a join on any predicate: arrive, wait, probe, store, compete.

It stands beside the two-way loop of equi-joins (docs/decisions/013): the steps are the same, but here a row may have to wait
for the CPU, a probe is a search through lists that costs far more than all around it, and what it may look at is limited.
"""

from __future__ import annotations

import numpy as np

from shedjoin.cpu import heap, queue
from shedjoin.cpu import state as cs
from shedjoin.cpu.adapt import adapt
from shedjoin.cpu.queue import NO_ROW
from shedjoin.cpu.select import draw, probe, worth
from shedjoin.cpu.state import BY_IMPORTANCE, BY_MATCHES, FOREVER, LOWEST, NEVER, NO_ONE
from shedjoin.engine.codes import DROPPED, EVICTED, LATE, PARTIAL
from shedjoin.engine.handle import STREAMS
from shedjoin.engine.jit import entry, kernel
from shedjoin.predicates import lists, store
from shedjoin.predicates import state as mem
from shedjoin.predicates.codes import BAND, LISTS
from shedjoin.predicates.search import bucket
from shedjoin.predicates.state import NO_LIST

DONE = 0
NEED_STORE = 1  # see io["part"]
NEED_PAIRS = 2
NEED_SHED = 3
PAUSE = 4  # so many rows were processed


@kernel
def _log(st, io, stream, number, ts, why):
    """One record of the shed log."""
    log = cs.shed_of(io)
    at = io["shed"]
    log[at, 0] = stream
    log[at, 1] = number
    log[at, 2] = ts
    log[at, 3] = 0
    log[at, 4] = max(st["clock"][0], st["clock"][1])
    log[at, 5] = st["processed"]
    log[at, 6] = why
    log[at, 7] = st["taken"][0]
    log[at, 8] = st["taken"][1]
    io["shed"] = at + 1


@kernel
def effective(how, st, stream):
    """The clock of a stream, or of one that counts as idle."""
    clock = st["clock"][stream]
    if how["max_skew"] >= 0:
        now = max(st["clock"][0], st["clock"][1])
        if now != NEVER:
            clock = max(clock, now - how["max_skew"])
    return clock


@kernel
def expire(how, st):
    """Let go of what no row can meet any more."""
    for stream in range(STREAMS):
        clock = effective(how, st, 1 - stream)
        if clock != NEVER:
            size = how["size0"] if stream == 0 else how["size1"]
            horizon = clock - how["lateness"]
            _expire_stream(how, st, stream, horizon - size + 1)


@kernel
def _expire_stream(how, st, stream, floor):
    """As `store.expire`, but heaps must know as well."""
    if how["victim"] == LOWEST and floor > st["floor"][stream]:
        times, slots = mem.entry_ts_of(st), mem.entry_slot_of(st)
        at = mem.start_of(st)[stream] + mem.head_of(st)[stream]
        for p in range(at, at + mem.length_of(st)[stream]):
            if times[p] >= floor:
                break
            if slots[p] != 0:
                _leave_heap(how, st, stream, np.int64(slots[p]))
    st["expired"] += store.expire(st, stream, floor)


@kernel
def _leave_heap(how, st, stream, slot):
    group = stream if how["groups"] == 2 else 0
    heap.remove(
        mem.heaps_of(st)[group], st["heap_size"][group], mem.heap_at_of(st), mem.prio_of(st), mem.seq_of(st), slot
    )
    st["heap_size"][group] -= 1


@kernel
def _statistics(how, st, io, row):
    """What the lists of the opposite window say of a row's items: how many entries they have."""
    other = 1 - cs.stream_of(io)[row]
    if how["index"] != LISTS:
        return 1.0
    total = 0
    if how["code"] == BAND:
        place = bucket(cs.row_number_of(io)[row], how["bound"])
        for near in range(place - 1, place + 2):
            which = lists.find(st, other, near)
            if which != NO_LIST:
                total += mem.length_of(st)[which]
        return float(total)
    items, offsets = cs.row_items_of(io), cs.offsets_of(io)
    for k in range(offsets[row], offsets[row + 1]):
        which = lists.find(st, other, items[k])
        if which != NO_LIST:
            total += mem.length_of(st)[which]
    return float(total)


@kernel
def _lowest(how, st, group):
    """(stream, slot) of the tuple that goes when a group of the memory is full; slot 0 if it is empty."""
    if how["victim"] == LOWEST:
        if st["heap_size"][group] == 0:
            return 0, 0
        slot = mem.heaps_of(st)[group, 0]
        return mem.side_of(st)[slot], slot
    if how["groups"] == 2:
        return group, mem.members_of(st)[group, np.int64(draw(st) * st["resident"][group])]
    i = np.int64(draw(st) * (st["resident"][0] + st["resident"][1]))
    if i < st["resident"][0]:
        return 0, mem.members_of(st)[0, i]
    return 1, mem.members_of(st)[1, i - st["resident"][0]]


@kernel
def _evict(how, st, io, stream, slot):
    if how["victim"] == LOWEST:
        _leave_heap(how, st, stream, slot)
    _log(st, io, stream, mem.row_of(st)[slot], mem.ts_of(st)[slot], EVICTED)
    store.evict(st, how["code"], how["bound"], how["index"], stream, slot)
    st["evicted"] += 1


@kernel
def compete(how, st, io):
    """Down to the caps; False if the log is full."""
    for group in range(how["groups"]):
        while True:
            used = st["resident"][group] if how["groups"] == 2 else st["resident"][0] + st["resident"][1]
            if used <= st["caps"][group]:
                break
            if io["shed"] == io["out_shed_room"]:
                return False
            stream, slot = _lowest(how, st, group)
            _evict(how, st, io, stream, slot)
    st["peak_tuples"] = max(st["peak_tuples"], st["resident"][0] + st["resident"][1])
    return True


@kernel
def _give(how, st, io, stream, row, ts, importance, hits):
    """Write the results of a probe."""
    found, rows, times, worths = mem.hit_of(st), mem.row_of(st), mem.ts_of(st), mem.importance_of(st)
    left, right, out = cs.out_left_of(io), cs.out_right_of(io), cs.out_worth_of(io)
    at = io["pairs"]
    for h in range(hits):
        slot = found[h]
        value = worth(how, importance, worths[slot])
        if max(ts, times[slot]) >= how["warmup"]:
            st["matches"] += 1
            st["importance_sum"] += value
            if how["emit"]:
                left[at] = row if stream == 0 else rows[slot]
                right[at] = rows[slot] if stream == 0 else row
                out[at] = value
                at += 1
    io["pairs"] = at
    st["results"] += hits


@kernel
def is_own(how, number_in_stream):
    """Whether a row is stored and counted here. In a join that is split over several engines, each row is so in one of
    them, and probes all."""
    return number_in_stream % how["parts"] == how["part"]


@kernel
def process(how, st, io, row):
    """One row through the join: clocks, expiry, probe, store. Returns DONE, or what it needs, with nothing done yet."""
    if io["shed"] + 2 > io["out_shed_room"]:
        return NEED_SHED
    stream, ts = cs.stream_of(io)[row], cs.row_ts_of(io)[row]
    number_in_stream = cs.row_number_in_stream_of(io)[row]
    if ts != st["last_ts"]:
        if not compete(how, st, io):
            return NEED_SHED
        st["last_ts"] = ts
        st["processed"] += 1
        if io["shed"] + 2 > io["out_shed_room"]:
            return NEED_SHED
    own = is_own(how, number_in_stream)
    old = effective(how, st, stream)
    if old != NEVER and ts < old - how["lateness"]:
        if own:
            st["late"] += 1
            _log(st, io, stream, number_in_stream, ts, LATE)
        return DONE
    items, weights, offsets = cs.row_items_of(io), cs.row_weights_of(io), cs.offsets_of(io)
    at, size = offsets[row], offsets[row + 1] - offsets[row]
    number, null = cs.row_number_of(io)[row], cs.null_of(io)[row]
    if not null:
        if how["emit"] and io["out_left_room"] - io["pairs"] < st["resident"][1 - stream]:
            io["wanted"] = st["resident"][1 - stream]
            return NEED_PAIRS
        if own:
            part = store.wanting(st, how["code"], how["bound"], how["index"], stream, number, items, at, size)
            if part != store.ENOUGH:
                io["part"], io["wanted"] = part, size + 1
                return NEED_STORE
    st["taken"][stream] = number_in_stream + 1
    st["clock"][stream] = max(st["clock"][stream], ts)
    expire(how, st)
    st["worked"] += how["update_cost"]
    if null:
        st["null"] += own
        return DONE
    importance, kind = cs.row_importance_of(io)[row], cs.row_kind_of(io)[row]
    effort = io["effort"]
    effort[0] = 0
    effort[1] = 0
    partial = st["partial"]
    hits = probe(how, st, stream, ts, kind, importance, number, items, weights, at, size, effort)
    if st["partial"] != partial:
        _log(st, io, stream, number_in_stream, ts, PARTIAL)
    st["compared"] += effort[0]
    st["looked_up"] += effort[1]
    st["worked"] += how["probe_cost"] + how["compare_cost"] * effort[0] + how["lookup_cost"] * effort[1]
    _give(how, st, io, stream, number_in_stream, ts, importance, hits)
    if not own:
        return DONE
    if ts < st["floor"][stream]:
        st["expired"] += 1  # over before it could be stored: no later row may meet it
        return DONE
    slot = store.put(
        st, how["code"], how["bound"], how["index"], stream, ts, cs.row_seq_of(io)[row], number_in_stream, kind,
        importance, number, items, weights, at, size,
    )  # fmt: skip
    if how["victim"] == LOWEST:
        prio = importance
        if how["priority"] == BY_MATCHES:
            prio = importance * hits
        elif how["priority"] != BY_IMPORTANCE:
            prio = cs.row_prio_of(io)[row]
        mem.prio_of(st)[slot] = prio
        group = stream if how["groups"] == 2 else 0
        heap.push(
            mem.heaps_of(st)[group], st["heap_size"][group], mem.heap_at_of(st), mem.prio_of(st), mem.seq_of(st), slot
        )
        st["heap_size"][group] += 1
    return DONE


@kernel
def _drop(how, st, io, row):
    _log(st, io, cs.stream_of(io)[row], cs.row_number_in_stream_of(io)[row], cs.row_ts_of(io)[row], DROPPED)
    queue.leave(how, st, io, row)
    st["dropped"] += 1


@kernel
def _come(how, st, io, row):
    """A row comes in, whether or not it will be processed: counts, and what is to be adapted by now."""
    stream, ts = cs.stream_of(io)[row], cs.row_ts_of(io)[row]
    st["rows"] += is_own(how, cs.row_number_in_stream_of(io)[row])
    st["arrived"][stream] += 1
    if how["basic"] > 0:
        adapt(how, st, ts)
        if how["utility"]:
            kind = cs.row_kind_of(io)[row]
            cs.kind_rows_of(st)[stream, kind] += 1.0
            cs.kind_sum_of(st)[stream, kind] += cs.row_importance_of(io)[row]
    st["came"][stream] += 1


@kernel
def _arrive(how, st, io, row):
    """A row takes its place in the queue, or pushes somebody out."""
    _come(how, st, io, row)
    if how["queue_victim"] == LOWEST:
        cs.row_prio_of(io)[row] = cs.row_importance_of(io)[row] * _statistics(how, st, io, row)
    queue.join(how, st, io, row)
    stream = cs.stream_of(io)[row]
    if how["queue_victim"] != NO_ONE and queue.is_full(how, st, io, stream):
        _drop(how, st, io, queue.victim(how, st, io, stream))
    if how["integrated"]:
        _share_memory(how, st, io)


@kernel
def _share_memory(how, st, io):
    """The integrated queue: rows that wait and tuples that are stored stand in one order, the lowest goes."""
    cap = st["caps"][0]
    waiting = st["in_queue"][0] + st["in_queue"][1]
    if waiting + st["resident"][0] + st["resident"][1] <= cap:
        return
    row = NO_ROW
    prio = cs.row_prio_of(io)
    for stream in range(STREAMS):
        if st["in_queue"][stream] > 0:
            one = queue.victim(how, st, io, stream)
            if row == NO_ROW or prio[one] < prio[row]:
                row = one
    stream, slot = _lowest(how, st, 0)
    if slot != 0 and mem.prio_of(st)[slot] <= prio[row]:
        _evict(how, st, io, stream, slot)
    else:
        _drop(how, st, io, row)


@entry
def advance(settings, state, traffic):
    """Run rows until all have arrived (and, on a flush, are processed), or until something is needed."""
    how, st, io = settings[0], state[0], traffic[0]
    slow = how["capacity"] > 0.0
    while True:
        arrives = io["at"] < io["end"]
        until = FOREVER
        if arrives:
            until = cs.row_ts_of(io)[io["at"]]
        if arrives or io["flush"] or not slow:
            while io["first"] != NO_ROW and (not slow or st["cpu_free"] < until):
                row = io["first"]
                before = st["worked"]
                need = process(how, st, io, row)
                if need != DONE:
                    return need
                queue.leave(how, st, io, row)
                st["fetched"][cs.stream_of(io)[row]] += 1
                if slow:
                    begin = max(st["cpu_free"], float(cs.row_ts_of(io)[row]))
                    st["cpu_free"] = begin + (st["worked"] - before) / how["capacity"]
                io["since"] += 1
                if io["since"] == io["until"]:
                    io["since"] = 0
                    return PAUSE
        if not arrives:
            break
        if io["shed"] + 2 > io["out_shed_room"]:
            return NEED_SHED
        _arrive(how, st, io, io["at"])
        io["at"] += 1
    # On a slow CPU the instant may not be over: rows of it may still wait.
    if (io["flush"] or not slow) and not compete(how, st, io):
        return NEED_SHED
    return DONE


@kernel
def _arrive_shared(settings, states, traffics, joins, row):
    """A row comes in for several joins; all their statistics say how much it is worth."""
    how, st, io = settings[0], states[0], traffics[0]
    prio = 0.0
    for k in range(joins):
        _come(settings[k], states[k], traffics[k], row)
        if how["queue_victim"] == LOWEST:
            prio += cs.row_importance_of(traffics[k])[row] * _statistics(settings[k], states[k], traffics[k], row)
    cs.row_prio_of(io)[row] = prio
    queue.join(how, st, io, row)
    stream = cs.stream_of(io)[row]
    if how["queue_victim"] == NO_ONE or not queue.is_full(how, st, io, stream):
        return
    gone = queue.victim(how, st, io, stream)
    queue.leave(how, st, io, gone)
    for k in range(joins):
        one = traffics[k]
        ts, number = cs.row_ts_of(one)[gone], cs.row_number_in_stream_of(one)[gone]
        _log(states[k], one, stream, number, ts, DROPPED)
        states[k]["dropped"] += 1


@entry
def advance_shared(settings, states, traffics, joins):
    """As `advance`, for several joins behind one queue on one CPU: that of the first. A need is `io["who"]`'s."""
    how, st, io = settings[0], states[0], traffics[0]
    while True:
        arrives = io["at"] < io["end"]
        until = FOREVER
        if arrives:
            until = cs.row_ts_of(io)[io["at"]]
        while (arrives or io["flush"]) and io["first"] != NO_ROW and st["cpu_free"] < until:
            row = io["first"]
            while io["done"] < joins:  # after a need, go on with the join that had it
                k = io["done"]
                before = states[k]["worked"]
                need = process(settings[k], states[k], traffics[k], row)
                if need != DONE:
                    io["who"] = k
                    return need
                io["work"] += states[k]["worked"] - before
                states[k]["fetched"][cs.stream_of(io)[row]] += 1
                io["done"] += 1
            queue.leave(how, st, io, row)
            begin = max(st["cpu_free"], float(cs.row_ts_of(io)[row]))
            st["cpu_free"] = begin + io["work"] / how["capacity"]
            io["done"] = 0
            io["work"] = 0.0
        if not arrives:
            break
        for k in range(joins):
            if traffics[k]["shed"] + 2 > traffics[k]["out_shed_room"]:
                io["who"] = k
                return NEED_SHED
        _arrive_shared(settings, states, traffics, joins, io["at"])
        io["at"] += 1
    while io["flush"] and io["done"] < joins:
        k = io["done"]
        if not compete(settings[k], states[k], traffics[k]):
            io["who"] = k
            return NEED_SHED
        io["done"] += 1
    return DONE


@entry
def tell_clocks(settings, state, left, right):
    """Set the clocks to at least these (NEVER says nothing) and let go of what has expired by them."""
    how, st = settings[0], state[0]
    st["clock"][0] = max(st["clock"][0], left)
    st["clock"][1] = max(st["clock"][1], right)
    expire(how, st)


@entry
def requeue(traffic, rows):
    """Put the rows that waited between two pushes back in line, each at its place among those that may be dropped."""
    io = traffic[0]
    following, back, bag = cs.next_of(io), cs.back_of(io), cs.queue_heap_of(io)
    for row in range(rows):
        following[row] = row + 1 if row + 1 < rows else NO_ROW
        back[row] = row - 1
        bag[cs.stream_of(io)[row], cs.queue_at_of(io)[row]] = row
    io["first"] = 0 if rows > 0 else NO_ROW
    io["last"] = rows - 1


@entry
def waiting(traffic, rows):
    """The rows in line, first to last; returns how many."""
    io = traffic[0]
    row, count = io["first"], 0
    while row != NO_ROW:
        rows[count] = row
        count += 1
        row = cs.next_of(io)[row]
    return count
