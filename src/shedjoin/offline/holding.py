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
