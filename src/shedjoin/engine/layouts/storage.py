"""What every layout says of a tuple, a value and a group, with nothing but the arrays behind it.

A *value* is what estimators count: a key, a value of an equated attribute, an item, a bucket of numbers. A *group* is what
policies order: the tuples of one stream that have the same chance of a partner. In the keyed layout the group of value v and
stream s is v * streams + s.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import INDEXED, ITEMS, KEYED, MOST
from shedjoin.engine.forms import in_pairs, only_many, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NEVER, NONE


@inlined
def _entry_of(cfg, state, x):
    return mem.entries(state, mem.pool(state, x)["place"])


@in_pairs(_entry_of)
@inlined
def card(cfg, state, x):
    """The time, row number and importance of a stored tuple."""
    if cfg["layout"] == KEYED:
        return mem.entries(state, mem.pool(state, x)["place"])
    return mem.card(state, x)


@inlined
def _note_entry(cfg, state, x, which, place):
    mem.pool(state, x)["place"] = place


@in_pairs(_note_entry)
@inlined
def note_place(cfg, state, x, which, place):
    """A tuple stands there now."""
    if cfg["layout"] == KEYED:
        mem.pool(state, x)["place"] = place
    else:
        mem.set_spot(state, x * cfg["spots"] + which, place)


@only_many
@inlined
def move_key(cfg, state, from_place, to_place):
    """Indexes have the value of an entry beside it."""
    if cfg["layout"] != KEYED:
        mem.set_entry_key(state, to_place, mem.entry_key(state, from_place))


@unless_plain
@inlined
def keep_attributes(cfg, state, buffers, i, x):
    """The attributes of a row stay with its tuple."""
    for a in range(cfg["width"]):
        mem.set_attr(state, x * cfg["width"] + a, mem.row_key(buffers, i * cfg["width"] + a))


# ------------------------------------------------------------------------------------------------------------- values


@unless_plain
@inlined
def _new_trail(state, g):
    if state["trail_room"] > 1:
        trail = mem.trail(state, g)
        trail["mass"][:] = 0.0
        trail["last"] = NEVER
        trail["recent"] = 0
        trail["looked"] = NONE
        trail["before"] = 0.0


@inlined
def _new_bucket(state, g):
    b = mem.buckets(state, g)
    b["base"] = NONE
    b["room"] = 0
    b["first"] = 0
    b["span"] = 0
    b["count"] = 0
    b["low"] = NONE
    b["weight"] = 0.0
    if state["mass_room"] > 1:
        mem.set_mass(state, g, 0.0)
    _new_trail(state, g)


@inlined
def _new_key(cfg, state, v, part):
    for stream in range(cfg["streams"]):
        _new_bucket(state, v * cfg["streams"] + stream)


@in_pairs(_new_key)
@kernel
def new_value(cfg, state, v, part):
    """A value gets a number: nothing is known of it yet."""
    mem.set_part(state, v, part)
    if cfg["layout"] == KEYED:
        _new_key(cfg, state, v, part)
        return
    mem.cell_count(state)[v] = 0
    for stream in range(cfg["streams"]):
        at = v * cfg["streams"] + stream
        mem.weight(state)[at] = 0.0
        mem.first_cell(state)[at] = NONE
        if state["mass_room"] > 1:
            mem.set_mass(state, at, 0.0)
        _new_trail(state, at)


@inlined
def _is_idle_key(cfg, state, v):
    return mem.buckets(state, 2 * v)["count"] + mem.buckets(state, 2 * v + 1)["count"] == 0


@in_pairs(_is_idle_key)
@kernel
def is_idle(cfg, state, v):
    """Whether nothing is stored of a value, and no row that waits or came just now has it."""
    if cfg["waits"] and mem.kept(state)[v] > 0:
        return False
    if cfg["layout"] != KEYED:
        return mem.cell_count(state)[v] == 0
    stored = 0
    for stream in range(cfg["streams"]):
        stored += mem.buckets(state, v * cfg["streams"] + stream)["count"]
    return stored == 0


@inlined
def _key_weight(cfg, state, v, stream):
    return mem.buckets(state, v * cfg["streams"] + stream)["weight"]


@in_pairs(_key_weight)
@inlined
def weight(cfg, state, v, stream):
    """How much a stream is expected to bring of a value."""
    if cfg["layout"] == KEYED:
        return mem.buckets(state, v * cfg["streams"] + stream)["weight"]
    return mem.weight(state)[v * cfg["streams"] + stream]


@inlined
def _set_key_weight(cfg, state, v, stream, value):
    mem.buckets(state, v * cfg["streams"] + stream)["weight"] = value


@in_pairs(_set_key_weight)
@inlined
def set_weight(cfg, state, v, stream, value):
    if cfg["layout"] == KEYED:
        mem.buckets(state, v * cfg["streams"] + stream)["weight"] = value
    else:
        mem.weight(state)[v * cfg["streams"] + stream] = value


@inlined
def _every_stream(cfg, state, v, stream):
    return True


@in_pairs(_every_stream)
@inlined
def has_part(cfg, state, v, stream):
    """Whether a stream can bring a value."""
    return cfg["layout"] == KEYED or mem.part_of(state, mem.part(state, v) * MOST + stream) >= 0


@inlined
def _key_of_group(cfg, state, x, number):
    return int(mem.pool(state, x)["group"]) >> 1


@in_pairs(_key_of_group)
@inlined
def value_of(cfg, state, x, number):
    """A value of a tuple: of `parts` numbers, -1 where its stream has no part."""
    g = int(mem.pool(state, x)["group"])
    if cfg["layout"] == KEYED:
        return g // cfg["streams"]
    if cfg["layout"] == ITEMS:
        return int(mem.item_values(state)[mem.item_at(state)[x] + number])
    return int(mem.cell_values(state)[g * cfg["parts"] + number])


@inlined
def _one(cfg, state, x):
    return 1


@in_pairs(_one)
@inlined
def values_of(cfg, state, x):
    """How many values a tuple has."""
    return mem.item_count(state)[x] + 1 if cfg["layout"] == ITEMS else cfg["parts"]


@inlined
def _key_of_pair(cfg, state, x):
    return mem.keys(state, int(mem.pool(state, x)["group"]) >> 1)["key"]


@in_pairs(_key_of_pair)
@inlined
def logged_key(cfg, state, x):
    """What the shed log calls the key: the first attribute that the join looks at."""
    if cfg["layout"] == KEYED:
        return mem.keys(state, value_of(cfg, state, x, 0))["key"]
    if cfg["layout"] == ITEMS:
        return 0
    return mem.attr(state, x * cfg["width"])


@inlined
def attribute(cfg, state, x, number):
    """An attribute of a stored tuple, by its number among those that the join looks at."""
    return mem.attr(state, x * cfg["width"] + number) if cfg["layout"] == INDEXED else logged_key(cfg, state, x)


# ------------------------------------------------------------------------------------------------------------- groups


@inlined
def _key_of(cfg, state, g):
    return g >> 1


@in_pairs(_key_of)
@inlined
def value_of_group(cfg, state, g):
    """The value that all tuples of a group have; of several, the first."""
    return g // cfg["streams"] if cfg["layout"] == KEYED else int(mem.cell_values(state)[g * cfg["parts"]])


@inlined
def _chance_of_pair(cfg, state, stream, g):
    return mem.buckets(state, g ^ 1)["weight"]


@in_pairs(_chance_of_pair)
@inlined
def chance(cfg, state, stream, g):
    """Partners expected of a tuple of a group: the product of the weights of all other streams."""
    if cfg["layout"] != KEYED:
        return mem.buckets(state, g)["weight"]
    product = 1.0
    for other in range(cfg["streams"]):
        if other != stream:
            product *= mem.buckets(state, g - stream + other)["weight"]
    return product


@inlined
def _stream_of_pair(cfg, state, g):
    return g & 1


@in_pairs(_stream_of_pair)
@inlined
def stream_of(cfg, state, g):
    """The stream of a group that has tuples."""
    if cfg["layout"] == KEYED:
        return g % cfg["streams"]
    return int(mem.pool(state, g)["stream"]) if cfg["alone"] else int(mem.cells(state, g)["stream"])
