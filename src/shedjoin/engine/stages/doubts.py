"""Doubts: which rows were shed, or are compared with a part of the windows only, so that others may have missed them."""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.forms import in_pairs, only_many, unless_plain
from shedjoin.engine.jit import inlined
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import DOUBT
from shedjoin.engine.stages.clocks import is_late
from shedjoin.engine.stages.times import stamp_of
from shedjoin.engine.structures import shed_filter


@inlined
def number_of(partners):
    """How many partners were counted, whether or not there is a doubt."""
    return partners - DOUBT if partners < 0 else partners


@inlined
def note_shed(cfg, state, stream, value, ts, number):
    """A row was shed, or is compared with a part of the windows only: what it might have met is not certain any more."""
    if mem.filter_of(cfg, stream) >= 0:
        shed_filter.insert(state, mem.filter_of(cfg, stream), value, stamp_of(cfg, stream, ts, number))


@inlined
def shed_attr(cfg, stream):
    """The attribute by which shed rows of a stream are found again."""
    return max(mem.shed_attr(cfg, stream), 0)


@inlined
def _value(cfg, attr, value):
    """All rows have one value where there is nothing that partners must share."""
    return value if attr >= 0 else 0


@inlined
def _attr_of_pair(cfg, state, x, attr):
    return storage.logged_key(cfg, state, x)


@in_pairs(_attr_of_pair)
@inlined
def attribute(cfg, state, x, attr):
    """An attribute of a stored tuple; -1: what all have."""
    return np.int64(0) if attr < 0 else np.int64(storage.attribute(cfg, state, x, attr))


@unless_plain
@inlined
def lose(cfg, state, stream, value, null, ts, number):
    """A row is dropped. `value`: its attribute `shed_attr`."""
    if cfg["counts"]:
        state["unknown"] += mem.judged(cfg, stream)
        if not null:
            note_shed(cfg, state, stream, _value(cfg, mem.shed_attr(cfg, stream), value), ts, number)


@unless_plain
@inlined
def come_late(cfg, state, stream, x, ts):
    """A tuple that is late may have had partners that expired before it came."""
    if cfg["counts"] and is_late(state, stream, ts):
        card = storage.card(cfg, state, x)
        if card["partners"] == 0:
            card["partners"] = DOUBT


@only_many
@inlined
def doubt(cfg, state, stream, x):
    """A stored tuple was not compared with all that it might meet."""
    if cfg["counts"]:
        card = storage.card(cfg, state, x)
        card["partners"] = DOUBT
        note_shed(cfg, state, stream, attribute(cfg, state, x, mem.shed_attr(cfg, stream)), card["ts"], card["seq"])


@unless_plain
@inlined
def shed(cfg, state, stream, x):
    """A stored tuple goes before its time."""
    if cfg["counts"]:
        card = storage.card(cfg, state, x)
        if mem.judged(cfg, stream) and number_of(np.int64(card["partners"])) == 0:
            state["unknown"] += 1
        note_shed(cfg, state, stream, attribute(cfg, state, x, mem.shed_attr(cfg, stream)), card["ts"], card["seq"])
