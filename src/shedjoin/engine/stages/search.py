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
from shedjoin.engine.stages.times import number_of
from shedjoin.engine.structures import bitmaps, time_lists
from shedjoin.engine.structures.time_lists import EMPTIES, NO_LIST, NO_TUPLE

#: A band that spans more buckets than this (numbers beyond the precision of a float) is scanned for.
MOST_BUCKETS = 8
LARGEST_BUCKET = 2.0**62
#: After all times.
FAR = 2**62
#: Common items are counted in a byte; the window is scanned for partners of a larger set.
MOST_COUNTED = 254


class Stretch(NamedTuple):
    """A stretch of a window: from (lo_ts, lo_seq) up to (hi_ts, hi_seq), which is no part of it, of times before `until`.

    `until` matters in a window of rows, whose order is not that of time: where the row's own window ends before some tuples.
    """

    lo_ts: int
    lo_seq: int
    hi_ts: int
    hi_seq: int
    until: int


@inlined
def bucket(number, width):
    """The bucket of a number; never falls while the number rises."""
    place = number / (width if width > 0.0 else 1.0)
    # Held within bounds before it is made whole: compiled, `floor` is of 64 bits.
    return np.int64(math.floor(min(max(place, -LARGEST_BUCKET), LARGEST_BUCKET)))


@inlined
def _between(state, which, stretch):
    """The entries of a list that lie in a stretch of the window: from the first up to the second."""
    a = time_lists.lower(state, which, stretch.lo_ts, stretch.lo_seq)
    b = time_lists.lower(state, which, stretch.hi_ts, stretch.hi_seq)
    return a, max(a, b)


@kernel
def tuples_between(cfg, state, other, which, a, b, until):
    """How many of the entries from a to b are of tuples that the row may meet: not beyond an end of their row window either."""
    limited = cfg["limited"] and cfg["counts_work"]
    if until == FAR and not limited:
        return time_lists.live_between(state, which, a, b)
    slots, tuples = mem.list_slot(state), 0
    for p in range(a, b):
        x = np.int64(slots[p])
        if x == NO_TUPLE or mem.card(state, x)["ts"] >= until:
            continue
        if not limited or number_of(cfg, state, x, mem.card(state, x)["seq"]) >= state["lo"][other]:
            tuples += 1
    return tuples


@kernel
def _scan_numbers(cfg, state, x, other, a, b, n):
    """Compare a number with those of entries a .. b."""
    code, bound, row_is_left = cfg["predicate"], cfg["bound"], other == 1
    slots, hits, numbers = mem.list_slot(state), mem.hit(state), mem.number(state)
    mine = numbers[x]
    for p in range(a, b):
        slot = slots[p]
        if slot != NO_TUPLE:
            theirs = numbers[slot]
            left, right = (mine, theirs) if row_is_left else (theirs, mine)
            if numbers_hold(code, bound, left, right):
                hits[n] = slot
                n += 1
    return n


@kernel
def _scan_sets(cfg, state, x, other, a, b, n):
    """Compare a set with those of entries a .. b."""
    code, bound, row_is_left = cfg["predicate"], cfg["bound"], other == 1
    slots, hits, signatures = mem.list_slot(state), mem.hit(state), mem.signature(state)
    items, weights, item_at, counts = (
        mem.items(state),
        mem.item_weights(state),
        mem.item_at(state),
        mem.item_count(state),
    )
    at, size, mine = item_at[x], counts[x], signatures[x]
    # Items of this row that share a bit may all be common where one bit is.
    need = np.int64(bound) - (size - ones(mine))
    for p in range(a, b):
        slot = slots[p]
        if slot != NO_TUPLE and may_hold(code, need, mine, signatures[slot], row_is_left):
            if code == INNER:
                holds = inner_product(items, weights, at, size, item_at[slot], counts[slot]) >= bound
            else:
                holds = sets_hold(code, bound, items, at, size, item_at[slot], counts[slot], row_is_left)
            if holds:
                hits[n] = slot
                n += 1
    return n


@kernel
def _scan(cfg, state, x, other, which, stretch, n):
    """Compare with the tuples of a list, one by one."""
    a, b = _between(state, which, stretch)
    if cfg["predicate"] < FIRST_OF_SETS:
        return _scan_numbers(cfg, state, x, other, a, b, n)
    return _scan_sets(cfg, state, x, other, a, b, n)


@kernel
def _scan_all(cfg, state, x, other, stretch, n):
    a, b = _between(state, other, stretch)
    state["compared"] += tuples_between(cfg, state, other, other, a, b, stretch.until)
    return _scan(cfg, state, x, other, other, stretch, n)


@kernel
def _band(cfg, state, x, other, stretch, low, high, n):
    """Look into the buckets that the band touches."""
    slots, hits, numbers = mem.list_slot(state), mem.hit(state), mem.number(state)
    bound, mine = cfg["bound"], numbers[x]
    own = bucket(mine, bound)
    state["looked_up"] += 3
    for place in range(own - 1, own + 2):
        which = time_lists.find(state, other, place)
        if which != NO_LIST:
            time_lists.ask_for_entries(state, which)
    for place in range(min(low, own - 1), max(high, own + 1) + 1):
        which = time_lists.find(state, other, place)
        if which == NO_LIST:
            continue
        time_lists.trim(cfg, state, which, other)
        a, b = _between(state, which, stretch)
        if abs(place - own) <= 1:
            state["compared"] += tuples_between(cfg, state, other, which, a, b, stretch.until)
        for p in range(a, b):
            slot = slots[p]
            if slot != NO_TUPLE and abs(mine - numbers[slot]) <= bound:
                hits[n] = slot
                n += 1
    return n


@kernel
def _shortest(cfg, state, x, other, stretch, n):
    """Partners must have all of the row's items: those in its shortest list are compared."""
    items, at, size = mem.items(state), mem.item_at(state)[x], mem.item_count(state)[x]
    best, best_a, best_b = 2**62, 0, 0
    state["looked_up"] += size
    for k in range(at, at + size):
        which = time_lists.find(state, other, items[k])
        if which == NO_LIST:
            return n
        time_lists.trim(cfg, state, which, other)
        a, b = _between(state, which, stretch)
        live = tuples_between(cfg, state, other, which, a, b, stretch.until)
        if live < best:
            best, best_a, best_b = live, a, b
    state["compared"] += best
    return _scan_sets(cfg, state, x, other, best_a, best_b, n)


@kernel
def _count(cfg, state, x, other, stretch, n):
    """Count common items tuple by tuple along the row's lists; one that has enough is a partner."""
    slots, hits, counts, sizes = mem.list_slot(state), mem.hit(state), mem.common(state), mem.item_count(state)
    items, at, size = mem.items(state), mem.item_at(state)[x], sizes[x]
    need = np.int64(cfg["bound"])
    walked = 0
    state["looked_up"] += size
    for k in range(at, at + size):
        which = time_lists.find(state, other, items[k])
        if which == NO_LIST:
            continue
        time_lists.trim(cfg, state, which, other)
        a, b = _between(state, which, stretch)
        walked += b - a
        state["compared"] += tuples_between(cfg, state, other, which, a, b, stretch.until)
        if cfg["predicate"] == OVERLAP:
            for p in range(a, b):
                slot = slots[p]
                common = np.int64(counts[slot >> 1]) + 1
                counts[slot >> 1] = common
                if common == need and slot != NO_TUPLE:
                    hits[n] = slot
                    n += 1
        else:  # all items of the partner must be the row's
            for p in range(a, b):
                slot = slots[p]
                common = np.int64(counts[slot >> 1]) + 1
                counts[slot >> 1] = common
                if common == sizes[slot] and slot != NO_TUPLE:
                    hits[n] = slot
                    n += 1
    _forget_counts(state, x, other, stretch, walked)
    return n


@kernel
def _forget_counts(state, x, other, stretch, walked):
    """Counts are 0 between two probes."""
    slots, counts = mem.list_slot(state), mem.common(state)
    if 8 * walked > counts.size:
        counts[:] = 0
        return
    items, at = mem.items(state), mem.item_at(state)[x]
    for k in range(at, at + mem.item_count(state)[x]):
        which = time_lists.find(state, other, items[k])
        if which != NO_LIST:
            a, b = _between(state, which, stretch)
            for p in range(a, b):
                counts[slots[p] >> 1] = 0


@kernel
def _add_up(cfg, state, x, other, stretch, n, rows, frequent):
    """Count common items of all tuples at once: bitmaps where items have them, lists where not."""
    slots, planes = mem.list_slot(state), mem.planes(state)
    items, at, size = mem.items(state), mem.item_at(state)[x], mem.item_count(state)[x]
    words = planes.size // bitmaps.PLANES
    used = 3
    while size >> used:
        planes[used * words : (used + 1) * words] = np.uint64(0)
        used += 1
    bitmaps.add_up(state, rows)
    for k in range(at, at + size):
        which = time_lists.find(state, other, items[k])
        if which != NO_LIST and not (frequent >> np.uint64(min(k - at, 63))) & np.uint64(1):
            a, b = _between(state, which, stretch)
            for p in range(a, b):
                bitmaps.add_one(state, np.int64(slots[p]))
    return _read_off(cfg, state, other, stretch, words, used, n)


@kernel
def _read_off(cfg, state, other, stretch, words, used, n):
    """The tuples that were counted often enough, and lie in the stretch."""
    planes, hits = mem.planes(state), mem.hit(state)
    need = np.int64(cfg["bound"])
    for w in range(words):
        found = bitmaps.enough(planes, words, w, used, need)
        while found != np.uint64(0):
            lowest = found & (~found + np.uint64(1))
            found ^= lowest
            slot = ((w * 64 + ones(lowest - np.uint64(1))) << 1) + other
            if slot > 1 and is_inside(cfg, state, other, slot, stretch):
                hits[n] = slot
                n += 1
    return n


@inlined
def is_inside(cfg, state, stream, x, stretch):
    """Whether a stored tuple lies in a stretch of its window."""
    ts, seq = place_of(cfg, state, stream, x)
    after = ts > stretch.lo_ts or (ts == stretch.lo_ts and seq >= stretch.lo_seq)
    return after and (ts < stretch.hi_ts or (ts == stretch.hi_ts and seq < stretch.hi_seq))


@inlined
def place_of(cfg, state, stream, x):
    """Where a tuple stands in the order of its window."""
    card = mem.card(state, x)
    return (card["ts"] if mem.window_kind(cfg, stream) == 0 else np.int64(0)), card["seq"]


@kernel
def _overlap(cfg, state, x, other, stretch, n):
    """Count along lists, or by bitmaps where lists are long and the whole of them is wanted."""
    items, at, size = mem.items(state), mem.item_at(state)[x], mem.item_count(state)[x]
    words = mem.planes(state).size // bitmaps.PLANES
    none = np.int64(0)  # a constant would be a type of its own in each place of the tuple
    rows, taken, frequent = (none, none, none, none, none, none, none), 0, np.uint64(0)
    by_bits = by_lists = live = 0
    for k in range(at, at + size):
        which = time_lists.find(state, other, items[k])
        if which == NO_LIST:
            continue
        time_lists.trim(cfg, state, which, other)
        a, b = _between(state, which, stretch)
        length = b - a
        live += tuples_between(cfg, state, other, which, a, b, stretch.until)
        if (
            taken < bitmaps.TOGETHER
            and k - at < 63
            and 2 * length > words
            and bitmaps.is_frequent(cfg, state, which, other)
        ):
            rows = (int(mem.lists(state, which)["bitmap"]), rows[0], rows[1], rows[2], rows[3], rows[4], rows[5])
            frequent |= np.uint64(1) << np.uint64(k - at)
            taken += 1
            by_bits += length
        else:
            by_lists += length
    if by_bits <= 2 * words + by_lists:
        return _count(cfg, state, x, other, stretch, n)
    state["compared"] += live
    state["looked_up"] += size
    return _add_up(cfg, state, x, other, stretch, n, rows, frequent)


@kernel
def _multiply(cfg, state, x, other, stretch, n):
    """Sum products along the row's lists, then look at each tuple once. Weights may be negative: nothing is decided early."""
    slots, hits, counts, sums = mem.list_slot(state), mem.hit(state), mem.common(state), mem.product(state)
    items, weights, item_at, item_count = (
        mem.items(state),
        mem.item_weights(state),
        mem.item_at(state),
        mem.item_count(state),
    )
    at, size = item_at[x], item_count[x]
    state["looked_up"] += size
    for k in range(at, at + size):
        which = time_lists.find(state, other, items[k])
        if which == NO_LIST:
            continue
        time_lists.trim(cfg, state, which, other)
        a, b = _between(state, which, stretch)
        state["compared"] += tuples_between(cfg, state, other, which, a, b, stretch.until)
        for p in range(a, b):
            slot = slots[p]
            if slot == NO_TUPLE:
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
        which = time_lists.find(state, other, items[k])
        if which == NO_LIST:
            continue
        a, b = _between(state, which, stretch)
        for p in range(a, b):
            slot = slots[p]
            if counts[slot >> 1] != 0:
                counts[slot >> 1] = 0
                if sums[slot] >= cfg["bound"]:
                    hits[n] = slot
                    n += 1
    return n


@inlined
def _is_inside(code, other):
    """Whether partners in another window must have all items of a row."""
    return (code == SUBSET and other == 1) or (code == SUPERSET and other == 0)


@inlined
def needs_all(cfg, state, x, other):
    """Whether the partners of a row are in each of its lists."""
    size = mem.item_count(state)[x]
    return 0 < size <= MOST_COUNTED and _is_inside(cfg["predicate"], other)


@kernel
def search(cfg, state, x, other, stretch, n):
    """Partners of tuple x in a stretch of another window; returns how many hits there are now."""
    code = cfg["predicate"]
    time_lists.trim(cfg, state, other, other)
    if cfg["lists"] == 0:
        return _scan_all(cfg, state, x, other, stretch, n)
    if code == BAND:
        number, bound = mem.number(state)[x], cfg["bound"]
        slack = 4e-16 * (abs(number) + bound)  # what rounding may add to a difference
        low, high = bucket(number - bound - slack, bound), bucket(number + bound + slack, bound)
        if high - low < MOST_BUCKETS:
            return _band(cfg, state, x, other, stretch, low, high, n)
        return _scan_all(cfg, state, x, other, stretch, n)
    size = mem.item_count(state)[x]
    if code == INNER:
        return _multiply(cfg, state, x, other, stretch, n)
    if size > MOST_COUNTED:
        return _scan_all(cfg, state, x, other, stretch, n)
    if code == OVERLAP:
        if state["resident"][other] < bitmaps.LEAST_TUPLES or size < cfg["bound"]:
            return _count(cfg, state, x, other, stretch, n)
        return _overlap(cfg, state, x, other, stretch, n)
    if needs_all(cfg, state, x, other):
        return _shortest(cfg, state, x, other, stretch, n)
    if size == 0 and _is_inside(code, other):
        return _scan_all(cfg, state, x, other, stretch, n)
    # Empty sets are partners, and stand in a list of their own.
    time_lists.trim(cfg, state, EMPTIES + other, other)
    n = _scan(cfg, state, x, other, EMPTIES + other, stretch, n)
    return _count(cfg, state, x, other, stretch, n)
