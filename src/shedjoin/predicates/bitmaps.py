"""Bitmaps of frequent items: one bit a stored tuple of a stream, so that common items are counted 64 tuples at a time.

They stand beside the lists and hold nothing of their own: one is made when a search first meets an item that is frequent, kept up
as tuples come and go, and forgotten when lists or pool are repacked, or the join goes on from a snapshot.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine.handle import Handle
from shedjoin.engine.jit import inlined, kernel
from shedjoin.predicates import lists
from shedjoin.predicates import state as mem
from shedjoin.predicates.state import FIXED_LISTS, NO_LIST, STREAMS

#: There are so many bitmaps at most. The first stays empty, for items that have none.
MOST = 512
#: Below so many tuples of a stream lists are short enough.
LEAST_TUPLES = 512
#: So many are added up in one go, into counts of three bits.
TOGETHER = 7
#: Counts of more common items than fit into so many bits are never needed.
PLANES = 8
_ONE = np.uint64(1)
_ALL = np.uint64(2**64 - 1)


def words_for(pool: int) -> int:
    """How long a bitmap is, for a pool of so many places."""
    return max(1, -(-pool // (64 * STREAMS)))


def renew(st: Handle) -> None:
    """No item has a bitmap; there is room for those to come."""
    words = words_for(st.arrays["ts"].size)
    sizes = {"bits": MOST * words, "planes": PLANES * words, "l_bits": st.arrays["l_start"].size, "bits_used": 1}
    for name, size in sizes.items():
        old = st.arrays.get(name)
        st.hold(**{name: np.zeros(size, mem.BITS[name]) if old is None or old.size != size else old})
    st.arrays["l_bits"][:] = 0
    st.arrays["bits_used"][:] = 1
    st.resize(**{name: st.arrays[name].size for name in mem.BITS})


@inlined
def word_of(slot):
    """Which word of its stream's bitmaps a tuple's bit is in."""
    return slot >> 7


@inlined
def bit_of(slot):
    return _ONE << np.uint64((slot >> 1) & 63)


@kernel
def mark(st, which, slot):
    """A tuple with the item of this list came in."""
    row = mem.bitmap_of(st)[which]
    if row != 0:
        bits = mem.bits_of(st)
        bits[row * (bits.size // MOST) + word_of(slot)] |= bit_of(slot)


@kernel
def clear(st, stream, slot):
    """A tuple goes: it is in no bitmap any more."""
    rows, bits = mem.bitmap_of(st), mem.bits_of(st)
    words = bits.size // MOST
    items, at = mem.items_of(st), mem.item_at_of(st)[slot]
    rest = _ALL ^ bit_of(slot)
    for k in range(at, at + mem.item_len_of(st)[slot]):
        which = lists.find(st, stream, items[k])
        if which != NO_LIST and rows[which] != 0:
            bits[rows[which] * words + word_of(slot)] &= rest


@kernel
def frequent(st, which):
    """Whether an item has a bitmap by now: one that is in every 64th place gets one, as long as there are any."""
    rows, bits, used = mem.bitmap_of(st), mem.bits_of(st), mem.bits_used_of(st)
    if rows[which] != 0:
        return True
    words = bits.size // MOST
    length = mem.length_of(st)[which]
    if which < FIXED_LISTS or length < words or used[0] == MOST:
        return False
    row = used[0]
    used[0] += 1
    rows[which] = row
    bits[row * words : (row + 1) * words] = 0
    slots = mem.entry_slot_of(st)
    first = mem.start_of(st)[which] + mem.head_of(st)[which]
    for p in range(first, first + length):
        slot = np.int64(slots[p])
        bits[row * words + word_of(slot)] |= bit_of(slot)  # nobody's bit is nobody's tuple
    return True


@kernel
def add_up(st, rows):
    """Counts of how many of seven bitmaps have each tuple, as three planes of bits."""
    bits, planes = mem.bits_of(st), mem.planes_of(st)
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
def add_one(st, slot):
    """One more for a tuple, from the list of an item without a bitmap."""
    planes = mem.planes_of(st)
    n = planes.size // PLANES
    at, carry = word_of(slot), bit_of(slot)
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
