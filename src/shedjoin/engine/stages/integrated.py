"""The integrated queue: rows that wait and tuples that are stored share a memory, and the lowest of both goes.

A row that waits has the priority that the policy would give it as a new tuple. Where policies order groups, whose chances
change, it is a member of its group and takes a place in the pool; elsewhere its priority is fixed, and it stands in the heap, or
the list, of its queue. Such joins are stored in the indexed layout, whose groups know no entries.
"""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.codes import BY_WEIGHT, CUMULATIVE, DECAYED, ITEMS, KEY, LEARNED, LIFE, PRODUCT, RANDOM, SCHEDULE
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import indexed, storage
from shedjoin.engine.records import IN_LINE, NONE
from shedjoin.engine.stages import learn, learned, lots, priority, waiting
from shedjoin.engine.stages.evict import TRIES
from shedjoin.engine.stages.times import end_of_life, newest
from shedjoin.engine.structures import heap, kinetic_tournament, lazy_heap

# What goes: nothing, a stored tuple, or a row in line.
NOTHING, STORED, ROW_IN_LINE = range(3)


@inlined
def _orders_groups(how):
    return how["organisation"] == KEY or how["organisation"] == LIFE


@kernel
def _matches(how, st, w):
    """Partners expected of a row, on the scale of counts."""
    found = waiting.chance(how, st, w, BY_WEIGHT)
    if how["estimator"] == DECAYED and st["started"]:
        stream = int(mem.waiting(st, w)["stream"])
        return found * math.exp2(-mem.factors(how, stream) * priority.half_lives(how, st, newest(how, st)))
    return found


@kernel
def _priority(how, st, w):
    """(priority, rank) of a row that is a member of no group."""
    row = mem.waiting(st, w)
    stream, importance = int(row["stream"]), row["importance"]
    end = end_of_life(how, stream, row["ts"], row["number"])
    if how["organisation"] == SCHEDULE:
        return float(mem.until(st, mem.until_from(st, stream) + row["seq"])), 0.0
    if how["organisation"] == CUMULATIVE:
        return math.log(importance) + st["lift"], importance
    if _orders_groups(how):  # a null
        rank = priority.rank_of(how, st, stream, importance, row["ts"], row["number"])
        if how["organisation"] == LIFE:
            return 0.0, rank
        return priority.group_priority(how, rank, 0.0), rank
    expected = _matches(how, st, w)
    if how["combine"] == PRODUCT:
        return importance * expected, importance
    return priority.sum_priority(how, st, stream, importance, expected, end), importance


@kernel
def _enter_group(how, st, w):
    row = mem.waiting(st, w)
    stream, ts, seq, importance = int(row["stream"]), row["ts"], row["seq"], row["importance"]
    st["free_count"] -= 1
    x = int(mem.free(st, st["free_count"]))
    row["item"] = x
    t = mem.pool(st, x)
    t["arrival"] = row["arrival"]
    t["stream"] = stream
    t["bytes"] = row["bytes"]
    t["met"] = 0
    t["queued"] = IN_LINE
    t["place"] = w
    if how["let_in"]:
        mem.window_number(st)[x] = row["number"]
    for a in range(how["width"]):
        mem.set_attr(st, x * how["width"] + a, mem.waiting_key(st)[w * how["width"] + a])
    g = indexed.join_group(how, st, stream, ts, seq, importance, x)
    t["group"] = g
    st["arrival"] = row["arrival"]
    priority.enter(how, st, x, stream, g, ts, seq, importance)


@kernel
def _leave_group(how, st, w):
    row = mem.waiting(st, w)
    x, stream = int(row["item"]), int(row["stream"])
    g = int(mem.pool(st, x)["group"])
    priority.leave(how, st, x, stream, g)
    indexed.leave_group(how, st, g, x)
    priority.reweigh(how, st, stream, g)
    indexed.drop_empty(how, st, g)
    mem.set_free(st, st["free_count"], x)
    st["free_count"] += 1
    row["item"] = NONE


@kernel
def _enter_alone(how, st, w):
    """A row with items is a group."""
    row = mem.waiting(st, w)
    x = int(row["item"])
    b = mem.buckets(st, x)
    b["count"] = 1
    b["low"] = x if how["fifo"] else NONE
    mem.pool(st, x)["group"] = x
    st["arrival"] = row["arrival"]
    priority.enter(how, st, x, int(row["stream"]), x, row["ts"], row["seq"], row["importance"])


@kernel
def _leave_alone(how, st, w):
    x, stream = int(mem.waiting(st, w)["item"]), int(mem.waiting(st, w)["stream"])
    priority.leave(how, st, x, stream, x)
    mem.buckets(st, x)["count"] = 0
    priority.reweigh(how, st, stream, x)


@kernel
def arrive(how, st, w):
    """A row comes into the line. There is room for it in the pool, and for its group."""
    row = mem.waiting(st, w)
    if how["layout"] == ITEMS and how["weighed"] and not row["null"]:
        priority.weigh(how, st, int(row["stream"]), int(row["item"]))
    enter(how, st, w)


@inlined
def _is_member(how, st, w):
    """Whether a row in line is a member of a group."""
    return _orders_groups(how) and not mem.waiting(st, w)["null"]


@kernel
def enter(how, st, w):
    """A row in line competes."""
    if how["organisation"] == RANDOM:
        waiting.enter_list(st, w)
    elif _is_member(how, st, w):
        if how["layout"] == ITEMS:
            _enter_alone(how, st, w)
        else:
            _enter_group(how, st, w)
    else:
        prio, rank = _priority(how, st, w)
        waiting.enter_heap(st, w, prio, rank)


@kernel
def enter_as_it_was(how, st, w):
    """The same with the priority that it has had, where that was fixed when it came."""
    if how["organisation"] == RANDOM or _orders_groups(how) or how["organisation"] == SCHEDULE:
        enter(how, st, w)
    else:
        waiting.enter_heap(st, w, mem.waiting(st, w)["prio"], mem.waiting(st, w)["importance"])


@kernel
def leave(how, st, w):
    """A row has its turn, or goes."""
    if how["organisation"] == RANDOM:
        waiting.leave_list(st, w)
    elif _is_member(how, st, w):
        if how["layout"] == ITEMS:
            _leave_alone(how, st, w)
        else:
            _leave_group(how, st, w)
    else:
        waiting.leave_heap(st, w)


@inlined
def keep_priority(how, st, w, x, stream, importance):
    """A row is stored, with the priority that it had in line until its instant closes."""
    if (
        how["integrated"]
        and not _orders_groups(how)
        and how["organisation"] != RANDOM
        and how["organisation"] != SCHEDULE
    ):
        prio = mem.waiting(st, w)["prio"]
        if how["organisation"] == CUMULATIVE:
            mem.prio(st)[x] = prio
        lazy_heap.push(st, stream, prio, importance, mem.pool(st, x)["arrival"], x)


# -------------------------------------------------------------------------------------------------------- which one goes


@kernel
def _stored_offer(how, st, stream):
    """(tuple, priority, rank, arrival) of what policies keep in order, rows that wait in their groups included."""
    if st["heap_size"][stream] == 0:
        return NONE, 0.0, 0.0, 0
    if how["organisation"] == LIFE:
        final = kinetic_tournament.lowest(st, stream)
        leaf = mem.leaf(st)[stream, final["winner"]]
        x = int(mem.buckets(st, leaf["group"])["low"])
        return x, final["weight"] * (final["end"] - st["base"][stream]), float(final["end"]), int(leaf["arrival"])
    if how["organisation"] != KEY:
        lazy_heap.lead(st, stream, how["organisation"] == CUMULATIVE)
    top = mem.heap(st)[stream, heap.TOP]
    x = int(mem.buckets(st, top["item"])["low"]) if how["organisation"] == KEY else int(top["item"])
    return x, top["prio"], top["rank"], int(top["arrival"])


@kernel
def _offer(how, st, stream):
    """(what it is, tuple or row, priority, arrival) that a stream would give up."""
    x, prio, rank, arrival = _stored_offer(how, st, stream)
    if st["queue_size"][stream] > 0:
        top = mem.queue_heap(st)[stream, heap.TOP]
        if x == NONE or heap.lower(top["prio"], top["rank"], top["arrival"], prio, rank, arrival):
            return ROW_IN_LINE, int(top["item"]), top["prio"], int(top["arrival"])
    if x == NONE:
        return NOTHING, NONE, 0.0, 0
    if mem.pool(st, x)["queued"] == IN_LINE:
        return ROW_IN_LINE, int(mem.pool(st, x)["place"]), prio, arrival
    return STORED, x, prio, arrival


@inlined
def _between(how, st, stream, prio):
    """The priority as streams compare it: with the term that all tuples of a stream share."""
    if how["organisation"] == KEY and how["combine"] != PRODUCT:
        prio = prio - how["life"] * (st["base"][stream] / mem.window_size(how, stream))
    if how["estimator"] == LEARNED:
        prio = priority.by_rates(how, st, stream, prio)
    return priority.on_one_scale(how, st, stream, prio)


@kernel
def _look_again(how, st, stream):
    """Prospect: is the key that would give up a tuple still the lowest?"""
    for _ in range(learn.TRIES):
        what, item, _prio, _arrival = _offer(how, st, stream)
        if what == NOTHING or (what == ROW_IN_LINE and mem.waiting(st, item)["null"]):
            return
        x = int(mem.waiting(st, item)["item"]) if what == ROW_IN_LINE else item
        v = storage.value_of(how, st, x, 0)
        if not learn.is_stale(how, st, v):
            return
        learned.look(how, st, v)


@kernel
def _drawn(how, st, memory):
    """The lot falls on stored tuples and on rows in line alike."""
    total = 0
    for stream in range(how["streams"]):
        if how["memories"] <= 1 or stream == memory:
            total += st["resident"][stream] + st["queued_rows"][stream]
    i = int(lots.draw(st) * total)
    for stream in range(how["streams"]):
        if how["memories"] <= 1 or stream == memory:
            if i < st["resident"][stream]:
                return STORED, int(mem.dense(st)[stream, i])
            i -= st["resident"][stream]
            if i < st["queued_rows"][stream]:
                return ROW_IN_LINE, int(mem.queue_list(st)[stream, i])
            i -= st["queued_rows"][stream]
    return NOTHING, NONE


@kernel
def lowest(how, st, memory):
    """(what it is, tuple or row) that a memory gives up next."""
    if how["organisation"] == RANDOM:
        return _drawn(how, st, memory)
    if how["estimator"] == LEARNED:
        for stream in range(how["streams"]):
            if how["memories"] <= 1 or stream == memory:
                _look_again(how, st, stream)
    what, item = _as_weighed(how, st, memory)
    if how["alone"] and how["weighed"] and _orders_groups(how):
        tries = 1
        while _has_risen(how, st, what, item):
            what, item = _as_weighed(how, st, memory)
            if tries == TRIES:
                break
            tries += 1
    return what, item


@kernel
def _has_risen(how, st, what, item):
    """Weigh what would go again; whether its priority is higher now."""
    if what == NOTHING or (what == ROW_IN_LINE and mem.waiting(st, item)["null"]):
        return False
    return priority.has_risen(how, st, int(mem.waiting(st, item)["item"]) if what == ROW_IN_LINE else item)


@kernel
def _as_weighed(how, st, memory):
    best, item, best_prio, best_arrival = NOTHING, NONE, 0.0, 0
    for stream in range(how["streams"]):
        if how["memories"] > 1 and stream != memory:
            continue
        what, one, prio, arrival = _offer(how, st, stream)
        prio = _between(how, st, stream, prio)
        if what != NOTHING:
            if best == NOTHING or prio < best_prio or (prio == best_prio and arrival < best_arrival):
                best, item, best_prio, best_arrival = what, one, prio, arrival
    return best, item
