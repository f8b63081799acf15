"""What is stored: until when, and who goes when the memory is full."""

from __future__ import annotations

import numpy as np

from shedjoin.cpu import heap
from shedjoin.cpu.codes import LOWEST, NEVER
from shedjoin.cpu.select import draw
from shedjoin.cpu.shed_log import record
from shedjoin.engine.codes import EVICTED
from shedjoin.engine.handle import STREAMS
from shedjoin.engine.jit import inlined, kernel
from shedjoin.predicates import state as mem
from shedjoin.predicates import store
from shedjoin.predicates.state import NOBODY
from shedjoin.predicates.terms import rule_of


@kernel
def effective(how, st, stream):
    """The clock of a stream; one that lags by more than `max_skew` counts as idle, and as that far behind."""
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
            if slots[p] != NOBODY:
                _leave_heap(how, st, stream, np.int64(slots[p]))
    st["expired"] += store.expire(st, stream, floor)


@inlined
def _group(how, stream):
    """The part of the memory that a stream competes for."""
    return stream if how["groups"] == 2 else 0


@inlined
def _heap_of(st, group):
    return heap.Heap(mem.heaps_of(st)[group], mem.heap_at_of(st), mem.prio_of(st), mem.seq_of(st))


@kernel
def enter_heap(how, st, stream, slot, prio):
    """A tuple takes its place in the order of who goes first."""
    mem.prio_of(st)[slot] = prio
    group = _group(how, stream)
    heap.push(_heap_of(st, group), st["heap_size"][group], slot)
    st["heap_size"][group] += 1


@kernel
def _leave_heap(how, st, stream, slot):
    group = _group(how, stream)
    heap.remove(_heap_of(st, group), st["heap_size"][group], slot)
    st["heap_size"][group] -= 1


@kernel
def lowest(how, st, group):
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
def evict(how, st, io, stream, slot):
    """Let a tuple go before its time, and say so in the log."""
    if how["victim"] == LOWEST:
        _leave_heap(how, st, stream, slot)
    record(st, io, stream, mem.row_of(st)[slot], mem.ts_of(st)[slot], EVICTED)
    store.evict(st, rule_of(how), stream, slot)
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
            stream, slot = lowest(how, st, group)
            evict(how, st, io, stream, slot)
    st["peak_tuples"] = max(st["peak_tuples"], st["resident"][0] + st["resident"][1])
    return True
