"""What rows gain when memory has a price: each is held as long as that pays, none minds the others."""

from __future__ import annotations

import numba
import numpy as np

kernel = numba.njit(cache=True, nogil=True)


@kernel
def hold_alike(order, first, last, tick, stop_tick, gained, paid, change):
    """Rows that gain the same at a stop. `order` has them by key, then by time, so that their stops only move on.

    `gained` is summed up over the stops, `paid` over the instants. Adds to `change` how many are held from an instant on,
    and returns what they gain beyond what they pay.
    """
    best = np.empty(stop_tick.size, np.int64)  # the stops that may be the best of a row to come, from the best on
    head, tail, ahead = 0, 0, 0
    total = 0.0
    for row in order:
        begin, end = first[row], last[row]
        if begin >= end:
            continue
        ahead = max(ahead, begin)
        while head < tail and best[head] < begin:
            head += 1
        while ahead < end:
            worth = gained[ahead + 1] - paid[stop_tick[ahead]]
            while head < tail and gained[best[tail - 1] + 1] - paid[stop_tick[best[tail - 1]]] < worth:
                tail -= 1
            best[tail] = ahead
            tail += 1
            ahead += 1
        stop = best[head]
        gain = gained[stop + 1] - gained[begin] - (paid[stop_tick[stop]] - paid[tick[row]])
        if gain > 0.0:
            total += gain
            change[tick[row]] += 1
            change[stop_tick[stop]] -= 1
    return total


@kernel
def hold_each(first, last, tick, stop_tick, gain, paid, change):
    """The same where every row gains something else: `gain` has what each gains at each of its stops, row after row."""
    total, place = 0.0, 0
    for row in range(first.size):
        gained, most, until = 0.0, 0.0, -1
        for stop in range(first[row], last[row]):
            gained += gain[place]
            place += 1
            worth = gained - (paid[stop_tick[stop]] - paid[tick[row]])
            if worth > most:
                most, until = worth, stop
        if until >= 0:
            total += most
            change[tick[row]] += 1
            change[stop_tick[until]] -= 1
    return total


@kernel
def best_stops(first, last, tick, stop_tick, gained, base, paid, stop):
    """The stop of most gain beyond what is paid, for every row that has one, and that gain; it may be below 0."""
    net = np.full(first.size, -np.inf)
    for row in range(first.size):
        stop[row] = _best(row, first, last[row], tick, stop_tick, gained, base, paid)
        if stop[row] >= 0:
            gain = gained[base[row] + stop[row] - first[row] + 1] - gained[base[row]]
            net[row] = gain - (paid[stop_tick[stop[row]]] - paid[tick[row]])
    return net


@kernel
def _best(row, first, end, tick, stop_tick, gained, base, paid):
    best, most = -1, -np.inf
    for at in range(first[row], end):
        net = gained[base[row] + at - first[row] + 1] - paid[stop_tick[at]]
        if net > most:
            best, most = at, net
    return best


@kernel
def fill(order, first, tick, stop_tick, gained, base, paid, stop, memory, held, added):
    """Hold rows up to their stops, in this order, where there is room; where a border is full, up to a stop before it.

    `held` and `added` are a tree over the borders: of each node the most that are held, and what was added to all of it.
    Returns what is gained.
    """
    total, size = 0.0, held.size // 2
    for row in order:
        until = stop[row]
        full = _first_full(held, added, size, tick[row], stop_tick[until], memory)
        if full < stop_tick[until]:
            end = until
            while end > first[row] and stop_tick[end - 1] > full:
                end -= 1
            until = _best(row, first, end, tick, stop_tick, gained, base, paid)
            if until < 0:
                continue
        total += gained[base[row] + until - first[row] + 1] - gained[base[row]]
        _add(held, added, size, tick[row], stop_tick[until])
    return total


@kernel
def _first_full(held, added, size, begin, end, memory):
    """The first border from `begin` on, before `end`, at which memory is full; `end` if there is none."""
    todo = np.empty((64, 4), np.int64)
    todo[0] = (1, 0, size, 0)
    top = 1
    while top:
        top -= 1
        node, low, high, above = todo[top]
        if high <= begin or low >= end or held[node] + above < memory:
            continue
        if high - low == 1:
            return low
        middle = (low + high) // 2
        todo[top] = (2 * node + 1, middle, high, above + added[node])
        todo[top + 1] = (2 * node, low, middle, above + added[node])
        top += 2
    return end


@kernel
def _add(held, added, size, begin, end):
    """One more at the borders from `begin` to before `end`: whole nodes from both sides, then what is above them."""
    low, high = begin + size, end + size
    left, right = low, high - 1
    while low < high:
        if low & 1:
            held[low] += 1
            added[low] += 1
            low += 1
        if high & 1:
            high -= 1
            held[high] += 1
            added[high] += 1
        low >>= 1
        high >>= 1
    for leaf in (left, right):
        node = leaf >> 1
        while node:
            held[node] = max(held[2 * node], held[2 * node + 1]) + added[node]
            node >>= 1
