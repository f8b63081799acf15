"""What every layout says of a tuple, a value and a group, with nothing but the arrays behind it.

A *value* is what estimators count: a key, a value of an equated attribute, an item, a bucket of numbers. A *group* is what
policies order: the tuples of one stream that have the same chance of a partner. In the keyed layout the group of value v and
stream s is v * streams + s.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import ITEMS, KEYED, MOST
from shedjoin.engine.forms import in_pairs, only_many
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NEVER, NONE


@inlined
def _entry_of(how, st, x):
    return mem.entries(st, mem.pool(st, x)["place"])


@in_pairs(_entry_of)
@inlined
def card(how, st, x):
    """The time, row number and importance of a stored tuple."""
    if how["layout"] == KEYED:
        return mem.entries(st, mem.pool(st, x)["place"])
    return mem.card(st, x)


@inlined
def _note_entry(how, st, x, which, place):
    mem.pool(st, x)["place"] = place


@in_pairs(_note_entry)
@inlined
def note_place(how, st, x, which, place):
    """A tuple stands there now."""
    if how["layout"] == KEYED:
        mem.pool(st, x)["place"] = place
    else:
        mem.set_spot(st, x * how["spots"] + which, place)


@only_many
@inlined
def move_key(how, st, from_place, to_place):
    """Indexes have the value of an entry beside it."""
    if how["layout"] != KEYED:
        mem.set_entry_key(st, to_place, mem.entry_key(st, from_place))


# ------------------------------------------------------------------------------------------------------------- values


@inlined
def _new_trail(st, g):
    if st["trail_room"] > 1:
        trail = mem.trail(st, g)
        trail["mass"][:] = 0.0
        trail["last"] = NEVER
        trail["recent"] = 0
        trail["looked"] = NONE
        trail["before"] = 0.0


@inlined
def _new_bucket(st, g):
    b = mem.buckets(st, g)
    b["base"] = NONE
    b["room"] = 0
    b["first"] = 0
    b["span"] = 0
    b["count"] = 0
    b["low"] = NONE
    b["weight"] = 0.0
    if st["mass_room"] > 1:
        mem.set_mass(st, g, 0.0)
    _new_trail(st, g)


@inlined
def _new_key(how, st, v, part):
    for stream in range(how["streams"]):
        _new_bucket(st, v * how["streams"] + stream)


@in_pairs(_new_key)
@kernel
def new_value(how, st, v, part):
    """A value gets a number: nothing is known of it yet."""
    mem.set_part(st, v, part)
    if how["layout"] == KEYED:
        _new_key(how, st, v, part)
        return
    mem.cell_count(st)[v] = 0
    for stream in range(how["streams"]):
        at = v * how["streams"] + stream
        mem.weight(st)[at] = 0.0
        mem.first_cell(st)[at] = NONE
        if st["mass_room"] > 1:
            mem.set_mass(st, at, 0.0)
        _new_trail(st, at)


@inlined
def _is_idle_key(how, st, v):
    return mem.buckets(st, 2 * v)["count"] + mem.buckets(st, 2 * v + 1)["count"] == 0


@in_pairs(_is_idle_key)
@kernel
def is_idle(how, st, v):
    """Whether nothing is stored of a value, and no row that waits or came just now has it."""
    if how["waits"] and mem.kept(st)[v] > 0:
        return False
    if how["layout"] != KEYED:
        return mem.cell_count(st)[v] == 0
    stored = 0
    for stream in range(how["streams"]):
        stored += mem.buckets(st, v * how["streams"] + stream)["count"]
    return stored == 0


@inlined
def _key_weight(how, st, v, stream):
    return mem.buckets(st, v * how["streams"] + stream)["weight"]


@in_pairs(_key_weight)
@inlined
def weight(how, st, v, stream):
    """How much a stream is expected to bring of a value."""
    if how["layout"] == KEYED:
        return mem.buckets(st, v * how["streams"] + stream)["weight"]
    return mem.weight(st)[v * how["streams"] + stream]


@inlined
def _set_key_weight(how, st, v, stream, value):
    mem.buckets(st, v * how["streams"] + stream)["weight"] = value


@in_pairs(_set_key_weight)
@inlined
def set_weight(how, st, v, stream, value):
    if how["layout"] == KEYED:
        mem.buckets(st, v * how["streams"] + stream)["weight"] = value
    else:
        mem.weight(st)[v * how["streams"] + stream] = value


@inlined
def _every_stream(how, st, v, stream):
    return True


@in_pairs(_every_stream)
@inlined
def has_part(how, st, v, stream):
    """Whether a stream can bring a value."""
    return how["layout"] == KEYED or mem.part_of(st, mem.part(st, v) * MOST + stream) >= 0


@inlined
def _key_of_group(how, st, x, number):
    return int(mem.pool(st, x)["group"]) >> 1


@in_pairs(_key_of_group)
@inlined
def value_of(how, st, x, number):
    """A value of a tuple: of `parts` numbers, -1 where its stream has no part."""
    g = int(mem.pool(st, x)["group"])
    if how["layout"] == KEYED:
        return g // how["streams"]
    if how["layout"] == ITEMS:
        return int(mem.item_values(st)[mem.item_at(st)[x] + number])
    return int(mem.cell_values(st)[g * how["parts"] + number])


@inlined
def _one(how, st, x):
    return 1


@in_pairs(_one)
@inlined
def values_of(how, st, x):
    """How many values a tuple has."""
    return mem.item_count(st)[x] + 1 if how["layout"] == ITEMS else how["parts"]


# ------------------------------------------------------------------------------------------------------------- groups


@inlined
def _key_of(how, st, g):
    return g >> 1


@in_pairs(_key_of)
@inlined
def value_of_group(how, st, g):
    """The value that all tuples of a group have; of several, the first."""
    return g // how["streams"] if how["layout"] == KEYED else int(mem.cell_values(st)[g * how["parts"]])


@inlined
def _chance_of_pair(how, st, stream, g):
    return mem.buckets(st, g ^ 1)["weight"]


@in_pairs(_chance_of_pair)
@inlined
def chance(how, st, stream, g):
    """Partners expected of a tuple of a group: the product of the weights of all other streams."""
    if how["layout"] != KEYED:
        return mem.buckets(st, g)["weight"]
    product = 1.0
    for other in range(how["streams"]):
        if other != stream:
            product *= mem.buckets(st, g - stream + other)["weight"]
    return product


@inlined
def _stream_of_pair(how, st, g):
    return g & 1


@in_pairs(_stream_of_pair)
@inlined
def stream_of(how, st, g):
    """The stream of a group that has tuples."""
    if how["layout"] == KEYED:
        return g % how["streams"]
    return int(mem.pool(st, g)["stream"]) if how["alone"] else int(mem.cells(st, g)["stream"])
