"""How policies keep their tuples in order, so that the lowest is found without a scan of the memory.

`enter` and `leave` follow a tuple, `reweigh` follows a changed estimate, `settle` gives new tuples their priorities at
the end of an instant, `lowest` names the tuple that a stream would give up.
"""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.codes import (
    CUMULATIVE,
    DECAYED,
    KEY,
    LEARNED,
    LIFE,
    PRODUCT,
    RANDOM,
    SCHEDULE,
    SUM,
    TUPLE,
)
from shedjoin.engine.forms import in_pairs, only_many, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import GONE, NONE
from shedjoin.engine.stages import chances
from shedjoin.engine.stages.times import end_of_life, half_lives, newest, number_of, reach
from shedjoin.engine.structures import heap, kinetic_tournament, lazy_heap, pairing_heap

# Where `model` has how many rows a stream brought recently: see learn.py, which builds on this file.
LATELY = 2
# Learned chances are weighed in steps: this many to a factor of e.
STEPS = 8.0


@inlined
def _share_of_life(how, st, stream, end):
    return (end - st["base"][stream]) / mem.window_size(how, stream)


@kernel
def matches(how, st, stream, g):
    """Matches expected for a tuple of a group, on the scale of counts."""
    if how["weighed"] == 0:
        return 0.0
    found = chances.current(how, st, stream, g)
    if how["estimator"] == DECAYED:
        return found * math.exp2(-mem.factors(how, stream) * half_lives(how, st, newest(how, st)))
    return found


@inlined
def _importance(how, st, importance):
    return importance


@in_pairs(_importance)
@inlined
def _factor(how, st, importance):
    """What a tuple's importance adds to a product: nothing where the policy does not ask for it."""
    return importance if how["importance"] != 0.0 else 1.0


@inlined
def rank_of(how, st, stream, importance, ts, seq):
    """The order of the tuples of one group, and the first tie-break between groups."""
    if how["organisation"] == LIFE:
        return float(end_of_life(how, stream, ts, seq))
    if how["combine"] == PRODUCT:
        return _factor(how, st, importance)
    age = how["life"] * (end_of_life(how, stream, ts, seq) / mem.window_size(how, stream))
    if how["combine"] == SUM:
        return how["importance"] * importance + age
    return how["importance"] * math.log(importance) + age


@inlined
def _log_matches(how, matches):
    if how["matches"] == 0.0:
        return 0.0
    return how["matches"] * math.log(matches) if matches > 0.0 else -math.inf


@inlined
def group_priority(how, rank, weight):
    if how["combine"] == PRODUCT:
        return rank * weight
    if how["combine"] == SUM:
        return rank + how["matches"] * weight
    return rank + _log_matches(how, weight)


@inlined
def _reweigh_line(how, st, stream, g, present, low):
    """A group with tuples has a leaf in its stream's tournament. Low leaves are used first, so the tree stays compact."""
    leaves, place = mem.dense(st), mem.place(st)
    leaf = int(place[g])
    if present:
        if leaf == NONE:
            leaf = int(leaves[stream, st["heap_size"][stream]])
            st["heap_size"][stream] += 1
            place[g] = leaf
        mem.leaf(st)[stream, leaf]["arrival"] = mem.pool(st, low)["arrival"]
        mem.leaf(st)[stream, leaf]["group"] = g
        card = storage.card(how, st, low)
        end = end_of_life(how, stream, card["ts"], number_of(how, st, low, card["seq"]))
        kinetic_tournament.enter(st, stream, leaf, storage.chance(how, st, stream, g), end)
    elif leaf != NONE:
        kinetic_tournament.leave(st, stream, leaf)
        place[g] = NONE
        st["heap_size"][stream] -= 1
        leaves[stream, st["heap_size"][stream]] = leaf


@unless_plain
@kernel
def reweigh(how, st, stream, g):
    """Put a group where its lowest tuple and its chance say."""
    if how["organisation"] != KEY and how["organisation"] != LIFE:
        return
    b = mem.buckets(st, g)
    present = b["count"] > 0
    low = int(b["low"])
    if how["organisation"] == LIFE:
        _reweigh_line(how, st, stream, g, present, low)
        return
    place = mem.place(st)
    if not present:
        if place[g] != NONE:
            heap.remove(mem.heap(st)[stream], place, st["heap_size"][stream], g)
            st["heap_size"][stream] -= 1
        return
    # Inside a group of which the oldest is the lowest there are no ranks: the neutral element stands for them.
    neutral = 1.0 if how["combine"] == PRODUCT else 0.0
    rank = neutral if how["fifo"] else mem.more(st, low)["rank"]
    arrival = mem.pool(st, low)["arrival"] if how["fifo"] else mem.more(st, low)["arrival"]
    prio = group_priority(how, rank, storage.chance(how, st, stream, g))
    if place[g] == NONE:
        heap.push(mem.heap(st)[stream], place, st["heap_size"][stream], prio, rank, arrival, g)
        st["heap_size"][stream] += 1
    else:
        heap.move(mem.heap(st)[stream], place, st["heap_size"][stream], prio, rank, arrival, g)


@kernel
def replay(how, st, stream):
    """LIFE: play all matches again, after some were played by old weights and some by new ones."""
    if how["organisation"] == LIFE:
        kinetic_tournament.replay_all(st, stream)


@unless_plain
@inlined
def rebase(how, st, stream, before):
    """LIFE: what life is counted from has gone back, and matches were played by what it was."""
    if how["organisation"] == LIFE and st["base"][stream] < before:
        kinetic_tournament.replay_all(st, stream)


@unless_plain
@inlined
def enter(how, st, x, stream, g, ts, seq, importance):
    """A tuple was stored (its entry is there already, but what was just written is slow to read)."""
    if how["organisation"] == KEY or how["organisation"] == LIFE:
        b = mem.buckets(st, g)
        if not how["fifo"]:
            mem.more(st, x)["rank"] = rank_of(how, st, stream, importance, ts, number_of(how, st, x, seq))
            mem.more(st, x)["arrival"] = st["arrival"]
            b["low"] = pairing_heap.insert(st, int(b["low"]), x)
        if b["low"] == x:
            reweigh(how, st, stream, g)
    elif how["organisation"] == RANDOM:
        last = st["heap_size"][stream]
        mem.dense(st)[stream, last] = x
        mem.place(st)[x] = last
        st["heap_size"][stream] = last + 1
    elif how["organisation"] == SCHEDULE:
        until = mem.until(st, mem.until_from(st, stream) + seq)
        lazy_heap.push(st, stream, float(until), 0.0, st["arrival"], x)


@inlined
def schedule_of(how, st, x):
    """When Replay lets a tuple go."""
    return float(mem.until(st, mem.until_from(st, mem.pool(st, x)["stream"]) + storage.card(how, st, x)["seq"]))


@inlined
def _remove(how, st, stream, x):
    lazy_heap.remove(st, stream, x)


@in_pairs(_remove)
@inlined
def _leave_heap(how, st, stream, x):
    """A tuple leaves its heap, in which it may not be yet: while an instant is open, its tuples are in no order."""
    if how["waits"] == 0 or mem.place(st)[x] != NONE:
        lazy_heap.remove(st, stream, x)


@inlined
def _push(how, st, stream, prio, rank, arrival, x):
    lazy_heap.push(st, stream, prio, rank, arrival, x)


@in_pairs(_push)
@inlined
def _enter_heap(how, st, stream, prio, rank, arrival, x):
    """A tuple gets its priority; one that waited in an integrated queue has had another."""
    if how["integrated"] and mem.place(st)[x] != NONE:
        lazy_heap.move(st, stream, prio, x)
    else:
        lazy_heap.push(st, stream, prio, rank, arrival, x)


@unless_plain
@inlined
def leave(how, st, x, stream, g):
    """A tuple is about to go (its entry is still there)."""
    organisation = how["organisation"]
    if organisation == RANDOM:
        last = st["heap_size"][stream] - 1
        hole = mem.place(st)[x]
        moved = mem.dense(st)[stream, last]
        mem.dense(st)[stream, hole] = moved
        mem.place(st)[moved] = hole
        st["heap_size"][stream] = last
    elif organisation == TUPLE or organisation == CUMULATIVE or organisation == SCHEDULE:
        _leave_heap(how, st, stream, x)
    elif (organisation == KEY or organisation == LIFE) and not how["fifo"]:
        b = mem.buckets(st, g)
        b["low"] = pairing_heap.remove(st, int(b["low"]), x)


@inlined
def sum_priority(how, st, stream, importance, expected, end):
    """A priority that is a sum, and fixed on arrival."""
    share = _share_of_life(how, st, stream, end)
    if how["combine"] == SUM:
        return how["importance"] * importance + how["matches"] * expected + how["life"] * share
    return how["importance"] * math.log(importance) + _log_matches(how, expected) + how["life"] * share


@kernel
def fixed_priority(how, st, x):
    card = storage.card(how, st, x)
    stream = int(mem.pool(st, x)["stream"])
    importance = card["importance"]
    expected = matches(how, st, stream, int(mem.pool(st, x)["group"]))
    if how["combine"] == PRODUCT:
        return importance * expected
    end = end_of_life(how, stream, card["ts"], number_of(how, st, x, card["seq"]))
    return sum_priority(how, st, stream, importance, expected, end)


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


@kernel
def _gain(how, st, stream, g, importance, end):
    return gain_of(how, importance, matches(how, st, stream, g), _share_of_life(how, st, stream, end))


@kernel
def _settle_fresh(how, st, x):
    t, card = mem.pool(st, x), storage.card(how, st, x)
    stream, g = int(t["stream"]), int(t["group"])
    value = card["importance"]
    if t["met"]:
        end = end_of_life(how, stream, card["ts"], number_of(how, st, x, card["seq"]))
        value += _gain(how, st, stream, g, card["importance"], end)
    value = math.log(value) + st["lift"]
    mem.prio(st)[x] = value
    _enter_heap(how, st, stream, value, card["importance"], t["arrival"], x)


@inlined
def touch(st, what):
    """Note a group, or a tuple, that was met in this instant."""
    mem.touched(st)[st["touched_count"]] = what
    st["touched_count"] += 1


@inlined
def _raise(how, st, stream, g, x, card):
    """A tuple that was met gains.

    A gain raises a priority, so the heap may lag behind: `lazy_heap` looks priorities up where it matters. (One that
    falls has been rounded on the way: it is moved at once.)
    """
    lift = st["lift"]
    end = end_of_life(how, stream, card["ts"], number_of(how, st, x, card["seq"]))
    before = mem.prio(st)[x]
    value = raised(before - (lift + how["log_loss"]), _gain(how, st, stream, g, card["importance"], end)) + lift
    mem.prio(st)[x] = value
    if value < before:
        lazy_heap.move(st, stream, value, x)


@kernel
def _settle_met_group(how, st, io, g, ts):
    """The tuples of a group that were met, those of this instant apart, gain."""
    stream = g & 1
    new = io["old_seq"][stream]
    back, ahead = reach(how, stream), reach(how, 1 - stream)
    b = mem.buckets(st, g)
    base, first, last_place = int(b["base"]), int(b["first"]), int(b["room"]) - 1
    for k in range(b["span"]):
        card = mem.entries(st, base + ((first + k) & last_place))
        x = int(card["item"])
        if x == NONE:
            continue
        apart = ts - card["ts"]
        if card["seq"] >= new or -apart >= ahead + how["lateness"]:
            break  # later ones are new as well, or too far ahead
        if apart < back and -apart < ahead:
            _raise(how, st, stream, g, x, card)


@in_pairs(_settle_met_group)
@kernel
def _settle_met(how, st, io, x, ts):
    """A tuple that was met, unless it is of this instant, gains."""
    t = mem.pool(st, x)
    t["met"] = 0
    if t["queued"] == GONE:
        return
    card = storage.card(how, st, x)
    stream = int(t["stream"])
    if card["seq"] < io["old_seq"][stream]:
        _raise(how, st, stream, int(t["group"]), x, card)


@kernel
def _settle_cumulative(how, st, io, ts):
    for i in range(io["fresh"]):
        _settle_fresh(how, st, mem.out_fresh(io, i))
    for i in range(st["touched_count"]):
        _settle_met(how, st, io, int(mem.touched(st)[i]), ts)
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
def weigh(how, st, stream, x):
    """The chance of a tuple that is a group, by the weights of now. Where sizes are read, a number of partners."""
    if how["estimator"] == DECAYED and st["started"] == 0:  # a row that waits before anything was counted
        mem.buckets(st, x)["weight"] = 0.0
        return
    sizes = how["organisation"] == KEY and how["combine"] != PRODUCT
    weight = matches(how, st, stream, x) if sizes else chances.current(how, st, stream, x)
    mem.buckets(st, x)["weight"] = weight


@only_many
@kernel
def _weigh_fresh(how, st, io):
    """Tuples that are groups are weighed when the instant of their arrival closes."""
    if how["alone"] == 0 or how["weighed"] == 0:
        return
    for i in range(io["fresh"]):
        x = int(mem.out_fresh(io, i))
        stream = int(mem.pool(st, x)["stream"])
        weigh(how, st, stream, x)
        reweigh(how, st, stream, x)


@kernel
def has_risen(how, st, x):
    """Weigh a tuple that is a group again; whether its priority is higher now."""
    stream, b = int(mem.pool(st, x)["stream"]), mem.buckets(st, x)
    before = b["weight"]
    weigh(how, st, stream, x)
    now = b["weight"]
    if now == before:
        return False
    reweigh(how, st, stream, x)
    if how["organisation"] == LIFE:
        card = storage.card(how, st, x)
        left = float(end_of_life(how, stream, card["ts"], card["seq"]) - st["base"][stream])
        return now * left > before * left
    neutral = 1.0 if how["combine"] == PRODUCT else 0.0
    rank = neutral if how["fifo"] else mem.more(st, x)["rank"]
    return group_priority(how, rank, now) > group_priority(how, rank, before)


@unless_plain
@inlined
def settle(how, st, io, ts):
    """Priorities of the tuples that this instant brought or that had part in its output."""
    _weigh_fresh(how, st, io)
    if how["organisation"] == TUPLE:
        for i in range(io["fresh"]):
            x = mem.out_fresh(io, i)
            t, importance = mem.pool(st, x), storage.card(how, st, x)["importance"]
            _enter_heap(how, st, int(t["stream"]), fixed_priority(how, st, x), importance, t["arrival"], x)
    elif how["organisation"] == CUMULATIVE:
        _settle_cumulative(how, st, io, ts)


@inlined
def by_rates(how, st, stream, prio):
    """Prospect's priority as streams compare it: chances of a row count as often as rows of the other streams come.

    Of two streams, priorities are steps: the left ones get those by which the right stream brings more rows.
    """
    model = mem.model(st)
    if how["streams"] > 2:
        return prio / (model[stream, LATELY] + 0.5)
    if stream > 0:
        return prio
    return prio + math.floor(STEPS * math.log((model[1, LATELY] + 0.5) / (model[0, LATELY] + 0.5)) + 0.5)


@kernel
def lowest(how, st, stream):
    """(tuple, priority, arrival) that the stream would give up; tuple -1 when it has none."""
    if st["resident"][stream] == 0:
        return NONE, 0.0, 0
    if how["organisation"] == LIFE:
        final = kinetic_tournament.lowest(st, stream)
        leaf = mem.leaf(st)[stream, final["winner"]]
        x = int(mem.buckets(st, leaf["group"])["low"])
        return x, final["weight"] * (final["end"] - st["base"][stream]), leaf["arrival"]
    if how["organisation"] != KEY:
        lazy_heap.lead(st, stream, how["organisation"] == CUMULATIVE)
    top = mem.heap(st)[stream, heap.TOP]
    if how["organisation"] == KEY:
        x = int(mem.buckets(st, top["item"])["low"])
        prio = top["prio"]
        if how["combine"] != PRODUCT:
            prio = prio - how["life"] * (st["base"][stream] / mem.window_size(how, stream))
        if how["estimator"] == LEARNED:
            prio = by_rates(how, st, stream, prio)
        return x, prio, top["arrival"]
    return top["item"], top["prio"], top["arrival"]


@inlined
def _as_it_is(how, st, stream, prio):
    return prio


@in_pairs(_as_it_is)
@inlined
def on_one_scale(how, st, stream, prio):
    """Decayed's weights carry a common factor; where streams have different numbers of weights it must go."""
    factors, of_first = mem.factors(how, stream), mem.factors(how, 0)
    if how["estimator"] != DECAYED or st["started"] == 0 or factors == of_first:
        return prio
    if how["organisation"] != LIFE and not (how["organisation"] == KEY and how["combine"] == PRODUCT):
        return prio
    return prio * math.exp2(-(factors - of_first) * half_lives(how, st, newest(how, st)))
