"""ODJA (importance2006 4.2): the best schedule by dynamic programming over the states of memory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch, TableLike
from shedjoin.engine.records import NEVER
from shedjoin.errors import SpecError
from shedjoin.offline.optimum import Optimum, check_spec, groups_of, proved
from shedjoin.offline.paths import pairs_of, pairs_together
from shedjoin.offline.schedule import replay
from shedjoin.offline.states import expired, gained, replaced
from shedjoin.offline.timeline import Floats, Ints, Timeline, stops_of, timeline_of
from shedjoin.offline.worth import Worth
from shedjoin.simulation import simulate
from shedjoin.spec import JoinSpec

SENSES = ("highest", "lowest")
#: More memory states than this are refused. Each step makes (tuples in memory + 1) times as many to choose from.
MOST_STATES = 200_000

#: The worth of results, from the row numbers of their left and right tuples; may be negative.
Pairs = Callable[[Ints, Ints], Floats]


def odja(
    spec: JoinSpec,
    left: TableLike,
    right: TableLike,
    *,
    warmup: int | None = None,
    objective: str = "importance",
    sense: str = "highest",
    worth: Pairs | None = None,
) -> Optimum:
    """The best schedule for fixed shares, by enumerating every possible state of memory.

    Memory is always used: a tuple is admitted while there is room, and takes the place of an expired one; when memory is
    full it takes the place of any other, or is dropped. States that can be reached in several ways are held once, with the
    best way to them. The number of states is that of the ways to choose what memory holds out of a window: small when
    memory holds next to nothing, or next to all. Otherwise use `optimum`.

    Parameters
    ----------
    spec, left, right, warmup
        As for `optimum`; the budget must have fixed shares.
    objective
        ``"importance"`` or ``"matches"``.
    sense
        ``"highest"``, or ``"lowest"`` for the schedule of least importance among those that use all memory.
    worth
        What each result is worth instead, from two arrays of row numbers (left, right). Undesired results may be worth
        less than 0.

    Examples
    --------
    >>> from shedjoin.budget import Budget
    >>> from shedjoin.window import TimeWindow
    >>> spec = JoinSpec(window=TimeWindow(3), budget=Budget(tuples=2, allocation="fixed"))
    >>> left, right = {"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]}
    >>> odja(spec, left, right).value, odja(spec, left, right, sense="lowest").value
    (5.0, 3.0)
    """
    check_spec(spec, objective)
    assert spec.budget is not None
    if spec.budget.allocation != "fixed":
        raise SpecError("odja is for fixed shares: with allocation='variable' use optimum")
    if sense not in SENSES:
        raise SpecError(f"sense must be one of {', '.join(SENSES)}, not {sense!r}")
    begin = time.perf_counter()
    batch = Batch.of(left, right)
    timeline = timeline_of(batch, spec.windows, NEVER if warmup is None else int(warmup))
    weigh = _weigher(timeline, Worth(objective == "matches", spec.importance), worth)
    groups = [(stream, memory) for (stream,), memory in groups_of(spec, batch)]
    for stream, memory in groups:
        _refuse(timeline, stream, memory)
    value = float(weigh(0, *pairs_together(timeline)).sum())
    until = []
    for stream, memory in groups:
        part, instants = _search(timeline, stream, memory, weigh, 1 if sense == "highest" else -1)
        value += part
        until.append(instants)
    solving = time.perf_counter() - begin
    run = simulate(replace(spec, policy=replay(timeline, (until[0], until[1]))), left, right, warmup=warmup)
    reached = float(run.matches) if objective == "matches" else run.importance
    if worth is not None:
        reached = float(np.sum(worth(*run.pairs())))
    return proved(run, reached, objective, value, value, True, solving)


Weigher = Callable[[int, Ints, Ints], Floats]


def _weigher(timeline: Timeline, by_importance: Worth, worth: Pairs | None) -> Weigher:
    """What results are worth, from places in the sides: (stream of the first, first, second)."""

    def weigh(stream: int, mine: Ints, theirs: Ints) -> Floats:
        own, other = timeline.sides[stream], timeline.sides[1 - stream]
        if worth is None:
            return by_importance.of(own.importance[mine], other.importance[theirs])
        rows = own.seq[mine], other.seq[theirs]
        given = np.asarray(worth(*(rows if stream == 0 else rows[::-1])), np.float64)
        if given.shape != mine.shape or not np.isfinite(given).all():
            raise SpecError(f"worth must give a finite number for each of {mine.size} results, not {given!r}")
        return given

    return weigh


def _refuse(timeline: Timeline, stream: int, memory: int) -> None:
    """Refuse a search with too many states, before anything runs."""
    side = timeline.sides[stream]
    alive = np.zeros(timeline.ticks + 1, np.int64)
    np.add.at(alive, side.tick, 1)
    np.subtract.at(alive, np.maximum(side.end, side.tick + 1), 1)
    most = int(np.cumsum(alive).max(initial=0))
    held = min(memory, most)
    digits = (math.lgamma(most + 1) - math.lgamma(held + 1) - math.lgamma(most - held + 1)) / math.log(10)
    if digits > 15 or math.comb(most, held) > MOST_STATES:
        states = f"about 10^{round(digits)}" if digits > 15 else f"{math.comb(most, held):,}"
        raise SpecError(
            f"odja would have to hold up to {states} memory states (any {held:,} of {most:,} tuples), more than "
            f"the {MOST_STATES:,} that are allowed: use optimum, or memory that holds next to nothing or next to all"
        )


class _States(NamedTuple):
    """Memory states of one instant: the tuples in order of arrival (-1: room), a hash, and the best value of each."""

    held: Ints
    code: NDArray[np.uint64]
    value: Floats


@dataclass(slots=True)
class _Step:
    """How the states of a step came about: what printing the schedule backwards needs."""

    tick: int
    before: NDArray[np.int32]
    gone: NDArray[np.int32]  # the tuple that left, or -1


def _search(timeline: Timeline, stream: int, memory: int, weigh: Weigher, sign: int) -> tuple[float, Ints]:
    """The best value, and the instant at which each row leaves."""
    side = timeline.sides[stream]
    if not side.tick.size:
        return 0.0, side.tick
    tick, row, gain = _gains(timeline, stream, weigh)
    begin = np.searchsorted(tick, np.arange(timeline.ticks + 1))
    arrived = np.searchsorted(side.tick, np.arange(timeline.ticks + 1))
    names = np.random.default_rng(0).integers(1, 2**64, side.tick.size + 1, dtype=np.uint64)
    names[-1] = 0  # of -1, room
    now = np.zeros(side.tick.size)
    states = _States(np.full((1, min(memory, side.tick.size)), -1), np.zeros(1, np.uint64), np.zeros(1))
    steps: list[_Step] = []
    for instant in range(timeline.ticks):
        gone = int(np.searchsorted(side.end, instant, side="right"))  # tuples leave in order of arrival
        expired(states.held, states.code, gone, names)
        here = slice(begin[instant], begin[instant + 1])
        if here.start < here.stop:
            now[row[here]] = gain[here]
            states = states._replace(value=states.value + gained(states.held, now))
            now[row[here]] = 0
        for new in range(arrived[instant], arrived[instant + 1]):
            if side.end[new] <= instant:
                continue  # pushed out of its row window by rows of its own instant
            states, step = _admit(states, new, names, sign, instant)
            steps.append(step)
    best = int(np.argmax(sign * states.value))
    return float(states.value[best]), _backwards(np.maximum(side.end - 1, side.tick), steps, best)


def _gains(timeline: Timeline, stream: int, weigh: Weigher) -> tuple[Ints, Ints, Floats]:
    """(instant, row, what holding the row up to it gains), by instant."""
    stops = stops_of(timeline, stream)
    row, partner = pairs_of(stops)
    tick = timeline.sides[1 - stream].tick[partner]
    worth = weigh(stream, row, partner)
    order = np.lexsort((row, tick))
    tick, row, worth = tick[order], row[order], worth[order]
    new = np.ones(tick.size, np.bool_)
    new[1:] = (np.diff(tick) != 0) | (np.diff(row) != 0)
    begin = np.flatnonzero(new)
    return tick[begin], row[begin], np.add.reduceat(worth, begin) if begin.size else np.empty(0)


def _admit(states: _States, new: int, names: NDArray[np.uint64], sign: int, tick: int) -> tuple[_States, _Step]:
    """All states after a tuple came: it takes a free place, or that of any other, or none; of equal states the best stays."""
    memory = states.held.shape[1]
    full = states.held[:, 0] >= 0  # room comes first
    before = np.concatenate([np.flatnonzero(~full), np.repeat(np.flatnonzero(full), memory + 1)])
    place = np.concatenate([np.zeros((~full).sum(), np.int64), np.tile(np.arange(memory + 1), int(full.sum()))])
    dropped = place == memory
    gone = np.where(dropped, new, states.held[before, np.minimum(place, memory - 1)])
    code = np.where(dropped, states.code[before], states.code[before] - names[gone] + names[new])
    order = np.lexsort((-sign * states.value[before], code))
    chosen = order[np.concatenate(([True], np.diff(code[order]) != 0))]
    before, place, gone = before[chosen], place[chosen], gone[chosen]
    after = _States(replaced(states.held, before, place, new), code[chosen], states.value[before])
    return after, _Step(tick, before.astype(np.int32), gone.astype(np.int32))


def _backwards(until: Ints, steps: list[_Step], best: int) -> Ints:
    """Follow the best way from its end, and note when each tuple left."""
    for step in reversed(steps):
        if step.gone[best] >= 0:
            until[step.gone[best]] = step.tick
        best = int(step.before[best])
    return until
