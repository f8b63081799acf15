"""The indexed layout: join graphs. Each window has an index for each of its equated attributes, or is scanned.

An index is buckets: with one bucket it is the window that nested loops scan, with b the paper's hash table, and one that grows is
the default. A tuple stands in each index of its stream. A group is a *cell*: the tuples of a stream that agree in all equated
attributes. A value of an attribute has the weights of all streams; a cell knows its values, a value the cells that hold it.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import MOST
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import priority
from shedjoin.engine.structures import buckets, key_table


@inlined
def bucket_of(index, key):
    """Which bucket of an index a value belongs to."""
    many = index["many"]
    if many == 1:
        return index["first"]
    if index["modular"]:
        return index["first"] + key % many
    return index["first"] + key_table.hash_of(key, many)


@inlined
def _key_in(index, key):
    """The value by which an index finds a tuple; an index without an attribute is one bucket."""
    return key if index["attr"] >= 0 else 0


@kernel
def make_place(how, st, io, i, stream):
    """Make room for a row in all indexes of its stream; returns what the arena lacks for that, most often 0."""
    for number in range(st["first_index"][stream], st["end_index"][stream]):
        index = mem.indexes(st, number)
        key = _key_in(index, mem.row_key(io, i * how["width"] + max(index["attr"], 0)))
        b = mem.index_buckets(st, bucket_of(index, key))
        lacks = buckets.make_place(how, st, b, number - st["first_index"][stream])
        if lacks > 0:
            return lacks
    return 0


@inlined
def _note(st, ts, seq, importance, x):
    card = mem.card(st, x)
    card["ts"] = ts
    card["seq"] = seq
    card["importance"] = importance
    card["item"] = x


@kernel
def put(how, st, io, i, stream, ts, seq, importance, x):
    """Put a tuple into all indexes of its stream and into its cell; returns the cell."""
    _note(st, ts, seq, importance, x)
    if st["came_room"] > 1:
        mem.set_came(st, x, st["tick"])
    for a in range(how["width"]):
        mem.set_attr(st, x * how["width"] + a, mem.row_key(io, i * how["width"] + a))
    for number in range(st["first_index"][stream], st["end_index"][stream]):
        index = mem.indexes(st, number)
        key = _key_in(index, mem.attr(st, x * how["width"] + max(index["attr"], 0)))
        b = mem.index_buckets(st, bucket_of(index, key))
        place = buckets.append(how, st, b, ts, seq, importance, x, number - st["first_index"][stream])
        mem.set_entry_key(st, place, key)
    if how["weighed"] == 0 or how["alone"]:
        return 0
    return _enter_cell(how, st, stream, x)


@kernel
def take_out(how, st, stream, cell, x):
    """Take a tuple out of all indexes and out of its cell."""
    for number in range(st["first_index"][stream], st["end_index"][stream]):
        index, which = mem.indexes(st, number), number - st["first_index"][stream]
        key = _key_in(index, mem.attr(st, x * how["width"] + max(index["attr"], 0)))
        place = int(mem.spot(st, x * how["spots"] + which))
        buckets.remove(how, st, mem.index_buckets(st, bucket_of(index, key)), place, which)
    if how["weighed"] and how["alone"] == 0:
        _leave_cell(how, st, cell, x)


@kernel
def join_group(how, st, stream, ts, seq, importance, x):
    """A row that waits, whose attributes are there, joins its cell, but no index; returns the cell."""
    _note(st, ts, seq, importance, x)
    return _enter_cell(how, st, stream, x)


@kernel
def leave_group(how, st, cell, x):
    """And leaves it."""
    _leave_cell(how, st, cell, x)


# -------------------------------------------------------------------------------------------------------------- cells


@inlined
def _attr_of(st, part, stream):
    return int(mem.part_of(st, part * MOST + stream))


@kernel
def _cell_head(how, st, cell, stream):
    mixed = np.int64(stream)
    for part in range(how["parts"]):
        mixed = mixed * 0x100000001B3 + mem.cell_values(st)[cell * how["parts"] + part]
    return key_table.hash_of(mixed, st["cell_heads_room"])


@kernel
def _same(how, st, a, b):
    if mem.cells(st, a)["stream"] != mem.cells(st, b)["stream"]:
        return False
    for part in range(how["parts"]):
        if mem.cell_values(st)[a * how["parts"] + part] != mem.cell_values(st)[b * how["parts"] + part]:
            return False
    return True


@kernel
def _cell_of(how, st, stream, x):
    """The cell of a tuple, a new one if need be; the caller has made sure that one is free."""
    parts = how["parts"]
    # A new cell is filled in to be compared with; it is taken only when there is no other like it.
    new = int(mem.free_cells(st)[st["free_cell_count"] - 1])
    mem.cells(st, new)["stream"] = stream
    for part in range(parts):
        attr = _attr_of(st, part, stream)
        v = NONE
        if attr >= 0:
            v = key_table.find_or_add(how, st, mem.attr(st, x * how["width"] + attr), part)
        mem.cell_values(st)[new * parts + part] = v
    head = _cell_head(how, st, new, stream)
    cell = int(mem.cell_heads(st)[head])
    while cell != NONE:
        if _same(how, st, cell, new):
            return cell
        cell = int(mem.cells(st, cell)["next"])
    st["free_cell_count"] -= 1
    entry = mem.cells(st, new)
    entry["count"] = 0
    entry["low"] = NONE
    entry["tail"] = NONE
    entry["next"] = mem.cell_heads(st)[head]
    mem.cell_heads(st)[head] = new
    for part in range(parts):
        v = int(mem.cell_values(st)[new * parts + part])
        if v != NONE:
            mem.cell_count(st)[v] += 1
            first = int(mem.first_cell(st)[v * how["streams"] + stream])
            links = mem.cell_links(st)
            links[(new * parts + part) * 2] = NONE
            links[(new * parts + part) * 2 + 1] = first
            if first != NONE:
                links[(first * parts + part) * 2] = new
            mem.first_cell(st)[v * how["streams"] + stream] = new
    entry["weight"] = _matches(how, st, new)
    return new


@kernel
def drop_empty(how, st, cell):
    """A cell without tuples goes."""
    entry, parts = mem.cells(st, cell), how["parts"]
    if how["weighed"] == 0 or entry["count"] > 0:
        return
    stream = int(entry["stream"])
    head = _cell_head(how, st, cell, stream)
    heads, links = mem.cell_heads(st), mem.cell_links(st)
    if heads[head] == cell:
        heads[head] = entry["next"]
    else:
        before = int(heads[head])
        while mem.cells(st, before)["next"] != cell:
            before = int(mem.cells(st, before)["next"])
        mem.cells(st, before)["next"] = entry["next"]
    for part in range(parts):
        v = int(mem.cell_values(st)[cell * parts + part])
        if v != NONE:
            mem.cell_count(st)[v] -= 1
            older, newer = int(links[(cell * parts + part) * 2]), int(links[(cell * parts + part) * 2 + 1])
            if older == NONE:
                mem.first_cell(st)[v * how["streams"] + stream] = newer
            else:
                links[(older * parts + part) * 2 + 1] = newer
            if newer != NONE:
                links[(newer * parts + part) * 2] = older
    mem.free_cells(st)[st["free_cell_count"]] = cell
    st["free_cell_count"] += 1


@kernel
def _matches(how, st, cell):
    """The product of the weights of all streams that the cell's attributes are equated with."""
    stream = int(mem.cells(st, cell)["stream"])
    product = 1.0
    for part in range(how["parts"]):
        v = int(mem.cell_values(st)[cell * how["parts"] + part])
        if v != NONE:
            for other in range(how["streams"]):
                if other != stream and _attr_of(st, part, other) >= 0:
                    product *= mem.weight(st)[v * how["streams"] + other]
    return product


@kernel
def renew(how, st, cell):
    """The chance of a cell anew, after weights were changed."""
    mem.cells(st, cell)["weight"] = _matches(how, st, cell)


@kernel
def reweigh_others(how, st, v, stream):
    """A stream's weight of a value has changed: so have the chances of the other streams' cells that hold it."""
    part = int(mem.part(st, v))
    for other in range(how["streams"]):
        if other != stream:
            cell = int(mem.first_cell(st)[v * how["streams"] + other])
            while cell != NONE:
                now = _matches(how, st, cell)
                if now != mem.cells(st, cell)["weight"]:
                    mem.cells(st, cell)["weight"] = now
                    priority.reweigh(how, st, other, cell)
                cell = int(mem.cell_links(st)[(cell * how["parts"] + part) * 2 + 1])


@kernel
def _enter_cell(how, st, stream, x):
    """A tuple joins its cell, as the newest."""
    cell = _cell_of(how, st, stream, x)
    entry = mem.cells(st, cell)
    entry["count"] += 1
    if how["fifo"]:
        link = mem.link(st)
        tail = int(entry["tail"])
        link[2 * x] = tail
        link[2 * x + 1] = NONE
        if tail == NONE:
            entry["low"] = x
        else:
            link[2 * tail + 1] = x
        entry["tail"] = x
    return cell


@kernel
def _leave_cell(how, st, cell, x):
    """A tuple leaves its cell."""
    entry = mem.cells(st, cell)
    entry["count"] -= 1
    if how["fifo"]:
        link = mem.link(st)
        older, newer = int(link[2 * x]), int(link[2 * x + 1])
        if older == NONE:
            entry["low"] = newer
        else:
            link[2 * older + 1] = newer
        if newer == NONE:
            entry["tail"] = older
        else:
            link[2 * newer] = older
