"""Bitmaps of frequent items: one bit a stored tuple of a stream, so that common items are counted 64 tuples at a time.

They stand beside the lists and hold nothing of their own. One is made when a search first meets an item that is frequent, kept up
as tuples come and go, and forgotten when lists or pool grow. A stream's tuples stand at every second place of the pool, so half a
place counts through them without gaps.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.structures import time_lists
from shedjoin.engine.structures.time_lists import FIXED_LISTS, NO_LIST

#: How many bitmaps there are at most. The first stays empty, for items that have none.
MOST = 512
#: With fewer tuples of a stream lists are short enough.
LEAST_TUPLES = 512
#: How many are added up in one go, into counts of three bits.
TOGETHER = 7
#: Counts of common items have at most this many bits.
PLANES = 8
_ONE = np.uint64(1)
_ALL = np.uint64(2**64 - 1)


def words_for(pool: int) -> int:
    """How long a bitmap is, for a pool of this many places of two streams."""
    return max(1, -(-pool // 128))


@inlined
def _word_of(slot):
    """Which word of its stream's bitmaps a tuple's bit is in."""
    return slot >> 7


@inlined
def _bit_of(slot):
    return _ONE << np.uint64((slot >> 1) & 63)


@kernel
def mark(state, which, slot):
    """A tuple with the item of this list came in."""
    row = int(mem.lists(state, which)["bitmap"])
    if row != 0:
        bits = mem.bits(state)
        bits[row * (bits.size // MOST) + _word_of(slot)] |= _bit_of(slot)


@kernel
def clear(state, stream, slot):
    """A tuple goes: it is in no bitmap any more."""
    if state["bitmaps_used"] == 1:
        return
    bits = mem.bits(state)
    words = bits.size // MOST
    items, at = mem.items(state), mem.item_at(state)[slot]
    rest = _ALL ^ _bit_of(slot)
    for k in range(at, at + mem.item_count(state)[slot]):
        which = time_lists.find(state, stream, items[k])
        if which != NO_LIST and mem.lists(state, which)["bitmap"] != 0:
            bits[int(mem.lists(state, which)["bitmap"]) * words + _word_of(slot)] &= rest


@kernel
def is_frequent(cfg, state, which, stream):
    """Whether an item has a bitmap by now: one that is in every 64th place gets one, as long as there are any."""
    one, bits = mem.lists(state, which), mem.bits(state)
    if one["bitmap"] != 0:
        return True
    words = bits.size // MOST
    length = int(one["length"])
    if which < FIXED_LISTS or length < words or state["bitmaps_used"] == MOST:
        return False
    row = state["bitmaps_used"]
    state["bitmaps_used"] += 1
    one["bitmap"] = row
    bits[row * words : (row + 1) * words] = np.uint64(0)
    slots, times, seqs = mem.list_slot(state), mem.list_ts(state), mem.list_seq(state)
    first = time_lists.first_of(state, which)
    for p in range(first, first + length):
        slot = np.int64(slots[p])
        if not time_lists.is_gone(cfg, state, stream, times[p], seqs[p]):
            bits[row * words + _word_of(slot)] |= _bit_of(slot)  # the bit of NO_TUPLE is never read
    return True


@kernel
def add_up(state, rows):
    """Counts of how many of seven bitmaps have each tuple, as three planes of bits."""
    bits, planes = mem.bits(state), mem.planes(state)
    n = bits.size // MOST
    a, b, c, d = (
        bits[rows[0] * n : rows[0] * n + n],
        bits[rows[1] * n : rows[1] * n + n],
        bits[rows[2] * n : rows[2] * n + n],
        bits[rows[3] * n : rows[3] * n + n],
    )
    e, f, g = (
        bits[rows[4] * n : rows[4] * n + n],
        bits[rows[5] * n : rows[5] * n + n],
        bits[rows[6] * n : rows[6] * n + n],
    )
    ones, twos, fours = planes[0:n], planes[n : 2 * n], planes[2 * n : 3 * n]
    for w in range(n):
        ab, de = a[w] ^ b[w], d[w] ^ e[w]
        abc, deg = ab ^ c[w], de ^ f[w]
        two = (a[w] & b[w]) | (ab & c[w])
        more = (d[w] & e[w]) | (de & f[w])
        last = g[w]
        both = abc ^ deg
        third = (abc & deg) | (both & last)
        ones[w] = both ^ last
        odd = two ^ more
        twos[w] = odd ^ third
        fours[w] = (two & more) | (odd & third)


@kernel
def add_one(state, slot):
    """One more for a tuple, from the list of an item without a bitmap."""
    planes = mem.planes(state)
    n = planes.size // PLANES
    at, carry = _word_of(slot), _bit_of(slot)
    while carry != 0 and at < planes.size:
        old = planes[at]
        planes[at] = old ^ carry
        carry &= old
        at += n


@inlined
def enough(planes, n, w, used, need):
    """The tuples of a word whose count is at least `need`, compared from the highest bit on."""
    above, equal = np.uint64(0), _ALL
    for p in range(used - 1, -1, -1):
        plane = planes[p * n + w]
        if (need >> p) & 1:
            equal &= plane
        else:
            above |= equal & plane
            equal &= _ALL ^ plane
    return above | equal
