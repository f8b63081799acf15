"""Whether a pair of tuples fulfils a predicate: the comparison of a scan, by merging sorted items."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.codes import BAND, GREATER, GREATER_EQUAL, INNER, LESS, LESS_EQUAL, OVERLAP, SUBSET
from shedjoin.engine.jit import inlined, kernel


@inlined
def numbers_hold(code, bound, left, right):
    """A predicate on numbers."""
    if code == BAND:
        return abs(left - right) <= bound
    other = right + bound
    if code == LESS:
        return left < other
    if code == LESS_EQUAL:
        return left <= other
    if code == GREATER:
        return left > other
    if code == GREATER_EQUAL:
        return left >= other
    return left != other


@kernel
def signature_of(items, at, size):
    """A bit for each item of a set, by its hash."""
    bits = np.uint64(0)
    for k in range(at, at + size):
        place = (np.uint64(np.int64(items[k])) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58)
        bits |= np.uint64(1) << place
    return bits


@inlined
def ones(bits):
    """How many bits are set; compilers know this for what it is."""
    x = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def may_hold(code, need, mine, other, mine_is_left):
    """Whether two sets with these signatures may fulfil a predicate; `need`: how many common bits it takes at least."""
    if code == OVERLAP:
        return ones(mine & other) >= need
    if code == INNER:
        return (mine & other) != np.uint64(0)
    if mine_is_left == (code == SUBSET):
        return (mine & other) == mine
    return (mine & other) == other


@kernel
def inner_product(items, weights, at, size, other_at, other_size):
    """The weights of common items multiplied and summed, in the order of the items."""
    product = 0.0
    i, j = at, other_at
    end, other_end = at + size, other_at + other_size
    while i < end and j < other_end:
        if items[i] == items[j]:
            product += weights[i] * weights[j]
            i += 1
            j += 1
        elif items[i] < items[j]:
            i += 1
        else:
            j += 1
    return product


@kernel
def sets_hold(code, bound, items, at, size, other_at, other_size, mine_is_left):
    """A predicate on sets without weights: mine are `items[at : at + size]`."""
    if code == OVERLAP and (size < bound or other_size < bound):
        return False
    common = 0
    i, j = at, other_at
    end, other_end = at + size, other_at + other_size
    while i < end and j < other_end:
        mine, other = items[i], items[j]
        common += mine == other
        i += mine <= other
        j += other <= mine
    if code == OVERLAP:
        return common >= bound
    if mine_is_left == (code == SUBSET):
        return common == size
    return common == other_size
