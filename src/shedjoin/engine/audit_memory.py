"""The audit of what is stored: the pool, the table of keys, the shelves, and the order of expiry."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST
from shedjoin.engine import keytable
from shedjoin.engine.codes import ROW
from shedjoin.engine.consistent import Mask, Numbers, all_end, check_heap, not_on_stack, require, within
from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.engine.jit import entry
from shedjoin.engine.shelf import SMALLEST
from shedjoin.engine.state import NONE, SHELF_LISTS

# Ring counters may have come this far.
FAR = 2**62

# The hash as plain Python, which takes whole arrays.
_bucket_of = getattr(keytable.bucket_of, "py_func", keytable.bucket_of)


class Stock(NamedTuple):
    """What the audit has found to be there."""

    live: Mask  # places of the pool with a tuple
    known: Mask  # slots with a key
    used: Mask  # (slot, stream) with tuples
    first: NDArray[np.int64]  # (slot, stream) -> the oldest tuple, where there is one


def check(how: Any, st: Handle) -> Stock:
    """All of the memory; returns what is in it."""
    live = not_on_stack(st.arrays["free"], int(st["free_count"]), "tuples")
    known = not_on_stack(st.arrays["free_keys"], int(st["free_key_count"]), "keys")
    _check_keys(st, known)
    _check_tuples(st, live, known)
    used = known[:, None] & (st.arrays["sides"]["count"] > 0)
    first = _check_shelves(st, live, known, used)
    for stream in range(STREAMS):
        _check_expiry(how, st, live, stream)
    return Stock(live, known, used, first)


def check_plain(st: Handle, stock: Stock) -> None:
    """What the form PLAIN relies on: tuples leave in the order in which they came, so there are no gaps and no strays."""
    pool, sides = st.arrays["pool"], st.arrays["sides"]
    why = "a tuple of an exact join in order came or left out of order"
    require(sides["span"][stock.used] == sides["count"][stock.used], why)
    for stream in range(STREAMS):
        first, to = int(st["ring_from"][stream]), int(st["ring_to"][stream])
        require(to - first == st["resident"][stream], why)
        ring = st.arrays["expiry"][stream]["item"]
        require(np.diff(pool["arrival"][ring[np.arange(first, to) & (ring.size - 1)]]) > 0, why)
    tuples = np.sort(pool[stock.live], order=("slot", "stream", "arrival"))
    slot, side = tuples["slot"], tuples["stream"]
    shelf, room, start = (sides[part][slot, side] for part in ("shelf", "room", "first"))
    step = (tuples["place"] - shelf - start) & (room - 1)
    same = (np.diff(slot) == 0) & (np.diff(side) == 0)
    require(np.diff(step)[same] == 1, why)


def _check_keys(st: Handle, known: Mask) -> None:
    """Every key is in one chain, that of its bucket."""
    keys, buckets = st.arrays["keys"], st.arrays["buckets"]
    following = np.where(known, keys["next"], NONE)
    require(within(buckets, NONE, keys.size), "a bucket begins with a key that there is not")
    require(within(following, NONE, keys.size), "a key is followed by one that there is not")
    heads, linked = np.flatnonzero(buckets != NONE), np.flatnonzero(following != NONE)
    times = np.bincount(np.concatenate((buckets[heads], following[linked])), minlength=keys.size)
    require(times == known, "a key is not in exactly one chain of its table")
    bucket = _bucket_of(keys["key"], buckets.size)
    require(bucket[buckets[heads]] == heads, "a key is in the wrong bucket")
    require(bucket[following[linked]] == bucket[linked], "a key is in the wrong bucket")
    require(all_end(following), "keys follow one another in a circle")
    require(np.unique(keys["key"][known]).size == known.sum(), "a key is there twice")


def _check_tuples(st: Handle, live: Mask, known: Mask) -> None:
    pool = st.arrays["pool"]
    # Also of places that are free: a look ahead may read them.
    require(within(pool["stream"], 0, STREAMS), f"a tuple is of a stream other than 0 to {STREAMS - 1}")
    require(within(pool["slot"], 0, known.size), "a tuple is of a key that there is not")
    require(known[pool["slot"][live]], "a tuple is of a key that is not known")
    require(pool["bytes"][live] > 0, "a tuple has no bytes")
    require(
        within(pool["arrival"][live], 0, int(st["arrival"])), "a tuple has the number of a row that has not arrived"
    )
    for stream in range(STREAMS):
        mine = live & (pool["stream"] == stream)
        count, size = int(mine.sum()), int(pool["bytes"][mine].sum(dtype=np.int64))
        resident, stored = int(st["resident"][stream]), int(st["stored_bytes"][stream])
        require(count == resident, f"stream {stream} has {count} tuples, but {resident} are counted")
        require(size == stored, f"stream {stream} has {size} bytes, but {stored} are counted")


def _check_shelves(st: Handle, live: Mask, known: Mask, used: Mask) -> NDArray[np.int64]:
    """Every tuple is on the shelf of its key; returns the first on each shelf."""
    sides = st.arrays["sides"]
    empty = known[:, None] & ~used
    require(sides["count"][empty] == 0, "a key has less than no tuples")
    for part, nothing in (("shelf", NONE), ("room", 0), ("first", 0), ("span", 0)):
        require(sides[part][empty] == nothing, "a key without tuples has a shelf")
    slot, stream = np.nonzero(used)
    base, room, first, span, count = (
        sides[part][used].astype(np.int64) for part in ("shelf", "room", "first", "span", "count")
    )
    require((room >= SMALLEST) & (room & (room - 1) == 0), "the room of a shelf is not a power of two")
    require(within(first, 0, 2**31) & (first < room), "a shelf begins outside its room")
    require((count <= span) & (span <= room), "a shelf holds more than it has room for")
    _check_arena(st, base, room)

    # All places that are in use, shelf by shelf.
    owner = np.repeat(np.arange(span.size), span)
    end = np.cumsum(span)
    step = np.arange(owner.size) - np.repeat(end - span, span)
    place = base[owner] + ((first[owner] + step) & (room[owner] - 1))
    card = st.arrays["shelf"][place]
    item: Numbers = card["item"]
    there = item != NONE
    require(within(item, NONE, live.size), "a shelf holds a tuple that there is not")
    require(np.bincount(owner[there], minlength=span.size) == count, "a shelf holds not as many tuples as are counted")
    require(there[end - span] & there[end - 1], "a shelf begins or ends with a gap")
    _check_cards(st, card[there], stream[owner[there]])

    item, owner = item[there], owner[there]
    tuples = st.arrays["pool"][item]
    require(live[item], "a tuple on a shelf is gone")
    require(tuples["place"] == place[there], "a tuple on a shelf is said to stand elsewhere")
    require(
        (tuples["slot"] == slot[owner]) & (tuples["stream"] == stream[owner]), "a tuple is on the shelf of another key"
    )
    require(item.size == live.sum(), "a tuple is on no shelf")
    oldest = np.full(used.shape, NONE, np.int64)
    oldest[used] = card["item"][end - span]
    return oldest


def _check_arena(st: Handle, base: NDArray[np.int64], room: NDArray[np.int64]) -> None:
    """Shelves, those in use and the empty ones, lie side by side and fill all up to `shelf_top`."""
    top, size = int(st["shelf_top"]), st.arrays["shelf"].size
    require(0 <= top <= size, f"shelves reach up to {top} of {size} places")
    left = top - int(room.sum())
    require(left >= 0, "shelves overlap")
    link = np.ascontiguousarray(st.arrays["shelf"]["item"][:top])
    empty, number = np.zeros(left // SMALLEST, np.int64), np.zeros(left // SMALLEST, np.int64)
    found = _walk_lists(st["free_shelf"].copy(), link, empty, number)
    require(found >= 0, "a list of empty shelves does not end or leads out of them")
    starts = np.concatenate((base, empty[:found]))
    rooms = np.concatenate((room, SMALLEST << number[:found]))
    order = np.argsort(starts)
    ends = np.cumsum(rooms[order])
    require(starts[order] == ends - rooms[order], "shelves overlap or leave a hole")
    require(int(rooms.sum()) == top, "shelves overlap or leave a hole")


@entry
def _walk_lists(heads, links, base, number):  # type: ignore[no-untyped-def]
    """Write down all that the lists of empty shelves lead to; -1 when that is more than there can be."""
    found = 0
    for k in range(SHELF_LISTS):
        at = heads[k]
        while at != NONE:
            if at < 0 or at >= links.size or found == base.size:
                return -1
            base[found] = at
            number[found] = k
            found += 1
            at = links[at]
    return found


def _check_cards(st: Handle, card: Numbers, stream: NDArray[np.int64]) -> None:
    require(
        within(card["seq"], 0, FAR) & (card["seq"] < st["arrived"][stream]), "a tuple is of a row that has not arrived"
    )
    require((card["ts"] >= -LATEST) & (card["ts"] <= st["clock"][stream]), "a tuple is from after its stream's clock")
    require(np.isfinite(card["importance"]) & (card["importance"] > 0), "an importance is not finite and above 0")


def _check_expiry(how: Any, st: Handle, live: Mask, stream: int) -> None:
    """Every tuple is in the ring or in the heap of those that came out of order."""
    ring, pool = st.arrays["expiry"][stream], st.arrays["pool"]
    first, to, ready = (int(st[name][stream]) for name in ("ring_from", "ring_to", "ring_ready"))
    require(0 <= first <= to < FAR and to - first <= ring.size, f"the ring of expiry goes from {first} to {to}")
    require(0 <= ready <= to, f"the ring of expiry is ready up to {ready} of {to}")
    place = np.arange(first, to) & (ring.size - 1)
    there = ring["item"][place] != NONE
    require(there[:1], "the ring of expiry begins with a gap")
    place = place[there]
    soon = ring[place]
    item = soon["item"]
    require(within(item, 0, live.size), "a tuple in the ring of expiry is not there")
    tuples = pool[item]
    require(live[item] & (tuples["stream"] == stream), "a tuple in the ring of expiry is gone or of another stream")
    require(
        (tuples["queued"] == place) & (tuples["slot"] == soon["slot"]),
        "a tuple is said to expire elsewhere in the ring",
    )
    require(soon["stamp"] == _stamps(how, st, item, stream), "a tuple in the ring of expiry has another's time")
    require(np.diff(soon["stamp"]) >= 0, "the ring of expiry is not in order")
    if item.size:
        # A row that comes is either not older than the newest or goes to the strays, for which there has to be room.
        newest = int(st["ring_newest"][stream])
        latest = int(st["arrived"][stream]) - 1 if how[f"kind{stream}"] == ROW else int(st["clock"][stream])
        require(soon["stamp"].max() <= newest <= latest, f"the newest in the ring of expiry is said to be of {newest}")

    size, resident = int(st["stray_size"][stream]), int(st["resident"][stream])
    require(item.size + size == resident, f"{item.size} and {size} tuples of stream {stream} expire, of {resident}")
    what = "the heap of tuples out of order"
    stray = check_heap(st.arrays["stray"][stream], st.arrays["stray_place"], size, what)
    tuples = pool[stray]
    require(live[stray] & (tuples["stream"] == stream), f"a tuple in {what} is gone or of another stream")
    require(tuples["queued"] == NONE, f"a tuple in {what} is said to be in the ring of expiry")
    entries = st.arrays["stray"][stream][st.arrays["stray_place"][stray]]
    require(entries["prio"] == _stamps(how, st, stray, stream), f"a tuple in {what} has another's time")


def _stamps(how: Any, st: Handle, items: Numbers, stream: int) -> NDArray[np.int64]:
    """What tuples expire by, see `store.stamp_of`."""
    cards = st.arrays["shelf"][st.arrays["pool"]["place"][items]]
    stamps: NDArray[np.int64] = cards["seq" if how[f"kind{stream}"] == ROW else "ts"]
    return stamps
