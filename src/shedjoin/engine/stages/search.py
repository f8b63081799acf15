"""Partners of a stored tuple in a stretch of another stream's window: by lists, by bitmaps, or by a scan.

Hits are places in the pool, written behind the first n of `hit`. `compared` counts the tuples that share a value with the row, or
by a scan all; `looked_up` counts the lists that this takes. So what a probe costs does not depend on how lists are walked.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import BAND, FIRST_OF_SETS, INNER, OVERLAP, SUBSET, SUPERSET
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.stages.compare import inner_product, may_hold, numbers_hold, ones, sets_hold
from shedjoin.engine.structures import bitmaps, time_lists
from shedjoin.engine.structures.time_lists import EMPTIES, NO_LIST, NOBODY

#: A band that spans more buckets than this (numbers beyond the precision of a float) is scanned for.
MOST_BUCKETS = 8
LARGEST_BUCKET = 2.0**62
#: Common items are counted in a byte; the window is scanned for partners of a larger set.
MOST_COUNTED = 254


class Stretch(NamedTuple):
    """A stretch of a window: from (lo_ts, lo_seq) up to (hi_ts, hi_seq), which is no part of it."""

    lo_ts: int
    lo_seq: int
    hi_ts: int
    hi_seq: int


@inlined
def bucket(number, width):
    """The bucket of a number; never falls while the number rises."""
    place = number / (width if width > 0.0 else 1.0)
    # Held within bounds before it is made whole: compiled, `floor` is of 64 bits.
    return np.int64(math.floor(min(max(place, -LARGEST_BUCKET), LARGEST_BUCKET)))


@inlined
def _between(st, which, stretch):
    """The entries of a list that lie in a stretch of the window: from the first up to the second."""
    a = time_lists.lower(st, which, stretch.lo_ts, stretch.lo_seq)
    b = time_lists.lower(st, which, stretch.hi_ts, stretch.hi_seq)
    return a, max(a, b)


@kernel
def _scan_numbers(how, st, x, other, a, b, n):
    """Compare a number with those of entries a .. b."""
    code, bound, row_is_left = how["predicate"], how["bound"], other == 1
    slots, hits, numbers = mem.list_slot(st), mem.hit(st), mem.number(st)
    mine = numbers[x]
    for p in range(a, b):
        slot = slots[p]
        if slot != NOBODY:
            theirs = numbers[slot]
            left, right = (mine, theirs) if row_is_left else (theirs, mine)
            if numbers_hold(code, bound, left, right):
                hits[n] = slot
                n += 1
    return n


@kernel
def _scan_sets(how, st, x, other, a, b, n):
    """Compare a set with those of entries a .. b."""
    code, bound, row_is_left = how["predicate"], how["bound"], other == 1
    slots, hits, signatures = mem.list_slot(st), mem.hit(st), mem.signature(st)
    items, weights, item_at, counts = mem.items(st), mem.item_weights(st), mem.item_at(st), mem.item_count(st)
    at, size, mine = item_at[x], counts[x], signatures[x]
    # Items of this row that share a bit may all be common where one bit is.
    need = np.int64(bound) - (size - ones(mine))
    for p in range(a, b):
        slot = slots[p]
        if slot != NOBODY and may_hold(code, need, mine, signatures[slot], row_is_left):
            if code == INNER:
                holds = inner_product(items, weights, at, size, item_at[slot], counts[slot]) >= bound
            else:
                holds = sets_hold(code, bound, items, at, size, item_at[slot], counts[slot], row_is_left)
            if holds:
                hits[n] = slot
                n += 1
    return n


@kernel
def _scan(how, st, x, other, which, stretch, n):
    """Compare with the tuples of a list, one by one."""
    a, b = _between(st, which, stretch)
    if how["predicate"] < FIRST_OF_SETS:
        return _scan_numbers(how, st, x, other, a, b, n)
    return _scan_sets(how, st, x, other, a, b, n)


@kernel
def _scan_all(how, st, x, other, stretch, n):
    a, b = _between(st, other, stretch)
    st["compared"] += time_lists.live_between(st, other, a, b)
    return _scan(how, st, x, other, other, stretch, n)


@kernel
def _band(how, st, x, other, stretch, low, high, n):
    """Look into the buckets that the band touches."""
    slots, hits, numbers = mem.list_slot(st), mem.hit(st), mem.number(st)
    bound, mine = how["bound"], numbers[x]
    own = bucket(mine, bound)
    st["looked_up"] += 3
    for place in range(min(low, own - 1), max(high, own + 1) + 1):
        which = time_lists.find(st, other, place)
        if which == NO_LIST:
            continue
        time_lists.trim(how, st, which, other)
        a, b = _between(st, which, stretch)
        if abs(place - own) <= 1:
            st["compared"] += time_lists.live_between(st, which, a, b)
        for p in range(a, b):
            slot = slots[p]
            if slot != NOBODY and abs(mine - numbers[slot]) <= bound:
                hits[n] = slot
                n += 1
    return n


@kernel
def _shortest(how, st, x, other, stretch, n):
    """Partners must have all of the row's items: those in its shortest list are compared."""
    items, at, size = mem.items(st), mem.item_at(st)[x], mem.item_count(st)[x]
    best, best_a, best_b = 2**62, 0, 0
    st["looked_up"] += size
    for k in range(at, at + size):
        which = time_lists.find(st, other, items[k])
        if which == NO_LIST:
            return n
        time_lists.trim(how, st, which, other)
        a, b = _between(st, which, stretch)
        live = time_lists.live_between(st, which, a, b)
        if live < best:
            best, best_a, best_b = live, a, b
    st["compared"] += best
    return _scan_sets(how, st, x, other, best_a, best_b, n)


@kernel
def _count(how, st, x, other, stretch, n):
    """Count common items tuple by tuple along the row's lists; one that has enough is a partner."""
    slots, hits, counts, sizes = mem.list_slot(st), mem.hit(st), mem.common(st), mem.item_count(st)
    items, at, size = mem.items(st), mem.item_at(st)[x], sizes[x]
    need = np.int64(how["bound"])
    walked = 0
    st["looked_up"] += size
    for k in range(at, at + size):
        which = time_lists.find(st, other, items[k])
        if which == NO_LIST:
            continue
        time_lists.trim(how, st, which, other)
        a, b = _between(st, which, stretch)
        walked += b - a
        st["compared"] += time_lists.live_between(st, which, a, b)
        if how["predicate"] == OVERLAP:
            for p in range(a, b):
                slot = slots[p]
                common = np.int64(counts[slot >> 1]) + 1
                counts[slot >> 1] = common
                if common == need and slot != NOBODY:
                    hits[n] = slot
                    n += 1
        else:  # all items of the partner must be the row's
            for p in range(a, b):
                slot = slots[p]
                common = np.int64(counts[slot >> 1]) + 1
                counts[slot >> 1] = common
                if common == sizes[slot] and slot != NOBODY:
                    hits[n] = slot
                    n += 1
    _forget_counts(st, x, other, stretch, walked)
    return n


@kernel
def _forget_counts(st, x, other, stretch, walked):
    """Counts are 0 between two probes."""
    slots, counts = mem.list_slot(st), mem.common(st)
    if 8 * walked > counts.size:
        counts[:] = 0
        return
    items, at = mem.items(st), mem.item_at(st)[x]
    for k in range(at, at + mem.item_count(st)[x]):
        which = time_lists.find(st, other, items[k])
        if which != NO_LIST:
            a, b = _between(st, which, stretch)
            for p in range(a, b):
                counts[slots[p] >> 1] = 0


@kernel
def _add_up(how, st, x, other, stretch, n, rows, frequent):
    """Count common items of all tuples at once: bitmaps where items have them, lists where not."""
    slots, planes = mem.list_slot(st), mem.planes(st)
    items, at, size = mem.items(st), mem.item_at(st)[x], mem.item_count(st)[x]
    words = planes.size // bitmaps.PLANES
    used = 3
    while size >> used:
        planes[used * words : (used + 1) * words] = np.uint64(0)
        used += 1
    bitmaps.add_up(st, rows)
    for k in range(at, at + size):
        which = time_lists.find(st, other, items[k])
        if which != NO_LIST and not (frequent >> np.uint64(min(k - at, 63))) & np.uint64(1):
            a, b = _between(st, which, stretch)
            for p in range(a, b):
                bitmaps.add_one(st, np.int64(slots[p]))
    return _read_off(how, st, other, stretch, words, used, n)


@kernel
def _read_off(how, st, other, stretch, words, used, n):
    """The tuples that were counted often enough, and lie in the stretch."""
    planes, hits = mem.planes(st), mem.hit(st)
    need = np.int64(how["bound"])
    for w in range(words):
        found = bitmaps.enough(planes, words, w, used, need)
        while found != np.uint64(0):
            lowest = found & (~found + np.uint64(1))
            found ^= lowest
            slot = ((w * 64 + ones(lowest - np.uint64(1))) << 1) + other
            if slot > 1 and is_inside(how, st, other, slot, stretch):
                hits[n] = slot
                n += 1
    return n


@inlined
def is_inside(how, st, stream, x, stretch):
    """Whether a stored tuple lies in a stretch of its window."""
    ts, seq = place_of(how, st, stream, x)
    after = ts > stretch.lo_ts or (ts == stretch.lo_ts and seq >= stretch.lo_seq)
    return after and (ts < stretch.hi_ts or (ts == stretch.hi_ts and seq < stretch.hi_seq))


@inlined
def place_of(how, st, stream, x):
    """Where a tuple stands in the order of its window."""
    card = mem.card(st, x)
    return (card["ts"] if mem.window_kind(how, stream) == 0 else np.int64(0)), card["seq"]


@kernel
def _overlap(how, st, x, other, stretch, n):
    """Count along lists, or by bitmaps where lists are long and the whole of them is wanted."""
    items, at, size = mem.items(st), mem.item_at(st)[x], mem.item_count(st)[x]
    words = mem.planes(st).size // bitmaps.PLANES
    none = np.int64(0)  # a constant would be a type of its own in each place of the tuple
    rows, taken, frequent = (none, none, none, none, none, none, none), 0, np.uint64(0)
    by_bits = by_lists = live = 0
    for k in range(at, at + size):
        which = time_lists.find(st, other, items[k])
        if which == NO_LIST:
            continue
        time_lists.trim(how, st, which, other)
        a, b = _between(st, which, stretch)
        length = b - a
        live += time_lists.live_between(st, which, a, b)
        if (
            taken < bitmaps.TOGETHER
            and k - at < 63
            and 2 * length > words
            and bitmaps.is_frequent(how, st, which, other)
        ):
            rows = (mem.list_bitmap(st)[which], rows[0], rows[1], rows[2], rows[3], rows[4], rows[5])
            frequent |= np.uint64(1) << np.uint64(k - at)
            taken += 1
            by_bits += length
        else:
            by_lists += length
    if by_bits <= 2 * words + by_lists:
        return _count(how, st, x, other, stretch, n)
    st["compared"] += live
    st["looked_up"] += size
    return _add_up(how, st, x, other, stretch, n, rows, frequent)


@kernel
def _multiply(how, st, x, other, stretch, n):
    """Sum products along the row's lists, then look at each tuple once. Weights may be negative: nothing is decided early."""
    slots, hits, counts, sums = mem.list_slot(st), mem.hit(st), mem.common(st), mem.product(st)
    items, weights, item_at, item_count = mem.items(st), mem.item_weights(st), mem.item_at(st), mem.item_count(st)
    at, size = item_at[x], item_count[x]
    st["looked_up"] += size
    for k in range(at, at + size):
        which = time_lists.find(st, other, items[k])
        if which == NO_LIST:
            continue
        time_lists.trim(how, st, which, other)
        a, b = _between(st, which, stretch)
        st["compared"] += time_lists.live_between(st, which, a, b)
        for p in range(a, b):
            slot = slots[p]
            if slot == NOBODY:
                continue
            low, high = item_at[slot], item_at[slot] + item_count[slot] - 1
            while low < high:  # the item is there: by halves
                middle = (low + high) >> 1
                if items[middle] < items[k]:
                    low = middle + 1
                else:
                    high = middle
            if counts[slot >> 1] == 0:
                sums[slot] = 0.0
                counts[slot >> 1] = 1
            sums[slot] += weights[k] * weights[low]
    for k in range(at, at + size):
        which = time_lists.find(st, other, items[k])
        if which == NO_LIST:
            continue
        a, b = _between(st, which, stretch)
        for p in range(a, b):
            slot = slots[p]
            if counts[slot >> 1] != 0:
                counts[slot >> 1] = 0
                if sums[slot] >= how["bound"]:
                    hits[n] = slot
                    n += 1
    return n


@inlined
def _is_inside(code, other):
    """Whether partners in another window must have all items of a row."""
    return (code == SUBSET and other == 1) or (code == SUPERSET and other == 0)


@inlined
def needs_all(how, st, x, other):
    """Whether the partners of a row are in each of its lists."""
    size = mem.item_count(st)[x]
    return 0 < size <= MOST_COUNTED and _is_inside(how["predicate"], other)


@kernel
def search(how, st, x, other, stretch, n):
    """Partners of tuple x in a stretch of another window; returns how many hits there are now."""
    code = how["predicate"]
    time_lists.trim(how, st, other, other)
    if how["lists"] == 0:
        return _scan_all(how, st, x, other, stretch, n)
    if code == BAND:
        number, bound = mem.number(st)[x], how["bound"]
        slack = 4e-16 * (abs(number) + bound)  # what rounding may add to a difference
        low, high = bucket(number - bound - slack, bound), bucket(number + bound + slack, bound)
        if high - low < MOST_BUCKETS:
            return _band(how, st, x, other, stretch, low, high, n)
        return _scan_all(how, st, x, other, stretch, n)
    size = mem.item_count(st)[x]
    if code == INNER:
        return _multiply(how, st, x, other, stretch, n)
    if size > MOST_COUNTED:
        return _scan_all(how, st, x, other, stretch, n)
    if code == OVERLAP:
        if st["resident"][other] < bitmaps.LEAST_TUPLES or size < how["bound"]:
            return _count(how, st, x, other, stretch, n)
        return _overlap(how, st, x, other, stretch, n)
    if needs_all(how, st, x, other):
        return _shortest(how, st, x, other, stretch, n)
    if size == 0 and _is_inside(code, other):
        return _scan_all(how, st, x, other, stretch, n)
    # Empty sets are partners, and stand in a list of their own.
    time_lists.trim(how, st, EMPTIES + other, other)
    n = _scan(how, st, x, other, EMPTIES + other, stretch, n)
    return _count(how, st, x, other, stretch, n)
