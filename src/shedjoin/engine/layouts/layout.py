"""The operations that the loop asks of a layout. Two keyed streams know theirs when they are compiled."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import ITEMS, KEY, KEYED, PRODUCT
from shedjoin.engine.forms import in_pairs, only_many
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import indexed, items, keyed, storage
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import priority


@inlined
def _take_place(how, st, io, stream):
    st["free_count"] -= 1
    return int(mem.free(st, st["free_count"]))


@in_pairs(_take_place)
@inlined
def take_place(how, st, io, stream):
    """A free place of the pool. A row with items that waited has one."""
    if how["layout"] != ITEMS:
        return _take_place(how, st, io, stream)
    return int(mem.waiting(st, io["row"])["item"]) if how["waits"] else items.take_place(st, stream)


@inlined
def _give_place(how, st, stream, x):
    mem.set_free(st, st["free_count"], x)
    st["free_count"] += 1


@in_pairs(_give_place)
@inlined
def give_place(how, st, stream, x):
    if how["layout"] == ITEMS:
        items.give_place(st, stream, x)
    else:
        _give_place(how, st, stream, x)


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
    if how["layout"] == ITEMS:
        return items.lists_wanted(how, st, io, i, stream)
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
    if how["layout"] == ITEMS:
        items.put(how, st, io, i, stream, ts, seq, x)
    else:
        cell = indexed.put(how, st, io, i, stream, ts, seq, importance, x)
        if how["alone"] == 0:
            return cell
    return _be_a_group(how, st, x)


@inlined
def _be_a_group(how, st, x):
    """A tuple is a group; its chance is not known yet."""
    if how["weighed"] == 0:
        return 0
    b = mem.buckets(st, x)
    b["count"] = 1
    b["low"] = x if how["fifo"] else NONE
    if how["integrated"] == 0:  # there it was weighed when it came
        b["weight"] = 0.0
    return x


@inlined
def _take_out(how, st, stream, g, x):
    keyed.take_out(how, st, g, x)


@in_pairs(_take_out)
@inlined
def take_out(how, st, stream, g, x):
    """Take a tuple away from where probes find it."""
    if how["layout"] == KEYED:
        keyed.take_out(how, st, g, x)
        return
    if how["layout"] == ITEMS:
        items.take_out(how, st, stream, x)
    else:
        indexed.take_out(how, st, stream, g, x)
    if how["alone"] and how["weighed"]:
        mem.buckets(st, x)["count"] = 0


@only_many
@inlined
def drop_empty(how, st, g):
    """A group without tuples may go."""
    if how["layout"] != KEYED and how["alone"] == 0:
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
    elif how["alone"] == 0:  # tuples that are groups are weighed again before they go
        indexed.reweigh_others(how, st, v, stream)


@only_many
@inlined
def _renew_chance(how, st, g):
    if how["layout"] != KEYED and how["alone"] == 0:
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


@inlined
def _renew_all(how, st, factor):
    renew_all(how, st)


@in_pairs(_renew_all)
@kernel
def fold_all(how, st, factor):
    """All weights were multiplied. Tuples that are groups keep the chance that they were weighed by."""
    if how["alone"] and not (how["organisation"] == KEY and how["combine"] != PRODUCT):
        for x in range(st["buckets_room"]):
            mem.buckets(st, x)["weight"] *= factor
    renew_all(how, st)
