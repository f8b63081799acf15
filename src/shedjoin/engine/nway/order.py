"""How policies keep the tuples of an n-way join in order; engine.order for cells of n streams.

`enter` and `leave` follow a tuple, `reweigh` a cell whose chance or lowest tuple changed, `settle` gives new tuples their
priorities at the end of an instant, `lowest` names the tuple that a stream would give up.
"""

from __future__ import annotations

import math

from shedjoin.engine import front, heap, kinetic, pairing
from shedjoin.engine import mem as tuples
from shedjoin.engine.codes import CUMULATIVE, DECAYED, KEY, LIFE, PRODUCT, RANDOM, ROW, SCHEDULE, SUM, TUPLE
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.nway import mem
from shedjoin.engine.order import gain_of, raised
from shedjoin.engine.state import NONE


@inlined
def end_of_life(st, x):
    """What `base` is counted up to before the tuple expires."""
    stream, card = int(tuples.pool(st, x)["stream"]), mem.card(st, x)
    if st["kind"][stream] == ROW:
        return card["seq"] + st["window"][stream] + 1
    return card["ts"] + st["window"][stream]


@inlined
def _share_of_life(st, stream, end):
    return (end - st["base"][stream]) / st["window"][stream]


@inlined
def half_lives(how, st, time):
    """Decayed: a row of this time weighs 2 to the power of this."""
    return (time - st["t0"]) / how["half_life"] - how["fold_at"] * st["epoch"]


@kernel
def _newest(how, st):
    newest = st["clock"][0]
    for stream in range(1, how["streams"]):
        newest = max(newest, st["clock"][stream])
    return newest


@kernel
def current_matches(how, st, x):
    """Matches expected for a tuple, on the scale of counts."""
    if not how["weighed"]:
        return 0.0
    t = tuples.pool(st, x)
    found = mem.cells(st, t["slot"])["matches"]
    if how["estimator"] == DECAYED:
        return found * math.exp2(-st["factors"][t["stream"]] * half_lives(how, st, _newest(how, st)))
    return found


@inlined
def _rank(how, st, x):
    """The order of the tuples of one cell, and the first tie-break between cells."""
    if how["organisation"] == LIFE:
        return float(end_of_life(st, x))
    importance = mem.card(st, x)["importance"]
    if how["combine"] == PRODUCT:
        return importance
    age = how["life"] * (end_of_life(st, x) / st["window"][tuples.pool(st, x)["stream"]])
    if how["combine"] == SUM:
        return how["importance"] * importance + age
    return how["importance"] * math.log(importance) + age


@inlined
def _log_matches(how, matches):
    if how["matches"] == 0.0:
        return 0.0
    return how["matches"] * math.log(matches) if matches > 0.0 else -math.inf


@inlined
def _cell_priority(how, rank, weight):
    if how["combine"] == PRODUCT:
        return rank * weight
    if how["combine"] == SUM:
        return rank + how["matches"] * weight
    return rank + _log_matches(how, weight)


@inlined
def _reweigh_line(how, st, stream, cell):
    """A cell with tuples has a leaf in its stream's tournament. Low leaves are used first, so the tree stays compact."""
    leaves, place, entry = tuples.dense(st), tuples.place(st), mem.cells(st, cell)
    leaf = int(place[stream, cell])
    if entry["count"] > 0:
        if leaf == NONE:
            leaf = int(leaves[stream, st["heap_size"][stream]])
            st["heap_size"][stream] += 1
            place[stream, cell] = leaf
        tuples.leaf(st)[stream, leaf]["arrival"] = tuples.pool(st, entry["low"])["arrival"]
        tuples.leaf(st)[stream, leaf]["slot"] = cell
        kinetic.enter(st, stream, leaf, entry["matches"], end_of_life(st, int(entry["low"])))
    elif leaf != NONE:
        kinetic.leave(st, stream, leaf)
        place[stream, cell] = NONE
        st["heap_size"][stream] -= 1
        leaves[stream, st["heap_size"][stream]] = leaf


@kernel
def reweigh(how, st, cell):
    """Put a cell where its lowest tuple and its chance say."""
    if how["organisation"] != KEY and how["organisation"] != LIFE:
        return
    entry = mem.cells(st, cell)
    stream = int(entry["stream"])
    if how["organisation"] == LIFE:
        _reweigh_line(how, st, stream, cell)
        return
    place = tuples.place(st)[stream]
    if entry["count"] == 0:
        if place[cell] != NONE:
            heap.remove(tuples.heap(st)[stream], place, st["heap_size"][stream], cell)
            st["heap_size"][stream] -= 1
        return
    low = int(entry["low"])
    if low == NONE:
        return  # its first tuple is about to come in
    # Inside a cell of which the oldest is the lowest there are no ranks: the neutral element stands for them.
    neutral = 1.0 if how["combine"] == PRODUCT else 0.0
    rank = neutral if how["fifo"] else tuples.more(st, low)["rank"]
    prio = _cell_priority(how, rank, entry["matches"])
    arrival = tuples.pool(st, low)["arrival"]
    if place[cell] == NONE:
        heap.push(tuples.heap(st)[stream], place, st["heap_size"][stream], prio, rank, arrival, cell)
        st["heap_size"][stream] += 1
    else:
        heap.move(tuples.heap(st)[stream], place, st["heap_size"][stream], prio, rank, arrival, cell)


@kernel
def enter(how, st, x):
    """A tuple was stored (it is in its cell already)."""
    t = tuples.pool(st, x)
    stream = int(t["stream"])
    if how["organisation"] == KEY or how["organisation"] == LIFE:
        entry = mem.cells(st, t["slot"])
        if not how["fifo"]:
            tuples.more(st, x)["rank"] = _rank(how, st, x)
            tuples.more(st, x)["arrival"] = t["arrival"]
            entry["low"] = pairing.insert(st, int(entry["low"]), x)
        if entry["low"] == x:
            reweigh(how, st, int(t["slot"]))
    elif how["organisation"] == RANDOM:
        last = st["heap_size"][stream]
        tuples.dense(st)[stream, last] = x
        tuples.place(st)[stream, x] = last
        st["heap_size"][stream] = last + 1
    elif how["organisation"] == SCHEDULE:
        front.push(st, stream, schedule_of(st, x), 0.0, t["arrival"], x)


@inlined
def schedule_of(st, x):
    """When Replay lets a tuple go."""
    return float(mem.until(st)[mem.until_from(st)[tuples.pool(st, x)["stream"]] + mem.card(st, x)["seq"]])


@kernel
def leave(how, st, x):
    """A tuple is about to go (it is still in its cell)."""
    t = tuples.pool(st, x)
    stream = int(t["stream"])
    organisation = how["organisation"]
    if organisation == RANDOM:
        last = st["heap_size"][stream] - 1
        hole = tuples.place(st)[stream, x]
        moved = tuples.dense(st)[stream, last]
        tuples.dense(st)[stream, hole] = moved
        tuples.place(st)[stream, moved] = hole
        st["heap_size"][stream] = last
    elif organisation == TUPLE or organisation == CUMULATIVE or organisation == SCHEDULE:
        front.remove(st, stream, x)
    elif (organisation == KEY or organisation == LIFE) and not how["fifo"]:
        entry = mem.cells(st, t["slot"])
        entry["low"] = pairing.remove(st, int(entry["low"]), x)


@kernel
def _fixed_priority(how, st, x):
    importance = mem.card(st, x)["importance"]
    matches = current_matches(how, st, x)
    if how["combine"] == PRODUCT:
        return importance * matches
    share = _share_of_life(st, tuples.pool(st, x)["stream"], end_of_life(st, x))
    if how["combine"] == SUM:
        return how["importance"] * importance + how["matches"] * matches + how["life"] * share
    return how["importance"] * math.log(importance) + _log_matches(how, matches) + how["life"] * share


@kernel
def _gain(how, st, x):
    share = _share_of_life(st, tuples.pool(st, x)["stream"], end_of_life(st, x))
    return gain_of(how, mem.card(st, x)["importance"], current_matches(how, st, x), share)


@kernel
def _settle_cumulative(how, st, io):
    """A gain raises a priority, so the queue may lag behind: `front` looks priorities up where it matters.

    (One that falls has been rounded on the way: it is moved at once.)
    """
    for i in range(io["fresh"]):
        x = int(mem.out_fresh(io)[i])
        t, card = tuples.pool(st, x), mem.card(st, x)
        value = card["importance"]
        if t["met"]:
            value += _gain(how, st, x)
        value = math.log(value) + st["lift"]
        tuples.cumulated(st)[x] = value
        front.push(st, int(t["stream"]), value, card["importance"], t["arrival"], x)
    lift_before = st["lift"] + how["log_loss"]
    for i in range(st["touched_count"]):
        x = int(tuples.touched(st)[i])
        t = tuples.pool(st, x)
        t["met"] = 0
        if mem.card(st, x)["tick"] == st["tick"]:
            continue
        before = tuples.cumulated(st)[x]
        value = raised(before - lift_before, _gain(how, st, x)) + st["lift"]
        tuples.cumulated(st)[x] = value
        if value < before:
            front.move(st, int(t["stream"]), value, x)
    st["touched_count"] = 0


@kernel
def settle(how, st, io):
    """Priorities of the tuples that this instant brought or that had part in its output."""
    if how["organisation"] == TUPLE:
        for i in range(io["fresh"]):
            x = int(mem.out_fresh(io)[i])
            t = tuples.pool(st, x)
            front.push(
                st, int(t["stream"]), _fixed_priority(how, st, x), mem.card(st, x)["importance"], t["arrival"], x
            )
    elif how["organisation"] == CUMULATIVE:
        _settle_cumulative(how, st, io)


@kernel
def replay_all(st, stream):
    """LIFE: a stream's time went back."""
    kinetic.replay_all(st, stream)


@kernel
def lowest(how, st, stream):
    """(tuple, priority, arrival) that the stream would give up; tuple -1 when it has none."""
    if st["resident"][stream] == 0:
        return NONE, 0.0, 0
    if how["organisation"] == LIFE:
        final = kinetic.lowest(st, stream)
        leaf = tuples.leaf(st)[stream, final["winner"]]
        x = int(mem.cells(st, leaf["slot"])["low"])
        return x, final["weight"] * (final["end"] - st["base"][stream]), leaf["arrival"]
    if how["organisation"] != KEY:
        front.lead(st, stream, how["organisation"] == CUMULATIVE)
    top = tuples.heap(st)[stream, heap.TOP]
    if how["organisation"] == KEY:
        prio = top["prio"]
        if how["combine"] != PRODUCT:
            prio = prio - how["life"] * (st["base"][stream] / st["window"][stream])
        return int(mem.cells(st, top["item"])["low"]), prio, top["arrival"]
    return int(top["item"]), top["prio"], top["arrival"]


@inlined
def on_one_scale(how, st, stream, prio):
    """Decayed's weights carry a common factor; where streams have different numbers of weights it must go."""
    if how["estimator"] != DECAYED or st["started"] == 0 or st["factors"][stream] == st["factors"][0]:
        return prio
    if how["organisation"] != LIFE and not (how["organisation"] == KEY and how["combine"] == PRODUCT):
        return prio
    return prio * math.exp2(-(st["factors"][stream] - st["factors"][0]) * half_lives(how, st, _newest(how, st)))
