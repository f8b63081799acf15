"""Prospect's model as kernels: how likely is the next row of another stream to be of a tuple's key?

Each key has counts on each stream with several half-lives, each divided by the count of all rows. A share with a short
half-life is drawn towards the one with a longer half-life, so that it matters only where the two differ. The logs of these
shares, of two streams, are the features of a Poisson regression that is learned as rows come. See docs/prospect.md.

Streams form a ring. What is learned of the rows of a stream is learned from its own counts and from those of the stream before
it; it is kept with the stream before. With two streams each is before the other.
"""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.forms import in_pairs
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import layout, storage
from shedjoin.engine.stages import neighbours, priority, remember
from shedjoin.engine.stages.times import newest
from shedjoin.engine.structures import heap

#: Counts a key and stream: one of all time, then some that halve in 2, 1/4 and 1/32 of a window.
LEVELS = 4
SLOWEST = 2.0
#: A new key counts as seen by counters of this half-life, in windows, before it came.
WATCHED = 16.0
#: An empty count is taken as this many rows.
PRIOR = 0.5
#: A key is forgotten when no row of it has come for this many windows.
FORGOTTEN = 320.0
#: A key of which nothing has come since is looked at again after these parts of a window.
SOON, LATER, LAST = 1.0 / 32, 1.0 / 8, 1.0 / 2

#: Features of a key itself: all levels of the other stream, of its own those that fade; then those of its neighbours.
OWN = 2 * LEVELS
FEATURES = OWN + neighbours.FEATURES
#: The coefficient of a neighbour before anything is learned: three quarters for all three.
NEIGHBOUR = 0.25
#: The first `EARLY` rows are all lessons; of later ones each `SELDOM`-th is.
EARLY, SELDOM = 8192, 32
#: Rows that are drawn to stand for all that could have been met.
DRAWS = 2
STRIDE = 7919
#: Before a tuple is evicted, at most this many candidate keys are looked at again.
TRIES = 2
#: Lessons from one step of the model to the next, and what earlier ones weigh after it.
PACE = 64.0
FADE = 2.0 ** (-1.0 / 256)
#: How sure the model is from the start, and how strongly coefficients are drawn to where they start.
RIDGE, PULL = 100.0, 4.0
#: The longest step of a coefficient.
LONGEST = 0.1
#: Shares are given in rows of `SCALE`, so that their logs are near 0.
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
def _observed(cfg, state):
    """Rows of all streams."""
    rows = 0
    for stream in range(cfg["streams"]):
        rows += state["observed"][stream]
    return rows


@inlined
def _now(cfg, state):
    """Windows of rows go by rows, all others by time."""
    return _observed(cfg, state) if cfg["by_rows"] else newest(cfg, state)


@inlined
def _trail(cfg, state, stream, v):
    return mem.trail(state, v * cfg["streams"] + stream)


@inlined
def _last(cfg, state, v):
    """When a key last came."""
    last = _trail(cfg, state, 0, v)["last"]
    for stream in range(1, cfg["streams"]):
        last = max(last, _trail(cfg, state, stream, v)["last"])
    return last


@inlined
def _left(cfg, since):
    """What is left after so long of the slowest counts that fade."""
    return math.exp2(-since / (SLOWEST * cfg["span"]))


@inlined
def _faster(fade):
    """From what is left of a count to what is left of the next, which fades 8 times as fast."""
    fade = fade * fade
    fade = fade * fade
    return fade * fade


@kernel
def _work_out_shares(cfg, state, stream, v):
    """The log share of a key on a stream by its slowest count, and how far each faster one differs from the one before."""
    trail, model = _trail(cfg, state, stream, v), mem.model(state)
    # Each share as a fraction: to divide once a level, and not one after the other, is what makes this fast.
    above = trail["mass"][0] + PRIOR
    below = model[stream, TOTAL] - trail["before"] + 1.0
    model[stream, LOG_SHARE] = math.log(above * SCALE / below)
    fade = _left(cfg, _now(cfg, state) - trail["last"])
    for j in range(1, LEVELS):
        count = trail["mass"][j] * fade + PRIOR
        fade = _faster(fade)
        whole = model[stream, TOTAL + j] * above + PRIOR * below
        model[stream, LOG_SHARE + j] = math.log(count * below / whole)
        above = count * above
        below = whole


@inlined
def _own_feature(cfg, model, stream, d):
    """Of a tuple of `stream`: the other stream's shares come first, then how its own differ.

    How frequent a key has always been on its own stream is not among them: a few keys with many rows would settle what it is
    worth, by chance, and it would decide between all others.
    """
    if d == 0:
        return 1.0
    if d <= LEVELS:
        return model[neighbours.following(cfg, stream), LOG_SHARE + d - 1]
    return model[stream, LOG_SHARE + d - LEVELS]


@kernel
def _work_out_features(cfg, state, stream, v):
    """Of a tuple of `stream` and a key: what is known of the key, and of its neighbours."""
    model = mem.model(state)
    _work_out_shares(cfg, state, stream, v)
    _work_out_shares(cfg, state, neighbours.following(cfg, stream), v)
    for d in range(OWN):
        model[stream, FEATURE + d] = _own_feature(cfg, model, stream, d)
    place = neighbours.place_of(state, NEAR, v)
    for d in range(neighbours.FEATURES):
        model[stream, FEATURE + OWN + d] = neighbours.feature(cfg, model, NEAR, stream, place, d)


@inlined
def _weight(cfg, steps):
    """The chance by its steps. Of two streams the steps will do, the lowest possible being 1; else chances are multiplied."""
    if cfg["streams"] == 2:
        return steps + (1.0 - priority.STEPS * LEAST)
    return math.exp(steps / priority.STEPS)


@kernel
def look(cfg, state, v):
    """Weigh a key anew, on all streams."""
    model = mem.model(state)
    for stream in range(cfg["streams"]):
        _work_out_shares(cfg, state, stream, v)
    _trail(cfg, state, 0, v)["looked"] = int(model[0, NEAR + neighbours.TIMES])
    place = neighbours.place_of(state, NEAR, v)
    for stream in range(cfg["streams"]):
        log_chance = 0.0
        for d in range(OWN):
            log_chance += model[stream, COEFFICIENT + d] * _own_feature(cfg, model, stream, d)
        log_chance += model[stream, NEAR + neighbours.WORTH + place]
        # In whole steps: what differs by less than can be learned is equal.
        weight = _weight(cfg, math.floor(priority.STEPS * max(min(log_chance, 0.0), LEAST) + 0.5))
        other = neighbours.following(cfg, stream)
        if storage.weight(cfg, state, v, other) != weight:
            storage.set_weight(cfg, state, v, other, weight)
            layout.reweigh_others(cfg, state, v, other)


@inlined
def _has_tuples(cfg, state, v):
    return mem.buckets(state, 2 * v)["count"] + mem.buckets(state, 2 * v + 1)["count"] > 0


@in_pairs(_has_tuples)
@inlined
def _competes(cfg, state, v):
    """Whether anything of a key competes for memory: tuples, and rows of an integrated queue, which are in its groups too."""
    if cfg["integrated"]:
        return mem.cell_count(state)[v] > 0
    return not storage.is_idle(cfg, state, v)


@inlined
def is_stale(cfg, state, v):
    """Whether a key was not looked at since places were weighed."""
    return _trail(cfg, state, 0, v)["looked"] != int(mem.model(state)[0, NEAR + neighbours.TIMES])


@kernel
def look_before(cfg, state, stream):
    """A tuple is about to go: is the key that would give it up still the lowest?"""
    for _ in range(TRIES):
        if state["heap_size"][stream] == 0:
            return
        v = storage.value_of_group(cfg, state, int(mem.heap(state)[stream, heap.TOP]["item"]))
        if not is_stale(cfg, state, v):
            return
        look(cfg, state, v)


@inlined
def _arrival(state, stream, place):
    return mem.seen(state)[stream, (state["seen_head"][stream] + place) & (state["seen_room"] - 1)]


@kernel
def _look_again(cfg, state, v, stamp):
    """Weigh a key anew unless more of it has come since. (What has no tuples is weighed when it has some.)"""
    if not _competes(cfg, state, v):
        return
    if _last(cfg, state, v) == stamp:
        look(cfg, state, v)


@kernel
def _go_on(cfg, state):
    """Time has gone by: totals fade, and keys that have been quiet for a while are looked at again."""
    now = _now(cfg, state)
    if _observed(cfg, state) == 0:
        state["faded"] = now
    if now > state["faded"]:
        fade = math.exp2(-(now - state["faded"]) / (WATCHED * cfg["span"]))
        for stream in range(cfg["streams"]):
            mem.model(state)[stream, LONG_TOTAL] *= fade
        fade = _left(cfg, now - state["faded"])
        for j in range(1, LEVELS):
            for stream in range(cfg["streams"]):
                mem.model(state)[stream, TOTAL + j] *= fade
            fade = _faster(fade)
        neighbours.go_on(cfg, state, NEAR, COEFFICIENT + OWN, now - state["faded"])
        state["faded"] = now
    for stream in range(cfg["streams"]):
        while state["looked_soon"][stream] < state["seen_size"][stream]:
            arrival = _arrival(state, stream, state["looked_soon"][stream])
            if now - arrival["stamp"] < SOON * cfg["span"]:
                break
            state["looked_soon"][stream] += 1
            _look_again(cfg, state, arrival["value"], arrival["stamp"])
        while state["looked_later"][stream] < state["looked_soon"][stream]:
            arrival = _arrival(state, stream, state["looked_later"][stream])
            if now - arrival["stamp"] < LATER * cfg["span"]:
                break
            state["looked_later"][stream] += 1
            _look_again(cfg, state, arrival["value"], arrival["stamp"])
        while state["looked_later"][stream] > 0:
            arrival = _arrival(state, stream, 0)
            v, stamp = arrival["value"], arrival["stamp"]
            if now - stamp < LAST * cfg["span"]:
                break
            remember.take_first(state, stream)
            state["looked_soon"][stream] -= 1
            state["looked_later"][stream] -= 1
            _trail(cfg, state, stream, v)["recent"] -= 1
            _look_again(cfg, state, v, stamp)


@inlined
def _drop_late_rows(cfg, state, stream):
    """Of late rows that no more are remembered than may be: the oldest go, and their keys are not looked at for that."""
    while remember.is_full(cfg, state, stream):
        v = remember.take_first(state, stream)
        state["looked_soon"][stream] = max(state["looked_soon"][stream] - 1, 0)
        state["looked_later"][stream] = max(state["looked_later"][stream] - 1, 0)
        _trail(cfg, state, stream, v)["recent"] -= 1
        state["forgotten"] += 1


@kernel
def _learn(cfg, state, stream, v):
    """A row of the following stream came, of this key: what does that say about the tuples of `stream`?

    Each of its late rows could have been met. Those of the key were; a few that are drawn stand for all. The rows of a key
    are met all at once or not at all, so that many teach little more than one: r of them count as the root of r.
    """
    model = mem.model(state)
    size = state["seen_size"][stream]
    if size == 0:
        return
    met = math.sqrt(_trail(cfg, state, stream, v)["recent"])
    if met > 0.0:
        _work_out_features(cfg, state, stream, v)
        for d in range(FEATURES):
            model[stream, GRADIENT + d] += met * model[stream, FEATURE + d]
    for draw in range(DRAWS):
        drawn = _arrival(
            state, stream, (DRAWS * state["observed"][neighbours.following(cfg, stream)] + draw) * STRIDE % size
        )["value"]
        if draw == 0:
            neighbours.think_over(cfg, state, NEAR, v, drawn)
        _work_out_features(cfg, state, stream, drawn)
        log_chance = 0.0
        for d in range(FEATURES):
            log_chance += model[stream, COEFFICIENT + d] * model[stream, FEATURE + d]
        alike = math.sqrt(_trail(cfg, state, stream, drawn)["recent"])
        expected = size / DRAWS / alike * math.exp(min(log_chance, 0.0))
        for d in range(FEATURES):
            part = expected * model[stream, FEATURE + d]
            model[stream, GRADIENT + d] -= part
            for e in range(d + 1):
                model[stream, CURVATURE + FEATURES * d + e] += part * model[stream, FEATURE + e]
    model[stream, LESSONS] += 1.0
    if model[stream, LESSONS] >= PACE:
        model[stream, LESSONS] = 0.0
        _step(state, stream)


@kernel
def _step(state, stream):
    """Newton's step with all that was learned; what is old fades."""
    model = mem.model(state)
    for d in range(FEATURES):
        model[stream, GRADIENT + d] -= PULL * (model[stream, COEFFICIENT + d] - _guess(d))
    _solve(state, stream)
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
def _solve(state, stream):
    """(curvature + RIDGE) x step = gradient, by elimination: the matrix is positive definite."""
    m = mem.model(state)[stream]
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
def _is_forgotten(cfg, state, v):
    """Whether a key has not come for so long that it is a new one."""
    return _now(cfg, state) - _last(cfg, state, v) >= FORGOTTEN * cfg["span"]


@kernel
def _begin(cfg, state, v):
    """A new key: all that is known of it is that it did not come while it would have been remembered."""
    model = mem.model(state)
    for stream in range(cfg["streams"]):
        trail = _trail(cfg, state, stream, v)
        trail["mass"][:] = 0.0
        trail["before"] = model[stream, TOTAL] - model[stream, LONG_TOTAL]


@kernel
def _count(cfg, state, stream, v):
    """The row joins the counts, and the late rows of its stream."""
    state["observed"][stream] += 1
    if _is_forgotten(cfg, state, v):
        _begin(cfg, state, v)
    model, trail, now = mem.model(state), _trail(cfg, state, stream, v), _now(cfg, state)
    trail["mass"][0] += 1.0
    model[stream, TOTAL] += 1.0
    model[stream, LONG_TOTAL] += 1.0
    fade = _left(cfg, now - trail["last"])
    for j in range(1, LEVELS):
        trail["mass"][j] = trail["mass"][j] * fade + 1.0
        fade = _faster(fade)
        model[stream, TOTAL + j] += 1.0
    neighbours.count(cfg, state, NEAR, stream, v, _observed(cfg, state) == 1)
    trail["last"] = now
    trail["recent"] += 1
    _drop_late_rows(cfg, state, stream)
    arrival = _arrival(state, stream, state["seen_size"][stream])
    arrival["stamp"] = now
    arrival["value"] = v
    state["seen_size"][stream] += 1


@kernel
def _look_around(cfg, state):
    """Keys move: weigh one of each stream's late rows anew, before its turn is over."""
    for stream in range(cfg["streams"]):
        size = state["seen_size"][stream]
        if size > 0:
            v = _arrival(state, stream, _observed(cfg, state) * STRIDE % size)["value"]
            if _competes(cfg, state, v) and is_stale(cfg, state, v):
                look(cfg, state, v)


@kernel
def observe(cfg, state, stream, v):
    """A row: time goes on up to it, it is a lesson, and it is counted."""
    _go_on(cfg, state)
    if state["observed"][stream] < EARLY or state["observed"][stream] % SELDOM == 0:
        _learn(cfg, state, neighbours.preceding(cfg, stream), v)
    _count(cfg, state, stream, v)
    if neighbours.move(state, NEAR):
        _look_around(cfg, state)


@kernel
def is_negligible(cfg, state, v):
    """Whether a key is as good as new."""
    for stream in range(cfg["streams"]):
        if _trail(cfg, state, stream, v)["recent"] > 0:
            return False
    return _is_forgotten(cfg, state, v)
