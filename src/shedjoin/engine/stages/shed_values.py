"""By which values shed rows are found again in their filter: a key, an attribute, items, or buckets of numbers.

A shed row notes each of its values. A row that asks for shed rows may have missed one only if enough of its own values were
noted late enough. So nothing is overlooked, and rows with other values leave no doubt.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import BAND, FIRST_OF_SETS, ITEMS, OVERLAP, SUBSET, SUPERSET
from shedjoin.engine.forms import in_pairs, only_many
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import items, storage
from shedjoin.engine.stages.search import bucket
from shedjoin.engine.structures import shed_filter

#: What all sets note beside their items where one may lie inside another, and what those without items note.
EVERY_SET, EMPTY_SET = np.int64(2**63 - 1), np.int64(2**63 - 2)


@inlined
def _attribute(cfg, state, x, attr):
    """An attribute of a stored tuple; -1: what all have."""
    return np.int64(0) if attr < 0 else np.int64(storage.attribute(cfg, state, x, attr))


@inlined
def _note_key(cfg, state, stream, x, stamp):
    shed_filter.insert(state, mem.filter_of(cfg, stream), storage.logged_key(cfg, state, x), stamp)


@in_pairs(_note_key)
@inlined
def note(cfg, state, stream, x, stamp):
    """A stored tuple is shed."""
    if cfg["layout"] == ITEMS:
        at, size = mem.item_at(state)[x], mem.item_count(state)[x]
        _note_values(cfg, state, stream, mem.items(state), at, size, mem.number(state)[x], stamp)
    else:
        value = _attribute(cfg, state, x, mem.shed_attr(cfg, stream))
        shed_filter.insert(state, mem.filter_of(cfg, stream), value, stamp)


@only_many
@inlined
def note_row(cfg, state, buffers, i, stream, stamp):
    """A row with a number or a set is shed as it comes."""
    size = items.row_size(cfg, buffers, i)
    first = mem.row_offsets(buffers)[i] if size > 0 else 0
    number = mem.row_number(buffers)[i] if cfg["predicate"] < FIRST_OF_SETS else 0.0
    _note_values(cfg, state, stream, mem.row_items(buffers), first, size, number, stamp)


@kernel
def _note_values(cfg, state, stream, of, first, size, number, stamp):
    """Note a number, or the items at a place of an array."""
    which, code = mem.filter_of(cfg, stream), cfg["predicate"]
    if code == BAND:
        shed_filter.insert(state, which, bucket(number, cfg["bound"]), stamp)
        return
    if code < FIRST_OF_SETS:
        shed_filter.insert(state, which, np.int64(0), stamp)
        return
    for k in range(first, first + size):
        shed_filter.insert(state, which, of[k], stamp)
    if code == SUBSET or code == SUPERSET:
        shed_filter.insert(state, which, EVERY_SET, stamp)
        if size == 0:
            shed_filter.insert(state, which, EMPTY_SET, stamp)


@inlined
def _has_key_after(cfg, state, x, other, stamp):
    key = storage.logged_key(cfg, state, x)
    return shed_filter.newest(state, mem.filter_of(cfg, other), key) > stamp


@in_pairs(_has_key_after)
@inlined
def has_after(cfg, state, x, other, stamp):
    """Whether a row of another stream may have been shed that a tuple could have met, with a later stamp."""
    if cfg["layout"] == ITEMS:
        return _has_values_after(cfg, state, x, other, stamp)
    value = _attribute(cfg, state, x, mem.asked_attr(cfg, other))
    return shed_filter.newest(state, mem.filter_of(cfg, other), value) > stamp


@kernel
def _has_values_after(cfg, state, x, other, stamp):
    """The same of a number or a set."""
    which, code = mem.filter_of(cfg, other), cfg["predicate"]
    if code == BAND:
        own = bucket(mem.number(state)[x], cfg["bound"])
        for place in range(own - 1, own + 2):
            if shed_filter.newest(state, which, place) > stamp:
                return True
        return False
    if code < FIRST_OF_SETS:
        return shed_filter.newest(state, which, np.int64(0)) > stamp
    of, at, size = mem.items(state), mem.item_at(state)[x], mem.item_count(state)[x]
    needed = np.int64(1)
    if code == OVERLAP:
        needed = np.int64(cfg["bound"])
    elif (code == SUBSET and other == 1) or (code == SUPERSET and other == 0):
        if shed_filter.newest(state, which, EVERY_SET) <= stamp:
            return False
        needed = size
    elif code == SUBSET or code == SUPERSET:
        if shed_filter.newest(state, which, EMPTY_SET) > stamp:
            return True
    for k in range(at, at + size):
        if needed == 0:
            break
        if shed_filter.newest(state, which, of[k]) > stamp:
            needed -= 1
    return needed == 0
