"""From 64-bit keys to small numbers ("slots"): a chained hash table that forgets idle keys when it is full."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.state import NEVER, NONE

# So many buckets are looked at ahead.
AHEAD = 16


@inlined
def bucket_of(key, buckets):
    """Which of `buckets` (a power of two) a key belongs to."""
    # Fibonacci hashing of the folded key; the high bits are the good ones.
    mixed = (key ^ (key >> 32)) * 0x9E3779B97F4A7C1
    return ((mixed >> 24) ^ mixed) & (buckets - 1)


@inlined
def find(st, key):
    """The key's slot; -1 when it is not known."""
    slot = int(mem.buckets(st, bucket_of(key, st["buckets_room"])))
    while slot != NONE and mem.keys(st, slot)["key"] != key:
        slot = int(mem.keys(st, slot)["next"])
    return slot


@inlined
def fetch_shelves(st, slot, stream):
    """Ask for the shelves of a key, of which one is read from its beginning and the stream's own is added to at its end."""
    side = mem.sides(st, slot)
    mem.fetch_shelf(st, side["shelf"][1 - stream] + side["first"][1 - stream])
    end = (side["first"][stream] + side["span"][stream]) & (side["room"][stream] - 1)
    mem.fetch_shelf(st, side["shelf"][stream] + end)


@inlined
def find_or_add(st, key):
    """The key's slot, a new one if need be; the caller has made sure that one is free."""
    bucket = bucket_of(key, st["buckets_room"])
    slot = int(mem.buckets(st, bucket))
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
    entry["next"] = mem.buckets(st, bucket)
    mem.set_bucket(st, bucket, slot)
    side = mem.sides(st, slot)
    for stream in range(2):
        side["shelf"][stream] = NONE
        side["room"][stream] = 0
        side["first"][stream] = 0
        side["span"][stream] = 0
        side["count"][stream] = 0
        side["low"][stream] = NONE
        side["weight"][stream] = 0.0
        if st["mass_room"] > 1:
            mem.mass(st)[stream, slot] = 0.0
        if st["trail_room"] > 1:
            trail = mem.trail(st, stream * st["trail_room"] + slot)
            trail["mass"][:] = 0.0
            trail["last"] = NEVER
            trail["recent"] = 0
            trail["looked"] = 0
            trail["before"] = 0.0
    return slot


@kernel
def is_idle(st, slot):
    """Whether nothing is stored of a key and no estimator holds it."""
    count = mem.sides(st, slot)["count"]
    return mem.keys(st, slot)["held"] == 0 and count[0] == 0 and count[1] == 0


@kernel
def forget_idle(st):
    """Give back the slots of idle keys. Done when slots run out, not tuple by tuple; returns how many went."""
    gone = 0
    for bucket in range(st["buckets_room"]):
        soon = mem.buckets(st, (bucket + AHEAD) & (st["buckets_room"] - 1))
        mem.fetch_key(st, soon)
        mem.fetch_sides(st, soon)
        before = NONE
        slot = int(mem.buckets(st, bucket))
        while slot != NONE:
            following = int(mem.keys(st, slot)["next"])
            if is_idle(st, slot):
                if before == NONE:
                    mem.set_bucket(st, bucket, following)
                else:
                    mem.keys(st, before)["next"] = following
                mem.free_keys(st)[st["free_key_count"]] = slot
                st["free_key_count"] += 1
                gone += 1
            else:
                before = slot
            slot = following
    return gone
