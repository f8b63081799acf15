"""Rows come in: they are counted, take their place in the queue, and may push somebody out."""

from __future__ import annotations

from shedjoin.cpu import queue
from shedjoin.cpu import state as cs
from shedjoin.cpu.adapt import adapt
from shedjoin.cpu.codes import LOWEST, NO_ONE
from shedjoin.cpu.memory import evict, lowest
from shedjoin.cpu.process import is_own
from shedjoin.cpu.queue import NO_ROW
from shedjoin.cpu.shed_log import record
from shedjoin.engine.codes import DROPPED
from shedjoin.engine.handle import STREAMS
from shedjoin.engine.jit import kernel
from shedjoin.predicates import lists
from shedjoin.predicates import state as mem
from shedjoin.predicates.codes import BAND, LISTS
from shedjoin.predicates.search import bucket
from shedjoin.predicates.state import NO_LIST


@kernel
def statistics(how, st, io, row):
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
def _drop(how, st, io, row):
    record(st, io, cs.stream_of(io)[row], cs.row_number_in_stream_of(io)[row], cs.row_ts_of(io)[row], DROPPED)
    queue.leave(how, st, io, row)
    st["dropped"] += 1


@kernel
def come(how, st, io, row):
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
def arrive(how, st, io, row):
    """A row takes its place in the queue, or pushes somebody out."""
    come(how, st, io, row)
    if how["queue_victim"] == LOWEST:
        cs.row_prio_of(io)[row] = cs.row_importance_of(io)[row] * statistics(how, st, io, row)
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
    stream, slot = lowest(how, st, 0)
    if slot != 0 and mem.prio_of(st)[slot] <= prio[row]:
        evict(how, st, io, stream, slot)
    else:
        _drop(how, st, io, row)
