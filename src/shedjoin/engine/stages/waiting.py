"""Rows that wait for their turn: a line in order of arrival, and for each stream a heap or a list to drop from."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import BY_WEIGHT, BY_WINDOW, DROP_RANDOM, ITEMS, KEYED, MOST, RANDOM
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import items, storage
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import chances
from shedjoin.engine.structures import heap, key_table


@inlined
def attr_of(state, part, stream):
    """The attribute of a stream in a set of equated ones; -1: it has no part in it."""
    return int(mem.part_of(state, part * MOST + stream))


@inlined
def value_of(cfg, state, w, part):
    """The number of a row's value in a part of which its stream is; -1 when it is not known."""
    attr = attr_of(state, part, int(mem.waiting(state, w)["stream"]))
    return key_table.find(state, mem.waiting_key(state)[w * cfg["width"] + attr], part)


@inlined
def values_of(cfg, state, w):
    """How many values a row has."""
    row = mem.waiting(state, w)
    if row["null"]:
        return 0
    return mem.item_count(state)[row["item"]] + 1 if cfg["layout"] == ITEMS else cfg["parts"]


@kernel
def find_value(cfg, state, w, number):
    """The number of a value, for which there is room; -1 where the stream has no part in it."""
    if cfg["layout"] == ITEMS:
        return items.find_value(cfg, state, int(mem.waiting(state, w)["item"]), number)
    attr = attr_of(state, number, int(mem.waiting(state, w)["stream"]))
    if attr < 0:
        return NONE
    return key_table.find_or_add(cfg, state, mem.waiting_key(state)[w * cfg["width"] + attr], number)


@inlined
def _count(cfg, state, v, stream, by):
    if by == BY_WINDOW:
        return mem.windowed(state)[v * cfg["streams"] + stream]
    if by == BY_WEIGHT:
        return storage.weight(cfg, state, v, stream)
    if cfg["layout"] == KEYED:
        return float(mem.buckets(state, v * cfg["streams"] + stream)["count"])
    return float(mem.stock(state)[v * cfg["streams"] + stream])


@kernel
def chance(cfg, state, w, by):
    """The partners that a row can expect, counted in one of three ways; a null expects none."""
    row = mem.waiting(state, w)
    if row["null"] or (by == BY_WEIGHT and cfg["weighed"] == 0):
        return 0.0
    if cfg["layout"] == ITEMS:
        return chances.expected(cfg, state, int(row["item"]), by)
    stream, product = int(row["stream"]), 1.0
    for part in range(cfg["parts"]):
        if attr_of(state, part, stream) < 0:
            continue
        v = value_of(cfg, state, w, part)
        for other in range(cfg["streams"]):
            if other != stream and attr_of(state, part, other) >= 0:
                product *= 0.0 if v == NONE else _count(cfg, state, v, other, by)
    return product


# ------------------------------------------------------------------------------------------------------------ the line


@inlined
def take(state):
    """A place for a row, of which one is free."""
    state["free_waiting_count"] -= 1
    return int(mem.free_waiting(state)[state["free_waiting_count"]])


@inlined
def give_back(state, w):
    """A row waits no more."""
    mem.free_waiting(state)[state["free_waiting_count"]] = w
    state["free_waiting_count"] += 1


@kernel
def first_instant(state):
    """The instant of the row whose turn is next; the one to come if none waits."""
    w = state["aux_first"] if state["aux_first"] != NONE else state["line_first"]
    return state["instant"] + 1 if w == NONE else int(mem.waiting(state, w)["instant"])


@kernel
def keep_instant(state):
    """Tuples of the instant that had its turn last stay while rows wait that came in it."""
    state["whole"] = 1 if first_instant(state) == state["turned"] else 0


@kernel
def first_arrival(state):
    """The arrival of the row whose turn is next; if none waits, of the one to come."""
    w = state["aux_first"] if state["aux_first"] != NONE else state["line_first"]
    return state["rows"] if w == NONE else int(mem.waiting(state, w)["arrival"])


@kernel
def enter_line(state, w):
    """To the end of the line."""
    row = mem.waiting(state, w)
    stream = int(row["stream"])
    row["next"] = NONE
    row["back"] = state["line_last"]
    if state["line_last"] == NONE:
        state["line_first"] = w
    else:
        mem.waiting(state, state["line_last"])["next"] = w
    state["line_last"] = w
    row["next_own"] = NONE
    row["back_own"] = state["own_last"][stream]
    if row["back_own"] == NONE:
        state["own_first"][stream] = w
    else:
        mem.waiting(state, row["back_own"])["next_own"] = w
    state["own_last"][stream] = w
    state["queued_rows"][stream] += 1
    state["queued_bytes"][stream] += row["bytes"]


@kernel
def leave_line(state, w):
    """Out of the line, from wherever."""
    row = mem.waiting(state, w)
    stream, after, before = int(row["stream"]), int(row["next"]), int(row["back"])
    if before == NONE:
        state["line_first"] = after
    else:
        mem.waiting(state, before)["next"] = after
    if after == NONE:
        state["line_last"] = before
    else:
        mem.waiting(state, after)["back"] = before
    after, before = int(row["next_own"]), int(row["back_own"])
    if before == NONE:
        state["own_first"][stream] = after
    else:
        mem.waiting(state, before)["next_own"] = after
    if after == NONE:
        state["own_last"][stream] = before
    else:
        mem.waiting(state, after)["back_own"] = before
    state["queued_rows"][stream] -= 1
    state["queued_bytes"][stream] -= row["bytes"]


# ------------------------------------------------------------------------------------------------------ to be dropped


@inlined
def by_lot(cfg):
    """Whether a lot decides which row goes."""
    return cfg["drop"] == DROP_RANDOM or (cfg["integrated"] == 1 and cfg["organisation"] == RANDOM)


@kernel
def enter_heap(state, w, prio, rank):
    """A row can be dropped, by its priority."""
    row = mem.waiting(state, w)
    stream = int(row["stream"])
    row["prio"] = prio
    size = state["queue_size"][stream]
    heap.push(mem.queue_heap(state)[stream], mem.queue_place(state), size, prio, rank, row["arrival"], w)
    state["queue_size"][stream] = size + 1


@kernel
def enter_list(state, w):
    """A row can be dropped by lot."""
    stream = int(mem.waiting(state, w)["stream"])
    size = state["queue_size"][stream]
    mem.queue_list(state)[stream, size] = w
    mem.queue_place(state)[w] = size
    state["queue_size"][stream] = size + 1


@kernel
def leave_heap(state, w):
    stream = int(mem.waiting(state, w)["stream"])
    heap.remove(mem.queue_heap(state)[stream], mem.queue_place(state), state["queue_size"][stream], w)
    state["queue_size"][stream] -= 1


@kernel
def leave_list(state, w):
    """The last takes the place of the one removed; only lots see the difference."""
    stream = int(mem.waiting(state, w)["stream"])
    rows, place = mem.queue_list(state), mem.queue_place(state)
    last = state["queue_size"][stream] - 1
    moved, hole = rows[stream, last], place[w]
    rows[stream, hole] = moved
    place[moved] = hole
    place[w] = NONE
    state["queue_size"][stream] = last
