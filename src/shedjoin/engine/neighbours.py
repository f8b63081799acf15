"""What the neighbours of a key say: counts of keys that are near each other as numbers.

Popularity may move through the order of keys (what a sensor measures, numbers that grow, places), and then a key whose
neighbours come often now will come soon, however seldom it came itself. Keys lie on a ring of places, each as wide as an
eighth or so of what keys are apart. A place has decayed counts as a key has; what they say of it and of the places beside it
are features of Prospect's regression, which learns whether they are worth anything. See docs/prospect.md.
"""

from __future__ import annotations

import math

from shedjoin.engine import mem
from shedjoin.engine.jit import inlined, kernel

#: Places of the ring: a power of two.
PLACES = 64
#: Decayed counts a place and stream: they halve in 1/2, 1/8 and 1/32 of a window.
LEVELS = 3
#: Of each of three places, how far its faster counts differ from the slower ones.
RATIOS = LEVELS - 1
FEATURES = 3 * RATIOS
#: What a count of nothing is taken for, in rows.
PRIOR = 0.5
#: Counts fade, and places are weighed, after such a part of a window.
EVERY = 1.0 / 32
#: How wide a place is, is thought over after so many lessons: as wide as keys are apart, less so many halvings.
LESSONS = 256.0
HALVINGS = 3.0
#: It is changed when it is off by so many halvings.
OFF = 0.75
WIDEST = 62.0

# A stream's numbers in `model`, counted from where learn.py has them begin. What both streams share is kept with the first.
WIDTH = 0  # of a place, as a power of two
APART = 1  # how far apart keys were, as powers of two, summed
COUNTED = 2  # over so many lessons
SINCE = 3  # how long ago counts faded
TIMES = 4  # how often they did
TOTAL = 5  # all rows of the stream, decayed
COUNT = TOTAL + LEVELS  # those of each place
RATIO = COUNT + PLACES * LEVELS  # of each place, its features
SCORE = RATIO + PLACES * RATIOS  # of each place, what it and its neighbours are worth to a tuple of the stream
NUMBERS = SCORE + PLACES


@inlined
def place_of(st, first, slot):
    """Where a key lies on the ring."""
    return (mem.keys(st, slot)["key"] >> int(mem.model(st)[0, first + WIDTH])) & (PLACES - 1)


@inlined
def feature(model, first, stream, place, d):
    """Of a tuple of `stream` whose key lies there: what the other stream has at the place before, at this one, at the next."""
    beside = (place + d // RATIOS - 1) & (PLACES - 1)
    return model[1 - stream, first + RATIO + RATIOS * beside + d % RATIOS]


@kernel
def count(st, first, stream, slot):
    """A row of a key joins the counts of its place."""
    model = mem.model(st)
    at = first + COUNT + LEVELS * place_of(st, first, slot)
    for j in range(LEVELS):
        model[stream, at + j] += 1.0
        model[stream, first + TOTAL + j] += 1.0


@kernel
def go_on(how, st, first, coefficient, passed):
    """So much time has gone by: now and then counts fade and places are weighed anew."""
    model = mem.model(st)
    since = model[0, first + SINCE] + passed
    if since < EVERY * how["span"]:
        model[0, first + SINCE] = since
        return
    model[0, first + SINCE] = 0.0
    model[0, first + TIMES] += 1.0
    fade = math.exp2(-since / (0.5 * how["span"]))
    for j in range(LEVELS):
        for stream in range(2):
            model[stream, first + TOTAL + j] *= fade
            for place in range(PLACES):
                model[stream, first + COUNT + LEVELS * place + j] *= fade
        fade = fade * fade
        fade = fade * fade
    for stream in range(2):
        for place in range(PLACES):
            _work_out_ratios(model, first, stream, place)
    for stream in range(2):
        for place in range(PLACES):
            score = 0.0
            for d in range(FEATURES):
                score += model[stream, coefficient + d] * feature(model, first, stream, place, d)
            model[stream, first + SCORE + place] = score


@inlined
def _work_out_ratios(model, first, stream, place):
    """Shares of a place, each drawn towards the slower one by half a row, the slowest towards those of all places."""
    at = first + COUNT + LEVELS * place
    before = (model[stream, at] + PRIOR) / (model[stream, first + TOTAL] + PRIOR * PLACES)
    for j in range(1, LEVELS):
        share = (model[stream, at + j] + PRIOR) / (model[stream, first + TOTAL + j] + PRIOR / before)
        model[stream, first + RATIO + RATIOS * place + j - 1] = math.log(share / before)
        before = share


@kernel
def think_over(st, first, one, other):
    """Two keys of late rows, one of each stream: how far are such apart, and are places as wide as they should be?"""
    model = mem.model(st)
    apart = abs(float(mem.keys(st, one)["key"]) - float(mem.keys(st, other)["key"]))
    model[0, first + APART] += math.frexp(apart)[1]
    model[0, first + COUNTED] += 1.0
    if model[0, first + COUNTED] < LESSONS:
        return
    width = model[0, first + APART] / model[0, first + COUNTED] - HALVINGS
    width = min(max(width, 0.0), WIDEST)
    model[0, first + APART] = 0.0
    model[0, first + COUNTED] = 0.0
    if abs(width - model[0, first + WIDTH]) > OFF:
        # Other places: what was counted means nothing any more.
        for stream in range(2):
            for i in range(TOTAL, NUMBERS):
                model[stream, first + i] = 0.0
        model[0, first + WIDTH] = math.floor(width + 0.5)
