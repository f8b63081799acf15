"""From 64-bit values to small numbers: a chained hash table that forgets idle values when it is full.

In a join on a key the values are keys. In a join graph every set of attributes that must be equal (a part) has its own.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.forms import in_pairs
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import NONE

# How many chains are looked at ahead.
AHEAD = 16


@inlined
def hash_of(key, room):
    """Which of `room` places (a power of two) a value belongs to."""
    # Fibonacci hashing of the folded key; the high bits are the good ones.
    mixed = (key ^ (key >> 32)) * 0x9E3779B97F4A7C1
    return ((mixed >> 24) ^ mixed) & (room - 1)


@inlined
def _head_of_key(state, key, part):
    return hash_of(key, state["heads_room"])


@in_pairs(_head_of_key)
@inlined
def head_of(state, key, part):
    """The chain that a value of a part belongs to."""
    return hash_of(key + part * 0x9E3779B9, state["heads_room"])


@inlined
def _is_key(state, v, key, part):
    return mem.keys(state, v)["key"] == key


@in_pairs(_is_key)
@inlined
def _is(state, v, key, part):
    return mem.keys(state, v)["key"] == key and mem.part(state, v) == part


@inlined
def first_of_chain(state, key, part):
    """The first of the chain that a value belongs to; -1 when there is none."""
    return int(mem.heads(state, head_of(state, key, part)))


@inlined
def find_from(state, v, key, part):
    """The number of a value that is in the chain from v on; -1 when it is not known."""
    while v != NONE and not _is(state, v, key, part):
        v = int(mem.keys(state, v)["next"])
    return v


@inlined
def find(state, key, part):
    """The number of a value; -1 when it is not known."""
    return find_from(state, first_of_chain(state, key, part), key, part)


@inlined
def find_or_add(cfg, state, key, part):
    """The number of a value, a new one if need be; the caller has made sure that one is free."""
    head = head_of(state, key, part)
    v = int(mem.heads(state, head))
    while v != NONE:
        if _is(state, v, key, part):
            return v
        v = int(mem.keys(state, v)["next"])
    state["free_key_count"] -= 1
    v = int(mem.free_keys(state, state["free_key_count"]))
    entry = mem.keys(state, v)
    entry["key"] = key
    entry["held"] = 0
    entry["next"] = mem.heads(state, head)
    mem.set_head(state, head, v)
    storage.new_value(cfg, state, v, part)
    return v


@kernel
def forget_idle(cfg, state):
    """Give back the numbers of idle values. Done when numbers run out, not tuple by tuple."""
    for head in range(state["heads_room"]):
        soon = mem.heads(state, (head + AHEAD) & (state["heads_room"] - 1))
        mem.fetch_key(state, soon)
        mem.fetch_bucket(state, soon * cfg["streams"])
        before = NONE
        v = int(mem.heads(state, head))
        while v != NONE:
            following = int(mem.keys(state, v)["next"])
            if mem.keys(state, v)["held"] == 0 and storage.is_idle(cfg, state, v):
                if before == NONE:
                    mem.set_head(state, head, following)
                else:
                    mem.keys(state, before)["next"] = following
                mem.set_free_key(state, state["free_key_count"], v)
                state["free_key_count"] += 1
            else:
                before = v
            v = following
