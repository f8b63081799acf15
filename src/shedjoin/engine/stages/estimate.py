"""Estimators as kernels: how much a stream is expected to bring of a value."""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.codes import (
    COUNT_MIN,
    DECAYED,
    HISTORY,
    IN_MEMORY,
    IN_WINDOW,
    ITEMS,
    KEY,
    LEARNED,
    MET,
    PRODUCT,
    ROW,
    TABLE,
)
from shedjoin.engine.forms import in_pairs, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import layout, storage
from shedjoin.engine.layouts.items import EVERY_ROW
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import learned
from shedjoin.engine.stages.chances import FORGOTTEN
from shedjoin.engine.stages.sketch import cell_of, count_of
from shedjoin.engine.stages.times import half_lives, newest


@inlined
def _no_part(st, v):
    return 0


@in_pairs(_no_part)
@inlined
def _part(st, v):
    return int(mem.part(st, v))


@inlined
def _add(how, st, v, stream, change):
    """A weight changes, and with it the chances of other streams' tuples."""
    storage.set_weight(how, st, v, stream, storage.weight(how, st, v, stream) + change)
    layout.reweigh_others(how, st, v, stream)


@inlined
def _set(how, st, v, stream, value):
    storage.set_weight(how, st, v, stream, value)
    layout.reweigh_others(how, st, v, stream)


@unless_plain
@inlined
def stored(how, st, x, stream, change):
    """A tuple was stored (+1) or goes (-1): what counts in memory means to the other streams."""
    if how["estimator"] == IN_MEMORY and how["weighed"]:
        for number in range(storage.values_of(how, st, x)):
            v = storage.value_of(how, st, x, number)
            if v != NONE:
                _add(how, st, v, stream, change)


@unless_plain
@kernel
def let_go(how, st):
    """Arrivals that have left the window no longer count."""
    if how["estimator"] != IN_WINDOW or how["weighed"] == 0:
        return
    size = st["seen_room"]
    for stream in range(how["streams"]):
        span = mem.window_size(how, stream)
        if mem.window_kind(how, stream) == ROW:
            limit = st["arrived"][stream] - span - 1
        else:
            limit = st["clock"][stream] - span
        while st["seen_size"][stream] > 0:
            first = mem.seen(st)[stream, st["seen_head"][stream]]
            if first["stamp"] > limit:
                break
            v = int(first["value"])
            st["seen_head"][stream] = (st["seen_head"][stream] + 1) & (size - 1)
            st["seen_size"][stream] -= 1
            mem.keys(st, v)["held"] -= 1
            _add(how, st, v, stream, -1.0)


@unless_plain
@kernel
def fold(how, st):
    """Keep Decayed's weights, and the products of them, within the range of floats."""
    if how["estimator"] != DECAYED or st["started"] == 0 or how["weighed"] == 0:
        return
    now = newest(how, st)
    # A few folds make everything 0: of a longer silence only the last ones are carried out.
    silence = half_lives(how, st, now) / how["fold_at"]
    if silence > 40.0:
        st["epoch"] += int(silence) - 32
    folded, weight = False, 1.0
    factor = math.exp2(-how["fold_at"])
    while half_lives(how, st, now) > how["fold_at"]:
        st["epoch"] += 1
        folded = True
        weight *= factor
        for v in range(st["keys_room"]):
            for stream in range(how["streams"]):
                at = v * how["streams"] + stream
                mem.set_mass(st, at, mem.mass(st, at) * factor)
                if _live(how):
                    storage.set_weight(how, st, v, stream, storage.weight(how, st, v, stream) * factor)
    if folded:
        layout.fold_all(how, st, weight)


@inlined
def _live(how):
    """Whether priorities use Decayed's weights as they stand (their common factor does not matter)."""
    return how["organisation"] != KEY or how["combine"] == PRODUCT


@inlined
def _is_read_of_pair(how, st):
    return how["estimator"] == COUNT_MIN or (how["estimator"] == DECAYED and not _live(how))


@in_pairs(_is_read_of_pair)
@inlined
def _is_read(how, st):
    """Whether estimates are read when a row of their value arrives. Of predicates they are read when tuples are weighed."""
    return how["alone"] == 0 and (how["estimator"] == COUNT_MIN or (how["estimator"] == DECAYED and not _live(how)))


@inlined
def _never(how, st, v):
    return False


@in_pairs(_never)
@inlined
def _is_every_row(how, st, v):
    """Whether a value is the one that every row has: it needs no sketch."""
    return how["layout"] == ITEMS and mem.part(st, v) == EVERY_ROW


@inlined
def _fresh_of_pair(how, st, io, i):
    return mem.out_fresh(io, i)


@in_pairs(_fresh_of_pair)
@inlined
def _fresh(how, st, io, i):
    """A tuple that this instant brought. Where rows have their turn one by one, it may have left again."""
    return int(mem.fresh(st, i)["item"]) if how["waits"] else mem.out_fresh(io, i)


@inlined
def _stream_of_pair(how, st, i, x):
    return int(mem.pool(st, x)["stream"])


@in_pairs(_stream_of_pair)
@inlined
def _stream_of(how, st, i, x):
    return int(mem.fresh(st, i)["stream"]) if how["waits"] else int(mem.pool(st, x)["stream"])


@inlined
def _value_of_pair(how, st, i, x, number):
    return storage.value_of(how, st, x, number)


@in_pairs(_value_of_pair)
@inlined
def _value_of(how, st, i, x, number):
    if how["waits"] and how["layout"] != ITEMS:
        return int(mem.fresh_value(st)[i * how["parts"] + number])
    return storage.value_of(how, st, x, number)


@inlined
def _number_of_pair(how, st, i, x):
    return storage.card(how, st, x)["seq"]


@in_pairs(_number_of_pair)
@inlined
def _number_of(how, st, i, x):
    return mem.fresh(st, i)["number"] if how["waits"] else storage.card(how, st, x)["seq"]


@inlined
def _observe(how, st, i, x, stream, v):
    """A new tuple's value, seen by the estimator."""
    entry = mem.keys(st, v)
    if how["estimator"] == HISTORY:
        entry["held"] = 1
        _add(how, st, v, stream, 1.0)
    elif how["estimator"] == IN_WINDOW:
        size = st["seen_room"]
        arrival = mem.seen(st)[stream, (st["seen_head"][stream] + st["seen_size"][stream]) & (size - 1)]
        by_rows = mem.window_kind(how, stream) == ROW
        arrival["stamp"] = _number_of(how, st, i, x) if by_rows else st["clock"][stream]
        arrival["value"] = v
        st["seen_size"][stream] += 1
        entry["held"] += 1
        _add(how, st, v, stream, 1.0)
    elif how["estimator"] == DECAYED:
        _forget(how, st, v)
        at = v * how["streams"] + stream
        mem.set_mass(st, at, mem.mass(st, at) + math.exp2(half_lives(how, st, st["clock"][stream])))
        entry["held"] = 1
        if _live(how):
            _set(how, st, v, stream, mem.mass(st, at))
    elif how["estimator"] == COUNT_MIN:
        if _is_every_row(how, st, v):
            entry["held"] = 1
            _add(how, st, v, stream, 1.0)
            return
        for row in range(how["depth"]):
            mem.sketch(st)[cell_of(how, _part(st, v), stream, row, entry["key"])] += 1


@kernel
def _forget(how, st, v):
    """Drop what is left of a count that has all but decayed, so that it makes no difference when `sweep` came by."""
    for stream in range(how["streams"]):
        at = v * how["streams"] + stream
        mass = mem.mass(st, at)
        if mass > 0.0 and mass < FORGOTTEN * math.exp2(half_lives(how, st, st["clock"][stream])):
            mem.set_mass(st, at, 0.0)
            if _live(how):
                _set(how, st, v, stream, 0.0)


@kernel
def _refresh(how, st, v):
    """Estimates that are read when a row of their value arrives."""
    key = mem.keys(st, v)["key"]
    for stream in range(how["streams"]):
        if not storage.has_part(how, st, v, stream):
            continue
        if how["estimator"] == COUNT_MIN:
            _set(how, st, v, stream, float(count_of(how, st, _part(st, v), stream, key)))
        else:
            mass = mem.mass(st, v * how["streams"] + stream)
            _set(how, st, v, stream, mass * math.exp2(-half_lives(how, st, newest(how, st))))


@inlined
def _learn(how, st, io):
    for i in range(io["fresh"]):
        x = _fresh(how, st, io, i)
        v = _value_of(how, st, i, x, 0)
        mem.keys(st, v)["held"] = 1
        learned.observe(how, st, _stream_of(how, st, i, x), v)
    for i in range(io["fresh"]):
        learned.look(how, st, _value_of(how, st, i, _fresh(how, st, io, i), 0))


@unless_plain
@kernel
def observe(how, st, io):
    """The estimator sees the new tuples: first all are counted, then estimates that are read are read."""
    if how["estimator"] == TABLE or how["estimator"] == IN_MEMORY or how["estimator"] == MET or how["weighed"] == 0:
        return
    if how["estimator"] == LEARNED:
        _learn(how, st, io)
        return
    if how["estimator"] == DECAYED and st["started"] == 0 and io["fresh"] > 0:
        st["started"] = 1
        st["t0"] = newest(how, st)
    for i in range(io["fresh"]):
        x = _fresh(how, st, io, i)
        for number in range(storage.values_of(how, st, x)):
            v = _value_of(how, st, i, x, number)
            if v != NONE:
                _observe(how, st, i, x, _stream_of(how, st, i, x), v)
    if _is_read(how, st):
        for i in range(io["fresh"]):
            x = _fresh(how, st, io, i)
            for number in range(storage.values_of(how, st, x)):
                v = _value_of(how, st, i, x, number)
                if v != NONE:
                    _refresh(how, st, v)
    let_go(how, st)


@kernel
def sweep(how, st):
    """Let go of the values of which next to nothing is remembered and nothing is stored."""
    if how["estimator"] != LEARNED and (how["estimator"] != DECAYED or st["started"] == 0):
        return
    for v in range(st["keys_room"]):
        if mem.keys(st, v)["held"] == 1 and storage.is_idle(how, st, v) and _negligible(how, st, v):
            mem.keys(st, v)["held"] = 0


@kernel
def _negligible(how, st, v):
    if how["estimator"] == LEARNED:
        return learned.is_negligible(how, st, v)
    for stream in range(how["streams"]):
        least = FORGOTTEN * math.exp2(half_lives(how, st, st["clock"][stream]))
        if mem.mass(st, v * how["streams"] + stream) >= least:
            return False
    return True
