"""How many partners a tuple of a predicate join can expect, from how often items, buckets of numbers and rows come.

p is the weight of an item by the weight of all rows of the other stream: how likely a row is to have it.
"""

from __future__ import annotations

import math

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import (
    BAND,
    BY_STOCK,
    BY_WEIGHT,
    COUNT_MIN,
    DECAYED,
    FIRST_OF_SETS,
    GREATER,
    GREATER_EQUAL,
    INNER,
    ITEMS,
    LESS,
    LESS_EQUAL,
    MET,
    NOT_EQUAL,
    OVERLAP,
    SUBSET,
)
from shedjoin.engine.forms import in_pairs
from shedjoin.engine.indirect import indirect
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.layouts.items import EVERY_ROW, ITEM
from shedjoin.engine.records import NEVER, NONE
from shedjoin.engine.stages.search import bucket
from shedjoin.engine.stages.sketch import count_of
from shedjoin.engine.stages.times import half_lives
from shedjoin.engine.structures import histogram, key_table

#: A decayed count below this share of one new row is nothing.
FORGOTTEN = 2.0**-20


@inlined
def _weight(cfg, state, key, part, stream, by):
    """How much a stream is expected to bring of a value, which need not be known; or how many tuples or rows have it."""
    if by != BY_WEIGHT:
        v = key_table.find(state, key, part)
        if v == NONE:
            return 0.0
        at = v * cfg["streams"] + stream
        return float(mem.stock(state)[at]) if by == BY_STOCK else mem.windowed(state)[at]
    if cfg["estimator"] == COUNT_MIN and part == ITEM:
        return float(count_of(cfg, state, part, stream, key))
    v = key_table.find(state, key, part)
    if v == NONE:
        return 0.0
    at = v * cfg["streams"] + stream
    if cfg["estimator"] != DECAYED:
        return mem.weight(state)[at]
    if state["clock"][stream] == NEVER:
        return 0.0
    mass = mem.mass(state, at)
    return mass if mass >= FORGOTTEN * math.exp2(half_lives(cfg, state, state["clock"][stream])) else 0.0


@kernel
def _in_band(cfg, state, number, other, by):
    """A band covers its bucket and half of each neighbour, on average."""
    own = bucket(number, cfg["bound"])
    near = _weight(cfg, state, own - 1, ITEM, other, by) + _weight(cfg, state, own + 1, ITEM, other, by)
    return _weight(cfg, state, own, ITEM, other, by) + near / 2


@inlined
def _is_right(code, row_is_left, place, own):
    """Whether partners lie in a bucket."""
    if code == NOT_EQUAL:
        return place != own
    above = code == LESS or code == LESS_EQUAL
    if not row_is_left:
        above = code == GREATER or code == GREATER_EQUAL
    return place > own if above else place < own


@kernel
def _compared(cfg, state, number, stream, by):
    """Partners lie in the buckets on the right side, and in half of the own one."""
    other, code = 1 - stream, cfg["predicate"]
    moved = number - cfg["bound"] if stream == 0 else number + cfg["bound"]
    own = histogram.bucket(state, moved)
    total = 0.0
    if state["known_numbers"] == histogram.ONE:
        # One number is known, and it is its own bucket.
        number = state["lowest_number"]
        if _is_right(code, stream == 0, number, moved):
            total += _weight(cfg, state, histogram.bucket(state, number), ITEM, other, by)
    elif state["known_numbers"] == histogram.SEVERAL:
        first = histogram.first_bucket(state)
        for place in range(first, first + histogram.MOST_BUCKETS):
            if _is_right(code, stream == 0, place, own):
                total += _weight(cfg, state, np.int64(place), ITEM, other, by)
    return total + _weight(cfg, state, own, ITEM, other, by) / 2


@kernel
def _at_least(k, mean):
    """P(Poisson(mean) >= k), from the k-th term on, so that small chances keep their order."""
    term = math.exp(-mean)
    for i in range(1, k + 1):
        term *= mean / i
    total = 0.0
    while total + term != total:
        total += term
        k += 1
        term *= mean / k
    return total


@kernel
def _of_set(cfg, state, x, stream, by):
    """By how likely a row of the other stream is to have each of its items."""
    other, code = 1 - stream, cfg["predicate"]
    rows = _weight(cfg, state, np.int64(0), EVERY_ROW, other, by)
    if rows <= 0.0:
        return 0.0
    at, inside = mem.item_at(state)[x], (stream == 0) == (code == SUBSET)
    total, product = 0.0, 1.0
    for k in range(at, at + mem.item_count(state)[x]):
        share = _weight(cfg, state, mem.items(state)[k], ITEM, other, by) / rows
        product *= share
        total += share * mem.item_weights(state)[k] if code == INNER else share
    if code == OVERLAP:
        return rows * _at_least(int(cfg["bound"]), total)
    if code == INNER:
        return rows * max(0.0, total)
    return rows * (product if inside else total)


@indirect("expect partners", "number")
def expected(cfg, state, x, by):
    """Partners expected of a tuple that is a group, by the weights or the stock of now."""
    if cfg["estimator"] == MET and by == BY_WEIGHT:
        return float(mem.met_on_arrival(state)[x])
    stream = int(mem.pool(state, x)["stream"])
    if cfg["layout"] != ITEMS:
        return 0.0
    if cfg["predicate"] >= FIRST_OF_SETS:
        return _of_set(cfg, state, x, stream, by)
    number = mem.number(state)[x]
    return (
        _in_band(cfg, state, number, 1 - stream, by)
        if cfg["predicate"] == BAND
        else _compared(cfg, state, number, stream, by)
    )


@inlined
def _of_group(cfg, state, stream, g):
    return storage.chance(cfg, state, stream, g)


@in_pairs(_of_group)
@inlined
def current(cfg, state, stream, g):
    """Partners expected of a tuple of a group, by the weights of now."""
    return expected(cfg, state, g, BY_WEIGHT) if cfg["alone"] else storage.chance(cfg, state, stream, g)
