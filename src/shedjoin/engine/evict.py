"""Who goes when memory is short, and a look ahead at who will be next."""

from __future__ import annotations

import numpy as np

from shedjoin.engine import front, heap, kinetic, learn, mem, order, pairing
from shedjoin.engine.codes import CUMULATIVE, KEY, LEARNED, LIFE, RANDOM, SCHEDULE, TUPLE
from shedjoin.engine.forms import unless_plain
from shedjoin.engine.handle import STREAMS
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.state import NONE


@inlined
def used(how, st, group):
    """What counts against a group's cap."""
    held = st["stored_bytes"] if how["by_bytes"] else st["resident"]
    return held[group] if how["groups"] == STREAMS else held[0] + held[1]


@kernel
def lowest(how, st, group):
    """The tuple that a group gives up next."""
    if how["organisation"] == RANDOM:
        st["random"] = _next_random(st["random"])
        return _drawn(how, st, group, st["random"], 0)
    if how["estimator"] == LEARNED:
        for stream in range(STREAMS):
            if how["groups"] != STREAMS or stream == group:
                learn.look_before(how, st, stream)
    if how["groups"] == STREAMS:
        return order.lowest(how, st, group)[0]
    return lowest_of_all(how, st)


@kernel
def lowest_of_all(how, st):
    """The lowest of what the streams offer; on equal priority the earlier arrival."""
    lowest, lowest_prio, lowest_arrival = NONE, 0.0, 0
    for stream in range(STREAMS):
        x, prio, arrival = order.lowest(how, st, stream)
        if x != NONE and (lowest == NONE or prio < lowest_prio or (prio == lowest_prio and arrival < lowest_arrival)):
            lowest, lowest_prio, lowest_arrival = x, prio, arrival
    return lowest


@inlined
def _next_random(x):
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    return x


@inlined
def _draw(how, st, group, random, more):
    """(stream, place in its list) that a random number stands for, with `more` tuples than there are now."""
    unit = np.float64(np.int64(random >> np.uint64(11))) * 2.0**-53
    if how["groups"] == STREAMS:
        return group, int(unit * (st["resident"][group] + more))
    i = int(unit * (st["resident"][0] + st["resident"][1] + more))
    if i < st["resident"][0]:
        return 0, i
    return 1, i - st["resident"][0]


@inlined
def _drawn(how, st, group, random, more):
    stream, i = _draw(how, st, group, random, more)
    return int(mem.dense(st)[stream, i])


@inlined
def foresee_draws(how, st, group):
    """Ask for what the next four that lots fall on will need, each a step further than the one after it.

    The lots are known before they are drawn, and when a memory is full each draw is from one tuple more than it holds.
    """
    if how["organisation"] != RANDOM:
        return
    random = _next_random(st["random"])
    x = _drawn(how, st, group, random, 1)
    t = mem.pool(st, x)
    mem.fetch_shelf(st, mem.sides(st, t["slot"])["shelf"][t["stream"]])
    random = _next_random(random)
    x = _drawn(how, st, group, random, 1)
    _fetch_neighbours(st, x)
    mem.fetch_place(st, mem.pool(st, x)["stream"] * st["place_room"] + x)
    random = _next_random(random)
    mem.fetch_tuple(st, _drawn(how, st, group, random, 1))
    stream, i = _draw(how, st, group, _next_random(random), 1)
    mem.fetch_dense(st, stream * st["dense_room"] + i)


@inlined
def _fetch_neighbours(st, x):
    """What hangs on a tuple that is in the cache already."""
    t = mem.pool(st, x)
    mem.fetch_sides(st, t["slot"])
    mem.fetch_key(st, t["slot"])
    mem.fetch_shelf(st, t["place"])
    pairing.fetch_linked(st, x)
    if t["queued"] != NONE:
        mem.fetch_expiry(st, t["stream"] * st["expiry_room"] + t["queued"])


@unless_plain
@inlined
def foresee(how, st, step):
    """Ask, in three steps, for what the tuples on top of the heaps will need when they go (and bring them to date first)."""
    organisation = how["organisation"]
    of_tuples = organisation == TUPLE or organisation == CUMULATIVE or organisation == SCHEDULE
    if how["groups"] == 0 or not (of_tuples or organisation == KEY or organisation == LIFE):
        return
    for stream in range(STREAMS):
        if st["heap_size"][stream] == 0:
            continue
        if organisation == LIFE:
            _foresee_key(how, st, stream, kinetic.lowest_before(st, stream), step)
            continue
        if organisation == CUMULATIVE and step == 0:
            front.lead(st, stream, True)
        item = int(mem.heap(st)[stream, heap.TOP]["item"])
        if of_tuples:
            _foresee_tuple(st, item, step)
        else:
            _foresee_key(how, st, stream, item, step)
        if step == 2:
            _foresee_next(how, st, stream)


@inlined
def _foresee_next(how, st, stream):
    """Those below the top: one of them is likely to be the next."""
    for i in range(heap.TOP + 1, heap.TOP + min(5, st["heap_size"][stream])):
        item = mem.heap(st)[stream, i]["item"]
        if how["organisation"] == KEY:
            mem.fetch_sides(st, item)
        else:
            mem.fetch_tuple(st, item)
            if how["organisation"] == CUMULATIVE:
                mem.fetch_cumulated(st, item)


@inlined
def _foresee_tuple(st, x, step):
    if step == 0:
        mem.fetch_tuple(st, x)
    elif step == 1:
        _fetch_neighbours(st, x)
    else:
        t = mem.pool(st, x)
        mem.fetch_shelf(st, mem.sides(st, t["slot"])["shelf"][t["stream"]])


@inlined
def _foresee_key(how, st, stream, slot, step):
    if step == 0:
        mem.fetch_sides(st, slot)
        return
    x = order.lowest_of_key(how, st, stream, slot)
    if step == 1:
        mem.fetch_tuple(st, x)
        pairing.fetch(st, x)
        mem.fetch_shelf(st, mem.sides(st, slot)["shelf"][stream])
    else:
        _fetch_neighbours(st, x)
        if how["fifo"]:
            _fetch_second(st, stream, slot)


@inlined
def _fetch_second(st, stream, slot):
    """The tuple that will be the oldest of its key when the oldest is gone."""
    side = mem.sides(st, slot)
    if side["span"][stream] > 1:
        at = (side["first"][stream] + 1) & (side["room"][stream] - 1)
        mem.fetch_tuple(st, mem.shelf(st, side["shelf"][stream] + at)["item"])
