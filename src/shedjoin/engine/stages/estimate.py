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
from shedjoin.engine.stages import learned, remember
from shedjoin.engine.stages.chances import FORGOTTEN
from shedjoin.engine.stages.sketch import cell_of, count_of
from shedjoin.engine.stages.times import half_lives, newest


@inlined
def _no_part(state, v):
    return 0


@in_pairs(_no_part)
@inlined
def _part(state, v):
    return int(mem.part(state, v))


@inlined
def _add(cfg, state, v, stream, change):
    """A weight changes, and with it the chances of other streams' tuples."""
    storage.set_weight(cfg, state, v, stream, storage.weight(cfg, state, v, stream) + change)
    layout.reweigh_others(cfg, state, v, stream)


@inlined
def _set(cfg, state, v, stream, value):
    storage.set_weight(cfg, state, v, stream, value)
    layout.reweigh_others(cfg, state, v, stream)


@unless_plain
@inlined
def stored(cfg, state, x, stream, change):
    """A tuple was stored (+1) or goes (-1): what counts in memory means to the other streams."""
    if cfg["estimator"] == IN_MEMORY and cfg["weighed"]:
        for number in range(storage.values_of(cfg, state, x)):
            v = storage.value_of(cfg, state, x, number)
            if v != NONE:
                _add(cfg, state, v, stream, change)


@unless_plain
@kernel
def let_go(cfg, state):
    """Arrivals that have left the window no longer count."""
    if cfg["estimator"] != IN_WINDOW or cfg["weighed"] == 0:
        return
    for stream in range(cfg["streams"]):
        span = mem.window_range(cfg, stream)
        if mem.window_kind(cfg, stream) == ROW:
            limit = state["arrived"][stream] - span - 1
        else:
            limit = state["clock"][stream] - span
        while state["seen_size"][stream] > 0:
            first = mem.seen(state)[stream, state["seen_head"][stream]]
            if first["stamp"] > limit:
                break
            _let_first_go(cfg, state, stream)


@inlined
def _let_first_go(cfg, state, stream):
    v = remember.take_first(state, stream)
    mem.keys(state, v)["held"] -= 1
    _add(cfg, state, v, stream, -1.0)


@unless_plain
@kernel
def fold(cfg, state):
    """Keep Decayed's weights, and the products of them, within the range of floats."""
    if cfg["estimator"] != DECAYED or state["started"] == 0 or cfg["weighed"] == 0:
        return
    now = newest(cfg, state)
    # A few folds make everything 0: of a longer silence only the last ones are carried out.
    silence = half_lives(cfg, state, now) / cfg["fold_at"]
    if silence > 40.0:
        state["epoch"] += int(silence) - 32
    folded, weight = False, 1.0
    factor = math.exp2(-cfg["fold_at"])
    while half_lives(cfg, state, now) > cfg["fold_at"]:
        state["epoch"] += 1
        folded = True
        weight *= factor
        for v in range(state["keys_room"]):
            for stream in range(cfg["streams"]):
                at = v * cfg["streams"] + stream
                mem.set_mass(state, at, mem.mass(state, at) * factor)
                if _live(cfg):
                    storage.set_weight(cfg, state, v, stream, storage.weight(cfg, state, v, stream) * factor)
    if folded:
        layout.fold_all(cfg, state, weight)


@inlined
def _live(cfg):
    """Whether priorities use Decayed's weights as they stand (their common factor does not matter)."""
    return cfg["organisation"] != KEY or cfg["combine"] == PRODUCT


@inlined
def _is_read_of_pair(cfg, state):
    return cfg["estimator"] == COUNT_MIN or (cfg["estimator"] == DECAYED and not _live(cfg))


@in_pairs(_is_read_of_pair)
@inlined
def _is_read(cfg, state):
    """Whether estimates are read when a row of their value arrives. Of predicates they are read when tuples are weighed."""
    return cfg["alone"] == 0 and (cfg["estimator"] == COUNT_MIN or (cfg["estimator"] == DECAYED and not _live(cfg)))


@inlined
def _never(cfg, state, v):
    return False


@in_pairs(_never)
@inlined
def _is_every_row(cfg, state, v):
    """Whether a value is the one that every row has: it needs no sketch."""
    return cfg["layout"] == ITEMS and mem.part(state, v) == EVERY_ROW


@inlined
def _fresh_of_pair(cfg, state, buffers, i):
    return mem.out_fresh(buffers, i)


@in_pairs(_fresh_of_pair)
@inlined
def _fresh(cfg, state, buffers, i):
    """A tuple that this instant brought. Where rows have their turn one by one, it may have left again."""
    return int(mem.fresh(state, i)["item"]) if cfg["waits"] else mem.out_fresh(buffers, i)


@inlined
def _stream_of_pair(cfg, state, i, x):
    return int(mem.pool(state, x)["stream"])


@in_pairs(_stream_of_pair)
@inlined
def _stream_of(cfg, state, i, x):
    return int(mem.fresh(state, i)["stream"]) if cfg["waits"] else int(mem.pool(state, x)["stream"])


@inlined
def _value_of_pair(cfg, state, i, x, number):
    return storage.value_of(cfg, state, x, number)


@in_pairs(_value_of_pair)
@inlined
def _value_of(cfg, state, i, x, number):
    if cfg["waits"] and cfg["layout"] != ITEMS:
        return int(mem.fresh_value(state)[i * cfg["parts"] + number])
    return storage.value_of(cfg, state, x, number)


@inlined
def _number_of_pair(cfg, state, i, x):
    return storage.card(cfg, state, x)["seq"]


@in_pairs(_number_of_pair)
@inlined
def _number_of(cfg, state, i, x):
    return mem.fresh(state, i)["number"] if cfg["waits"] else storage.card(cfg, state, x)["seq"]


@inlined
def _observe(cfg, state, i, x, stream, v):
    """A new tuple's value, seen by the estimator."""
    entry = mem.keys(state, v)
    if cfg["estimator"] == HISTORY:
        entry["held"] = 1
        _add(cfg, state, v, stream, 1.0)
    elif cfg["estimator"] == IN_WINDOW:
        while remember.is_full(cfg, state, stream):
            _let_first_go(cfg, state, stream)
            state["forgotten"] += 1
        size = state["seen_room"]
        arrival = mem.seen(state)[stream, (state["seen_head"][stream] + state["seen_size"][stream]) & (size - 1)]
        by_rows = mem.window_kind(cfg, stream) == ROW
        arrival["stamp"] = _number_of(cfg, state, i, x) if by_rows else state["clock"][stream]
        arrival["value"] = v
        state["seen_size"][stream] += 1
        entry["held"] += 1
        _add(cfg, state, v, stream, 1.0)
    elif cfg["estimator"] == DECAYED:
        _forget(cfg, state, v)
        at = v * cfg["streams"] + stream
        mem.set_mass(state, at, mem.mass(state, at) + math.exp2(half_lives(cfg, state, state["clock"][stream])))
        entry["held"] = 1
        if _live(cfg):
            _set(cfg, state, v, stream, mem.mass(state, at))
    elif cfg["estimator"] == COUNT_MIN:
        if _is_every_row(cfg, state, v):
            entry["held"] = 1
            _add(cfg, state, v, stream, 1.0)
            return
        for row in range(cfg["depth"]):
            mem.sketch(state)[cell_of(cfg, _part(state, v), stream, row, entry["key"])] += 1


@kernel
def _forget(cfg, state, v):
    """Drop what is left of a count that has all but decayed, so that it makes no difference when `sweep` came by."""
    for stream in range(cfg["streams"]):
        at = v * cfg["streams"] + stream
        mass = mem.mass(state, at)
        if mass > 0.0 and mass < FORGOTTEN * math.exp2(half_lives(cfg, state, state["clock"][stream])):
            mem.set_mass(state, at, 0.0)
            if _live(cfg):
                _set(cfg, state, v, stream, 0.0)


@kernel
def _refresh(cfg, state, v):
    """Estimates that are read when a row of their value arrives."""
    key = mem.keys(state, v)["key"]
    for stream in range(cfg["streams"]):
        if not storage.has_part(cfg, state, v, stream):
            continue
        if cfg["estimator"] == COUNT_MIN:
            _set(cfg, state, v, stream, float(count_of(cfg, state, _part(state, v), stream, key)))
        else:
            mass = mem.mass(state, v * cfg["streams"] + stream)
            _set(cfg, state, v, stream, mass * math.exp2(-half_lives(cfg, state, newest(cfg, state))))


@inlined
def _learn(cfg, state, buffers):
    for i in range(buffers["fresh"]):
        x = _fresh(cfg, state, buffers, i)
        v = _value_of(cfg, state, i, x, 0)
        mem.keys(state, v)["held"] = 1
        learned.observe(cfg, state, _stream_of(cfg, state, i, x), v)
    for i in range(buffers["fresh"]):
        learned.look(cfg, state, _value_of(cfg, state, i, _fresh(cfg, state, buffers, i), 0))


@unless_plain
@kernel
def observe(cfg, state, buffers):
    """The estimator sees the new tuples: first all are counted, then estimates that are read are read."""
    if cfg["estimator"] == TABLE or cfg["estimator"] == IN_MEMORY or cfg["estimator"] == MET or cfg["weighed"] == 0:
        return
    if cfg["estimator"] == LEARNED:
        _learn(cfg, state, buffers)
        return
    if cfg["estimator"] == DECAYED and state["started"] == 0 and buffers["fresh"] > 0:
        state["started"] = 1
        state["t0"] = newest(cfg, state)
    for i in range(buffers["fresh"]):
        x = _fresh(cfg, state, buffers, i)
        for number in range(storage.values_of(cfg, state, x)):
            v = _value_of(cfg, state, i, x, number)
            if v != NONE:
                _observe(cfg, state, i, x, _stream_of(cfg, state, i, x), v)
    if _is_read(cfg, state):
        for i in range(buffers["fresh"]):
            x = _fresh(cfg, state, buffers, i)
            for number in range(storage.values_of(cfg, state, x)):
                v = _value_of(cfg, state, i, x, number)
                if v != NONE:
                    _refresh(cfg, state, v)
    let_go(cfg, state)


@kernel
def sweep(cfg, state):
    """Let go of the values of which next to nothing is remembered and nothing is stored."""
    if cfg["estimator"] != LEARNED and (cfg["estimator"] != DECAYED or state["started"] == 0):
        return
    for v in range(state["keys_room"]):
        if mem.keys(state, v)["held"] == 1 and storage.is_idle(cfg, state, v) and _negligible(cfg, state, v):
            mem.keys(state, v)["held"] = 0


@kernel
def _negligible(cfg, state, v):
    if cfg["estimator"] == LEARNED:
        return learned.is_negligible(cfg, state, v)
    for stream in range(cfg["streams"]):
        least = FORGOTTEN * math.exp2(half_lives(cfg, state, state["clock"][stream]))
        mass = mem.mass(state, v * cfg["streams"] + stream)
        if mass > 0.0 and mass >= least:
            return False
    return True
