"""What the neighbours of a key say where popularity moves through the order of keys.

A key whose turn is coming has come seldom, but the keys before it come often now (what a sensor measures, hours, places,
numbers that grow). Keys lie on a ring of places. Rows are counted on the ring as it stands, and on rings that turn, each at
a speed of its own: on the one that turns as fast as popularity moves, what was counted long ago still holds. Which one that
is, is found by how well each foretells the next rows. What it says of a key's place and of those beside it are features of
Prospect's regression; where none foretells better than the ring that stands still, they are 0. See docs/prospect.md.
"""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.jit import inlined, kernel

#: Places of the ring: a power of two.
PLACES = 64
#: The fastest a ring turns, in sixteenths of a place a step, in either direction.
FASTEST, FRACTION = 32, 16.0
RINGS = 2 * FASTEST + 1
#: The place before, the key's own, the next.
FEATURES = 3
#: An empty count is taken as this many rows; a smaller count than the second is dropped.
PRIOR = 0.5
FORGOTTEN = 2.0**-20
#: The length of a step, as a part of a window, and its least number of rows.
STEP, ROWS_A_STEP = 1.0 / 32, 32.0
#: Half-lives in windows: of counts, of the scores of rings, and of the counts that they are compared with.
COUNTS, SCORES, SLOW = 0.5, 2.0, 16.0
#: Keys move if a ring that turns predicts better than the one that stands, by this factor.
BETTER = 1.1
#: After this many lessons the length of the ring is computed again: the range of keys, but at most this many doublings of the
#: mean distance between keys.
LESSONS = 256.0
DOUBLINGS = 3.0
MOST_DOUBLINGS = 68.0
#: It is changed when keys lie outside, when it is too long, or when it is off by the factor `FAR` from the distance of keys.
OUTSIDE, TOO_LONG, FAR = 1.02, 1.1, 2.0**0.75

# A stream's numbers in `model`, counted from where learn.py has them begin. What all streams share is kept with the first.
TURNS = 0  # of the ring, from a key to the next
APART = 1  # how far apart keys were, as powers of two, summed
COUNTED = 2  # the number of lessons in that sum
LOW = 3  # the range of keys
HIGH = 4
SINCE = 5  # how long ago the last step was
TIMES = 6  # how many steps there were
SPEED = 7  # of the ring that predicts best, in sixteenths; from here on numbers begin anew with another ring
STEPPED = 8  # so far, in parts of a window like `STEP`
ROWS = 9  # since the last step
TOTAL = 10  # all rows of the stream, decayed
SLOW_TOTAL = 11
NEW_TOTAL = 12  # its rows since the last step
NEW = 13  # those of each place
SLOW_COUNT = NEW + PLACES
RATIO = SLOW_COUNT + PLACES  # of each place, how much more often it comes now
WORTH = RATIO + PLACES  # of each place, what it and its neighbours are worth to a tuple of the stream
SCORE = WORTH + PLACES  # of each ring, how well it foretells
COUNT = SCORE + RINGS  # of each ring, its places
NUMBERS = COUNT + RINGS * PLACES


@inlined
def following(cfg, stream):
    """The stream whose rows the tuples of a stream wait for."""
    return 0 if stream + 1 == cfg["streams"] else stream + 1


@inlined
def preceding(cfg, stream):
    return cfg["streams"] - 1 if stream == 0 else stream - 1


@inlined
def place_of(state, first, v):
    """Where a key lies on the ring that stands."""
    turns = float(mem.keys(state, v)["key"]) * mem.model(state)[0, first + TURNS]
    return int((turns - math.floor(turns)) * PLACES) & (PLACES - 1)


@inlined
def feature(cfg, model, first, stream, place, d):
    """Of a tuple of `stream` whose key lies there: what the following stream has at the place before, this one and the next."""
    return model[following(cfg, stream), first + RATIO + ((place + d - 1) & (PLACES - 1))]


@inlined
def move(state, first):
    """Whether keys do."""
    return mem.model(state)[0, first + SPEED] != 0.0


@kernel
def count(cfg, state, first, stream, v, is_first):
    """A row of a key joins those of its place."""
    model = mem.model(state)
    key = float(mem.keys(state, v)["key"])
    if is_first:
        model[0, first + LOW] = key
        model[0, first + HIGH] = key
    model[0, first + LOW] = min(model[0, first + LOW], key)
    model[0, first + HIGH] = max(model[0, first + HIGH], key)
    model[stream, first + NEW + place_of(state, first, v)] += 1.0
    model[stream, first + NEW_TOTAL] += 1.0
    model[0, first + ROWS] += 1.0


@kernel
def go_on(cfg, state, first, coefficient, passed):
    """So much time has gone by: now and then rows are counted in, rings turn, and places are weighed anew."""
    model = mem.model(state)
    model[0, first + SINCE] += passed
    since = model[0, first + SINCE]
    if since < STEP * cfg["span"] or model[0, first + ROWS] < ROWS_A_STEP:
        return
    steps = since / (STEP * cfg["span"])
    middle = model[0, first + STEPPED] + 0.5 * steps
    fade = math.exp2(-since / (COUNTS * cfg["span"]))
    fade_score = math.exp2(-since / (SCORES * cfg["span"]))
    for ring in range(RINGS):
        model[0, first + SCORE + ring] *= fade_score
        shift = math.floor((ring - FASTEST) / FRACTION * middle + 0.5)
        for stream in range(cfg["streams"]):
            model[0, first + SCORE + ring] += _turn(model, first, stream, ring, shift, fade)
    _choose(model, first)
    model[0, first + STEPPED] += steps
    fade_slow = math.exp2(-since / (SLOW * cfg["span"]))
    for stream in range(cfg["streams"]):
        _count_in(model, first, stream, fade, fade_slow)
    model[0, first + SINCE] = 0.0
    model[0, first + ROWS] = 0.0
    model[0, first + TIMES] += 1.0
    for stream in range(cfg["streams"]):
        _work_out_ratios(model, first, stream)
    for stream in range(cfg["streams"]):
        for place in range(PLACES):
            worth = 0.0
            for d in range(FEATURES):
                worth += model[stream, coefficient + d] * feature(cfg, model, first, stream, place, d)
            model[stream, first + WORTH + place] = worth


@inlined
def _turn(model, first, stream, ring, shift, fade):
    """Count new rows on a ring that has turned so far. Returns how well it had foretold them: Brier's score."""
    at = first + COUNT + PLACES * ring
    hit, square = 0.0, 0.0
    for place in range(PLACES):
        here = at + ((place - shift) & (PLACES - 1))
        count = model[stream, here]
        new = model[stream, first + NEW + place]
        hit += new * (count + PRIOR)
        square += (count + PRIOR) * (count + PRIOR)
        count = (count + new) * fade
        model[stream, here] = count if count >= FORGOTTEN else 0.0
    whole = model[stream, first + TOTAL] + PRIOR * PLACES
    return (2.0 * hit - model[stream, first + NEW_TOTAL] * (square / whole)) / whole


@inlined
def _choose(model, first):
    """Which ring foretells best? The one that stands unless another is better by far."""
    best = int(model[0, first + SPEED]) + FASTEST
    for ring in range(RINGS):
        if model[0, first + SCORE + ring] > model[0, first + SCORE + best]:
            best = ring
    score = model[0, first + SCORE + best]
    if score <= 0.0 or score < BETTER * model[0, first + SCORE + FASTEST]:
        best = FASTEST
    model[0, first + SPEED] = best - FASTEST


@inlined
def _count_in(model, first, stream, fade, fade_slow):
    new = model[stream, first + NEW_TOTAL]
    model[stream, first + TOTAL] = (model[stream, first + TOTAL] + new) * fade
    model[stream, first + SLOW_TOTAL] = (model[stream, first + SLOW_TOTAL] + new) * fade_slow
    model[stream, first + NEW_TOTAL] = 0.0
    for place in range(PLACES):
        count = (model[stream, first + SLOW_COUNT + place] + model[stream, first + NEW + place]) * fade_slow
        model[stream, first + SLOW_COUNT + place] = count if count >= FORGOTTEN else 0.0
        model[stream, first + NEW + place] = 0.0


@inlined
def _work_out_ratios(model, first, stream):
    """Of each place: its share as the ring will stand in the middle of the step to come, to its share of long."""
    speed = model[0, first + SPEED]
    turned = speed / FRACTION * (model[0, first + STEPPED] + 0.5)
    shift = math.floor(turned)
    part = turned - shift
    at = first + COUNT + PLACES * (int(speed) + FASTEST)
    whole = model[stream, first + TOTAL] + PRIOR * PLACES
    slow_whole = model[stream, first + SLOW_TOTAL] + PRIOR * PLACES
    for place in range(PLACES):
        ratio = 0.0
        if speed != 0.0:
            here = model[stream, at + ((place - shift) & (PLACES - 1))]
            before = model[stream, at + ((place - shift - 1) & (PLACES - 1))]
            share = ((1.0 - part) * here + part * before + PRIOR) / whole
            ratio = math.log(share * slow_whole / (model[stream, first + SLOW_COUNT + place] + PRIOR))
        model[stream, first + RATIO + place] = ratio


@kernel
def think_over(cfg, state, first, one, other):
    """Two keys of late rows, of two streams: how far are such apart, and is the ring as long as it should be?"""
    model = mem.model(state)
    apart = abs(float(mem.keys(state, one)["key"]) - float(mem.keys(state, other)["key"]))
    model[0, first + APART] += math.frexp(apart)[1]
    model[0, first + COUNTED] += 1.0
    if model[0, first + COUNTED] < LESSONS:
        return
    doublings = min(model[0, first + APART] / model[0, first + COUNTED] + DOUBLINGS, MOST_DOUBLINGS)
    model[0, first + APART] = 0.0
    model[0, first + COUNTED] = 0.0
    most = max(math.exp2(doublings), float(PLACES))
    keys = max(model[0, first + HIGH] - model[0, first + LOW] + 1.0, float(PLACES))
    now = 1.0 / model[0, first + TURNS]
    if keys <= most:
        if keys > OUTSIDE * now or now > TOO_LONG * keys:
            _begin(cfg, model, first, keys)
    elif most > FAR * now or now > FAR * most:
        _begin(cfg, model, first, max(math.exp2(math.floor(doublings + 0.5)), float(PLACES)))


@inlined
def _begin(cfg, model, first, length):
    """Another ring: what was counted means nothing any more."""
    for stream in range(cfg["streams"]):
        for i in range(SPEED, NUMBERS):
            model[stream, first + i] = 0.0
    model[0, first + TURNS] = 1.0 / length
