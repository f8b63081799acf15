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
def _head_of_key(st, key, part):
    return hash_of(key, st["heads_room"])


@in_pairs(_head_of_key)
@inlined
def head_of(st, key, part):
    """The chain that a value of a part belongs to."""
    return hash_of(key + part * 0x9E3779B9, st["heads_room"])


@inlined
def _is_key(st, v, key, part):
    return mem.keys(st, v)["key"] == key


@in_pairs(_is_key)
@inlined
def _is(st, v, key, part):
    return mem.keys(st, v)["key"] == key and mem.part(st, v) == part


@inlined
def find(st, key, part):
    """The number of a value; -1 when it is not known."""
    v = int(mem.heads(st, head_of(st, key, part)))
    while v != NONE and not _is(st, v, key, part):
        v = int(mem.keys(st, v)["next"])
    return v


@inlined
def find_or_add(how, st, key, part):
    """The number of a value, a new one if need be; the caller has made sure that one is free."""
    head = head_of(st, key, part)
    v = int(mem.heads(st, head))
    while v != NONE:
        if _is(st, v, key, part):
            return v
        v = int(mem.keys(st, v)["next"])
    st["free_key_count"] -= 1
    v = int(mem.free_keys(st, st["free_key_count"]))
    entry = mem.keys(st, v)
    entry["key"] = key
    entry["held"] = 0
    entry["next"] = mem.heads(st, head)
    mem.set_head(st, head, v)
    storage.new_value(how, st, v, part)
    return v


@kernel
def forget_idle(how, st):
    """Give back the numbers of idle values. Done when numbers run out, not tuple by tuple."""
    for head in range(st["heads_room"]):
        soon = mem.heads(st, (head + AHEAD) & (st["heads_room"] - 1))
        mem.fetch_key(st, soon)
        mem.fetch_bucket(st, soon * how["streams"])
        before = NONE
        v = int(mem.heads(st, head))
        while v != NONE:
            following = int(mem.keys(st, v)["next"])
            if mem.keys(st, v)["held"] == 0 and storage.is_idle(how, st, v):
                if before == NONE:
                    mem.set_head(st, head, following)
                else:
                    mem.keys(st, before)["next"] = following
                mem.set_free_key(st, st["free_key_count"], v)
                st["free_key_count"] += 1
            else:
                before = v
            v = following
