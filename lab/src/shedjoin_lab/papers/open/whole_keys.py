"""Fewest incomplete tuples (das2003's Archive-metric): whole keys are given up, those that cost least for what they free."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


#: The number of live tuples of a key varies. A key fits if its mean and this many standard deviations do.
MARGIN = 1.0


def priorities(left: Floats, right: Floats, window: int, memory: int) -> tuple[Floats, Floats]:
    """For each stream and key its place in the order of giving up, from 1 (first) on; no two share a place.

    A tuple is incomplete as soon as one result of it is missing. Who gives up a tuple of a key spoils its later partners;
    further tuples of that key then cost less. The damage of giving up a key's tuples of one stream, in incomplete tuples for
    each time unit, is divided by the memory that it frees. The least goes first; then the other stream's tuples of that key
    are cheaper. A key that does not fit into what better ones leave would be complete for nobody: it goes before all that fit.

    Parameters
    ----------
    left, right
        The probability of each key.
    window, memory
        Of both streams; each has half of the memory.
    """
    parts = (left, right)
    shed = np.zeros((2, left.size), np.bool_)
    place = np.zeros((2, left.size))
    for turn in range(1, 2 * left.size + 1):
        price = np.full((2, left.size), np.inf)
        for stream, own in enumerate(parts):
            before = _incomplete(left, right, window, shed[0], shed[1])
            either = shed.copy()
            either[stream] = True
            after = _incomplete(left, right, window, either[0], either[1])
            price[stream] = np.where(shed[stream], np.inf, (after - before) / np.maximum(window * own, 1e-300))
        # Where partners are many all cost alike: the rarer key goes, so that few keys are complete and not many in part.
        cheapest = np.flatnonzero(price <= price.min() * (1 + 1e-9))
        stream, key = divmod(int(cheapest[np.argmin((left + right)[cheapest % left.size])]), left.size)
        shed[stream, key] = True
        place[stream, key] = turn
    for stream, own in enumerate(parts):
        _prefer_what_fits(place[stream], window * own, memory / 2)
    return place[0], place[1]


def _prefer_what_fits(place: Floats, live: Floats, room: float) -> None:
    for key in np.argsort(-place):
        if live[key] + MARGIN * np.sqrt(live[key]) <= room:
            room -= live[key]
            place[key] += 2 * place.size


def _incomplete(
    left: Floats, right: Floats, window: int, left_shed: NDArray[np.bool_], right_shed: NDArray[np.bool_]
) -> Floats:
    """Incomplete tuples of each key in a time unit, if these are given up: those that have a partner which they miss."""
    total = np.zeros(left.size)
    for own, other, mine, theirs in ((left, right, left_shed, right_shed), (right, left, right_shed, left_shed)):
        # A shed tuple misses partners that come later, every tuple misses shed partners that came before.
        expected = window * other * (mine.astype(np.float64) + theirs)
        total += own * -np.expm1(-expected)
    return total


def fewest_incomplete(keys: Sequence[Ints], window: int, memory: int) -> int:
    """No policy leaves fewer incomplete tuples, with half of the memory for each stream and one tuple of each at an instant.

    A complete tuple is held until its last partner comes. Of such stretches of time the most that fit into the memory are
    found by giving up the one that lasts longest whenever one is too many; the others are incomplete. (What they spoil for
    their partners is not counted: the bound may be out of reach.)

    Examples
    --------
    >>> fewest_incomplete([np.array([1, 1, 2]), np.array([0, 0, 1])], window=3, memory=2)
    1
    """
    lost = 0
    for mine, other in (keys, keys[::-1]):
        times: dict[int, list[int]] = {}
        for instant, key in enumerate(other.tolist()):
            times.setdefault(key, []).append(instant)
        held: list[int] = []  # minus the last instant of each, the longest first
        ends: list[list[int]] = [[] for _ in range(mine.size + window + 1)]
        gone: set[int] = set()
        count = 0
        for instant, key in enumerate(mine.tolist()):
            for row in ends[instant]:
                if row not in gone:
                    count -= 1
            partners = times.get(key, [])
            place = int(np.searchsorted(partners, instant + window)) - 1
            if place < 0 or partners[place] <= instant:
                continue  # no partner to wait for
            heapq.heappush(held, -(partners[place] * mine.size + instant))
            ends[partners[place]].append(instant)
            count += 1
            if count > memory // 2:
                gone.add(-heapq.heappop(held) % mine.size)
                count -= 1
                lost += 1
    return lost
