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
from shedjoin.engine.layouts import storage
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


@inlined
def _bucket_of_row(cfg, state, buffers, i, number):
    index = mem.indexes(state, number)
    key = _key_in(index, mem.row_key(buffers, i * cfg["width"] + max(index["attr"], 0)))
    return mem.index_buckets(state, bucket_of(index, key))


@kernel
def make_place(cfg, state, buffers, i, stream):
    """Make room for a row in all indexes of its stream; returns what the arena may lack for that, most often 0."""
    first, end = state["first_index"][stream], state["end_index"][stream]
    for number in range(first, end):
        if buckets.make_place(cfg, state, _bucket_of_row(cfg, state, buffers, i, number), number - first) > 0:
            lacks = 0
            for other in range(first, end):  # a new arena gives up the places that were made
                lacks += max(2 * int(_bucket_of_row(cfg, state, buffers, i, other)["room"]), buckets.SMALLEST)
            return lacks
    return 0


@inlined
def _note(state, ts, seq, importance, x):
    card = mem.card(state, x)
    card["ts"] = ts
    card["seq"] = seq
    card["importance"] = importance
    card["item"] = x
    card["partners"] = 0


@kernel
def put(cfg, state, buffers, i, stream, ts, seq, importance, x):
    """Put a tuple into all indexes of its stream and into its cell; returns the cell."""
    _note(state, ts, seq, importance, x)
    if state["came_room"] > 1:
        mem.set_came(state, x, state["tick"])
    storage.keep_attributes(cfg, state, buffers, i, x)
    for number in range(state["first_index"][stream], state["end_index"][stream]):
        index = mem.indexes(state, number)
        key = _key_in(index, mem.attr(state, x * cfg["width"] + max(index["attr"], 0)))
        b = mem.index_buckets(state, bucket_of(index, key))
        place = buckets.append(cfg, state, b, ts, seq, importance, x, number - state["first_index"][stream])
        mem.set_entry_key(state, place, key)
    if cfg["weighed"] == 0 or cfg["alone"]:
        return 0
    return _enter_cell(cfg, state, stream, x)


@kernel
def take_out(cfg, state, stream, cell, x):
    """Take a tuple out of all indexes and out of its cell."""
    for number in range(state["first_index"][stream], state["end_index"][stream]):
        index, which = mem.indexes(state, number), number - state["first_index"][stream]
        key = _key_in(index, mem.attr(state, x * cfg["width"] + max(index["attr"], 0)))
        place = int(mem.spot(state, x * cfg["spots"] + which))
        buckets.remove(cfg, state, mem.index_buckets(state, bucket_of(index, key)), place, which)
    if cfg["weighed"] and cfg["alone"] == 0:
        _leave_cell(cfg, state, cell, x)


@kernel
def join_group(cfg, state, stream, ts, seq, importance, x):
    """A row that waits, whose attributes are there, joins its cell, but no index; returns the cell."""
    _note(state, ts, seq, importance, x)
    return _enter_cell(cfg, state, stream, x)


@kernel
def leave_group(cfg, state, cell, x):
    """And leaves it."""
    _leave_cell(cfg, state, cell, x)


@inlined
def is_stocked(cfg, state):
    """Whether the stored tuples of each value are counted, for a queue, although each tuple is a group and knows no value."""
    return cfg["waits"] == 1 and cfg["alone"] == 1 and state["stock_room"] > 1


@kernel
def restock(cfg, state, stream, x, change):
    """A tuple that is a group comes or goes: its values are counted. There is room for them."""
    for part in range(cfg["parts"]):
        attr = _attr_of(state, part, stream)
        if attr >= 0:
            v = key_table.find_or_add(cfg, state, mem.attr(state, x * cfg["width"] + attr), part)
            mem.stock(state)[v * cfg["streams"] + stream] += change
            mem.cell_count(state)[v] += change


# -------------------------------------------------------------------------------------------------------------- cells


@inlined
def _attr_of(state, part, stream):
    return int(mem.part_of(state, part * MOST + stream))


@kernel
def _cell_head(cfg, state, cell, stream):
    mixed = np.int64(stream)
    for part in range(cfg["parts"]):
        mixed = mixed * 0x100000001B3 + mem.cell_values(state)[cell * cfg["parts"] + part]
    return key_table.hash_of(mixed, state["cell_heads_room"])


@kernel
def _same(cfg, state, a, b):
    if mem.cells(state, a)["stream"] != mem.cells(state, b)["stream"]:
        return False
    for part in range(cfg["parts"]):
        if mem.cell_values(state)[a * cfg["parts"] + part] != mem.cell_values(state)[b * cfg["parts"] + part]:
            return False
    return True


@kernel
def _cell_of(cfg, state, stream, x):
    """The cell of a tuple, a new one if need be; the caller has made sure that one is free."""
    parts = cfg["parts"]
    # A new cell is filled in to be compared with; it is taken only when there is no other like it.
    new = int(mem.free_cells(state)[state["free_cell_count"] - 1])
    mem.cells(state, new)["stream"] = stream
    for part in range(parts):
        attr = _attr_of(state, part, stream)
        v = NONE
        if attr >= 0:
            v = key_table.find_or_add(cfg, state, mem.attr(state, x * cfg["width"] + attr), part)
        mem.cell_values(state)[new * parts + part] = v
    head = _cell_head(cfg, state, new, stream)
    cell = int(mem.cell_heads(state)[head])
    while cell != NONE:
        if _same(cfg, state, cell, new):
            return cell
        cell = int(mem.cells(state, cell)["next"])
    state["free_cell_count"] -= 1
    entry = mem.cells(state, new)
    entry["count"] = 0
    entry["low"] = NONE
    entry["tail"] = NONE
    entry["next"] = mem.cell_heads(state)[head]
    mem.cell_heads(state)[head] = new
    for part in range(parts):
        v = int(mem.cell_values(state)[new * parts + part])
        if v != NONE:
            mem.cell_count(state)[v] += 1
            first = int(mem.first_cell(state)[v * cfg["streams"] + stream])
            links = mem.cell_links(state)
            links[(new * parts + part) * 2] = NONE
            links[(new * parts + part) * 2 + 1] = first
            if first != NONE:
                links[(first * parts + part) * 2] = new
            mem.first_cell(state)[v * cfg["streams"] + stream] = new
    entry["weight"] = _matches(cfg, state, new)
    return new


@kernel
def drop_empty(cfg, state, cell):
    """A cell without tuples goes."""
    entry, parts = mem.cells(state, cell), cfg["parts"]
    if cfg["weighed"] == 0 or entry["count"] > 0:
        return
    stream = int(entry["stream"])
    head = _cell_head(cfg, state, cell, stream)
    heads, links = mem.cell_heads(state), mem.cell_links(state)
    if heads[head] == cell:
        heads[head] = entry["next"]
    else:
        before = int(heads[head])
        while mem.cells(state, before)["next"] != cell:
            before = int(mem.cells(state, before)["next"])
        mem.cells(state, before)["next"] = entry["next"]
    for part in range(parts):
        v = int(mem.cell_values(state)[cell * parts + part])
        if v != NONE:
            mem.cell_count(state)[v] -= 1
            older, newer = int(links[(cell * parts + part) * 2]), int(links[(cell * parts + part) * 2 + 1])
            if older == NONE:
                mem.first_cell(state)[v * cfg["streams"] + stream] = newer
            else:
                links[(older * parts + part) * 2 + 1] = newer
            if newer != NONE:
                links[(newer * parts + part) * 2] = older
    mem.free_cells(state)[state["free_cell_count"]] = cell
    state["free_cell_count"] += 1


@kernel
def _matches(cfg, state, cell):
    """The product of the weights of all streams that the cell's attributes are equated with."""
    stream = int(mem.cells(state, cell)["stream"])
    product = 1.0
    for part in range(cfg["parts"]):
        v = int(mem.cell_values(state)[cell * cfg["parts"] + part])
        if v != NONE:
            for other in range(cfg["streams"]):
                if other != stream and _attr_of(state, part, other) >= 0:
                    product *= mem.weight(state)[v * cfg["streams"] + other]
    return product


@kernel
def renew(cfg, state, cell):
    """The chance of a cell anew, after weights were changed."""
    mem.cells(state, cell)["weight"] = _matches(cfg, state, cell)


@kernel
def reweigh_others(cfg, state, v, stream):
    """A stream's weight of a value has changed: so have the chances of the other streams' cells that hold it."""
    part = int(mem.part(state, v))
    for other in range(cfg["streams"]):
        if other != stream:
            cell = int(mem.first_cell(state)[v * cfg["streams"] + other])
            while cell != NONE:
                now = _matches(cfg, state, cell)
                if now != mem.cells(state, cell)["weight"]:
                    mem.cells(state, cell)["weight"] = now
                    priority.reweigh(cfg, state, other, cell)
                cell = int(mem.cell_links(state)[(cell * cfg["parts"] + part) * 2 + 1])


@kernel
def _enter_cell(cfg, state, stream, x):
    """A tuple joins its cell, as the newest."""
    cell = _cell_of(cfg, state, stream, x)
    entry = mem.cells(state, cell)
    entry["count"] += 1
    if cfg["fifo"]:
        link = mem.link(state)
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
def _leave_cell(cfg, state, cell, x):
    """A tuple leaves its cell."""
    entry = mem.cells(state, cell)
    entry["count"] -= 1
    if cfg["fifo"]:
        link = mem.link(state)
        older, newer = int(link[2 * x]), int(link[2 * x + 1])
        if older == NONE:
            entry["low"] = newer
        else:
            link[2 * older + 1] = newer
        if newer == NONE:
            entry["tail"] = older
        else:
            link[2 * newer] = older
