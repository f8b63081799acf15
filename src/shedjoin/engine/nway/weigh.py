"""Estimators for n streams: how much a stream is expected to bring of a value; engine.weigh for slots."""

from __future__ import annotations

import math

import numpy as np

from shedjoin.engine import mem as tuples
from shedjoin.engine.codes import COUNT_MIN, DECAYED, HISTORY, IN_MEMORY, IN_WINDOW, KEY, PRODUCT, ROW, TABLE
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.nway import cells, mem, order
from shedjoin.engine.nway.state import MOST
from shedjoin.engine.state import NONE

FORGOTTEN = 2.0**-20
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@kernel
def _place(how, part, stream, row, key):
    """Where the sketch counts a value: splitmix64's finaliser, salted with the row."""
    x = np.uint64(key) + np.uint64(row + 1) * GOLDEN
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    x = x ^ (x >> np.uint64(31))
    table = (part * how["streams"] + stream) * how["depth"] + row
    return table * how["sketch_width"] + np.int64(x % np.uint64(how["sketch_width"]))


@inlined
def _live(how):
    """Whether priorities use Decayed's weights as they stand (their common factor does not matter)."""
    return how["organisation"] != KEY or how["combine"] == PRODUCT


@inlined
def _slot(how, st, x, part):
    """The slot of a tuple's value in a set of equated attributes; -1 when its stream has no part in it."""
    return int(mem.cell_slots(st)[tuples.pool(st, x)["slot"] * how["parts"] + part])


@kernel
def stored(how, st, x, change):
    """A tuple was stored (+1) or goes (-1): what counts in memory means to the other streams."""
    if how["estimator"] != IN_MEMORY or not how["weighed"]:
        return
    stream = int(tuples.pool(st, x)["stream"])
    for part in range(how["parts"]):
        slot = _slot(how, st, x, part)
        if slot != NONE:
            mem.weight(st)[slot * MOST + stream] += change
            cells.reweigh(how, st, slot, stream)


@kernel
def let_go(how, st):
    """Arrivals that have left the window no longer count."""
    if how["estimator"] != IN_WINDOW or not how["weighed"]:
        return
    size = st["seen_room"]
    for stream in range(how["streams"]):
        if st["kind"][stream] == ROW:
            limit = st["arrived"][stream] - st["window"][stream] - 1
        else:
            limit = st["clock"][stream] - st["window"][stream]
        while st["seen_size"][stream] > 0:
            first = tuples.seen(st)[stream, st["seen_head"][stream]]
            if first["stamp"] > limit:
                break
            slot = int(first["slot"])
            st["seen_head"][stream] = (st["seen_head"][stream] + 1) & (size - 1)
            st["seen_size"][stream] -= 1
            mem.weight(st)[slot * MOST + stream] -= 1.0
            mem.slots(st, slot)["held"] -= 1
            cells.reweigh(how, st, slot, stream)


@kernel
def fold(how, st, time):
    """Keep Decayed's weights, and the products of them, within the range of floats."""
    if how["estimator"] != DECAYED or st["started"] == 0 or not how["weighed"]:
        return
    # Eight folds make everything 0: of a longer silence only the last ones are carried out.
    silence = order.half_lives(how, st, time) / how["fold_at"]
    if silence > 40.0:
        st["epoch"] += int(silence) - 32
    folded = False
    factor = math.exp2(-how["fold_at"])
    while order.half_lives(how, st, time) > how["fold_at"]:
        st["epoch"] += 1
        folded = True
        for place in range(st["mass_room"]):
            mem.mass(st)[place] *= factor
            if _live(how):
                mem.weight(st)[place] *= factor
    if folded:
        cells.renew_all(how, st)


@kernel
def _observe(how, st, x, part, slot):
    """A row of this instant, seen by the estimator."""
    stream = int(tuples.pool(st, x)["stream"])
    entry, place = mem.slots(st, slot), slot * MOST + stream
    if how["estimator"] == HISTORY:
        mem.weight(st)[place] += 1.0
        entry["held"] = 1
        cells.reweigh(how, st, slot, stream)
    elif how["estimator"] == IN_WINDOW:
        size = st["seen_room"]
        arrival = tuples.seen(st)[stream, (st["seen_head"][stream] + st["seen_size"][stream]) & (size - 1)]
        arrival["stamp"] = mem.card(st, x)["seq"] if st["kind"][stream] == ROW else st["clock"][stream]
        arrival["slot"] = slot
        st["seen_size"][stream] += 1
        mem.weight(st)[place] += 1.0
        entry["held"] += 1
        cells.reweigh(how, st, slot, stream)
    elif how["estimator"] == DECAYED:
        _forget(how, st, slot)
        mem.mass(st)[place] += math.exp2(order.half_lives(how, st, st["clock"][stream]))
        entry["held"] = 1
        if _live(how):
            mem.weight(st)[place] = mem.mass(st)[place]
            cells.reweigh(how, st, slot, stream)
    elif how["estimator"] == COUNT_MIN:
        for row in range(how["depth"]):
            mem.sketch(st)[_place(how, part, stream, row, entry["key"])] += 1


@kernel
def _forget(how, st, slot):
    """Drop what is left of a count that has all but decayed, so that it makes no difference when `sweep` came by."""
    for stream in range(how["streams"]):
        mass = mem.mass(st)[slot * MOST + stream]
        if mass > 0.0 and mass < FORGOTTEN * math.exp2(order.half_lives(how, st, st["clock"][stream])):
            mem.mass(st)[slot * MOST + stream] = 0.0
            if _live(how):
                mem.weight(st)[slot * MOST + stream] = 0.0
                cells.reweigh(how, st, slot, stream)


@kernel
def _refresh(how, st, part, slot, time):
    """Estimates that are read when a row of their value arrives."""
    key = mem.slots(st, slot)["key"]
    for stream in range(how["streams"]):
        if mem.part_of(st)[part * MOST + stream] < 0:
            continue
        if how["estimator"] == COUNT_MIN:
            least = mem.sketch(st)[_place(how, part, stream, 0, key)]
            for row in range(1, how["depth"]):
                least = min(least, mem.sketch(st)[_place(how, part, stream, row, key)])
            mem.weight(st)[slot * MOST + stream] = least
        else:
            mass = mem.mass(st)[slot * MOST + stream]
            mem.weight(st)[slot * MOST + stream] = mass * math.exp2(-order.half_lives(how, st, time))
        cells.reweigh(how, st, slot, stream)


@kernel
def see(how, st, io, first, end, time):
    """The estimator sees the instant's rows: first all are counted, then estimates that are read are read."""
    if not how["weighed"] or how["estimator"] == TABLE or how["estimator"] == IN_MEMORY:
        return
    if how["estimator"] == DECAYED and st["started"] == 0 and io["fresh"] > 0:
        st["started"] = 1
        st["t0"] = time
    for i in range(io["fresh"]):
        x = int(mem.out_fresh(io)[i])
        for part in range(how["parts"]):
            slot = _slot(how, st, x, part)
            if slot != NONE:
                _observe(how, st, x, part, slot)
    if how["estimator"] == COUNT_MIN or (how["estimator"] == DECAYED and not _live(how)):
        for i in range(io["fresh"]):
            x = int(mem.out_fresh(io)[i])
            for part in range(how["parts"]):
                slot = _slot(how, st, x, part)
                if slot != NONE:
                    _refresh(how, st, part, slot, time)
    let_go(how, st)


@kernel
def sweep(how, st):
    """Let go of the values of which Decayed remembers next to nothing and nothing is stored."""
    if how["estimator"] != DECAYED or st["started"] == 0:
        return
    for slot in range(st["slots_room"]):
        entry = mem.slots(st, slot)
        if entry["held"] == 1 and entry["cells"] == 0:
            negligible = True
            for stream in range(how["streams"]):
                least = FORGOTTEN * math.exp2(order.half_lives(how, st, st["clock"][stream]))
                if mem.mass(st)[slot * MOST + stream] >= least:
                    negligible = False
            if negligible:
                entry["held"] = 0
