"""Prospect's model as kernels: how likely is the next row of another stream to be of a tuple's key?

Each key has counts on each stream, of all time and of late, and each is a share of all rows counted alike. A faster
share is drawn towards the slower one, so that it says something only where it contradicts it. The logs of these shares, of
two streams, are the features of a Poisson regression that is learned as rows come. See docs/prospect.md.

Streams form a ring. What is learned of the rows of a stream is learned from its own counts and from those of the stream before
it; it is kept with the stream before. With two streams each is before the other.
"""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.forms import in_pairs
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import layout, storage
from shedjoin.engine.stages import neighbours, priority
from shedjoin.engine.stages.times import newest
from shedjoin.engine.structures import heap

#: Counts a key and stream: one of all time, then some that halve in 2, 1/4 and 1/32 of a window.
LEVELS = 4
SLOWEST = 2.0
#: A new key is taken to have been watched for before it came, as long as counts with such a half-life remember.
WATCHED = 16.0
#: What a count of nothing is taken for, in rows.
PRIOR = 0.5
#: A key is forgotten when none of it has come for so many windows.
FORGOTTEN = 320.0
#: A key of which nothing has come since is looked at again after these parts of a window.
SOON, LATER, LAST = 1.0 / 32, 1.0 / 8, 1.0 / 2

#: Features of a key itself: all levels of the other stream, of its own those that fade; then those of its neighbours.
OWN = 2 * LEVELS
FEATURES = OWN + neighbours.FEATURES
#: What a neighbour is taken to be worth before anything is learned: three quarters for all three.
NEIGHBOUR = 0.25
#: So many rows are lessons one and all; then one of `SELDOM` is.
EARLY, SELDOM = 8192, 32
#: Rows that are drawn to stand for all that could have been met.
DRAWS = 2
STRIDE = 7919
#: Before a tuple goes, so many keys at most that would give it up are looked at again.
TRIES = 2
#: Lessons from one step of the model to the next, and what earlier ones weigh after it.
PACE = 64.0
FADE = 2.0 ** (-1.0 / 256)
#: How sure the model is from the start, and how strongly coefficients are drawn to where they start.
RIDGE, PULL = 100.0, 4.0
#: The longest step of a coefficient.
LONGEST = 0.1
#: Shares are measured in rows of so many, so that their logs are near 0.
SCALE = 1024.0
LEAST = -30.0

# The places of a stream's numbers in `model`.
TOTAL = priority.LATELY - 2  # all rows of the stream, decayed like the counts of a key
LONG_TOTAL = TOTAL + LEVELS  # and with a half-life of `WATCHED`
COEFFICIENT = LONG_TOTAL + 1
GRADIENT = COEFFICIENT + FEATURES
LESSONS = GRADIENT + FEATURES
CURVATURE = LESSONS + 1
NEAR = CURVATURE + FEATURES * FEATURES  # see neighbours.py
LOG_SHARE = NEAR + neighbours.NUMBERS  # what is worked out anew each time begins here
FEATURE = LOG_SHARE + LEVELS
STEP = FEATURE + FEATURES
MATRIX = STEP + FEATURES
NUMBERS = MATRIX + FEATURES * (FEATURES + 1)


def first_guess(feature: int) -> float:
    """Where the coefficients start, and are drawn to: the share of the other stream, which is PROB by history, and neighbours."""
    return {0: -math.log(SCALE), 1: 1.0}.get(feature, 0.0 if feature < OWN else NEIGHBOUR)


_NO_KEY = first_guess(0)


@inlined
def _guess(feature):
    if feature >= OWN:
        return NEIGHBOUR
    return _NO_KEY if feature == 0 else (1.0 if feature == 1 else 0.0)


@inlined
def _observed(how, st):
    """Rows of all streams."""
    rows = 0
    for stream in range(how["streams"]):
        rows += st["observed"][stream]
    return rows


@inlined
def _now(how, st):
    """Windows of rows go by rows, all others by time."""
    return _observed(how, st) if how["by_rows"] else newest(how, st)


@inlined
def _trail(how, st, stream, v):
    return mem.trail(st, v * how["streams"] + stream)


@inlined
def _last(how, st, v):
    """When a key last came."""
    last = _trail(how, st, 0, v)["last"]
    for stream in range(1, how["streams"]):
        last = max(last, _trail(how, st, stream, v)["last"])
    return last


@inlined
def _left(how, since):
    """What is left after so long of the slowest counts that fade."""
    return math.exp2(-since / (SLOWEST * how["span"]))


@inlined
def _faster(fade):
    """From what is left of a count to what is left of the next, which fades 8 times as fast."""
    fade = fade * fade
    fade = fade * fade
    return fade * fade


@kernel
def _work_out_shares(how, st, stream, v):
    """The log share of a key on a stream by its slowest count, and how far each faster one differs from the one before."""
    trail, model = _trail(how, st, stream, v), mem.model(st)
    # Each share as a fraction: to divide once a level, and not one after the other, is what makes this fast.
    above = trail["mass"][0] + PRIOR
    below = model[stream, TOTAL] - trail["before"] + 1.0
    model[stream, LOG_SHARE] = math.log(above * SCALE / below)
    fade = _left(how, _now(how, st) - trail["last"])
    for j in range(1, LEVELS):
        count = trail["mass"][j] * fade + PRIOR
        fade = _faster(fade)
        whole = model[stream, TOTAL + j] * above + PRIOR * below
        model[stream, LOG_SHARE + j] = math.log(count * below / whole)
        above = count * above
        below = whole


@inlined
def _own_feature(how, model, stream, d):
    """Of a tuple of `stream`: the other stream's shares come first, then how its own differ.

    How frequent a key has always been on its own stream is not among them: a few keys with many rows would settle what it is
    worth, by chance, and it would decide between all others.
    """
    if d == 0:
        return 1.0
    if d <= LEVELS:
        return model[neighbours.following(how, stream), LOG_SHARE + d - 1]
    return model[stream, LOG_SHARE + d - LEVELS]


@kernel
def _work_out_features(how, st, stream, v):
    """Of a tuple of `stream` and a key: what is known of the key, and of its neighbours."""
    model = mem.model(st)
    _work_out_shares(how, st, stream, v)
    _work_out_shares(how, st, neighbours.following(how, stream), v)
    for d in range(OWN):
        model[stream, FEATURE + d] = _own_feature(how, model, stream, d)
    place = neighbours.place_of(st, NEAR, v)
    for d in range(neighbours.FEATURES):
        model[stream, FEATURE + OWN + d] = neighbours.feature(how, model, NEAR, stream, place, d)


@inlined
def _weight(how, steps):
    """The chance by its steps. Of two streams the steps will do, the lowest possible being 1; else chances are multiplied."""
    if how["streams"] == 2:
        return steps + (1.0 - priority.STEPS * LEAST)
    return math.exp(steps / priority.STEPS)


@kernel
def look(how, st, v):
    """Weigh a key anew, on all streams."""
    model = mem.model(st)
    for stream in range(how["streams"]):
        _work_out_shares(how, st, stream, v)
    _trail(how, st, 0, v)["looked"] = int(model[0, NEAR + neighbours.TIMES])
    place = neighbours.place_of(st, NEAR, v)
    for stream in range(how["streams"]):
        log_chance = 0.0
        for d in range(OWN):
            log_chance += model[stream, COEFFICIENT + d] * _own_feature(how, model, stream, d)
        log_chance += model[stream, NEAR + neighbours.WORTH + place]
        # In whole steps: what differs by less than can be learned is equal.
        weight = _weight(how, math.floor(priority.STEPS * max(min(log_chance, 0.0), LEAST) + 0.5))
        other = neighbours.following(how, stream)
        if storage.weight(how, st, v, other) != weight:
            storage.set_weight(how, st, v, other, weight)
            layout.reweigh_others(how, st, v, other)


@inlined
def _has_tuples(how, st, v):
    return mem.buckets(st, 2 * v)["count"] + mem.buckets(st, 2 * v + 1)["count"] > 0


@in_pairs(_has_tuples)
@inlined
def _is_stored(how, st, v):
    """Whether there are tuples of a key; rows that wait are in its groups, and are none."""
    if how["integrated"]:
        stored = 0
        for stream in range(how["streams"]):
            stored += mem.stock(st)[v * how["streams"] + stream]
        return stored > 0
    return not storage.is_idle(how, st, v)


@inlined
def is_stale(how, st, v):
    """Whether a key was not looked at since places were weighed."""
    return _trail(how, st, 0, v)["looked"] != int(mem.model(st)[0, NEAR + neighbours.TIMES])


@kernel
def look_before(how, st, stream):
    """A tuple is about to go: is the key that would give it up still the lowest?"""
    for _ in range(TRIES):
        if st["heap_size"][stream] == 0:
            return
        v = storage.value_of_group(how, st, int(mem.heap(st)[stream, heap.TOP]["item"]))
        if not is_stale(how, st, v):
            return
        look(how, st, v)


@inlined
def _arrival(st, stream, place):
    return mem.seen(st)[stream, (st["seen_head"][stream] + place) & (st["seen_room"] - 1)]


@kernel
def _look_again(how, st, v, stamp):
    """Weigh a key anew unless more of it has come since. (What has no tuples is weighed when it has some.)"""
    if not _is_stored(how, st, v):
        return
    if _last(how, st, v) == stamp:
        look(how, st, v)


@kernel
def _go_on(how, st):
    """Time has gone by: totals fade, and keys that have been quiet for a while are looked at again."""
    now = _now(how, st)
    if _observed(how, st) == 0:
        st["faded"] = now
    if now > st["faded"]:
        fade = math.exp2(-(now - st["faded"]) / (WATCHED * how["span"]))
        for stream in range(how["streams"]):
            mem.model(st)[stream, LONG_TOTAL] *= fade
        fade = _left(how, now - st["faded"])
        for j in range(1, LEVELS):
            for stream in range(how["streams"]):
                mem.model(st)[stream, TOTAL + j] *= fade
            fade = _faster(fade)
        neighbours.go_on(how, st, NEAR, COEFFICIENT + OWN, now - st["faded"])
        st["faded"] = now
    for stream in range(how["streams"]):
        while st["looked_soon"][stream] < st["seen_size"][stream]:
            arrival = _arrival(st, stream, st["looked_soon"][stream])
            if now - arrival["stamp"] < SOON * how["span"]:
                break
            st["looked_soon"][stream] += 1
            _look_again(how, st, arrival["value"], arrival["stamp"])
        while st["looked_later"][stream] < st["looked_soon"][stream]:
            arrival = _arrival(st, stream, st["looked_later"][stream])
            if now - arrival["stamp"] < LATER * how["span"]:
                break
            st["looked_later"][stream] += 1
            _look_again(how, st, arrival["value"], arrival["stamp"])
        while st["looked_later"][stream] > 0:
            arrival = _arrival(st, stream, 0)
            v, stamp = arrival["value"], arrival["stamp"]
            if now - stamp < LAST * how["span"]:
                break
            st["seen_head"][stream] = (st["seen_head"][stream] + 1) & (st["seen_room"] - 1)
            st["seen_size"][stream] -= 1
            st["looked_soon"][stream] -= 1
            st["looked_later"][stream] -= 1
            _trail(how, st, stream, v)["recent"] -= 1
            _look_again(how, st, v, stamp)


@kernel
def _learn(how, st, stream, v):
    """A row of the following stream came, of this key: what does that say about the tuples of `stream`?

    Each of its late rows could have been met. Those of the key were; a few that are drawn stand for all. The rows of a key
    are met all at once or not at all, so that many teach little more than one: r of them count as the root of r.
    """
    model = mem.model(st)
    size = st["seen_size"][stream]
    if size == 0:
        return
    met = math.sqrt(_trail(how, st, stream, v)["recent"])
    if met > 0.0:
        _work_out_features(how, st, stream, v)
        for d in range(FEATURES):
            model[stream, GRADIENT + d] += met * model[stream, FEATURE + d]
    for draw in range(DRAWS):
        drawn = _arrival(
            st, stream, (DRAWS * st["observed"][neighbours.following(how, stream)] + draw) * STRIDE % size
        )["value"]
        if draw == 0:
            neighbours.think_over(how, st, NEAR, v, drawn)
        _work_out_features(how, st, stream, drawn)
        log_chance = 0.0
        for d in range(FEATURES):
            log_chance += model[stream, COEFFICIENT + d] * model[stream, FEATURE + d]
        alike = math.sqrt(_trail(how, st, stream, drawn)["recent"])
        expected = size / DRAWS / alike * math.exp(min(log_chance, 0.0))
        for d in range(FEATURES):
            part = expected * model[stream, FEATURE + d]
            model[stream, GRADIENT + d] -= part
            for e in range(d + 1):
                model[stream, CURVATURE + FEATURES * d + e] += part * model[stream, FEATURE + e]
    model[stream, LESSONS] += 1.0
    if model[stream, LESSONS] >= PACE:
        model[stream, LESSONS] = 0.0
        _step(st, stream)


@kernel
def _step(st, stream):
    """Newton's step with all that was learned; what is old fades."""
    model = mem.model(st)
    for d in range(FEATURES):
        model[stream, GRADIENT + d] -= PULL * (model[stream, COEFFICIENT + d] - _guess(d))
    _solve(st, stream)
    for d in range(FEATURES):
        step = model[stream, STEP + d]
        if step == step:  # what is not a number is no step
            model[stream, COEFFICIENT + d] += min(max(step, -LONGEST), LONGEST)
        model[stream, GRADIENT + d] = 0.0
        for e in range(d + 1):
            model[stream, CURVATURE + FEATURES * d + e] *= FADE


@inlined
def _cell(row, column):
    return MATRIX + (FEATURES + 1) * row + column


@kernel
def _solve(st, stream):
    """(curvature + RIDGE) x step = gradient, by elimination: the matrix is positive definite."""
    m = mem.model(st)[stream]
    for i in range(FEATURES):
        for j in range(FEATURES):
            m[_cell(i, j)] = m[CURVATURE + FEATURES * max(i, j) + min(i, j)]
        m[_cell(i, i)] += RIDGE
        m[_cell(i, FEATURES)] = m[GRADIENT + i]
    for i in range(FEATURES):
        for row in range(i + 1, FEATURES):
            factor = m[_cell(row, i)] / m[_cell(i, i)]
            for j in range(i, FEATURES + 1):
                m[_cell(row, j)] -= factor * m[_cell(i, j)]
    for i in range(FEATURES - 1, -1, -1):
        value = m[_cell(i, FEATURES)]
        for j in range(i + 1, FEATURES):
            value -= m[_cell(i, j)] * m[STEP + j]
        m[STEP + i] = value / m[_cell(i, i)]


@inlined
def _is_forgotten(how, st, v):
    """Whether a key has not come for so long that it is a new one."""
    return _now(how, st) - _last(how, st, v) >= FORGOTTEN * how["span"]


@kernel
def _begin(how, st, v):
    """A new key: all that is known of it is that it did not come while it would have been remembered."""
    model = mem.model(st)
    for stream in range(how["streams"]):
        trail = _trail(how, st, stream, v)
        trail["mass"][:] = 0.0
        trail["before"] = model[stream, TOTAL] - model[stream, LONG_TOTAL]


@kernel
def _count(how, st, stream, v):
    """The row joins the counts, and the late rows of its stream."""
    st["observed"][stream] += 1
    if _is_forgotten(how, st, v):
        _begin(how, st, v)
    model, trail, now = mem.model(st), _trail(how, st, stream, v), _now(how, st)
    trail["mass"][0] += 1.0
    model[stream, TOTAL] += 1.0
    model[stream, LONG_TOTAL] += 1.0
    fade = _left(how, now - trail["last"])
    for j in range(1, LEVELS):
        trail["mass"][j] = trail["mass"][j] * fade + 1.0
        fade = _faster(fade)
        model[stream, TOTAL + j] += 1.0
    neighbours.count(how, st, NEAR, stream, v, _observed(how, st) == 1)
    trail["last"] = now
    trail["recent"] += 1
    arrival = _arrival(st, stream, st["seen_size"][stream])
    arrival["stamp"] = now
    arrival["value"] = v
    st["seen_size"][stream] += 1


@kernel
def _look_around(how, st):
    """Keys move: weigh one of each stream's late rows anew, before its turn is over."""
    for stream in range(how["streams"]):
        size = st["seen_size"][stream]
        if size > 0:
            v = _arrival(st, stream, _observed(how, st) * STRIDE % size)["value"]
            if _is_stored(how, st, v) and is_stale(how, st, v):
                look(how, st, v)


@kernel
def observe(how, st, stream, v):
    """A row: time goes on up to it, it is a lesson, and it is counted."""
    _go_on(how, st)
    if st["observed"][stream] < EARLY or st["observed"][stream] % SELDOM == 0:
        _learn(how, st, neighbours.preceding(how, stream), v)
    _count(how, st, stream, v)
    if neighbours.move(st, NEAR):
        _look_around(how, st)


@kernel
def is_negligible(how, st, v):
    """Whether a key is as good as new."""
    for stream in range(how["streams"]):
        if _trail(how, st, stream, v)["recent"] > 0:
            return False
    return _is_forgotten(how, st, v)
