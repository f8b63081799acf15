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
def _take_place(cfg, state, buffers, stream):
    state["free_count"] -= 1
    return int(mem.free(state, state["free_count"]))


@in_pairs(_take_place)
@inlined
def take_place(cfg, state, buffers, stream):
    """A free place of the pool. A row with items that waited has one."""
    if cfg["layout"] != ITEMS:
        return _take_place(cfg, state, buffers, stream)
    return int(mem.waiting(state, buffers["row"])["item"]) if cfg["waits"] else items.take_place(state, stream)


@inlined
def _give_place(cfg, state, stream, x):
    mem.set_free(state, state["free_count"], x)
    state["free_count"] += 1


@in_pairs(_give_place)
@inlined
def give_place(cfg, state, stream, x):
    if cfg["layout"] == ITEMS:
        items.give_place(state, stream, x)
    else:
        _give_place(cfg, state, stream, x)


@in_pairs(keyed.home)
@inlined
def home(cfg, state, buffers, i):
    """The number of a row's value, if all streams share it."""
    return keyed.home(cfg, state, buffers, i) if cfg["layout"] == KEYED else 0


@inlined
def _make_place(cfg, state, buffers, i, v, stream):
    return keyed.make_place(cfg, state, v, stream)


@in_pairs(_make_place)
@inlined
def make_place(cfg, state, buffers, i, v, stream):
    """Make room for one row; returns what the arena lacks for that, most often 0."""
    if cfg["layout"] == KEYED:
        return keyed.make_place(cfg, state, v, stream)
    if cfg["layout"] == ITEMS:
        return items.lists_wanted(cfg, state, buffers, i, stream)
    return indexed.make_place(cfg, state, buffers, i, stream)


@inlined
def _put(cfg, state, buffers, i, v, stream, ts, seq, importance, x):
    if cfg["where"]:  # the key is known by its bucket
        storage.keep_attributes(cfg, state, buffers, i, x)
    return keyed.put(cfg, state, v, stream, ts, seq, importance, x)


@in_pairs(_put)
@inlined
def put(cfg, state, buffers, i, v, stream, ts, seq, importance, x):
    """Store a tuple where probes find it; returns its group."""
    if cfg["layout"] == KEYED:
        return _put(cfg, state, buffers, i, v, stream, ts, seq, importance, x)
    if cfg["layout"] == ITEMS:
        items.put(cfg, state, buffers, i, stream, ts, seq, x)
    else:
        cell = indexed.put(cfg, state, buffers, i, stream, ts, seq, importance, x)
        if cfg["alone"] == 0:
            return cell
    return _be_a_group(cfg, state, x)


@inlined
def _be_a_group(cfg, state, x):
    """A tuple is a group; its chance is not known yet."""
    if cfg["weighed"] == 0:
        return 0
    b = mem.buckets(state, x)
    b["count"] = 1
    b["low"] = x if cfg["fifo"] else NONE
    if cfg["integrated"] == 0:  # there it was weighed when it came
        b["weight"] = 0.0
    return x


@inlined
def _take_out(cfg, state, stream, g, x):
    keyed.take_out(cfg, state, g, x)


@in_pairs(_take_out)
@inlined
def take_out(cfg, state, stream, g, x):
    """Take a tuple away from where probes find it."""
    if cfg["layout"] == KEYED:
        keyed.take_out(cfg, state, g, x)
        return
    if cfg["layout"] == ITEMS:
        items.take_out(cfg, state, stream, x)
    else:
        indexed.take_out(cfg, state, stream, g, x)
    if cfg["alone"] and cfg["weighed"]:
        mem.buckets(state, x)["count"] = 0


@only_many
@inlined
def drop_empty(cfg, state, g):
    """A group without tuples may go."""
    if cfg["layout"] != KEYED and cfg["alone"] == 0:
        indexed.drop_empty(cfg, state, g)


@inlined
def _reweigh_others(cfg, state, v, stream):
    keyed.reweigh_others(cfg, state, v, stream)


@in_pairs(_reweigh_others)
@inlined
def reweigh_others(cfg, state, v, stream):
    """A stream's weight of a value has changed: so have the chances of the other streams' groups."""
    if cfg["layout"] == KEYED:
        keyed.reweigh_others(cfg, state, v, stream)
    elif cfg["alone"] == 0:  # tuples that are groups are weighed again before they go
        indexed.reweigh_others(cfg, state, v, stream)


@only_many
@inlined
def _renew_chance(cfg, state, g):
    if cfg["layout"] != KEYED and cfg["alone"] == 0:
        indexed.renew(cfg, state, g)


@kernel
def renew_all(cfg, state):
    """Put every group where it belongs, after all weights were changed at once."""
    for g in range(state["buckets_room"]):
        if mem.buckets(state, g)["count"] > 0:
            _renew_chance(cfg, state, g)
            priority.reweigh(cfg, state, storage.stream_of(cfg, state, g), g)
    for stream in range(cfg["streams"]):
        priority.replay(cfg, state, stream)


@inlined
def _renew_all(cfg, state, factor):
    renew_all(cfg, state)


@in_pairs(_renew_all)
@kernel
def fold_all(cfg, state, factor):
    """All weights were multiplied. Tuples that are groups keep the chance that they were weighed by."""
    if cfg["alone"] and not (cfg["organisation"] == KEY and cfg["combine"] != PRODUCT):
        for x in range(state["buckets_room"]):
            mem.buckets(state, x)["weight"] *= factor
    renew_all(cfg, state)
