"""Choose the tuples to evict, and prefetch what the next ones will need."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import CUMULATIVE, KEY, LEARNED, LIFE, RANDOM, SAMPLE, SCHEDULE, TUPLE
from shedjoin.engine.forms import in_pairs, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import learned, priority, sampling
from shedjoin.engine.stages.lots import next_random, unit_of
from shedjoin.engine.structures import heap, kinetic_tournament, lazy_heap, pairing_heap

#: How often the lowest tuple is weighed again before one goes.
TRIES = 4


@inlined
def _stored(cfg, state, stream):
    return state["stored_bytes"][stream] if cfg["by_bytes"] else state["resident"][stream]


@in_pairs(_stored)
@inlined
def _held(cfg, state, stream):
    """What a stream takes of its memory: what is stored, and, where the queue shares it, what waits."""
    held = _stored(cfg, state, stream)
    if cfg["integrated"]:
        rows = state["queued_rows"][stream]
        held += state["queued_bytes"][stream] + cfg["row_bytes"] * rows if cfg["by_bytes"] else rows
    return held


@inlined
def used(cfg, state, memory):
    """What counts against the cap of a memory."""
    if cfg["memories"] > 1:
        return _held(cfg, state, memory)
    total = 0
    for stream in range(cfg["streams"]):
        total += _held(cfg, state, stream)
    return total


@kernel
def lowest(cfg, state, memory):
    """The tuple that a memory gives up next."""
    if cfg["organisation"] == RANDOM:
        state["random"] = next_random(state["random"])
        return _drawn(cfg, state, memory, state["random"], 0)
    if cfg["organisation"] == SAMPLE:
        return sampling.lowest(cfg, state, memory)
    if cfg["estimator"] == LEARNED:
        for stream in range(cfg["streams"]):
            if cfg["memories"] <= 1 or stream == memory:
                learned.look_before(cfg, state, stream)
    return _weighed_again(cfg, state, memory)


@inlined
def _as_weighed(cfg, state, memory):
    if cfg["memories"] > 1:
        return priority.lowest(cfg, state, memory)[0]
    return lowest_of_all(cfg, state)


@in_pairs(_as_weighed)
@kernel
def _weighed_again(cfg, state, memory):
    """A tuple that is a group is weighed again before it goes, and stays if it has risen: a few times for each victim."""
    x = _as_weighed(cfg, state, memory)
    if cfg["alone"] and cfg["weighed"] and (cfg["organisation"] == KEY or cfg["organisation"] == LIFE):
        tries = 1
        while priority.has_risen(cfg, state, x):
            x = _as_weighed(cfg, state, memory)
            if tries == TRIES:
                break
            tries += 1
    return x


@kernel
def lowest_of_all(cfg, state):
    """The lowest of what the streams offer; on equal priority the earlier arrival."""
    lowest, lowest_prio, lowest_arrival = NONE, 0.0, 0
    for stream in range(cfg["streams"]):
        x, prio, arrival = priority.lowest(cfg, state, stream)
        prio = priority.on_one_scale(cfg, state, stream, prio)
        if x != NONE and (lowest == NONE or prio < lowest_prio or (prio == lowest_prio and arrival < lowest_arrival)):
            lowest, lowest_prio, lowest_arrival = x, prio, arrival
    return lowest


@inlined
def _place_in_pair(cfg, state, i):
    if i < state["resident"][0]:
        return 0, i
    return 1, i - state["resident"][0]


@in_pairs(_place_in_pair)
@inlined
def _place_in_all(cfg, state, i):
    """(stream, place in its list) of the i-th stored tuple; behind the end, the last list goes on."""
    stream = 0
    while stream < cfg["streams"] - 1 and i >= state["resident"][stream]:
        i -= state["resident"][stream]
        stream += 1
    return stream, i


@inlined
def _draw(cfg, state, memory, random, more):
    """(stream, place in its list) that a random number stands for, with `more` tuples than there are now."""
    unit = unit_of(random)
    if cfg["memories"] > 1:
        return memory, int(unit * (state["resident"][memory] + more))
    total = more
    for stream in range(cfg["streams"]):
        total += state["resident"][stream]
    return _place_in_all(cfg, state, int(unit * total))


@inlined
def _drawn(cfg, state, memory, random, more):
    stream, i = _draw(cfg, state, memory, random, more)
    return int(mem.dense(state)[stream, i])


@inlined
def foresee_draws(cfg, state, memory):
    """Prefetch what the next four victims of RAND will need, each a step further than the one after it.

    The draws are known beforehand, and when a memory is full each is from one tuple more than it holds.
    """
    if cfg["organisation"] != RANDOM:
        return
    random = next_random(state["random"])
    x = _drawn(cfg, state, memory, random, 1)
    mem.fetch_entry(state, mem.buckets(state, mem.pool(state, x)["group"])["base"])
    random = next_random(random)
    x = _drawn(cfg, state, memory, random, 1)
    _fetch_neighbours(state, x)
    mem.fetch_place(state, x)
    random = next_random(random)
    mem.fetch_tuple(state, _drawn(cfg, state, memory, random, 1))
    stream, i = _draw(cfg, state, memory, next_random(random), 1)
    mem.fetch_dense(state, stream * state["dense_room"] + i)


@inlined
def _fetch_neighbours(state, x):
    """What hangs on a tuple that is in the cache already."""
    t = mem.pool(state, x)
    mem.fetch_bucket(state, t["group"])
    mem.fetch_entry(state, t["place"])
    pairing_heap.fetch_linked(state, x)
    if t["queued"] != NONE:
        mem.fetch_expiry(state, t["stream"] * state["expiry_room"] + t["queued"])


@unless_plain
@inlined
def foresee(cfg, state, step):
    """Prefetch, in three steps, what the tuples on top of the heaps will need when they go (and bring them up to date)."""
    organisation = cfg["organisation"]
    of_tuples = (
        organisation == TUPLE or organisation == CUMULATIVE or organisation == SCHEDULE or organisation == SAMPLE
    )
    if cfg["memories"] == 0 or not (of_tuples or organisation == KEY or organisation == LIFE):
        return
    for stream in range(cfg["streams"]):
        if state["heap_size"][stream] == 0:
            continue
        if organisation == LIFE:
            _foresee_group(cfg, state, kinetic_tournament.lowest_before(state, stream), step)
            continue
        if organisation == CUMULATIVE and step == 0:
            lazy_heap.lead(state, stream, True)
        item = int(mem.heap(state)[stream, heap.TOP]["item"])
        if of_tuples:
            _foresee_tuple(state, item, step)
        else:
            _foresee_group(cfg, state, item, step)
        if step == 2:
            _foresee_next(cfg, state, stream)


@inlined
def _foresee_next(cfg, state, stream):
    """Those below the top: one of them is likely to be the next."""
    for i in range(heap.TOP + 1, heap.TOP + min(5, state["heap_size"][stream])):
        item = mem.heap(state)[stream, i]["item"]
        if cfg["organisation"] == KEY:
            mem.fetch_bucket(state, item)
        else:
            mem.fetch_tuple(state, item)
            if cfg["organisation"] == CUMULATIVE:
                mem.fetch_prio(state, item)


@inlined
def _foresee_tuple(state, x, step):
    if step == 0:
        mem.fetch_tuple(state, x)
    elif step == 1:
        _fetch_neighbours(state, x)
    else:
        mem.fetch_entry(state, mem.buckets(state, mem.pool(state, x)["group"])["base"])


@inlined
def _foresee_group(cfg, state, g, step):
    if step == 0:
        mem.fetch_bucket(state, g)
        return
    x = int(mem.buckets(state, g)["low"])
    if step == 1:
        mem.fetch_tuple(state, x)
        pairing_heap.fetch(state, x)
        mem.fetch_entry(state, mem.buckets(state, g)["base"])
    else:
        _fetch_neighbours(state, x)
        if cfg["fifo"]:
            _fetch_second(state, g)


@inlined
def _fetch_second_of_pair(state, g):
    b = mem.buckets(state, g)
    if b["span"] > 1:
        at = (b["first"] + 1) & (b["room"] - 1)
        mem.fetch_tuple(state, mem.entries(state, b["base"] + at)["item"])


@in_pairs(_fetch_second_of_pair)
@inlined
def _fetch_second(state, g):
    """The tuple that will be the oldest of its group when the oldest is gone; join graphs do not keep it at hand."""
