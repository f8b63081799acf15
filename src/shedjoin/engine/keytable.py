"""From 64-bit keys to small numbers ("slots"): a chained hash table that forgets idle keys when it is full."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.state import NONE


@inlined
def bucket_of(key, buckets):
    """Which of `buckets` (a power of two) a key belongs to."""
    # Fibonacci hashing of the folded key; the high bits are the good ones.
    mixed = (key ^ (key >> 32)) * 0x9E3779B97F4A7C1
    return ((mixed >> 24) ^ mixed) & (buckets - 1)


@inlined
def fetch_bucket(st, key):
    """First of three steps to have a key's data in the cache by the time its row is due."""
    mem.fetch_bucket(st, bucket_of(key, st["buckets_room"]))


@inlined
def fetch_key(st, key):
    """Second step: what is first in its bucket; that is mostly the key itself."""
    slot = mem.buckets(st)[bucket_of(key, st["buckets_room"])]
    if slot != NONE:
        mem.fetch_key(st, slot)


@inlined
def fetch_tuples(st, key, stream):
    """Third step: the tuples that a probe and a store begin with."""
    slot = mem.buckets(st)[bucket_of(key, st["buckets_room"])]
    if slot != NONE:
        entry = mem.keys(st, slot)
        if entry["head"][1 - stream] != NONE:
            mem.fetch_tuple(st, entry["head"][1 - stream])
        if entry["tail"][stream] != NONE:
            mem.fetch_tuple(st, entry["tail"][stream])


@inlined
def find_or_add(st, key):
    """The key's slot, a new one if need be; the caller has made sure that one is free."""
    bucket = bucket_of(key, st["buckets_room"])
    slot = int(mem.buckets(st)[bucket])
    while slot != NONE:
        entry = mem.keys(st, slot)
        if entry["key"] == key:
            return slot
        slot = int(entry["next"])
    st["free_key_count"] -= 1
    slot = int(mem.free_keys(st)[st["free_key_count"]])
    entry = mem.keys(st, slot)
    entry["key"] = key
    entry["held"] = 0
    entry["next"] = mem.buckets(st)[bucket]
    mem.buckets(st)[bucket] = slot
    for stream in range(2):
        entry["head"][stream] = NONE
        entry["tail"][stream] = NONE
        entry["count"][stream] = 0
        entry["root"][stream] = NONE
        entry["weight"][stream] = 0.0
        if st["mass_room"] > 1:
            mem.mass(st)[stream, slot] = 0.0
    return slot


@kernel
def is_idle(st, slot):
    """Whether nothing is stored of a key and no estimator holds it."""
    entry = mem.keys(st, slot)
    return entry["held"] == 0 and entry["count"][0] == 0 and entry["count"][1] == 0


@kernel
def forget_idle(st):
    """Give back the slots of idle keys. Done when slots run out, not tuple by tuple; returns how many went."""
    buckets = mem.buckets(st)
    gone = 0
    for bucket in range(st["buckets_room"]):
        before = NONE
        slot = int(buckets[bucket])
        while slot != NONE:
            following = int(mem.keys(st, slot)["next"])
            if is_idle(st, slot):
                if before == NONE:
                    buckets[bucket] = following
                else:
                    mem.keys(st, before)["next"] = following
                mem.free_keys(st)[st["free_key_count"]] = slot
                st["free_key_count"] += 1
                gone += 1
            else:
                before = slot
            slot = following
    return gone
