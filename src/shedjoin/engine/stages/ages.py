"""Age: what rows of each age are worth, learned from the ages at which partners were found.

The life of a tuple is cut into steps of equal length. Tuples of one stream that have equally many steps left are a cohort: they
have one rate of partners, and are ordered by what each is expected to find. Time moves whole cohorts, so that no tuple is
touched. To find the lowest, the roots of the cohorts are compared, at most one for each step.
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
#: Cohorts behind these: tuples that have more steps left, and tuples whose window has ended.
FAR, PAST = PLACES, PLACES + 1
COHORTS = PLACES + 2
#: What is known of tuples with so many steps left: instants with partners, tuples that might have had some, and the best rate.
MET, SEEN, WORTH = 0, PLACES, 2 * PLACES
NUMBERS = 3 * PLACES
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
def _place_of(state, stream, left):
    """The cohort of tuples that have so many steps left."""
    if left < 0:
        return PAST
    return (left + state["age_now"][stream]) & (PLACES - 1) if left < PLACES else FAR


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
    place = _place_of(state, stream, _steps_left(cfg, state, stream, end))
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
def enter(cfg, state, stream, x, expected, is_new):
    """A tuple takes part from now on."""
    end = _end(cfg, state, stream, x)
    mem.prio(state)[x] = expected
    _join(cfg, state, stream, x, end)
    left = _steps_left(cfg, state, stream, end)
    if is_new and 0 <= left < PLACES:
        mem.curve(state)[stream, SEEN + left] += part_of(expected) / UNIT


@kernel
def meet(cfg, state, stream, x, expected):
    """A tuple that was stored before this instant found partners."""
    left = _steps_left(cfg, state, stream, _end(cfg, state, stream, x))
    if 0 <= left < PLACES:
        mem.curve(state)[stream, MET + left] += 1.0
    if expected != mem.prio(state)[x] and mem.place(state)[x] != NONE:
        leave(state, stream, x)
        enter(cfg, state, stream, x, expected, False)


@kernel
def _move_all(cfg, state, stream, place):
    """Put the tuples of a cohort where they belong now."""
    cohorts = mem.cohorts(state)
    while cohorts[stream, place]["root"] != NONE:
        x = int(cohorts[stream, place]["root"])
        end = _end(cfg, state, stream, x)
        if _place_of(state, stream, _steps_left(cfg, state, stream, end)) == place:
            return
        leave(state, stream, x)
        _join(cfg, state, stream, x, end)


@kernel
def _count(state, stream):
    """All that is stored might find partners in the step that begins."""
    curve = mem.curve(state)
    for left in range(PLACES):
        cohort = mem.cohorts(state)[stream, (left + state["age_now"][stream]) & (PLACES - 1)]
        curve[stream, MET + left] *= FADE
        curve[stream, SEEN + left] = curve[stream, SEEN + left] * FADE + cohort["expected"] / UNIT


@kernel
def _weigh(cfg, state, stream):
    """The best rate that tuples with so many steps left can look forward to: over the next step, the next two, ...

    Steps are pooled from the last one back: those behind a step are taken to it while their rate is higher.
    """
    curve, pools = mem.curve(state), mem.age_pools(state)
    met, seen = 0.0, 0.0
    for left in range(PLACES):
        met += curve[stream, MET + left]
        seen += curve[stream, SEEN + left]
    prior = seen * PRIOR
    mean = met / seen if seen > 0.0 else 0.0
    width = float(mem.age_step(cfg, stream))
    for left in range(PLACES):
        total = (curve[stream, MET + left] + prior * mean) / (curve[stream, SEEN + left] + prior) if seen > 0.0 else 0.0
        steps = 1
        while steps <= left:
            behind = left - steps
            more = int(pools[stream, PLACES + behind])
            if pools[stream, behind] * steps <= total * more:
                break
            total += pools[stream, behind]
            steps += more
        pools[stream, left] = total
        pools[stream, PLACES + left] = steps
        curve[stream, WORTH + left] = total / steps / width
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
    state["age_now"][stream] = now
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
        _move_all(cfg, state, stream, over)
        _move_all(cfg, state, stream, FAR)
        _count(state, stream)
    _weigh(cfg, state, stream)


@inlined
def _priority(worth, expected):
    return worth * expected if worth > 0.0 else 0.0


@kernel
def _find_lowest(state, stream):
    """The cohort whose first tuple goes next."""
    curve, cohorts = mem.curve(state), mem.cohorts(state)
    lowest, least, first = NONE, 0.0, 0
    for place in range(COHORTS):
        cohort = cohorts[stream, place]
        if cohort["count"] == 0:
            continue
        prio = 0.0
        if place < PLACES:
            left = (place - state["age_now"][stream]) & (PLACES - 1)
            prio = _priority(curve[stream, WORTH + left], cohort["prio"])
        elif place == FAR:
            prio = _priority(curve[stream, WORTH + PLACES - 1], cohort["prio"])
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
