"""Cells: the tuples of a stream that have the same values in every attribute that is equated with another stream's.

All tuples of a cell have the same chance of completing a result, so that policies order cells and not tuples. With one common
attribute a cell is a key of a stream. A value of an attribute has a slot with the weights of all streams; a cell knows its
slots, a slot the cells that hold it.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem as tuples
from shedjoin.engine.codes import KEY, LIFE
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.nway import mem, order
from shedjoin.engine.nway.state import MOST
from shedjoin.engine.state import NONE


@inlined
def _mixed(key, buckets):
    mixed = (key ^ (key >> 32)) * 0x9E3779B97F4A7C1
    return ((mixed >> 24) ^ mixed) & (buckets - 1)


@inlined
def _slot_bucket(st, part, key):
    return _mixed(key + part * 0x9E3779B9, st["slot_buckets_room"])


@kernel
def slot_of(st, part, key):
    """The slot of a value, a new one if need be; the caller has made sure that one is free."""
    bucket = _slot_bucket(st, part, key)
    slot = int(mem.slot_buckets(st)[bucket])
    while slot != NONE:
        entry = mem.slots(st, slot)
        if entry["key"] == key and entry["part"] == part:
            return slot
        slot = int(entry["next"])
    st["free_slot_count"] -= 1
    slot = int(mem.free_slots(st)[st["free_slot_count"]])
    entry = mem.slots(st, slot)
    entry["key"] = key
    entry["part"] = part
    entry["held"] = 0
    entry["cells"] = 0
    entry["next"] = mem.slot_buckets(st)[bucket]
    mem.slot_buckets(st)[bucket] = slot
    for stream in range(MOST):
        mem.weight(st)[slot * MOST + stream] = 0.0
        mem.slot_cells(st)[slot * MOST + stream] = NONE
    if st["mass_room"] > 1:
        for stream in range(MOST):
            mem.mass(st)[slot * MOST + stream] = 0.0
    return slot


@kernel
def forget_idle(st):
    """Give back the slots of values that no cell and no estimator holds; returns how many went."""
    heads = mem.slot_buckets(st)
    gone = 0
    for bucket in range(st["slot_buckets_room"]):
        before = NONE
        slot = int(heads[bucket])
        while slot != NONE:
            entry = mem.slots(st, slot)
            following = int(entry["next"])
            if entry["held"] == 0 and entry["cells"] == 0:
                if before == NONE:
                    heads[bucket] = following
                else:
                    mem.slots(st, before)["next"] = following
                mem.free_slots(st)[st["free_slot_count"]] = slot
                st["free_slot_count"] += 1
                gone += 1
            else:
                before = slot
            slot = following
    return gone


@inlined
def _attr_of(st, part, stream):
    return int(mem.part_of(st)[part * MOST + stream])


@kernel
def _cell_bucket(how, st, cell, stream):
    mixed = np.int64(stream)
    for part in range(how["parts"]):
        mixed = mixed * 0x100000001B3 + mem.cell_slots(st)[cell * how["parts"] + part]
    return _mixed(mixed, st["cell_buckets_room"])


@kernel
def _same(how, st, a, b):
    if mem.cells(st, a)["stream"] != mem.cells(st, b)["stream"]:
        return False
    for part in range(how["parts"]):
        if mem.cell_slots(st)[a * how["parts"] + part] != mem.cell_slots(st)[b * how["parts"] + part]:
            return False
    return True


@kernel
def _cell_of(how, st, x):
    """The cell of a tuple, a new one if need be; the caller has made sure that one is free."""
    stream, parts = int(tuples.pool(st, x)["stream"]), how["parts"]
    # A new cell is filled in to be compared with; it is taken only when there is no other like it.
    new = int(mem.free_cells(st)[st["free_cell_count"] - 1])
    mem.cells(st, new)["stream"] = stream
    for part in range(parts):
        attr = _attr_of(st, part, stream)
        slot = slot_of(st, part, mem.attr(st, x * how["width"] + attr)) if attr >= 0 else NONE
        mem.cell_slots(st)[new * parts + part] = slot
    bucket = _cell_bucket(how, st, new, stream)
    cell = int(mem.cell_buckets(st)[bucket])
    while cell != NONE:
        if _same(how, st, cell, new):
            return cell
        cell = int(mem.cells(st, cell)["next"])
    st["free_cell_count"] -= 1
    entry = mem.cells(st, new)
    entry["count"] = 0
    entry["low"] = NONE
    entry["tail"] = NONE
    entry["next"] = mem.cell_buckets(st)[bucket]
    mem.cell_buckets(st)[bucket] = new
    for part in range(parts):
        slot = int(mem.cell_slots(st)[new * parts + part])
        if slot != NONE:
            mem.slots(st, slot)["cells"] += 1
            first = int(mem.slot_cells(st)[slot * MOST + stream])
            links = mem.cell_links(st)
            links[(new * parts + part) * 2] = NONE
            links[(new * parts + part) * 2 + 1] = first
            if first != NONE:
                links[(first * parts + part) * 2] = new
            mem.slot_cells(st)[slot * MOST + stream] = new
    entry["matches"] = matches(how, st, new)
    return new


@kernel
def _drop(how, st, cell):
    """A cell without tuples goes."""
    entry, parts = mem.cells(st, cell), how["parts"]
    stream = int(entry["stream"])
    bucket = _cell_bucket(how, st, cell, stream)
    heads, links = mem.cell_buckets(st), mem.cell_links(st)
    if heads[bucket] == cell:
        heads[bucket] = entry["next"]
    else:
        before = int(heads[bucket])
        while mem.cells(st, before)["next"] != cell:
            before = int(mem.cells(st, before)["next"])
        mem.cells(st, before)["next"] = entry["next"]
    for part in range(parts):
        slot = int(mem.cell_slots(st)[cell * parts + part])
        if slot != NONE:
            mem.slots(st, slot)["cells"] -= 1
            older, newer = int(links[(cell * parts + part) * 2]), int(links[(cell * parts + part) * 2 + 1])
            if older == NONE:
                mem.slot_cells(st)[slot * MOST + stream] = newer
            else:
                links[(older * parts + part) * 2 + 1] = newer
            if newer != NONE:
                links[(newer * parts + part) * 2] = older
    mem.free_cells(st)[st["free_cell_count"]] = cell
    st["free_cell_count"] += 1


@kernel
def matches(how, st, cell):
    """The product of the weights of all streams that the cell's attributes are equated with."""
    stream = int(mem.cells(st, cell)["stream"])
    product = 1.0
    for part in range(how["parts"]):
        slot = int(mem.cell_slots(st)[cell * how["parts"] + part])
        if slot != NONE:
            for other in range(how["streams"]):
                if other != stream and _attr_of(st, part, other) >= 0:
                    product *= mem.weight(st)[slot * MOST + other]
    return product


@kernel
def reweigh(how, st, slot, stream):
    """A stream's weight of a value has changed: so have the chances of the other streams' cells that hold it."""
    part = int(mem.slots(st, slot)["part"])
    for other in range(how["streams"]):
        if other != stream:
            cell = int(mem.slot_cells(st)[slot * MOST + other])
            while cell != NONE:
                now = matches(how, st, cell)
                if now != mem.cells(st, cell)["matches"]:
                    mem.cells(st, cell)["matches"] = now
                    order.reweigh(how, st, cell)
                cell = int(mem.cell_links(st)[(cell * how["parts"] + part) * 2 + 1])


@kernel
def enter(how, st, x):
    """A tuple joins its cell, as the newest."""
    cell = _cell_of(how, st, x)
    entry = mem.cells(st, cell)
    tuples.pool(st, x)["slot"] = cell
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


@kernel
def leave(how, st, x):
    """A tuple leaves its cell."""
    cell = int(tuples.pool(st, x)["slot"])
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
    if how["organisation"] == KEY or how["organisation"] == LIFE:
        order.reweigh(how, st, cell)
    if entry["count"] == 0:
        _drop(how, st, cell)


@kernel
def renew_all(how, st):
    """Every cell's chance anew, after all weights were changed at once."""
    for bucket in range(st["cell_buckets_room"]):
        cell = int(mem.cell_buckets(st)[bucket])
        while cell != NONE:
            mem.cells(st, cell)["matches"] = matches(how, st, cell)
            order.reweigh(how, st, cell)
            cell = int(mem.cells(st, cell)["next"])
