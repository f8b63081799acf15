"""Adapting to rates, to the time between partners, to the better direction, to utilities (gedik2007, Algorithms 1, 2, 4, 5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.cpu import heap
from shedjoin.cpu import state as cs
from shedjoin.cpu.select import worth
from shedjoin.engine.handle import STREAMS
from shedjoin.engine.jit import entry, kernel

#: r never falls below this: what is not tried at all cannot be learned about.
LEAST_FRACTION = 1e-4
#: A type's own samples count from this many on.
TRUSTED_SAMPLES = 4.0


@kernel
def next_fraction(fraction, beta, boost):
    """Algorithm 1: r after a period in which the share `beta` of the rows could be processed."""
    if beta < 1.0:
        return max(LEAST_FRACTION, beta * fraction)
    return min(1.0, boost * fraction)


@kernel
def split(r, w0, w1, first_is_better):
    """Algorithm 4: (r_1, r_2) with r (w1 + w2) = r_1 w1 + r_2 w2, the better window as large a part as can be.

    The printed line 7 has a slip: it divides by w1 where w2 belongs.
    """
    total = r * (w0 + w1)
    r0 = min(1.0, total / w0) if first_is_better else max(0.0, (total - w1) / w0)
    return r0, min(1.0, max(0.0, (total - r0 * w0) / w1))


class Ages(NamedTuple):
    """What is known of basic windows, by window and age."""

    density: NDArray[np.float64]  # partners found for each tuple looked at
    share: NDArray[np.float64]  # of the window
    order: NDArray[np.int64]  # the ages by falling density


class Types(NamedTuple):
    """What is known of types of rows, by the window that they probe and the type."""

    value: NDArray[np.float64]  # what a comparison brings them
    volume: NDArray[np.float64]  # comparisons with the whole window
    fraction: NDArray[np.float64]  # the part of the window that they are compared with


@kernel
def knapsack(budget, ages, types, sack, following):
    """Algorithm 5: fill the budget of comparisons with what brings most for each of them; returns the value brought.

    An item is a type z, a window i and an age a: its volume is volume[i, z] * share[i, a], its value for each unit of that
    value[i, z] * density[i, a]. Ages are in order of their density, so of each (i, z) only the best one left is in the heap
    `sack`, and `following` says which that is. fraction[i, z] becomes the part of the window that rows of the type are
    compared with.
    """
    density, share, order = ages.density, ages.share, ages.order
    value, volume, fraction = types.value, types.volume, types.fraction
    kinds, prio = value.shape[1], sack.prio
    size = 0
    brought = 0.0
    for stream in range(STREAMS):
        for z in range(kinds):
            fraction[stream, z] = 0.0
            one = stream * kinds + z
            following[one] = 0
            sack.seq[one] = one
            prio[one] = -value[stream, z] * density[stream, order[stream, 0]]
            heap.push(sack, size, one)
            size += 1
    while size > 0 and budget > 0.0:
        one = sack.order[0]
        stream, z = one // kinds, one % kinds
        age = order[stream, following[one]]
        weight = volume[stream, z] * share[stream, age]
        part = 1.0 if weight <= budget else budget / weight
        fraction[stream, z] += part * share[stream, age]
        brought += part * weight * value[stream, z] * density[stream, age]
        budget -= weight
        heap.remove(sack, size, one)
        size -= 1
        following[one] += 1
        if following[one] < order.shape[1]:
            prio[one] = -value[stream, z] * density[stream, order[stream, following[one]]]
            heap.push(sack, size, one)
            size += 1
    return brought


@entry
def pack(budget, ages, types, sack, following):
    """`knapsack` for callers outside kernels."""
    return knapsack(budget, ages, types, sack, following)


@kernel
def rank(how, st):
    """Algorithm 2: order the ages by partners found for each tuple looked at, and begin to count anew."""
    met, seen, share = cs.met_of(st), cs.seen_of(st), cs.share_of(st)
    density, order = cs.density_of(st), cs.rank_of(st)
    for stream in range(STREAMS):
        looked, found = 0.0, 0.0
        for age in range(how["ages"]):
            looked += seen[stream, age]
            found += met[stream, age]
        if looked == 0.0:  # nothing learned: all stays as it was
            continue
        for age in range(how["ages"]):
            density[stream, age] = met[stream, age] / seen[stream, age] if seen[stream, age] > 0.0 else 0.0
            share[stream, age] = seen[stream, age] / looked
            met[stream, age] = 0.0
            seen[stream, age] = 0.0
        st["mean_density"][stream] = found / looked
        st["mean_window"][stream] = looked / st["samples"][stream]
        st["samples"][stream] = 0
        if how["correlation"]:
            _sort(order, density, stream, how["ages"])


@kernel
def _sort(order, density, stream, ages):
    """By falling density; equal ones keep their order. Nearly in order from the last time, so by insertion."""
    for i in range(1, ages):
        one = order[stream, i]
        j = i
        while j > 0 and density[stream, order[stream, j - 1]] < density[stream, one]:
            order[stream, j] = order[stream, j - 1]
            j -= 1
        order[stream, j] = one


@kernel
def set_fractions(how, st):
    """r_1 and r_2, or r for each window and type, from r. Until something is known, all share it alike."""
    r = st["fraction"]
    st["fractions"][0] = r
    st["fractions"][1] = r
    known = st["mean_window"][0] > 0.0 and st["mean_window"][1] > 0.0
    if how["direction"] and known and r < 1.0:
        a, b = st["mean_density"][0], st["mean_density"][1]
        if a != b:
            r0, r1 = split(r, float(how["size0"]), float(how["size1"]), a > b)
            st["fractions"][0] = r0
            st["fractions"][1] = r1
    if how["utility"]:
        part = cs.kind_fraction_of(st)
        for stream in range(STREAMS):
            for z in range(how["kinds"]):
                part[stream, z] = r
        if known and r < 1.0:
            _pack_types(how, st)


@kernel
def _pack_types(how, st):
    """r for each window and type, by the knapsack."""
    rows, volume = cs.kind_rows_of(st), cs.kind_volume_of(st)
    budget = 0.0
    for stream in range(STREAMS):
        _value_types(how, st, stream)
        came = 0.0
        for z in range(how["kinds"]):
            came += rows[1 - stream, z]
        length = float(how["size0"] if stream == 0 else how["size1"])
        for z in range(how["kinds"]):
            volume[stream, z] = length * rows[1 - stream, z] / max(1.0, came)
        budget += st["fraction"] * length
    ages = Ages(cs.density_of(st), cs.share_of(st), cs.rank_of(st))
    types = Types(cs.kind_worth_of(st), volume, cs.kind_fraction_of(st))
    sack = heap.Heap(cs.sack_heap_of(st), cs.sack_at_of(st), cs.sack_prio_of(st), cs.sack_seq_of(st))
    knapsack(budget, ages, types, sack, cs.sack_next_of(st))


@kernel
def _value_types(how, st, stream):
    """What a comparison with this window brings a row of each type, against the mean: from samples, and while they are few
    from how much the types are worth."""
    gain, seen, value = cs.gain_of(st), cs.kind_seen_of(st), cs.kind_worth_of(st)
    looked, brought, usual = 0.0, 0.0, 0.0
    for z in range(how["kinds"]):
        looked += seen[stream, z]
        brought += gain[stream, z]
        value[stream, z] = _typical(how, st, stream, z)
        usual += value[stream, z] * seen[stream, z]
    trusted = TRUSTED_SAMPLES * st["mean_window"][stream]
    for z in range(how["kinds"]):
        prior = value[stream, z] * (brought / usual if usual > 0.0 else 1.0)
        value[stream, z] = (gain[stream, z] + trusted * prior) / (seen[stream, z] + trusted)


@kernel
def _typical(how, st, stream, z):
    """The usual worth of an output of a type-z row, by how often the types of the window occur."""
    rows, sums = cs.kind_rows_of(st), cs.kind_sum_of(st)
    other = 1 - stream
    if rows[other, z] == 0.0:
        return 0.0
    mine, total, there = sums[other, z] / rows[other, z], 0.0, 0.0
    for y in range(how["kinds"]):
        if rows[stream, y] > 0.0:
            there += rows[stream, y]
            total += rows[stream, y] * worth(how, mine, sums[stream, y] / rows[stream, y])
    return total / there if there > 0.0 else mine


@kernel
def fade(how, st):
    """What is known of types counts half as much with every ranking."""
    gain, seen = cs.gain_of(st), cs.kind_seen_of(st)
    rows, sums = cs.kind_rows_of(st), cs.kind_sum_of(st)
    for stream in range(STREAMS):
        for z in range(how["kinds"]):
            gain[stream, z] *= 0.5
            seen[stream, z] *= 0.5
            rows[stream, z] *= 0.5
            sums[stream, z] *= 0.5


@kernel
def adapt(how, st, now):
    """Whatever is due at this time."""
    if how["rate"] and now >= st["next_rate"]:
        came = st["came"][0] + st["came"][1]
        if came > 0 and how["capacity"] > 0.0:
            beta = (st["fetched"][0] + st["fetched"][1]) / came
            st["fraction"] = next_fraction(st["fraction"], beta, how["boost"])
        for stream in range(STREAMS):
            st["came"][stream] = 0
            st["fetched"][stream] = 0
        st["next_rate"] = now - now % how["rate_every"] + how["rate_every"]
        st["adapted"] += 1
        set_fractions(how, st)
    if now >= st["next_rank"]:
        rank(how, st)
        set_fractions(how, st)
        fade(how, st)
        st["next_rank"] = now - now % how["rank_every"] + how["rank_every"]


@entry
def set_fraction(settings, state, fraction):
    """Tell the join its r from outside."""
    how, st = settings[0], state[0]
    st["fraction"] = fraction
    set_fractions(how, st)


@entry
def adapt_now(settings, state):
    """One ranking and one split, whatever the time: for measuring what they cost."""
    how, st = settings[0], state[0]
    rank(how, st)
    set_fractions(how, st)
    fade(how, st)
