"""Sample: tuples have fixed weights and random priorities, and results the inverse of the probability of their tuples.

A memory has two parts. New tuples join the kept part. When it is full, the lowest weight moves to the sampled part, from which
the lowest priority (weight / lot) is evicted. A tuple of weight w is still there with probability min(1, w / T), where T is the
highest priority that was evicted since it began to be sampled.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine import mem
from shedjoin.engine.codes import COUNT_MIN, HISTORY, IN_WINDOW
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import NONE
from shedjoin.engine.stages.sketch import FIRST, GOLDEN, SECOND
from shedjoin.engine.structures import heap, lazy_heap

#: Weights lie within these, so that products of them with lots and probabilities are finite.
LIGHTEST, HEAVIEST = 1e-150, 1e150
#: Numbers of `moments`. Of what came before, so much counts with each new tuple: about 256 tuples are remembered.
MOMENTS, FADE = 3, 1.0 - 1.0 / 256.0
#: Counts whose variance is beyond their mean by less than this part of it are alike.
NO_MORE = 1e-9
#: `since` of a tuple in the kept part.
KEPT = -1


@inlined
def mix(x):
    """splitmix64's finaliser."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@inlined
def lot(state, stream, seq):
    """Above 0 and up to 1: it depends on the seed and the row alone."""
    row = mix(np.uint64(seq) * np.uint64(16) + np.uint64(stream) + GOLDEN)
    return np.float64(np.int64(mix(state["salt"] + row) >> np.uint64(11)) + 1) * 2.0**-53


@inlined
def _kept_heap(cfg, stream):
    return cfg["streams"] + stream


@kernel
def likely(cfg, state, stream, matches):
    """The partners that a tuple can expect, from what was counted: the mean of its stream where counts differ by chance alone.

    By chance counts vary by their mean (Poisson). What they vary more is taken for a gamma distribution of the keys' rates;
    returned is the mean of a rate given its count. Without that, keys that are all alike would be sampled unevenly.
    """
    counts = cfg["estimator"] == HISTORY or cfg["estimator"] == IN_WINDOW or cfg["estimator"] == COUNT_MIN
    if not counts or cfg["streams"] != 2:
        return matches
    known = mem.moments(state)
    known[stream, 0] = known[stream, 0] * FADE + 1.0
    known[stream, 1] = known[stream, 1] * FADE + matches
    known[stream, 2] = known[stream, 2] * FADE + matches * matches
    mean = known[stream, 1] / known[stream, 0]
    beyond = known[stream, 2] / known[stream, 0] - mean * mean - mean
    if beyond <= NO_MORE * mean:
        return mean
    shape = mean * mean / beyond
    return mean * ((matches + shape) / (mean + shape))


@inlined
def weight_of(cfg, importance, matches):
    """The weight of a tuple on its arrival."""
    weight = importance * max(matches, cfg["floor"])
    if cfg["matches"] != 1.0:
        weight = weight ** cfg["matches"]
    return min(max(weight, LIGHTEST), HEAVIEST)


@inlined
def priority_of(state, stream, seq, weight):
    return weight / lot(state, stream, seq)


@kernel
def enter(cfg, state, x, weight):
    """A new tuple has its weight: it joins the kept part. Where there is none, it is sampled at once."""
    t = mem.pool(state, x)
    stream = int(t["stream"])
    mem.prio(state)[x] = weight
    if cfg["keep"] == 0.0:
        mem.since(state)[x] = state["evicted"]
        prio = priority_of(state, stream, storage.card(cfg, state, x)["seq"], weight)
        lazy_heap.push(state, stream, prio, 0.0, t["arrival"], x)
        return
    mem.since(state)[x] = KEPT
    state["kept_bytes"][stream] += t["bytes"] + cfg["row_bytes"]
    lazy_heap.push(state, _kept_heap(cfg, stream), weight, 0.0, t["arrival"], x)


@kernel
def leave(cfg, state, x, stream):
    """A tuple is about to go."""
    if mem.since(state)[x] == KEPT:
        state["kept_bytes"][stream] -= mem.pool(state, x)["bytes"] + cfg["row_bytes"]
        stream = _kept_heap(cfg, stream)
    lazy_heap.remove(state, stream, x)


@inlined
def _lowest(state, first, end):
    """(heap, tuple) of the lowest among some heaps; of equal ones the earlier arrival."""
    found, lowest, arrival, x = NONE, 0.0, 0, NONE
    for one in range(first, end):
        if state["heap_size"][one] == 0:
            continue
        lazy_heap.lead(state, one, False)
        top = mem.heap(state)[one, heap.TOP]
        if found == NONE or top["prio"] < lowest or (top["prio"] == lowest and top["arrival"] < arrival):
            found, lowest, arrival, x = one, top["prio"], top["arrival"], int(top["item"])
    return found, x


@inlined
def _begin_to_sample(cfg, state, x, stream):
    leave(cfg, state, x, stream)
    card = storage.card(cfg, state, x)
    mem.since(state)[x] = state["evicted"]
    prio = priority_of(state, stream, card["seq"], mem.prio(state)[x])
    lazy_heap.push(state, stream, prio, 0.0, mem.pool(state, x)["arrival"], x)


@kernel
def divide(cfg, state, memory):
    """Move the lowest weights of a memory to the sampled part, until the kept part has the size that it may have."""
    first, end = (memory, memory + 1) if cfg["memories"] > 1 else (0, cfg["streams"])
    room = int(cfg["keep"] * state["caps"][memory])
    while True:
        size, many = 0, 0
        for stream in range(first, end):
            many += state["heap_size"][_kept_heap(cfg, stream)]
            size += state["kept_bytes"][stream] if cfg["by_bytes"] else 0
        if many == 0 or (size if cfg["by_bytes"] else many) <= room:
            return
        found, x = _lowest(state, _kept_heap(cfg, first), _kept_heap(cfg, end))
        _begin_to_sample(cfg, state, x, found - cfg["streams"])


@kernel
def lowest(cfg, state, memory):
    """The tuple that a memory gives up next."""
    first, end = (memory, memory + 1) if cfg["memories"] > 1 else (0, cfg["streams"])
    return _lowest(state, first, end)[1]


@inlined
def _note(state, stream, stamp, prio):
    """Higher priorities that were evicted later make lower ones before them forgotten."""
    count = state["threshold_count"][stream]
    thresholds = mem.thresholds(state)
    while count > 0 and thresholds[stream, count - 1]["prio"] <= prio:
        count -= 1
    thresholds[stream, count]["stamp"] = stamp
    thresholds[stream, count]["prio"] = prio
    state["threshold_count"][stream] = count + 1


@kernel
def note_evicted(cfg, state, x):
    """A tuple is about to be evicted: its priority is a threshold for all tuples of its memory."""
    stream = int(mem.pool(state, x)["stream"])
    prio = mem.heap(state)[stream, mem.place(state)[x]]["prio"]
    if cfg["memories"] > 1:
        _note(state, stream, state["evicted"], prio)
    else:
        for one in range(cfg["streams"]):
            _note(state, one, state["evicted"], prio)


@inlined
def lacks_room(cfg, state):
    """Whether the next threshold might not fit."""
    for stream in range(cfg["streams"]):
        if state["threshold_count"][stream] == state["thresholds_room"]:
            return True
    return False


@kernel
def inverse(cfg, state, x, stream):
    """One divided by the probability with which a stored tuple is still there."""
    since = mem.since(state)[x]
    low, high = 0, state["threshold_count"][stream]
    if since == KEPT or high == 0:
        return 1.0
    thresholds = mem.thresholds(state)
    while low < high:  # the first that is not older
        middle = (low + high) >> 1
        if thresholds[stream, middle]["stamp"] < since:
            low = middle + 1
        else:
            high = middle
    if low == state["threshold_count"][stream]:
        return 1.0
    return max(1.0, thresholds[stream, low]["prio"] / mem.prio(state)[x])
