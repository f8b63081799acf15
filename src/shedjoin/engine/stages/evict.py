"""Choose the tuples to evict, and prefetch what the next ones will need."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import CUMULATIVE, KEY, LEARNED, LIFE, RANDOM, SCHEDULE, TUPLE
from shedjoin.engine.forms import in_pairs, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import learned, priority
from shedjoin.engine.stages.lots import next_random, unit_of
from shedjoin.engine.structures import heap, kinetic_tournament, lazy_heap, pairing_heap

#: How often the lowest tuple is weighed again before one goes.
TRIES = 4


@inlined
def _stored(how, st, stream):
    return st["stored_bytes"][stream] if how["by_bytes"] else st["resident"][stream]


@in_pairs(_stored)
@inlined
def _held(how, st, stream):
    """What a stream takes of its memory: what is stored, and, where the queue shares it, what waits."""
    held = _stored(how, st, stream)
    if how["integrated"]:
        held += st["queued_bytes"][stream] if how["by_bytes"] else st["queued_rows"][stream]
    return held


@inlined
def used(how, st, memory):
    """What counts against the cap of a memory."""
    if how["memories"] > 1:
        return _held(how, st, memory)
    total = 0
    for stream in range(how["streams"]):
        total += _held(how, st, stream)
    return total


@kernel
def lowest(how, st, memory):
    """The tuple that a memory gives up next."""
    if how["organisation"] == RANDOM:
        st["random"] = next_random(st["random"])
        return _drawn(how, st, memory, st["random"], 0)
    if how["estimator"] == LEARNED:
        for stream in range(how["streams"]):
            if how["memories"] <= 1 or stream == memory:
                learned.look_before(how, st, stream)
    return _weighed_again(how, st, memory)


@inlined
def _as_weighed(how, st, memory):
    if how["memories"] > 1:
        return priority.lowest(how, st, memory)[0]
    return lowest_of_all(how, st)


@in_pairs(_as_weighed)
@kernel
def _weighed_again(how, st, memory):
    """A tuple that is a group is weighed again before it goes, and stays if it has risen: a few times for each victim."""
    x = _as_weighed(how, st, memory)
    if how["alone"] and how["weighed"] and (how["organisation"] == KEY or how["organisation"] == LIFE):
        tries = 1
        while priority.has_risen(how, st, x):
            x = _as_weighed(how, st, memory)
            if tries == TRIES:
                break
            tries += 1
    return x


@kernel
def lowest_of_all(how, st):
    """The lowest of what the streams offer; on equal priority the earlier arrival."""
    lowest, lowest_prio, lowest_arrival = NONE, 0.0, 0
    for stream in range(how["streams"]):
        x, prio, arrival = priority.lowest(how, st, stream)
        prio = priority.on_one_scale(how, st, stream, prio)
        if x != NONE and (lowest == NONE or prio < lowest_prio or (prio == lowest_prio and arrival < lowest_arrival)):
            lowest, lowest_prio, lowest_arrival = x, prio, arrival
    return lowest


@inlined
def _place_in_pair(how, st, i):
    if i < st["resident"][0]:
        return 0, i
    return 1, i - st["resident"][0]


@in_pairs(_place_in_pair)
@inlined
def _place_in_all(how, st, i):
    """(stream, place in its list) of the i-th stored tuple; behind the end, the last list goes on."""
    stream = 0
    while stream < how["streams"] - 1 and i >= st["resident"][stream]:
        i -= st["resident"][stream]
        stream += 1
    return stream, i


@inlined
def _draw(how, st, memory, random, more):
    """(stream, place in its list) that a random number stands for, with `more` tuples than there are now."""
    unit = unit_of(random)
    if how["memories"] > 1:
        return memory, int(unit * (st["resident"][memory] + more))
    total = more
    for stream in range(how["streams"]):
        total += st["resident"][stream]
    return _place_in_all(how, st, int(unit * total))


@inlined
def _drawn(how, st, memory, random, more):
    stream, i = _draw(how, st, memory, random, more)
    return int(mem.dense(st)[stream, i])


@inlined
def foresee_draws(how, st, memory):
    """Prefetch what the next four victims of RAND will need, each a step further than the one after it.

    The draws are known beforehand, and when a memory is full each is from one tuple more than it holds.
    """
    if how["organisation"] != RANDOM:
        return
    random = next_random(st["random"])
    x = _drawn(how, st, memory, random, 1)
    mem.fetch_entry(st, mem.buckets(st, mem.pool(st, x)["group"])["base"])
    random = next_random(random)
    x = _drawn(how, st, memory, random, 1)
    _fetch_neighbours(st, x)
    mem.fetch_place(st, x)
    random = next_random(random)
    mem.fetch_tuple(st, _drawn(how, st, memory, random, 1))
    stream, i = _draw(how, st, memory, next_random(random), 1)
    mem.fetch_dense(st, stream * st["dense_room"] + i)


@inlined
def _fetch_neighbours(st, x):
    """What hangs on a tuple that is in the cache already."""
    t = mem.pool(st, x)
    mem.fetch_bucket(st, t["group"])
    mem.fetch_entry(st, t["place"])
    pairing_heap.fetch_linked(st, x)
    if t["queued"] != NONE:
        mem.fetch_expiry(st, t["stream"] * st["expiry_room"] + t["queued"])


@unless_plain
@inlined
def foresee(how, st, step):
    """Prefetch, in three steps, what the tuples on top of the heaps will need when they go (and bring them up to date)."""
    organisation = how["organisation"]
    of_tuples = organisation == TUPLE or organisation == CUMULATIVE or organisation == SCHEDULE
    if how["memories"] == 0 or not (of_tuples or organisation == KEY or organisation == LIFE):
        return
    for stream in range(how["streams"]):
        if st["heap_size"][stream] == 0:
            continue
        if organisation == LIFE:
            _foresee_group(how, st, kinetic_tournament.lowest_before(st, stream), step)
            continue
        if organisation == CUMULATIVE and step == 0:
            lazy_heap.lead(st, stream, True)
        item = int(mem.heap(st)[stream, heap.TOP]["item"])
        if of_tuples:
            _foresee_tuple(st, item, step)
        else:
            _foresee_group(how, st, item, step)
        if step == 2:
            _foresee_next(how, st, stream)


@inlined
def _foresee_next(how, st, stream):
    """Those below the top: one of them is likely to be the next."""
    for i in range(heap.TOP + 1, heap.TOP + min(5, st["heap_size"][stream])):
        item = mem.heap(st)[stream, i]["item"]
        if how["organisation"] == KEY:
            mem.fetch_bucket(st, item)
        else:
            mem.fetch_tuple(st, item)
            if how["organisation"] == CUMULATIVE:
                mem.fetch_prio(st, item)


@inlined
def _foresee_tuple(st, x, step):
    if step == 0:
        mem.fetch_tuple(st, x)
    elif step == 1:
        _fetch_neighbours(st, x)
    else:
        mem.fetch_entry(st, mem.buckets(st, mem.pool(st, x)["group"])["base"])


@inlined
def _foresee_group(how, st, g, step):
    if step == 0:
        mem.fetch_bucket(st, g)
        return
    x = int(mem.buckets(st, g)["low"])
    if step == 1:
        mem.fetch_tuple(st, x)
        pairing_heap.fetch(st, x)
        mem.fetch_entry(st, mem.buckets(st, g)["base"])
    else:
        _fetch_neighbours(st, x)
        if how["fifo"]:
            _fetch_second(st, g)


@inlined
def _fetch_second_of_pair(st, g):
    b = mem.buckets(st, g)
    if b["span"] > 1:
        at = (b["first"] + 1) & (b["room"] - 1)
        mem.fetch_tuple(st, mem.entries(st, b["base"] + at)["item"])


@in_pairs(_fetch_second_of_pair)
@inlined
def _fetch_second(st, g):
    """The tuple that will be the oldest of its group when the oldest is gone; join graphs do not keep it at hand."""
