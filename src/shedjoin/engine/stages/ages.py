"""Age: what rows of each age are worth, learned from the ages at which partners were found.

The life of a tuple is cut into steps of equal length. Tuples of one stream that have equally many steps left, and have all found
partners or all found none, are a cohort: they have one rate of partners, and are ordered by what each is expected to find. Time
moves whole cohorts, so that no tuple is touched. To find the lowest, the roots of the cohorts are compared, at most two for each
step.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import AGE_STEPS
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import NONE
from shedjoin.engine.stages.times import end_of_life, number_of
from shedjoin.engine.structures import pairing_heap

#: How many steps ahead are told apart: a power of two. A stream may run ahead of the others by a window.
PLACES = 128
#: The cohorts of tuples that have found nothing, then of those that have. Behind: tuples that have more steps left, and tuples
#: whose window has ended.
FAR, PAST = 2 * PLACES, 2 * PLACES + 1
COHORTS = 2 * PLACES + 2
#: What is known of each step of both: instants with partners, tuples that might have had some, and the best rate.
MET, SEEN, WORTH = 0, 2 * PLACES, 4 * PLACES
NUMBERS = 6 * PLACES
#: What is learned loses half of its weight in so many windows.
MEMORY = 8.0
FADE = 2.0 ** (-1.0 / (MEMORY * AGE_STEPS))
#: A step of which nothing is known is taken for an average one, with this share of all that was seen.
PRIOR = 1.0 / 1024.0
#: Expected partners are added up as whole numbers, so that the order does not matter.
UNIT, MOST_EXPECTED = 2.0**20, 2.0**22


@inlined
def part_of(expected):
    """What a tuple counts for among those that might have partners."""
    return int(min(expected, MOST_EXPECTED) * UNIT)


@inlined
def step_of(cfg, stream, time):
    return time // mem.age_step(cfg, stream)


@inlined
def _end(cfg, state, stream, x):
    card = storage.card(cfg, state, x)
    return end_of_life(cfg, stream, card["ts"], number_of(cfg, state, x, card["seq"]))


@inlined
def _steps_left(cfg, state, stream, end):
    return step_of(cfg, stream, end) - state["age_now"][stream]


@inlined
def _place_of(state, stream, x, left):
    """The cohort of a tuple that has so many steps left."""
    if left < 0:
        return PAST
    if left >= PLACES:
        return FAR
    return ((left + state["age_now"][stream]) & (PLACES - 1)) + PLACES * int(mem.since(state)[x])


@inlined
def _see_root(state, stream, place, root):
    cohort = mem.cohorts(state)[stream, place]
    cohort["root"] = root
    if root != NONE:
        cohort["prio"] = mem.prio(state)[root]
        cohort["arrival"] = mem.more(state, root)["arrival"]


@kernel
def _join(cfg, state, stream, x, end):
    """Put a tuple, whose priority is known, into its cohort."""
    left = _steps_left(cfg, state, stream, end)
    place = _place_of(state, stream, x, left)
    state["age_top"][stream] = max(state["age_top"][stream], min(left, PLACES - 1))
    cohort, links, expected = mem.cohorts(state)[stream, place], mem.more(state, x), mem.prio(state)[x]
    mem.place(state)[x] = place
    links["rank"] = float(end) if place == FAR else expected
    links["arrival"] = mem.pool(state, x)["arrival"]
    before = int(cohort["root"])
    root = pairing_heap.insert(state, before, x)
    cohort["count"] += 1
    cohort["expected"] += part_of(expected)
    state["heap_size"][stream] += 1
    if root != before:
        _see_root(state, stream, place, root)
        state["age_lowest"][stream] = NONE


@kernel
def leave(state, stream, x):
    """Take a tuple out of its cohort. While an instant is open, its tuples are in none."""
    place = int(mem.place(state)[x])
    if place == NONE:
        return
    cohort = mem.cohorts(state)[stream, place]
    before = int(cohort["root"])
    root = pairing_heap.remove(state, before, x)
    cohort["count"] -= 1
    cohort["expected"] -= part_of(mem.prio(state)[x])
    if root != before:
        _see_root(state, stream, place, root)
        state["age_lowest"][stream] = NONE
    mem.place(state)[x] = NONE
    state["heap_size"][stream] -= 1


@kernel
def enter(cfg, state, stream, x, expected, has_found, is_new):
    """A tuple takes part from now on."""
    end = _end(cfg, state, stream, x)
    mem.prio(state)[x] = expected
    mem.since(state)[x] = has_found
    _join(cfg, state, stream, x, end)
    left = _steps_left(cfg, state, stream, end)
    if is_new and 0 <= left < PLACES:
        mem.curve(state)[stream, SEEN + PLACES * has_found + left] += part_of(expected) / UNIT


@kernel
def meet(cfg, state, stream, x, expected):
    """A tuple that was stored before this instant found partners."""
    left = _steps_left(cfg, state, stream, _end(cfg, state, stream, x))
    had_found = int(mem.since(state)[x])
    if 0 <= left < PLACES:
        mem.curve(state)[stream, MET + PLACES * had_found + left] += 1.0
    if had_found == 0 or expected != mem.prio(state)[x]:
        leave(state, stream, x)
        enter(cfg, state, stream, x, expected, 1, False)


@kernel
def _move_all(cfg, state, stream, place):
    """Put the tuples of a cohort where they belong now."""
    cohorts = mem.cohorts(state)
    while cohorts[stream, place]["root"] != NONE:
        x = int(cohorts[stream, place]["root"])
        end = _end(cfg, state, stream, x)
        if _place_of(state, stream, x, _steps_left(cfg, state, stream, end)) == place:
            return
        leave(state, stream, x)
        _join(cfg, state, stream, x, end)


@kernel
def _count(state, stream):
    """All that is stored might find partners in the step that begins."""
    curve = mem.curve(state)
    for has_found in range(0, 2 * PLACES, PLACES):
        for left in range(PLACES):
            place = ((left + state["age_now"][stream]) & (PLACES - 1)) + has_found
            met, seen = MET + has_found + left, SEEN + has_found + left
            curve[stream, met] *= FADE
            curve[stream, seen] = curve[stream, seen] * FADE + mem.cohorts(state)[stream, place]["expected"] / UNIT


@kernel
def _weigh(cfg, state, stream, first):
    """The best rate that tuples with so many steps left can look forward to: over the next step, the next two, ...

    Steps are pooled from the last one back: those behind a step are taken to it while their rate is higher.
    """
    curve, pools = mem.curve(state), mem.age_pools(state)
    met, seen = 0.0, 0.0
    for left in range(PLACES):
        met += curve[stream, MET + first + left]
        seen += curve[stream, SEEN + first + left]
    prior = seen * PRIOR
    mean = met / seen if seen > 0.0 else 0.0
    width = float(mem.age_step(cfg, stream))
    for left in range(PLACES):
        total, steps = 0.0, 1
        if seen > 0.0:
            total = (curve[stream, MET + first + left] + prior * mean) / (curve[stream, SEEN + first + left] + prior)
        while steps <= left:
            behind = left - steps
            more = int(pools[stream, PLACES + behind])
            if pools[stream, behind] * steps <= total * more:
                break
            total += pools[stream, behind]
            steps += more
        pools[stream, left] = total
        pools[stream, PLACES + left] = steps
        curve[stream, WORTH + first + left] = total / steps / width
    state["age_lowest"][stream] = NONE


@kernel
def _arrange(cfg, state, stream, now):
    """Time has made a leap, or has gone back: all tuples find their cohorts anew."""
    cohorts = mem.cohorts(state)
    aside = NONE
    for place in range(COHORTS):
        while cohorts[stream, place]["root"] != NONE:
            x = int(cohorts[stream, place]["root"])
            leave(state, stream, x)
            aside = pairing_heap.insert(state, aside, x)
    state["age_now"][stream], state["age_top"][stream] = now, 0
    while aside != NONE:
        x = aside
        aside = pairing_heap.remove(state, aside, x)
        _join(cfg, state, stream, x, _end(cfg, state, stream, x))


@inlined
def follow(cfg, state, stream):
    """Time has gone on, most often within a step."""
    if step_of(cfg, stream, state["base"][stream]) != state["age_now"][stream]:
        _go_on(cfg, state, stream)


@kernel
def _go_on(cfg, state, stream):
    now = step_of(cfg, stream, state["base"][stream])
    if not 0 < now - state["age_now"][stream] <= PLACES:
        _arrange(cfg, state, stream, now)
    while state["age_now"][stream] < now:
        over = state["age_now"][stream] & (PLACES - 1)
        state["age_now"][stream] += 1
        state["age_top"][stream] = max(state["age_top"][stream] - 1, 0)
        _move_all(cfg, state, stream, over)
        _move_all(cfg, state, stream, over + PLACES)
        _move_all(cfg, state, stream, FAR)
        _count(state, stream)
    _weigh(cfg, state, stream, 0)
    _weigh(cfg, state, stream, PLACES)


@inlined
def _priority(worth, expected):
    return worth * expected if worth > 0.0 else 0.0


@kernel
def _find_lowest(state, stream):
    """The cohort whose first tuple goes next."""
    curve, cohorts, now = mem.curve(state), mem.cohorts(state), state["age_now"][stream]
    lowest, least, first = NONE, 0.0, 0
    steps = state["age_top"][stream] + 1
    for number in range(2 * steps + 2):
        worth = 0.0
        if number < 2 * steps:
            has_found = PLACES if number >= steps else 0
            left = number - steps if number >= steps else number
            place = ((left + now) & (PLACES - 1)) + has_found
            worth = curve[stream, WORTH + has_found + left]
        elif number == 2 * steps:
            place = FAR
            worth = curve[stream, WORTH + PLACES - 1]
        else:
            place = PAST
        cohort = cohorts[stream, place]
        if cohort["count"] == 0:
            continue
        prio = _priority(worth, cohort["prio"])
        if lowest == NONE or prio < least or (prio == least and cohort["arrival"] < first):
            lowest, least, first = place, prio, cohort["arrival"]
    state["age_lowest"][stream] = lowest
    state["age_least"][stream] = least


@kernel
def lowest(state, stream):
    """(tuple, priority, arrival) of the tuple that the stream would give up; there is one."""
    if state["age_lowest"][stream] == NONE:
        _find_lowest(state, stream)
    cohort = mem.cohorts(state)[stream, state["age_lowest"][stream]]
    return int(cohort["root"]), state["age_least"][stream], cohort["arrival"]
