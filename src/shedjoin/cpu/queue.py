"""The queue in front of a slow CPU: a line in order of arrival, and for each stream a heap or a bag to drop from."""

from __future__ import annotations

import numpy as np

from shedjoin.cpu import heap
from shedjoin.cpu import state as cs
from shedjoin.cpu.codes import LOWEST
from shedjoin.cpu.select import draw
from shedjoin.engine.jit import entry, inlined, kernel

NO_ROW = -1


@inlined
def _heap_of(io, stream):
    return heap.Heap(cs.queue_heap_of(io)[stream], cs.queue_at_of(io), cs.row_prio_of(io), cs.row_seq_of(io))


@kernel
def join(how, st, io, row):
    """Put a row at the end of the line."""
    following, back = cs.next_of(io), cs.back_of(io)
    following[row] = NO_ROW
    back[row] = io["last"]
    if io["last"] == NO_ROW:
        io["first"] = row
    else:
        following[io["last"]] = row
    io["last"] = row
    stream = cs.stream_of(io)[row]
    size = st["in_queue"][stream]
    if how["queue_victim"] == LOWEST:
        heap.push(_heap_of(io, stream), size, row)
    else:
        cs.queue_heap_of(io)[stream, size] = row
        cs.queue_at_of(io)[row] = size
    st["in_queue"][stream] = size + 1


@kernel
def leave(how, st, io, row):
    """Take a row out of the line."""
    following, back = cs.next_of(io), cs.back_of(io)
    if back[row] == NO_ROW:
        io["first"] = following[row]
    else:
        following[back[row]] = following[row]
    if following[row] == NO_ROW:
        io["last"] = back[row]
    else:
        back[following[row]] = back[row]
    stream = cs.stream_of(io)[row]
    bag, at = cs.queue_heap_of(io), cs.queue_at_of(io)
    size = st["in_queue"][stream]
    if how["queue_victim"] == LOWEST:
        heap.remove(_heap_of(io, stream), size, row)
    else:
        moved = bag[stream, size - 1]
        bag[stream, at[row]] = moved
        at[moved] = at[row]
        at[row] = NO_ROW
    st["in_queue"][stream] = size - 1


@kernel
def victim(how, st, io, stream):
    """Who goes when the queue of a stream is full."""
    bag = cs.queue_heap_of(io)
    if how["queue_victim"] == LOWEST:
        return bag[stream, 0]
    return bag[stream, np.int64(draw(st) * st["in_queue"][stream])]


@kernel
def is_full(how, st, io, stream):
    """Whether the queue of a stream holds more than it may: in rows, or in time."""
    if how["queue_cap"] > 0 and st["in_queue"][stream] > how["queue_cap"]:
        return True
    if how["queue_span"] > 0:
        # The line is in order of arrival, so the first of the stream is the one that has waited longest.
        row = io["first"]
        streams, times = cs.stream_of(io), cs.row_ts_of(io)
        while row != NO_ROW and streams[row] != stream:
            row = cs.next_of(io)[row]
        return row != NO_ROW and times[io["last"]] - times[row] >= how["queue_span"]
    return False


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
    """Write the rows in line, first to last, into `rows`; returns how many there are."""
    io = traffic[0]
    row, count = io["first"], 0
    while row != NO_ROW:
        rows[count] = row
        count += 1
        row = cs.next_of(io)[row]
    return count
