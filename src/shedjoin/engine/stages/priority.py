"""How policies keep their tuples in order, so that the lowest is found without a scan of the memory.

`enter` and `leave` follow a tuple, `reweigh` follows a changed estimate, `settle` gives new tuples their priorities at
the end of an instant, `lowest` names the tuple that a stream would give up.
"""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.codes import (
    AGE,
    CUMULATIVE,
    DECAYED,
    KEY,
    LEARNED,
    LIFE,
    PRODUCT,
    RANDOM,
    SAMPLE,
    SCHEDULE,
    SUM,
    TUPLE,
)
from shedjoin.engine.forms import in_pairs, only_many, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.protocol import ORDER
from shedjoin.engine.records import GONE, NONE
from shedjoin.engine.stages import ages, chances, sampling
from shedjoin.engine.stages.times import end_of_life, half_lives, newest, number_of, reach
from shedjoin.engine.structures import heap, kinetic_tournament, lazy_heap, pairing_heap

# Where `model` has how many rows a stream brought recently: see learn.py, which builds on this file.
LATELY = 2
# Learned chances are weighed in steps: this many to a factor of e.
STEPS = 8.0


@inlined
def _share_of_life(cfg, state, stream, end):
    return (end - state["base"][stream]) / mem.window_range(cfg, stream)


@kernel
def matches(cfg, state, stream, g):
    """Matches expected for a tuple of a group, on the scale of counts."""
    if cfg["weighed"] == 0:
        return 0.0
    found = chances.current(cfg, state, stream, g)
    if cfg["estimator"] == DECAYED:
        return found * math.exp2(-mem.factors(cfg, stream) * half_lives(cfg, state, newest(cfg, state)))
    return found


@inlined
def _importance(cfg, state, importance):
    return importance


@in_pairs(_importance)
@inlined
def _factor(cfg, state, importance):
    """What a tuple's importance adds to a product: nothing where the policy does not ask for it."""
    return importance if cfg["importance"] != 0.0 else 1.0


@inlined
def rank_of(cfg, state, stream, importance, ts, seq):
    """The order of the tuples of one group, and the first tie-break between groups."""
    if cfg["organisation"] == LIFE:
        return float(end_of_life(cfg, stream, ts, seq))
    if cfg["combine"] == PRODUCT:
        return _factor(cfg, state, importance)
    age = cfg["life"] * (end_of_life(cfg, stream, ts, seq) / mem.window_range(cfg, stream))
    if cfg["combine"] == SUM:
        return cfg["importance"] * importance + age
    return cfg["importance"] * math.log(importance) + age


@inlined
def _log_matches(cfg, matches):
    if cfg["matches"] == 0.0:
        return 0.0
    return cfg["matches"] * math.log(matches) if matches > 0.0 else -math.inf


@inlined
def group_priority(cfg, rank, weight):
    if cfg["combine"] == PRODUCT:
        return rank * weight
    if cfg["combine"] == SUM:
        return rank + cfg["matches"] * weight
    return rank + _log_matches(cfg, weight)


@inlined
def _reweigh_line(cfg, state, stream, g, present, low):
    """A group with tuples has a leaf in its stream's tournament. Low leaves are used first, so the tree stays compact."""
    leaves, place = mem.dense(state), mem.place(state)
    leaf = int(place[g])
    if present:
        if leaf == NONE:
            leaf = int(leaves[stream, state["heap_size"][stream]])
            state["heap_size"][stream] += 1
            place[g] = leaf
        mem.leaf(state)[stream, leaf]["arrival"] = mem.pool(state, low)["arrival"]
        mem.leaf(state)[stream, leaf]["group"] = g
        card = storage.card(cfg, state, low)
        end = end_of_life(cfg, stream, card["ts"], number_of(cfg, state, low, card["seq"]))
        kinetic_tournament.enter(state, stream, leaf, storage.chance(cfg, state, stream, g), end)
    elif leaf != NONE:
        kinetic_tournament.leave(state, stream, leaf)
        place[g] = NONE
        state["heap_size"][stream] -= 1
        leaves[stream, state["heap_size"][stream]] = leaf


@unless_plain
@kernel
def reweigh(cfg, state, stream, g):
    """Put a group where its lowest tuple and its chance say."""
    if cfg["organisation"] != KEY and cfg["organisation"] != LIFE:
        return
    b = mem.buckets(state, g)
    present = b["count"] > 0
    low = int(b["low"])
    if cfg["organisation"] == LIFE:
        _reweigh_line(cfg, state, stream, g, present, low)
        return
    place = mem.place(state)
    if not present:
        if place[g] != NONE:
            heap.remove(mem.heap(state)[stream], place, state["heap_size"][stream], g)
            state["heap_size"][stream] -= 1
        return
    # Inside a group of which the oldest is the lowest there are no ranks: the neutral element stands for them.
    neutral = 1.0 if cfg["combine"] == PRODUCT else 0.0
    rank = neutral if cfg["fifo"] else mem.more(state, low)["rank"]
    arrival = mem.pool(state, low)["arrival"] if cfg["fifo"] else mem.more(state, low)["arrival"]
    prio = group_priority(cfg, rank, storage.chance(cfg, state, stream, g))
    if place[g] == NONE:
        heap.push(mem.heap(state)[stream], place, state["heap_size"][stream], prio, rank, arrival, g)
        state["heap_size"][stream] += 1
    else:
        heap.move(mem.heap(state)[stream], place, state["heap_size"][stream], prio, rank, arrival, g)


@kernel
def replay(cfg, state, stream):
    """LIFE: play all matches again, after some were played by old weights and some by new ones."""
    if cfg["organisation"] == LIFE:
        kinetic_tournament.replay_all(state, stream)


@unless_plain
@inlined
def rebase(cfg, state, stream, before):
    """What life is counted from has changed: AGE follows. LIFE: it has gone back, and matches were played by what it was."""
    if cfg["organisation"] == LIFE and state["base"][stream] < before:
        kinetic_tournament.replay_all(state, stream)
    elif cfg["organisation"] == AGE:
        ages.follow(cfg, state, stream)


@unless_plain
@inlined
def enter(cfg, state, x, stream, g, ts, seq, importance):
    """A tuple was stored (its entry is there already, but what was just written is slow to read)."""
    if cfg["organisation"] == KEY or cfg["organisation"] == LIFE:
        b = mem.buckets(state, g)
        if not cfg["fifo"]:
            mem.more(state, x)["rank"] = rank_of(cfg, state, stream, importance, ts, number_of(cfg, state, x, seq))
            mem.more(state, x)["arrival"] = state["arrival"]
            b["low"] = pairing_heap.insert(state, int(b["low"]), x)
        if b["low"] == x:
            reweigh(cfg, state, stream, g)
    elif cfg["organisation"] == RANDOM:
        last = state["heap_size"][stream]
        mem.dense(state)[stream, last] = x
        mem.place(state)[x] = last
        state["heap_size"][stream] = last + 1
    elif cfg["organisation"] == SAMPLE:
        mem.since(state)[x] = sampling.KEPT
    elif cfg["organisation"] == SCHEDULE:
        until = mem.until(state, mem.until_from(state, stream) + seq)
        lazy_heap.push(state, stream, float(until), 0.0, state["arrival"], x)


@inlined
def schedule_of(cfg, state, x):
    """When Replay lets a tuple go."""
    return float(
        mem.until(state, mem.until_from(state, mem.pool(state, x)["stream"]) + storage.card(cfg, state, x)["seq"])
    )


@inlined
def _remove(cfg, state, stream, x):
    lazy_heap.remove(state, stream, x)


@in_pairs(_remove)
@inlined
def _leave_heap(cfg, state, stream, x):
    """A tuple leaves its heap, in which it may not be yet: while an instant is open, its tuples are in no order."""
    if cfg["waits"] == 0 or mem.place(state)[x] != NONE:
        lazy_heap.remove(state, stream, x)


@inlined
def _push(cfg, state, stream, prio, rank, arrival, x):
    lazy_heap.push(state, stream, prio, rank, arrival, x)


@in_pairs(_push)
@inlined
def _enter_heap(cfg, state, stream, prio, rank, arrival, x):
    """A tuple gets its priority; one that waited in an integrated queue has had another."""
    if cfg["integrated"] and mem.place(state)[x] != NONE:
        lazy_heap.move(state, stream, prio, x)
    else:
        lazy_heap.push(state, stream, prio, rank, arrival, x)


@unless_plain
@inlined
def leave(cfg, state, x, stream, g):
    """A tuple is about to go (its entry is still there)."""
    organisation = cfg["organisation"]
    if organisation == RANDOM:
        last = state["heap_size"][stream] - 1
        hole = mem.place(state)[x]
        moved = mem.dense(state)[stream, last]
        mem.dense(state)[stream, hole] = moved
        mem.place(state)[moved] = hole
        state["heap_size"][stream] = last
    elif organisation == TUPLE or organisation == CUMULATIVE or organisation == SCHEDULE:
        _leave_heap(cfg, state, stream, x)
    elif organisation == SAMPLE:
        sampling.leave(cfg, state, x, stream)
    elif organisation == AGE:
        ages.leave(state, stream, x)
    elif (organisation == KEY or organisation == LIFE) and not cfg["fifo"]:
        b = mem.buckets(state, g)
        b["low"] = pairing_heap.remove(state, int(b["low"]), x)


@inlined
def sum_priority(cfg, state, stream, importance, expected, end):
    """A priority that is a sum, and fixed on arrival."""
    share = _share_of_life(cfg, state, stream, end)
    if cfg["combine"] == SUM:
        return cfg["importance"] * importance + cfg["matches"] * expected + cfg["life"] * share
    return cfg["importance"] * math.log(importance) + _log_matches(cfg, expected) + cfg["life"] * share


@kernel
def fixed_priority(cfg, state, x):
    card = storage.card(cfg, state, x)
    stream = int(mem.pool(state, x)["stream"])
    importance = card["importance"]
    expected = matches(cfg, state, stream, int(mem.pool(state, x)["group"]))
    if cfg["combine"] == PRODUCT:
        return importance * expected
    end = end_of_life(cfg, stream, card["ts"], number_of(cfg, state, x, card["seq"]))
    return sum_priority(cfg, state, stream, importance, expected, end)


@inlined
def _power(base, exponent):
    return base if exponent == 1.0 else base**exponent


@inlined
def gain_of(cfg, importance, matches, share):
    """What an instant with output adds to a cumulative priority."""
    if share <= 0.0:
        return 0.0  # it arrived outside its window and is about to go
    gain = (
        cfg["gain"]
        * _power(importance, cfg["importance"])
        * _power(matches, cfg["matches"])
        * _power(share, cfg["life"])
    )
    return gain if gain == gain else 0.0  # one factor is 0, and another beyond the range of floats


@kernel
def _gain(cfg, state, stream, g, importance, end):
    return gain_of(cfg, importance, matches(cfg, state, stream, g), _share_of_life(cfg, state, stream, end))


@inlined
def _expected(cfg, state, stream, g):
    """What AGE multiplies by what it has learned."""
    return matches(cfg, state, stream, g) if cfg["matches"] != 0.0 else 1.0


@kernel
def _settle_fresh_ages(cfg, state, buffers):
    for i in range(buffers["fresh"]):
        x = int(mem.out_fresh(buffers, i))
        t = mem.pool(state, x)
        stream, has_found = int(t["stream"]), int(t["met"])
        t["met"] = 0
        expected = _expected(cfg, state, stream, int(t["group"]))
        ages.enter(cfg, state, stream, x, expected, has_found, buffers["turn"] != ORDER)


@kernel
def _settle_fresh(cfg, state, x):
    t, card = mem.pool(state, x), storage.card(cfg, state, x)
    stream, g = int(t["stream"]), int(t["group"])
    value = card["importance"]
    if t["met"]:
        t["met"] = 0
        end = end_of_life(cfg, stream, card["ts"], number_of(cfg, state, x, card["seq"]))
        value += _gain(cfg, state, stream, g, card["importance"], end)
    value = math.log(value) + state["lift"]
    mem.prio(state)[x] = value
    _enter_heap(cfg, state, stream, value, card["importance"], t["arrival"], x)


@unless_plain
@inlined
def touch(state, what):
    """Note a group, or a tuple, that was met in this instant."""
    mem.touched(state)[state["touched_count"]] = what
    state["touched_count"] += 1


@inlined
def _raise(cfg, state, stream, g, x, card):
    """A tuple that was met gains; AGE learns from it.

    A gain raises a priority, so the heap may lag behind: `lazy_heap` looks priorities up where it matters. (One that
    falls has been rounded on the way: it is moved at once.)
    """
    if cfg["organisation"] == AGE:
        ages.meet(cfg, state, stream, x, _expected(cfg, state, stream, g))
        return
    lift = state["lift"]
    end = end_of_life(cfg, stream, card["ts"], number_of(cfg, state, x, card["seq"]))
    before = mem.prio(state)[x]
    value = raised(before - (lift + cfg["log_loss"]), _gain(cfg, state, stream, g, card["importance"], end)) + lift
    mem.prio(state)[x] = value
    if value < before:
        lazy_heap.move(state, stream, value, x)


@inlined
def _took_part(cfg, state, x):
    """Whether a tuple of a group that was met has output: all in the window do, unless a condition takes some away."""
    if cfg["where"] == 0:
        return True
    t = mem.pool(state, x)
    met = t["met"] == 1
    t["met"] = 0
    return met


@kernel
def _settle_met_group(cfg, state, buffers, g, ts):
    """The tuples of a group that were met, those of this instant apart, gain."""
    stream = g & 1
    new = buffers["old_seq"][stream]
    back, ahead = reach(cfg, stream), reach(cfg, 1 - stream)
    b = mem.buckets(state, g)
    base, first, last_place = int(b["base"]), int(b["first"]), int(b["room"]) - 1
    for k in range(b["span"]):
        card = mem.entries(state, base + ((first + k) & last_place))
        x = int(card["item"])
        if x == NONE:
            continue
        apart = ts - card["ts"]
        if card["seq"] >= new or -apart >= ahead + state["lag"]:
            break  # later ones are new as well, or too far ahead
        if apart < back and -apart < ahead and _took_part(cfg, state, x):
            _raise(cfg, state, stream, g, x, card)


@in_pairs(_settle_met_group)
@kernel
def _settle_met(cfg, state, buffers, x, ts):
    """A tuple that was met, unless it is of this instant, gains."""
    t = mem.pool(state, x)
    t["met"] = 0
    if t["queued"] == GONE:
        return
    card = storage.card(cfg, state, x)
    stream = int(t["stream"])
    if card["seq"] < buffers["old_seq"][stream]:
        _raise(cfg, state, stream, int(t["group"]), x, card)


@kernel
def _settle_following(cfg, state, buffers, ts):
    if cfg["organisation"] == AGE:
        _settle_fresh_ages(cfg, state, buffers)
    else:
        for i in range(buffers["fresh"]):
            _settle_fresh(cfg, state, mem.out_fresh(buffers, i))
    for i in range(state["touched_count"]):
        _settle_met(cfg, state, buffers, int(mem.touched(state)[i]), ts)
    state["touched_count"] = 0


@unless_plain
@inlined
def set_lift(cfg, state):
    """What was not part of an output loses the same share of its priority every instant: all others are lifted instead.

    Priorities are kept as logs, so that a lift is a sum, and never grows out of the range of floats.
    """
    if cfg["organisation"] == CUMULATIVE:
        state["lift"] = (state["lift_tick"] - state["tick"]) * cfg["log_loss"]


@inlined
def raised(log_priority, gain):
    """The log of a priority that gains; of one too small for a float, and without a gain, it stays."""
    total = math.exp(log_priority) + gain
    return math.log(total) if total > 0.0 else log_priority


@kernel
def weigh(cfg, state, stream, x):
    """The chance of a tuple that is a group, by the weights of now. Where sizes are read, a number of partners."""
    if cfg["estimator"] == DECAYED and state["started"] == 0:  # a row that waits before anything was counted
        mem.buckets(state, x)["weight"] = 0.0
        return
    sizes = cfg["organisation"] == KEY and cfg["combine"] != PRODUCT
    weight = matches(cfg, state, stream, x) if sizes else chances.current(cfg, state, stream, x)
    mem.buckets(state, x)["weight"] = weight


@only_many
@kernel
def _weigh_fresh(cfg, state, buffers):
    """Tuples that are groups are weighed when the instant of their arrival closes."""
    if cfg["alone"] == 0 or cfg["weighed"] == 0:
        return
    for i in range(buffers["fresh"]):
        x = int(mem.out_fresh(buffers, i))
        stream = int(mem.pool(state, x)["stream"])
        weigh(cfg, state, stream, x)
        reweigh(cfg, state, stream, x)


@kernel
def has_risen(cfg, state, x):
    """Weigh a tuple that is a group again; whether its priority is higher now."""
    stream, b = int(mem.pool(state, x)["stream"]), mem.buckets(state, x)
    before = b["weight"]
    weigh(cfg, state, stream, x)
    now = b["weight"]
    if now == before:
        return False
    reweigh(cfg, state, stream, x)
    if cfg["organisation"] == LIFE:
        card = storage.card(cfg, state, x)
        left = float(end_of_life(cfg, stream, card["ts"], card["seq"]) - state["base"][stream])
        return now * left > before * left
    neutral = 1.0 if cfg["combine"] == PRODUCT else 0.0
    rank = neutral if cfg["fifo"] else mem.more(state, x)["rank"]
    return group_priority(cfg, rank, now) > group_priority(cfg, rank, before)


@kernel
def _settle_samples(cfg, state, buffers):
    for i in range(buffers["fresh"]):
        x = int(mem.out_fresh(buffers, i))
        t = mem.pool(state, x)
        expected = matches(cfg, state, int(t["stream"]), int(t["group"]))
        expected = sampling.likely(cfg, state, int(t["stream"]), expected)
        importance = storage.card(cfg, state, x)["importance"]
        sampling.enter(cfg, state, x, sampling.weight_of(cfg, importance, expected))


@unless_plain
@inlined
def settle(cfg, state, buffers, ts):
    """Priorities of the tuples that this instant brought or that had part in its output."""
    _weigh_fresh(cfg, state, buffers)
    if cfg["organisation"] == TUPLE:
        for i in range(buffers["fresh"]):
            x = mem.out_fresh(buffers, i)
            t, importance = mem.pool(state, x), storage.card(cfg, state, x)["importance"]
            _enter_heap(cfg, state, int(t["stream"]), fixed_priority(cfg, state, x), importance, t["arrival"], x)
    elif cfg["follows"]:
        _settle_following(cfg, state, buffers, ts)
    elif cfg["organisation"] == SAMPLE:
        _settle_samples(cfg, state, buffers)


@inlined
def by_rates(cfg, state, stream, prio):
    """Prospect's priority as streams compare it: chances of a row count as often as rows of the other streams come.

    Of two streams, priorities are steps: the left ones get those by which the right stream brings more rows.
    """
    model = mem.model(state)
    if cfg["streams"] > 2:
        return prio / (model[stream, LATELY] + 0.5)
    if stream > 0:
        return prio
    return prio + math.floor(STEPS * math.log((model[1, LATELY] + 0.5) / (model[0, LATELY] + 0.5)) + 0.5)


@kernel
def lowest(cfg, state, stream):
    """(tuple, priority, arrival) that the stream would give up; tuple -1 when it has none."""
    if state["resident"][stream] == 0:
        return NONE, 0.0, 0
    if cfg["organisation"] == LIFE:
        final = kinetic_tournament.lowest(state, stream)
        leaf = mem.leaf(state)[stream, final["winner"]]
        x = int(mem.buckets(state, leaf["group"])["low"])
        return x, final["weight"] * (final["end"] - state["base"][stream]), leaf["arrival"]
    if cfg["organisation"] == AGE:
        return ages.lowest(state, stream)
    if cfg["organisation"] != KEY:
        lazy_heap.lead(state, stream, cfg["organisation"] == CUMULATIVE)
    top = mem.heap(state)[stream, heap.TOP]
    if cfg["organisation"] == KEY:
        x = int(mem.buckets(state, top["item"])["low"])
        prio = top["prio"]
        if cfg["combine"] != PRODUCT:
            prio = prio - cfg["life"] * (state["base"][stream] / mem.window_range(cfg, stream))
        if cfg["estimator"] == LEARNED:
            prio = by_rates(cfg, state, stream, prio)
        return x, prio, top["arrival"]
    return top["item"], top["prio"], top["arrival"]


@inlined
def _as_it_is(cfg, state, stream, prio):
    return prio


@in_pairs(_as_it_is)
@inlined
def on_one_scale(cfg, state, stream, prio):
    """Decayed's weights carry a common factor; where streams have different numbers of weights it must go."""
    factors, of_first = mem.factors(cfg, stream), mem.factors(cfg, 0)
    if cfg["estimator"] != DECAYED or state["started"] == 0 or factors == of_first:
        return prio
    if cfg["organisation"] != LIFE and not (cfg["organisation"] == KEY and cfg["combine"] == PRODUCT):
        return prio
    return prio * math.exp2(-(factors - of_first) * half_lives(cfg, state, newest(cfg, state)))
