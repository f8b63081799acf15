"""How policies keep their tuples in order, so that the lowest is found without a scan of the memory.

`enter` and `leave` follow a tuple, `reweigh` follows a changed estimate, `settle` gives new tuples their priorities at
the end of an instant, `lowest` names the tuple that a stream would give up.
"""

from __future__ import annotations

import math

from shedjoin.engine import front, heap, kinetic, mem, pairing, shelf
from shedjoin.engine.codes import (
    CUMULATIVE,
    DECAYED,
    KEY,
    LEARNED,
    LIFE,
    PRODUCT,
    RANDOM,
    ROW,
    SCHEDULE,
    SUM,
    TIME,
    TUPLE,
)
from shedjoin.engine.forms import unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.state import NONE

# Where `model` has how many rows a stream had lately: see learn.py, which builds on this file.
LATELY = 2
# Learned chances are weighed in steps: so many to a factor of e.
STEPS = 8.0


@inlined
def window_kind(how, stream):
    return how["kind0"] if stream == 0 else how["kind1"]


@inlined
def window_size(how, stream):
    return how["size0"] if stream == 0 else how["size1"]


@inlined
def reach(how, stream):
    """How far back in time a stream's tuples are met; a window of rows lets everything pass that is stored."""
    return window_size(how, stream) if window_kind(how, stream) == TIME else 2**62


@inlined
def end_of_life(how, stream, ts, seq):
    """What `State.base` is counted up to before the tuple expires."""
    size = window_size(how, stream)
    return seq + size + 1 if window_kind(how, stream) == ROW else ts + size


@inlined
def _share_of_life(how, st, stream, end):
    return (end - st["base"][stream]) / window_size(how, stream)


@inlined
def half_lives(how, st, time):
    """Decayed: a row of this time weighs 2 to the power of this."""
    return (time - st["t0"]) / how["half_life"] - 512.0 * st["epoch"]


@inlined
def current_matches(how, st, stream, slot):
    """Matches expected for a tuple of `stream`, on the scale of counts."""
    if how["estimator"] == DECAYED:
        return mem.mass(st)[1 - stream, slot] * math.exp2(-half_lives(how, st, max(st["clock"][0], st["clock"][1])))
    return mem.sides(st, slot)["weight"][1 - stream]


@inlined
def rank_of(how, stream, importance, ts, seq):
    """The order of the tuples of one key, and the first tie-break between keys."""
    if how["organisation"] == LIFE:
        return float(end_of_life(how, stream, ts, seq))
    if how["combine"] == PRODUCT:
        return importance
    age = how["life"] * (end_of_life(how, stream, ts, seq) / window_size(how, stream))
    if how["combine"] == SUM:
        return how["importance"] * importance + age
    return how["importance"] * math.log(importance) + age


@inlined
def _log_matches(how, matches):
    if how["matches"] == 0.0:
        return 0.0
    return how["matches"] * math.log(matches) if matches > 0.0 else -math.inf


@inlined
def _key_priority(how, rank, weight):
    if how["combine"] == PRODUCT:
        return rank * weight
    if how["combine"] == SUM:
        return rank + how["matches"] * weight
    return rank + _log_matches(how, weight)


@inlined
def lowest_of_key(how, st, stream, slot):
    """The tuple that a key would give up first."""
    return int(mem.sides(st, slot)["low"][stream])


@inlined
def _reweigh_line(how, st, stream, slot, present, low):
    """A key with tuples has a leaf in its stream's tournament. Low leaves are used first, so the tree stays compact."""
    leaves, place = mem.dense(st), mem.place(st)
    leaf = int(place[stream, slot])
    if present:
        if leaf == NONE:
            leaf = int(leaves[stream, st["heap_size"][stream]])
            st["heap_size"][stream] += 1
            place[stream, slot] = leaf
        mem.leaf(st)[stream, leaf]["arrival"] = mem.pool(st, low)["arrival"]
        mem.leaf(st)[stream, leaf]["slot"] = slot
        card = shelf.of(st, low)
        end = end_of_life(how, stream, card["ts"], card["seq"])
        kinetic.enter(st, stream, leaf, mem.sides(st, slot)["weight"][1 - stream], end)
    elif leaf != NONE:
        kinetic.leave(st, stream, leaf)
        place[stream, slot] = NONE
        st["heap_size"][stream] -= 1
        leaves[stream, st["heap_size"][stream]] = leaf


@unless_plain
@kernel
def reweigh(how, st, stream, slot):
    """Put a key where its lowest tuple and its weight say."""
    if how["organisation"] != KEY and how["organisation"] != LIFE:
        return
    side = mem.sides(st, slot)
    present = side["count"][stream] > 0
    low = lowest_of_key(how, st, stream, slot)
    if how["organisation"] == LIFE:
        _reweigh_line(how, st, stream, slot, present, low)
        return
    place = mem.place(st)[stream]
    if not present:
        if place[slot] != NONE:
            heap.remove(mem.heap(st)[stream], place, st["heap_size"][stream], slot)
            st["heap_size"][stream] -= 1
        return
    # Inside a key of which the oldest is the lowest there are no ranks: the neutral element stands for them.
    neutral = 1.0 if how["combine"] == PRODUCT else 0.0
    rank = neutral if how["fifo"] else mem.more(st, low)["rank"]
    arrival = mem.pool(st, low)["arrival"] if how["fifo"] else mem.more(st, low)["arrival"]
    prio = _key_priority(how, rank, side["weight"][1 - stream])
    if place[slot] == NONE:
        heap.push(mem.heap(st)[stream], place, st["heap_size"][stream], prio, rank, arrival, slot)
        st["heap_size"][stream] += 1
    else:
        heap.move(mem.heap(st)[stream], place, st["heap_size"][stream], prio, rank, arrival, slot)


@unless_plain
@inlined
def rebase(how, st, stream, before):
    """LIFE: what life is counted from has gone back, and matches were played by what it was."""
    if how["organisation"] == LIFE and st["base"][stream] < before:
        kinetic.replay_all(st, stream)


@unless_plain
@inlined
def enter(how, st, x, stream, slot, ts, seq, importance):
    """A tuple was stored (it is on its key's shelf already, but what was just written is slow to read)."""
    if how["organisation"] == KEY or how["organisation"] == LIFE:
        if not how["fifo"]:
            mem.more(st, x)["rank"] = rank_of(how, stream, importance, ts, seq)
            mem.more(st, x)["arrival"] = st["arrival"]
            low = mem.sides(st, slot)["low"]
            low[stream] = pairing.insert(st, int(low[stream]), x)
        if lowest_of_key(how, st, stream, slot) == x:
            reweigh(how, st, stream, slot)
    elif how["organisation"] == RANDOM:
        last = st["heap_size"][stream]
        mem.dense(st)[stream, last] = x
        mem.place(st)[stream, x] = last
        st["heap_size"][stream] = last + 1
    elif how["organisation"] == SCHEDULE:
        until = mem.until0(st) if stream == 0 else mem.until1(st)
        front.push(st, stream, float(until[seq]), 0.0, st["arrival"], x)


@unless_plain
@inlined
def leave(how, st, x, stream):
    """A tuple is about to go (it is still on its key's shelf)."""
    organisation = how["organisation"]
    if organisation == RANDOM:
        last = st["heap_size"][stream] - 1
        hole = mem.place(st)[stream, x]
        moved = mem.dense(st)[stream, last]
        mem.dense(st)[stream, hole] = moved
        mem.place(st)[stream, moved] = hole
        st["heap_size"][stream] = last
    elif organisation == TUPLE or organisation == CUMULATIVE or organisation == SCHEDULE:
        front.remove(st, stream, x)
    elif (organisation == KEY or organisation == LIFE) and not how["fifo"]:
        low = mem.sides(st, mem.pool(st, x)["slot"])["low"]
        low[stream] = pairing.remove(st, int(low[stream]), x)


@kernel
def fixed_priority(how, st, x):
    card = shelf.of(st, x)
    stream = int(mem.pool(st, x)["stream"])
    importance = card["importance"]
    matches = current_matches(how, st, stream, int(mem.pool(st, x)["slot"]))
    if how["combine"] == PRODUCT:
        return importance * matches
    share = _share_of_life(how, st, stream, end_of_life(how, stream, card["ts"], card["seq"]))
    if how["combine"] == SUM:
        return how["importance"] * importance + how["matches"] * matches + how["life"] * share
    return how["importance"] * math.log(importance) + _log_matches(how, matches) + how["life"] * share


@inlined
def _power(base, exponent):
    return base if exponent == 1.0 else base**exponent


@inlined
def gain_of(how, importance, matches, share):
    """What an instant with output adds to a cumulative priority."""
    if share <= 0.0:
        return 0.0  # it arrived outside its window and is about to go
    gain = (
        how["gain"]
        * _power(importance, how["importance"])
        * _power(matches, how["matches"])
        * _power(share, how["life"])
    )
    return gain if gain == gain else 0.0  # one factor is 0, and another beyond the range of floats


@inlined
def _gain(how, st, stream, slot, importance, end):
    return gain_of(how, importance, current_matches(how, st, stream, slot), _share_of_life(how, st, stream, end))


@kernel
def _settle_fresh(how, st, x):
    t, card = mem.pool(st, x), shelf.of(st, x)
    stream, slot = int(t["stream"]), int(t["slot"])
    value = card["importance"]
    if t["met"]:
        end = end_of_life(how, stream, card["ts"], card["seq"])
        value += _gain(how, st, stream, slot, card["importance"], end)
    value = math.log(value) + st["lift"]
    mem.cumulated(st)[x] = value
    front.push(st, stream, value, card["importance"], t["arrival"], x)


@inlined
def touch(st, stream, slot):
    """Note a key of which tuples of a stream were met."""
    mem.touched(st)[st["touched_count"]] = 2 * slot + stream
    st["touched_count"] += 1


@inlined
def _settle_met(how, st, stream, slot, ts, new):
    """The tuples of a key that were met, those of this instant (from row `new` on) apart, gain.

    A gain raises a priority, so the queue may lag behind: `front` looks priorities up where it matters. (One that
    falls has been rounded on the way: it is moved at once.)
    """
    back, ahead = reach(how, stream), reach(how, 1 - stream)
    lift = st["lift"]
    lift_before = lift + how["log_loss"]
    side = mem.sides(st, slot)
    base, first, last_place = int(side["shelf"][stream]), int(side["first"][stream]), int(side["room"][stream]) - 1
    for k in range(side["span"][stream]):
        card = mem.shelf(st, base + ((first + k) & last_place))
        x = int(card["item"])
        if x == NONE:
            continue
        apart = ts - card["ts"]
        if card["seq"] >= new or -apart >= ahead + how["lateness"]:
            break  # later ones are new as well, or too far ahead
        if apart < back and -apart < ahead:
            end = end_of_life(how, stream, card["ts"], card["seq"])
            before = mem.cumulated(st)[x]
            value = raised(before - lift_before, _gain(how, st, stream, slot, card["importance"], end)) + lift
            mem.cumulated(st)[x] = value
            if value < before:
                front.move(st, stream, value, x)


@kernel
def _settle_cumulative(how, st, io, ts):
    for i in range(io["fresh"]):
        _settle_fresh(how, st, mem.out_fresh(io, i))
    for i in range(st["touched_count"]):
        touched = int(mem.touched(st)[i])
        _settle_met(how, st, touched & 1, touched >> 1, ts, io["old_seq"][touched & 1])
    st["touched_count"] = 0


@inlined
def set_lift(how, st):
    """What was not part of an output loses the same share of its priority every instant: all others are lifted instead.

    Priorities are kept as logs, so that a lift is a sum, and never grows out of the range of floats.
    """
    if how["organisation"] == CUMULATIVE:
        st["lift"] = (st["lift_tick"] - st["tick"]) * how["log_loss"]


@inlined
def raised(log_priority, gain):
    """The log of a priority that gains; of one too small for a float, and without a gain, it stays."""
    total = math.exp(log_priority) + gain
    return math.log(total) if total > 0.0 else log_priority


@kernel
def _multiply_heaps(st, factor):
    for stream in range(2):
        for i in range(st["heap_size"][stream]):
            mem.heap(st)[stream, heap.TOP + i]["prio"] *= factor
        # What differed may be equal now: both may have become 0.
        heap.rebuild(mem.heap(st)[stream], mem.place(st)[stream], st["heap_size"][stream])


@unless_plain
@inlined
def settle(how, st, io, ts):
    """Priorities of the tuples that this instant brought or that had part in its output."""
    if how["organisation"] == TUPLE:
        for i in range(io["fresh"]):
            x = mem.out_fresh(io, i)
            t = mem.pool(st, x)
            front.push(st, int(t["stream"]), fixed_priority(how, st, x), shelf.of(st, x)["importance"], t["arrival"], x)
    elif how["organisation"] == CUMULATIVE:
        _settle_cumulative(how, st, io, ts)


@inlined
def _steps_between(st):
    """How many steps more often the right stream brings rows than the left."""
    model = mem.model(st)
    return math.floor(STEPS * math.log((model[1, LATELY] + 0.5) / (model[0, LATELY] + 0.5)) + 0.5)


@kernel
def lowest(how, st, stream):
    """(tuple, priority, arrival) that the stream would give up; tuple -1 when it has none."""
    if st["resident"][stream] == 0:
        return NONE, 0.0, 0
    if how["organisation"] == LIFE:
        final = kinetic.lowest(st, stream)
        leaf = mem.leaf(st)[stream, final["winner"]]
        x = lowest_of_key(how, st, stream, leaf["slot"])
        return x, final["weight"] * (final["end"] - st["base"][stream]), leaf["arrival"]
    if how["organisation"] != KEY:
        front.lead(st, stream, how["organisation"] == CUMULATIVE)
    top = mem.heap(st)[stream, heap.TOP]
    if how["organisation"] == KEY:
        x = lowest_of_key(how, st, stream, top["item"])
        prio = top["prio"]
        if how["combine"] != PRODUCT:
            prio = prio - how["life"] * (st["base"][stream] / window_size(how, stream))
        if how["estimator"] == LEARNED:  # chances of a row: they count as often as rows of the other stream come
            prio += _steps_between(st) if stream == 0 else 0.0
        return x, prio, top["arrival"]
    return top["item"], top["prio"], top["arrival"]


@kernel
def rescale(how, st, factor):
    """Decayed's weights were all multiplied by a power of two: so are the priorities made of them."""
    if how["organisation"] == KEY and how["combine"] == PRODUCT:
        _multiply_heaps(st, factor)
    elif how["organisation"] == LIFE:
        for stream in range(2):
            kinetic.scale_all(st, stream, factor)
            kinetic.replay_all(st, stream)
