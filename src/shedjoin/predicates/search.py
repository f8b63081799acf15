"""Partners of one row among the stored tuples of a stream, between two points in time: by scan or by lists."""

from __future__ import annotations

import math

import numpy as np

from shedjoin.engine.jit import inlined, kernel
from shedjoin.predicates import bitmaps, lists
from shedjoin.predicates import state as mem
from shedjoin.predicates.codes import BAND, FIRST_OF_SETS, INNER, LISTS, OVERLAP, SAME, SUBSET
from shedjoin.predicates.compare import inner_product, may_hold, numbers_hold, ones, sets_hold, signature
from shedjoin.predicates.state import EMPTIES, NO_LIST, NOBODY

#: Before every arrival, and after every one of the same time.
FIRST_SEQ = -1
LAST_SEQ = 2**62
#: A band that spans more buckets than this (numbers beyond the precision of a float) is scanned for.
MOST_BUCKETS = 8
_LARGEST_BUCKET = 2.0**62
#: Common items are counted in a byte; the window is scanned for partners of a larger set.
MOST_COUNTED = 254


@inlined
def bucket(number, width):
    """The bucket of a number; never falls while the number rises."""
    place = number / (width if width > 0.0 else 1.0)
    # Held within bounds before it is made whole: compiled, `floor` is of 64 bits.
    return np.int64(math.floor(min(max(place, -_LARGEST_BUCKET), _LARGEST_BUCKET)))


@inlined
def _between(st, which, span):
    """The entries of a list that lie in a stretch of the window: from the first up to the second."""
    return lists.lower(st, which, span.lo_ts, span.lo_seq), lists.lower(st, which, span.hi_ts, span.hi_seq)


@kernel
def _scan_numbers(st, rule, stream, a, b, number, n):
    """Compare a number with those of entries a .. b."""
    code, bound, row_is_left = rule.code, rule.bound, stream == 1
    slots, hits, numbers = mem.entry_slot_of(st), mem.hit_of(st), mem.number_of(st)
    for p in range(a, b):
        slot = slots[p]
        if slot != NOBODY:
            other = numbers[slot]
            holds = (
                numbers_hold(code, bound, number, other) if row_is_left else numbers_hold(code, bound, other, number)
            )
            if holds:
                hits[n] = slot
                n += 1
    return n


@kernel
def _scan_sets(st, rule, stream, a, b, value, n):
    """Compare a set with those of entries a .. b."""
    code, bound, row_is_left = rule.code, rule.bound, stream == 1
    items, weights, at, size = value.items, value.weights, value.at, value.size
    slots, hits = mem.entry_slot_of(st), mem.hit_of(st)
    others, other_weights = mem.items_of(st), mem.weights_of(st)
    item_at, item_len, signs = mem.item_at_of(st), mem.item_len_of(st), mem.sign_of(st)
    mine = signature(items, at, size)
    # Items of this row that share a bit may all be common where one bit is.
    need = np.int64(bound) - (size - ones(mine))
    for p in range(a, b):
        slot = slots[p]
        if slot != NOBODY and may_hold(code, need, mine, signs[slot], row_is_left):
            if code == INNER:
                holds = (
                    inner_product(items, weights, at, size, others, other_weights, item_at[slot], item_len[slot])
                    >= bound
                )
            else:
                holds = sets_hold(code, bound, items, at, size, others, item_at[slot], item_len[slot], row_is_left)
            if holds:
                hits[n] = slot
                n += 1
    return n


@kernel
def _scan(st, rule, stream, which, span, value, n, effort):
    """Compare with the tuples of a list, one by one."""
    a, b = _between(st, which, span)
    effort[0] += max(b - a, 0)
    if rule.code < FIRST_OF_SETS:
        return _scan_numbers(st, rule, stream, a, b, value.number, n)
    return _scan_sets(st, rule, stream, a, b, value, n)


@kernel
def _band(st, bound, stream, span, number, low, high, n, effort):
    """Look into the buckets that the band touches."""
    slots, hits, numbers = mem.entry_slot_of(st), mem.hit_of(st), mem.number_of(st)
    for place in range(low, high + 1):
        effort[1] += 1
        which = lists.find(st, stream, place)
        if which == NO_LIST:
            continue
        lists.trim(st, which, st["floor"][stream])
        a, b = _between(st, which, span)
        effort[0] += max(b - a, 0)
        for p in range(a, b):
            slot = slots[p]
            if slot != NOBODY and abs(number - numbers[slot]) <= bound:
                hits[n] = slot
                n += 1
    return n


@kernel
def _shortest(st, rule, stream, span, value, n, effort):
    """Partners must have all of the row's items: those in its shortest list are compared."""
    items, at, size = value.items, value.at, value.size
    best, best_a, best_b = 2**62, 0, 0
    for k in range(at, at + size):
        effort[1] += 1
        which = lists.find(st, stream, items[k])
        if which == NO_LIST:
            return n
        lists.trim(st, which, st["floor"][stream])
        a, b = _between(st, which, span)
        if b - a < best:
            best, best_a, best_b = b - a, a, b
    effort[0] += max(best_b - best_a, 0)
    return _scan_sets(st, rule, stream, best_a, best_b, value, n)


@kernel
def _count(st, rule, stream, span, value, n, effort):
    """Count common items tuple by tuple along the row's lists; one that has enough is a partner."""
    slots, hits, counts, lengths = mem.entry_slot_of(st), mem.hit_of(st), mem.count_of(st), mem.item_len_of(st)
    items, at, size = value.items, value.at, value.size
    walked = 0
    need = np.int64(rule.bound)
    for k in range(at, at + size):
        effort[1] += 1
        which = lists.find(st, stream, items[k])
        if which == NO_LIST:
            continue
        lists.trim(st, which, st["floor"][stream])
        a, b = _between(st, which, span)
        walked += max(b - a, 0)
        if rule.code == OVERLAP:
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
                if common == lengths[slot] and slot != NOBODY:
                    hits[n] = slot
                    n += 1
    effort[0] += walked
    if 8 * walked > counts.size:
        counts[:] = 0
        return n
    for k in range(at, at + size):
        which = lists.find(st, stream, items[k])
        if which != NO_LIST:
            a, b = _between(st, which, span)
            for p in range(a, b):
                counts[slots[p] >> 1] = 0
    return n


@kernel
def _add_up(st, need, stream, span, value, n, rows, frequent):
    """Count common items of all tuples at once: bitmaps where items have them, lists where not."""
    slots, planes = mem.entry_slot_of(st), mem.planes_of(st)
    items, at, size = value.items, value.at, value.size
    words = planes.size // bitmaps.PLANES
    used = 3
    while size >> used:
        planes[used * words : (used + 1) * words] = 0
        used += 1
    bitmaps.add_up(st, rows)
    for k in range(at, at + size):
        which = lists.find(st, stream, items[k])
        if which != NO_LIST and not (frequent >> np.uint64(min(k - at, 63))) & np.uint64(1):
            a, b = _between(st, which, span)
            for p in range(a, b):
                bitmaps.add_one(st, np.int64(slots[p]))
    return _read_off(st, need, stream, span, words, used, n)


@kernel
def _read_off(st, need, stream, span, words, used, n):
    """The tuples that were counted often enough, and lie between the two times."""
    planes, hits, times, seqs = mem.planes_of(st), mem.hit_of(st), mem.ts_of(st), mem.seq_of(st)
    for w in range(words):
        found = bitmaps.enough(planes, words, w, used, need)
        while found != 0:
            lowest = found & (~found + np.uint64(1))
            found ^= lowest
            slot = ((w * 64 + ones(lowest - np.uint64(1))) << 1) + stream
            ts, seq = times[slot], seqs[slot]
            after = ts > span.lo_ts or (ts == span.lo_ts and seq >= span.lo_seq)
            if after and (ts < span.hi_ts or (ts == span.hi_ts and seq < span.hi_seq)) and slot > 1:
                hits[n] = slot
                n += 1
    return n


@kernel
def _overlap(st, rule, stream, span, value, n, effort):
    """Count along lists, or by bitmaps where lists are long and the whole of them is wanted."""
    items, at, size = value.items, value.at, value.size
    words = mem.planes_of(st).size // bitmaps.PLANES
    none = np.int64(0)  # a constant would be a type of its own in each place of the tuple
    rows, taken, frequent = (none, none, none, none, none, none, none), 0, np.uint64(0)
    by_bits = by_lists = 0
    for k in range(at, at + size):
        which = lists.find(st, stream, items[k])
        if which == NO_LIST:
            continue
        lists.trim(st, which, st["floor"][stream])
        a, b = _between(st, which, span)
        length = max(b - a, 0)
        if taken < bitmaps.TOGETHER and k - at < 63 and 2 * length > words and bitmaps.frequent(st, which):
            rows = (mem.bitmap_of(st)[which], rows[0], rows[1], rows[2], rows[3], rows[4], rows[5])
            frequent |= np.uint64(1) << np.uint64(k - at)
            taken += 1
            by_bits += length
        else:
            by_lists += length
    if by_bits <= 2 * words + by_lists:
        return _count(st, rule, stream, span, value, n, effort)
    effort[0] += by_bits + by_lists  # as many entries as lists would have shown
    effort[1] += size
    return _add_up(st, np.int64(rule.bound), stream, span, value, n, rows, frequent)


@kernel
def _multiply(st, bound, stream, span, value, n, effort):
    """Sum products along the row's lists, then look at each tuple once. Weights may be negative: nothing is decided early."""
    slots, hits, counts, sums = mem.entry_slot_of(st), mem.hit_of(st), mem.count_of(st), mem.acc_of(st)
    others, item_at, item_len = mem.items_of(st), mem.item_at_of(st), mem.item_len_of(st)
    other_weights = mem.weights_of(st)
    items, weights, at, size = value.items, value.weights, value.at, value.size
    for k in range(at, at + size):
        effort[1] += 1
        which = lists.find(st, stream, items[k])
        if which == NO_LIST:
            continue
        lists.trim(st, which, st["floor"][stream])
        a, b = _between(st, which, span)
        effort[0] += max(b - a, 0)
        for p in range(a, b):
            slot = slots[p]
            if slot == NOBODY:
                continue
            low, high = item_at[slot], item_at[slot] + item_len[slot] - 1
            while low < high:  # the item is there: by halves
                middle = (low + high) >> 1
                if others[middle] < items[k]:
                    low = middle + 1
                else:
                    high = middle
            if counts[slot >> 1] == 0:
                sums[slot] = 0.0
                counts[slot >> 1] = 1
            sums[slot] += weights[k] * other_weights[low]
    for k in range(at, at + size):
        which = lists.find(st, stream, items[k])
        if which == NO_LIST:
            continue
        a, b = _between(st, which, span)
        for p in range(a, b):
            slot = slots[p]
            if counts[slot >> 1] != 0:
                counts[slot >> 1] = 0
                if sums[slot] >= bound:
                    hits[n] = slot
                    n += 1
    return n


@kernel
def search(st, rule, stream, span, value, n, effort):
    """Partners of a row among tuples of `stream` in a stretch of its window, written behind the first n hits.

    Returns how many hits there are now. `effort` counts tuples or entries looked at, and lists looked up.
    """
    code, size = rule.code, value.size
    if rule.by == LISTS:
        if code == BAND:
            number, bound = value.number, rule.bound
            slack = 4e-16 * (abs(number) + bound)  # what rounding may add to a difference
            low, high = bucket(number - bound - slack, bound), bucket(number + bound + slack, bound)
            if high - low < MOST_BUCKETS:
                return _band(st, bound, stream, span, number, low, high, n, effort)
        elif code == OVERLAP and size <= MOST_COUNTED:
            if st["resident"][stream] < bitmaps.LEAST_TUPLES or size < rule.bound:
                return _count(st, rule, stream, span, value, n, effort)
            return _overlap(st, rule, stream, span, value, n, effort)
        elif code == INNER:
            return _multiply(st, rule.bound, stream, span, value, n, effort)
        elif code >= FIRST_OF_SETS and (code == SAME or size <= MOST_COUNTED):
            row_is_left = stream == 1
            row_inside = code == SAME or row_is_left == (code == SUBSET)
            if row_inside and size > 0:
                return _shortest(st, rule, stream, span, value, n, effort)
            if code == SAME or not row_inside:  # empty sets are partners, and stand in a list of their own
                which = EMPTIES + stream
                lists.trim(st, which, st["floor"][stream])
                n = _scan(st, rule, stream, which, span, value, n, effort)
                return n if code == SAME else _count(st, rule, stream, span, value, n, effort)
    return _scan(st, rule, stream, stream, span, value, n, effort)
