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
def _orders_groups(cfg):
    return cfg["organisation"] == KEY or cfg["organisation"] == LIFE


@kernel
def _matches(cfg, state, w):
    """Partners expected of a row, on the scale of counts."""
    found = waiting.chance(cfg, state, w, BY_WEIGHT)
    if cfg["estimator"] == DECAYED and state["started"]:
        stream = int(mem.waiting(state, w)["stream"])
        return found * math.exp2(-mem.factors(cfg, stream) * priority.half_lives(cfg, state, newest(cfg, state)))
    return found


@kernel
def _priority(cfg, state, w):
    """(priority, rank) of a row that is a member of no group."""
    row = mem.waiting(state, w)
    stream, importance = int(row["stream"]), row["importance"]
    end = end_of_life(cfg, stream, row["ts"], row["number"])
    if cfg["organisation"] == SCHEDULE:
        return float(mem.until(state, mem.until_from(state, stream) + row["seq"])), 0.0
    if cfg["organisation"] == CUMULATIVE:
        return math.log(importance) + state["lift"], importance
    if _orders_groups(cfg):  # a null
        rank = priority.rank_of(cfg, state, stream, importance, row["ts"], row["number"])
        if cfg["organisation"] == LIFE:
            return 0.0, rank
        return priority.group_priority(cfg, rank, 0.0), rank
    expected = _matches(cfg, state, w)
    if cfg["combine"] == PRODUCT:
        return importance * expected, importance
    return priority.sum_priority(cfg, state, stream, importance, expected, end), importance


@kernel
def _enter_group(cfg, state, w):
    row = mem.waiting(state, w)
    stream, ts, seq, importance = int(row["stream"]), row["ts"], row["seq"], row["importance"]
    state["free_count"] -= 1
    x = int(mem.free(state, state["free_count"]))
    row["item"] = x
    t = mem.pool(state, x)
    t["arrival"] = row["arrival"]
    t["stream"] = stream
    t["bytes"] = row["bytes"]
    t["met"] = 0
    t["queued"] = IN_LINE
    t["place"] = w
    if cfg["let_in"]:
        mem.window_number(state)[x] = row["number"]
    for a in range(cfg["width"]):
        mem.set_attr(state, x * cfg["width"] + a, mem.waiting_key(state)[w * cfg["width"] + a])
    g = indexed.join_group(cfg, state, stream, ts, seq, importance, x)
    t["group"] = g
    state["arrival"] = row["arrival"]
    priority.enter(cfg, state, x, stream, g, ts, seq, importance)


@kernel
def _leave_group(cfg, state, w):
    row = mem.waiting(state, w)
    x, stream = int(row["item"]), int(row["stream"])
    g = int(mem.pool(state, x)["group"])
    priority.leave(cfg, state, x, stream, g)
    indexed.leave_group(cfg, state, g, x)
    priority.reweigh(cfg, state, stream, g)
    indexed.drop_empty(cfg, state, g)
    mem.set_free(state, state["free_count"], x)
    state["free_count"] += 1
    row["item"] = NONE


@kernel
def _enter_alone(cfg, state, w):
    """A row with items is a group."""
    row = mem.waiting(state, w)
    x = int(row["item"])
    b = mem.buckets(state, x)
    b["count"] = 1
    b["low"] = x if cfg["fifo"] else NONE
    mem.pool(state, x)["group"] = x
    state["arrival"] = row["arrival"]
    priority.enter(cfg, state, x, int(row["stream"]), x, row["ts"], row["seq"], row["importance"])


@kernel
def _leave_alone(cfg, state, w):
    x, stream = int(mem.waiting(state, w)["item"]), int(mem.waiting(state, w)["stream"])
    priority.leave(cfg, state, x, stream, x)
    mem.buckets(state, x)["count"] = 0
    priority.reweigh(cfg, state, stream, x)


@kernel
def arrive(cfg, state, w):
    """A row comes into the line. There is room for it in the pool, and for its group."""
    row = mem.waiting(state, w)
    if cfg["layout"] == ITEMS and cfg["weighed"] and not row["null"]:
        priority.weigh(cfg, state, int(row["stream"]), int(row["item"]))
    enter(cfg, state, w)


@inlined
def _is_member(cfg, state, w):
    """Whether a row in line is a member of a group."""
    return _orders_groups(cfg) and not mem.waiting(state, w)["null"]


@kernel
def enter(cfg, state, w):
    """A row in line competes."""
    if cfg["organisation"] == RANDOM:
        waiting.enter_list(state, w)
    elif _is_member(cfg, state, w):
        if cfg["layout"] == ITEMS:
            _enter_alone(cfg, state, w)
        else:
            _enter_group(cfg, state, w)
    else:
        prio, rank = _priority(cfg, state, w)
        waiting.enter_heap(state, w, prio, rank)


@kernel
def enter_as_it_was(cfg, state, w):
    """The same with the priority that it has had, where that was fixed when it came."""
    if cfg["organisation"] == RANDOM or _orders_groups(cfg) or cfg["organisation"] == SCHEDULE:
        enter(cfg, state, w)
    else:
        waiting.enter_heap(state, w, mem.waiting(state, w)["prio"], mem.waiting(state, w)["importance"])


@kernel
def leave(cfg, state, w):
    """A row has its turn, or goes."""
    if cfg["organisation"] == RANDOM:
        waiting.leave_list(state, w)
    elif _is_member(cfg, state, w):
        if cfg["layout"] == ITEMS:
            _leave_alone(cfg, state, w)
        else:
            _leave_group(cfg, state, w)
    else:
        waiting.leave_heap(state, w)


@inlined
def keeps_priority(cfg):
    """Whether a row is stored with the priority that it had in line."""
    fixed = cfg["organisation"] != RANDOM and cfg["organisation"] != SCHEDULE
    return cfg["integrated"] and fixed and not _orders_groups(cfg)


@kernel
def prefer_anew(cfg, state, w):
    """A row in the aux-window, which has left the line, has the priority of a policy that has just begun."""
    row = mem.waiting(state, w)
    row["prio"], _rank = _priority(cfg, state, w)


@inlined
def keep_priority(cfg, state, w, x, stream, importance):
    """A row is stored, with the priority that it had in line until its instant closes."""
    if keeps_priority(cfg):
        prio = mem.waiting(state, w)["prio"]
        if cfg["organisation"] == CUMULATIVE:
            mem.prio(state)[x] = prio
        lazy_heap.push(state, stream, prio, importance, mem.pool(state, x)["arrival"], x)


# -------------------------------------------------------------------------------------------------------- which one goes


@kernel
def _stored_offer(cfg, state, stream):
    """(tuple, priority, rank, arrival) of what policies keep in order, rows that wait in their groups included."""
    if state["heap_size"][stream] == 0:
        return NONE, 0.0, 0.0, 0
    if cfg["organisation"] == LIFE:
        final = kinetic_tournament.lowest(state, stream)
        leaf = mem.leaf(state)[stream, final["winner"]]
        x = int(mem.buckets(state, leaf["group"])["low"])
        return x, final["weight"] * (final["end"] - state["base"][stream]), float(final["end"]), int(leaf["arrival"])
    if cfg["organisation"] != KEY:
        lazy_heap.lead(state, stream, cfg["organisation"] == CUMULATIVE)
    top = mem.heap(state)[stream, heap.TOP]
    x = int(mem.buckets(state, top["item"])["low"]) if cfg["organisation"] == KEY else int(top["item"])
    return x, top["prio"], top["rank"], int(top["arrival"])


@kernel
def _offer(cfg, state, stream):
    """(what it is, tuple or row, priority, arrival) that a stream would give up."""
    x, prio, rank, arrival = _stored_offer(cfg, state, stream)
    if state["queue_size"][stream] > 0:
        top = mem.queue_heap(state)[stream, heap.TOP]
        if x == NONE or heap.lower(top["prio"], top["rank"], top["arrival"], prio, rank, arrival):
            return ROW_IN_LINE, int(top["item"]), top["prio"], int(top["arrival"])
    if x == NONE:
        return NOTHING, NONE, 0.0, 0
    if mem.pool(state, x)["queued"] == IN_LINE:
        return ROW_IN_LINE, int(mem.pool(state, x)["place"]), prio, arrival
    return STORED, x, prio, arrival


@inlined
def _between(cfg, state, stream, prio):
    """The priority as streams compare it: with the term that all tuples of a stream share."""
    if cfg["organisation"] == KEY and cfg["combine"] != PRODUCT:
        prio = prio - cfg["life"] * (state["base"][stream] / mem.window_range(cfg, stream))
    if cfg["estimator"] == LEARNED:
        prio = priority.by_rates(cfg, state, stream, prio)
    return priority.on_one_scale(cfg, state, stream, prio)


@kernel
def _look_again(cfg, state, stream):
    """Prospect: is the key that would give up a tuple still the lowest?"""
    for _ in range(learn.TRIES):
        what, item, _prio, _arrival = _offer(cfg, state, stream)
        if what == NOTHING or (what == ROW_IN_LINE and mem.waiting(state, item)["null"]):
            return
        x = int(mem.waiting(state, item)["item"]) if what == ROW_IN_LINE else item
        v = storage.value_of(cfg, state, x, 0)
        if not learn.is_stale(cfg, state, v):
            return
        learned.look(cfg, state, v)


@kernel
def _drawn(cfg, state, memory):
    """The lot falls on stored tuples and on rows in line alike."""
    total = 0
    for stream in range(cfg["streams"]):
        if cfg["memories"] <= 1 or stream == memory:
            total += state["resident"][stream] + state["queued_rows"][stream]
    i = int(lots.draw(state) * total)
    for stream in range(cfg["streams"]):
        if cfg["memories"] <= 1 or stream == memory:
            if i < state["resident"][stream]:
                return STORED, int(mem.dense(state)[stream, i])
            i -= state["resident"][stream]
            if i < state["queued_rows"][stream]:
                return ROW_IN_LINE, int(mem.queue_list(state)[stream, i])
            i -= state["queued_rows"][stream]
    return NOTHING, NONE


@kernel
def lowest(cfg, state, memory):
    """(what it is, tuple or row) that a memory gives up next."""
    if cfg["organisation"] == RANDOM:
        return _drawn(cfg, state, memory)
    if cfg["estimator"] == LEARNED:
        for stream in range(cfg["streams"]):
            if cfg["memories"] <= 1 or stream == memory:
                _look_again(cfg, state, stream)
    what, item = _as_weighed(cfg, state, memory)
    if cfg["alone"] and cfg["weighed"] and _orders_groups(cfg):
        tries = 1
        while _has_risen(cfg, state, what, item):
            what, item = _as_weighed(cfg, state, memory)
            if tries == TRIES:
                break
            tries += 1
    return what, item


@kernel
def _has_risen(cfg, state, what, item):
    """Weigh what would go again; whether its priority is higher now."""
    if what == NOTHING or (what == ROW_IN_LINE and mem.waiting(state, item)["null"]):
        return False
    return priority.has_risen(cfg, state, int(mem.waiting(state, item)["item"]) if what == ROW_IN_LINE else item)


@kernel
def _as_weighed(cfg, state, memory):
    best, item, best_prio, best_arrival = NOTHING, NONE, 0.0, 0
    for stream in range(cfg["streams"]):
        if cfg["memories"] > 1 and stream != memory:
            continue
        what, one, prio, arrival = _offer(cfg, state, stream)
        prio = _between(cfg, state, stream, prio)
        if what != NOTHING:
            if best == NOTHING or prio < best_prio or (prio == best_prio and arrival < best_arrival):
                best, item, best_prio, best_arrival = what, one, prio, arrival
    return best, item
