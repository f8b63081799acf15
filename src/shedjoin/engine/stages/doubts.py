"""Doubts: which rows were shed, or are compared with a part of the windows only, so that others may have missed them."""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import ITEMS, NULL_ROW
from shedjoin.engine.forms import only_many, unless_plain
from shedjoin.engine.jit import inlined
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import DOUBT
from shedjoin.engine.stages import shed_values
from shedjoin.engine.stages.clocks import is_late
from shedjoin.engine.stages.times import stamp_of
from shedjoin.engine.structures import shed_filter


@inlined
def number_of(partners):
    """How many partners were counted, whether or not there is a doubt."""
    return partners - DOUBT if partners < 0 else partners


@inlined
def shed_attr(cfg, stream):
    """The attribute by which shed rows of a stream are found again."""
    return max(mem.shed_attr(cfg, stream), 0)


@inlined
def _note(cfg, state, stream, x):
    """A stored tuple was shed, or compared with a part of the windows only: what it might have met is not certain any more."""
    if mem.filter_of(cfg, stream) >= 0:
        card = storage.card(cfg, state, x)
        shed_values.note(cfg, state, stream, x, stamp_of(cfg, stream, card["ts"], card["seq"]))


@unless_plain
@inlined
def lose(cfg, state, stream, value, null, ts, number):
    """A row is dropped. `value`: its attribute `shed_attr`."""
    if cfg["counts"]:
        state["unknown"] += mem.judged(cfg, stream)
        if not null and mem.filter_of(cfg, stream) >= 0 and cfg["layout"] != ITEMS:
            asked = value if mem.shed_attr(cfg, stream) >= 0 else 0  # all have one value where partners share none
            shed_filter.insert(state, mem.filter_of(cfg, stream), asked, stamp_of(cfg, stream, ts, number))


@only_many
@inlined
def _lose_values(cfg, state, buffers, i, stream, ts, number):
    """The row that is dropped as it comes has a number or a set."""
    if cfg["counts"] and mem.filter_of(cfg, stream) >= 0:
        shed_values.note_row(cfg, state, buffers, i, stream, stamp_of(cfg, stream, ts, number))


@unless_plain
@inlined
def lose_row(cfg, state, buffers, i, stream, ts, number):
    """A row is dropped as it comes, or was before."""
    null = mem.row_null(buffers, i) == NULL_ROW
    value = mem.row_key(buffers, i * cfg["width"] + shed_attr(cfg, stream))
    lose(cfg, state, stream, value, null, ts, number)
    if cfg["layout"] == ITEMS and not null:
        _lose_values(cfg, state, buffers, i, stream, ts, number)


@only_many
@inlined
def lose_waiting(cfg, state, stream, x):
    """The row that is dropped has waited with its number or its set."""
    if cfg["counts"]:
        _note(cfg, state, stream, x)


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
        storage.card(cfg, state, x)["partners"] = DOUBT
        _note(cfg, state, stream, x)


@unless_plain
@inlined
def shed(cfg, state, stream, x):
    """A stored tuple goes before its time."""
    if cfg["counts"]:
        card = storage.card(cfg, state, x)
        if mem.judged(cfg, stream) and number_of(np.int64(card["partners"])) == 0:
            state["unknown"] += 1
        _note(cfg, state, stream, x)
