"""Rows that wait for their turn: a line in order of arrival, and for each stream a heap or a list to drop from."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import BY_WEIGHT, BY_WINDOW, DROP_RANDOM, ITEMS, KEYED, MOST, RANDOM
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import chances
from shedjoin.engine.structures import heap, key_table


@inlined
def attr_of(st, part, stream):
    """The attribute of a stream in a set of equated ones; -1: it has no part in it."""
    return int(mem.part_of(st, part * MOST + stream))


@inlined
def value_of(how, st, w, part):
    """The number of a row's value in a part of which its stream is; -1 when it is not known."""
    attr = attr_of(st, part, int(mem.waiting(st, w)["stream"]))
    return key_table.find(st, mem.waiting_key(st)[w * how["width"] + attr], part)


@inlined
def _count(how, st, v, stream, by):
    if by == BY_WINDOW:
        return mem.windowed(st)[v * how["streams"] + stream]
    if by == BY_WEIGHT:
        return storage.weight(how, st, v, stream)
    if how["layout"] == KEYED:
        return float(mem.buckets(st, v * how["streams"] + stream)["count"])
    return float(mem.stock(st)[v * how["streams"] + stream])


@kernel
def chance(how, st, w, by):
    """The partners that a row can expect, counted in one of three ways; a null expects none."""
    row = mem.waiting(st, w)
    if row["null"] or (by == BY_WEIGHT and how["weighed"] == 0):
        return 0.0
    if how["layout"] == ITEMS:
        return chances.expected(how, st, int(row["item"]), by)
    stream, product = int(row["stream"]), 1.0
    for part in range(how["parts"]):
        if attr_of(st, part, stream) < 0:
            continue
        v = value_of(how, st, w, part)
        for other in range(how["streams"]):
            if other != stream and attr_of(st, part, other) >= 0:
                product *= 0.0 if v == NONE else _count(how, st, v, other, by)
    return product


# ------------------------------------------------------------------------------------------------------------ the line


@inlined
def take(st):
    """A place for a row, of which one is free."""
    st["free_waiting_count"] -= 1
    return int(mem.free_waiting(st)[st["free_waiting_count"]])


@inlined
def give_back(st, w):
    """A row waits no more."""
    mem.free_waiting(st)[st["free_waiting_count"]] = w
    st["free_waiting_count"] += 1


@kernel
def first_instant(st):
    """The instant of the row whose turn is next; the one to come if none waits."""
    w = st["aux_first"] if st["aux_first"] != NONE else st["line_first"]
    return st["instant"] + 1 if w == NONE else int(mem.waiting(st, w)["instant"])


@kernel
def first_arrival(st):
    """The arrival of the row whose turn is next; if none waits, of the one to come."""
    w = st["aux_first"] if st["aux_first"] != NONE else st["line_first"]
    return st["rows"] if w == NONE else int(mem.waiting(st, w)["arrival"])


@kernel
def enter_line(st, w):
    """To the end of the line."""
    row = mem.waiting(st, w)
    stream = int(row["stream"])
    row["next"] = NONE
    row["back"] = st["line_last"]
    if st["line_last"] == NONE:
        st["line_first"] = w
    else:
        mem.waiting(st, st["line_last"])["next"] = w
    st["line_last"] = w
    row["next_own"] = NONE
    row["back_own"] = st["own_last"][stream]
    if row["back_own"] == NONE:
        st["own_first"][stream] = w
    else:
        mem.waiting(st, row["back_own"])["next_own"] = w
    st["own_last"][stream] = w
    st["queued_rows"][stream] += 1
    st["queued_bytes"][stream] += row["bytes"]


@kernel
def leave_line(st, w):
    """Out of the line, from wherever."""
    row = mem.waiting(st, w)
    stream, after, before = int(row["stream"]), int(row["next"]), int(row["back"])
    if before == NONE:
        st["line_first"] = after
    else:
        mem.waiting(st, before)["next"] = after
    if after == NONE:
        st["line_last"] = before
    else:
        mem.waiting(st, after)["back"] = before
    after, before = int(row["next_own"]), int(row["back_own"])
    if before == NONE:
        st["own_first"][stream] = after
    else:
        mem.waiting(st, before)["next_own"] = after
    if after == NONE:
        st["own_last"][stream] = before
    else:
        mem.waiting(st, after)["back_own"] = before
    st["queued_rows"][stream] -= 1
    st["queued_bytes"][stream] -= row["bytes"]


# ------------------------------------------------------------------------------------------------------ to be dropped


@inlined
def by_lot(how):
    """Whether a lot decides which row goes."""
    return how["drop"] == DROP_RANDOM or (how["integrated"] == 1 and how["organisation"] == RANDOM)


@kernel
def enter_heap(st, w, prio, rank):
    """A row can be dropped, by its priority."""
    row = mem.waiting(st, w)
    stream = int(row["stream"])
    row["prio"] = prio
    size = st["queue_size"][stream]
    heap.push(mem.queue_heap(st)[stream], mem.queue_place(st), size, prio, rank, row["arrival"], w)
    st["queue_size"][stream] = size + 1


@kernel
def enter_list(st, w):
    """A row can be dropped by lot."""
    stream = int(mem.waiting(st, w)["stream"])
    size = st["queue_size"][stream]
    mem.queue_list(st)[stream, size] = w
    mem.queue_place(st)[w] = size
    st["queue_size"][stream] = size + 1


@kernel
def leave_heap(st, w):
    stream = int(mem.waiting(st, w)["stream"])
    heap.remove(mem.queue_heap(st)[stream], mem.queue_place(st), st["queue_size"][stream], w)
    st["queue_size"][stream] -= 1


@kernel
def leave_list(st, w):
    """The last takes the place of the one removed; only lots see the difference."""
    stream = int(mem.waiting(st, w)["stream"])
    rows, place = mem.queue_list(st), mem.queue_place(st)
    last = st["queue_size"][stream] - 1
    moved, hole = rows[stream, last], place[w]
    rows[stream, hole] = moved
    place[moved] = hole
    place[w] = NONE
    st["queue_size"][stream] = last
