"""The operations that the loop asks of a layout. Two keyed streams know theirs when they are compiled."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import KEYED
from shedjoin.engine.forms import in_pairs, only_many
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import indexed, keyed, storage
from shedjoin.engine.stages import priority


@in_pairs(keyed.home)
@inlined
def home(how, st, io, i):
    """The number of a row's value, if all streams share it."""
    return keyed.home(how, st, io, i) if how["layout"] == KEYED else 0


@inlined
def _make_place(how, st, io, i, v, stream):
    return keyed.make_place(how, st, v, stream)


@in_pairs(_make_place)
@inlined
def make_place(how, st, io, i, v, stream):
    """Make room for one row; returns what the arena lacks for that, most often 0."""
    if how["layout"] == KEYED:
        return keyed.make_place(how, st, v, stream)
    return indexed.make_place(how, st, io, i, stream)


@inlined
def _put(how, st, io, i, v, stream, ts, seq, importance, x):
    return keyed.put(how, st, v, stream, ts, seq, importance, x)


@in_pairs(_put)
@inlined
def put(how, st, io, i, v, stream, ts, seq, importance, x):
    """Store a tuple where probes find it; returns its group."""
    if how["layout"] == KEYED:
        return keyed.put(how, st, v, stream, ts, seq, importance, x)
    return indexed.put(how, st, io, i, stream, ts, seq, importance, x)


@inlined
def _take_out(how, st, stream, g, x):
    keyed.take_out(how, st, g, x)


@in_pairs(_take_out)
@inlined
def take_out(how, st, stream, g, x):
    """Take a tuple away from where probes find it."""
    if how["layout"] == KEYED:
        keyed.take_out(how, st, g, x)
    else:
        indexed.take_out(how, st, stream, g, x)


@only_many
@inlined
def drop_empty(how, st, g):
    """A group without tuples may go."""
    if how["layout"] != KEYED:
        indexed.drop_empty(how, st, g)


@inlined
def _reweigh_others(how, st, v, stream):
    keyed.reweigh_others(how, st, v, stream)


@in_pairs(_reweigh_others)
@inlined
def reweigh_others(how, st, v, stream):
    """A stream's weight of a value has changed: so have the chances of the other streams' groups."""
    if how["layout"] == KEYED:
        keyed.reweigh_others(how, st, v, stream)
    else:
        indexed.reweigh_others(how, st, v, stream)


@only_many
@inlined
def _renew_chance(how, st, g):
    if how["layout"] != KEYED:
        indexed.renew(how, st, g)


@kernel
def renew_all(how, st):
    """Put every group where it belongs, after all weights were changed at once."""
    for g in range(st["buckets_room"]):
        if mem.buckets(st, g)["count"] > 0:
            _renew_chance(how, st, g)
            priority.reweigh(how, st, storage.stream_of(how, st, g), g)
    for stream in range(how["streams"]):
        priority.replay(how, st, stream)
