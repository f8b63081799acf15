"""Estimators as kernels: how much a stream is expected to bring of a key."""

from __future__ import annotations

import math

import numpy as np

from shedjoin.engine import learn, mem, order, shelf
from shedjoin.engine.codes import (
    COUNT_MIN,
    DECAYED,
    HISTORY,
    IN_MEMORY,
    IN_WINDOW,
    KEY,
    LEARNED,
    PRODUCT,
    ROW,
)
from shedjoin.engine.forms import unless_plain
from shedjoin.engine.jit import inlined, kernel

FORGOTTEN = 2.0**-20
FOLD = 2.0**-512
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@kernel
def _cell(how, stream, row, key):
    """Where the sketch counts a key: splitmix64's finaliser, salted with the row."""
    x = np.uint64(key) + np.uint64(row + 1) * GOLDEN
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    x = x ^ (x >> np.uint64(31))
    return (stream * how["depth"] + row) * how["width"] + np.int64(x % np.uint64(how["width"]))


@unless_plain
@inlined
def stored(how, st, stream, slot, change):
    """A tuple was stored (+1) or went (-1): what counts in memory means to the other stream."""
    if how["estimator"] == IN_MEMORY:
        mem.sides(st, slot)["weight"][stream] += change
        order.reweigh(how, st, 1 - stream, slot)


@unless_plain
@inlined
def let_go(how, st):
    """Arrivals that have left the window no longer count."""
    if how["estimator"] != IN_WINDOW:
        return
    size = st["seen_room"]
    for stream in range(2):
        span = order.window_size(how, stream)
        if order.window_kind(how, stream) == ROW:
            limit = st["arrived"][stream] - span - 1
        else:
            limit = st["clock"][stream] - span
        while st["seen_size"][stream] > 0:
            first = mem.seen(st)[stream, st["seen_head"][stream]]
            if first["stamp"] > limit:
                break
            slot = first["slot"]
            st["seen_head"][stream] = (st["seen_head"][stream] + 1) & (size - 1)
            st["seen_size"][stream] -= 1
            mem.sides(st, slot)["weight"][stream] -= 1.0
            mem.keys(st, slot)["held"] -= 1
            order.reweigh(how, st, 1 - stream, slot)


@unless_plain
@inlined
def fold(how, st):
    """Keep Decayed's weights within the range of floats."""
    if how["estimator"] != DECAYED or st["started"] == 0:
        return
    now = max(st["clock"][0], st["clock"][1])
    # Eight folds make everything 0: of a longer silence only the last ones are carried out.
    silence = order.half_lives(how, st, now) / 512.0
    if silence > 16.0:
        st["epoch"] += int(silence) - 8
    while order.half_lives(how, st, now) > 512.0:
        st["epoch"] += 1
        live = _live(how)
        for slot in range(st["keys_room"]):
            for stream in range(2):
                mem.mass(st)[stream, slot] *= FOLD
                if live:
                    mem.sides(st, slot)["weight"][stream] *= FOLD
        order.rescale(how, st, FOLD)


@inlined
def _live(how):
    """Whether priorities use Decayed's weights as they stand (their common factor does not matter)."""
    return how["organisation"] != KEY or how["combine"] == PRODUCT


@inlined
def observe(how, st, x):
    """A new tuple, seen by the estimator."""
    stream, slot = int(mem.pool(st, x)["stream"]), int(mem.pool(st, x)["slot"])
    entry, side = mem.keys(st, slot), mem.sides(st, slot)
    if how["estimator"] == HISTORY:
        side["weight"][stream] += 1.0
        entry["held"] = 1
        order.reweigh(how, st, 1 - stream, slot)
    elif how["estimator"] == IN_WINDOW:
        size = st["seen_room"]
        arrival = mem.seen(st)[stream, (st["seen_head"][stream] + st["seen_size"][stream]) & (size - 1)]
        arrival["stamp"] = shelf.of(st, x)["seq"] if order.window_kind(how, stream) == ROW else st["clock"][stream]
        arrival["slot"] = slot
        st["seen_size"][stream] += 1
        side["weight"][stream] += 1.0
        entry["held"] += 1
        order.reweigh(how, st, 1 - stream, slot)
    elif how["estimator"] == DECAYED:
        if st["started"] == 0:
            st["started"] = 1
            st["t0"] = max(st["clock"][0], st["clock"][1])
        _forget(how, st, slot)
        mem.mass(st)[stream, slot] += math.exp2(order.half_lives(how, st, st["clock"][stream]))
        entry["held"] = 1
        if _live(how):
            side["weight"][stream] = mem.mass(st)[stream, slot]
            order.reweigh(how, st, 1 - stream, slot)
    elif how["estimator"] == COUNT_MIN:
        for row in range(how["depth"]):
            mem.sketch(st)[_cell(how, stream, row, entry["key"])] += 1
    elif how["estimator"] == LEARNED:
        entry["held"] = 1
        learn.observe(how, st, stream, slot)


@kernel
def _forget(how, st, slot):
    """Drop what is left of a count that has all but decayed, so that it makes no difference when `sweep` came by."""
    for stream in range(2):
        mass = mem.mass(st)[stream, slot]
        if mass > 0.0 and mass < FORGOTTEN * math.exp2(order.half_lives(how, st, st["clock"][stream])):
            mem.mass(st)[stream, slot] = 0.0
            if _live(how):
                mem.sides(st, slot)["weight"][stream] = 0.0
                order.reweigh(how, st, 1 - stream, slot)


@inlined
def refresh(how, st, slot):
    """Estimates that are read when a row of their key arrives."""
    if how["estimator"] == COUNT_MIN:
        key = mem.keys(st, slot)["key"]
        for stream in range(2):
            least = mem.sketch(st)[_cell(how, stream, 0, key)]
            for row in range(1, how["depth"]):
                least = min(least, mem.sketch(st)[_cell(how, stream, row, key)])
            mem.sides(st, slot)["weight"][stream] = least
            order.reweigh(how, st, 1 - stream, slot)
    elif how["estimator"] == LEARNED:
        learn.look(how, st, slot)
    elif how["estimator"] == DECAYED and not _live(how):
        for stream in range(2):
            mem.sides(st, slot)["weight"][stream] = order.current_matches(how, st, 1 - stream, slot)
            order.reweigh(how, st, 1 - stream, slot)


@kernel
def sweep(how, st):
    """Let go of the keys of which next to nothing is remembered and nothing is stored."""
    if how["estimator"] == LEARNED:
        for slot in range(st["keys_room"]):
            count = mem.sides(st, slot)["count"]
            if mem.keys(st, slot)["held"] == 1 and count[0] + count[1] == 0 and learn.is_negligible(how, st, slot):
                mem.keys(st, slot)["held"] = 0
        return
    if how["estimator"] != DECAYED or st["started"] == 0:
        return
    for slot in range(st["keys_room"]):
        if mem.keys(st, slot)["held"] == 1 and _negligible(how, st, slot):
            mem.keys(st, slot)["held"] = 0


@kernel
def _negligible(how, st, slot):
    for stream in range(2):
        if mem.sides(st, slot)["count"][stream] != 0:
            return False
        if mem.mass(st)[stream, slot] >= FORGOTTEN * math.exp2(order.half_lives(how, st, st["clock"][stream])):
            return False
    return True
