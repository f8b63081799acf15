"""Lagrange multipliers: the price of memory at each border between two instants, and the bound it proves for every memory.

For given prices, each tuple is kept as long as it pays, independently of all others. Their net gain plus the price of m units
of memory is an upper bound on the gain of any schedule within m tuples. It is linear in m: `Tangent`. The prices of
a solved memory touch the optimum there. For other memories, a subgradient method with Polyak steps and momentum (Camerini,
Fratta and Maffioli) lowers prices where memory is left and raises them where it is short. A step costs about a thousandth of
a solved memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from shedjoin.offline.paths import gains_of
from shedjoin.offline.priced_schedule import best_stops, fill, hold_alike, hold_each
from shedjoin.offline.timeline import Floats, Ints, Stops, Timeline
from shedjoin.offline.worth import Worth

#: The most steps for one memory, and so many without progress before they become shorter.
STEPS, PATIENCE = 120, 3
#: How much of the last direction the next one has, and how much shorter steps become.
AS_BEFORE, SHORTER = 0.6, 0.75
#: Steps end when they aim at no more than this part of the gap that will do.
FINE = 0.02


@dataclass(frozen=True, slots=True)
class Tangent:
    """Within m tuples no schedule gets more than `base` + `slope` * m. `price`: by these prices."""

    base: float
    slope: float
    price: Floats

    def bound(self, memory: float) -> float:
        return self.base + self.slope * memory


class Relaxation:
    """The tuples of streams that share a memory.

    Parameters
    ----------
    stops
        Where the tuples of each of these streams meet partners.
    unit
        What one result is worth, where results are counted.
    """

    def __init__(self, timeline: Timeline, stops: Mapping[int, Stops], worth: Worth, unit: float) -> None:
        self._borders = max(timeline.ticks - 1, 0)
        self._parts = [_Part.of(timeline, stream, on, worth, unit) for stream, on in stops.items()]

    def priced(self, price: Floats) -> tuple[Tangent, Ints]:
        """What these prices prove, and how many are then held over each border."""
        paid = np.concatenate(([0.0], np.cumsum(price)))
        change = np.zeros(self._borders + 1, np.int64)
        base = sum(part.hold(paid, change) for part in self._parts)
        return Tangent(base, float(price.sum()), price), np.cumsum(change)[:-1]

    def near(
        self, start: Tangent | None, memory: int, low: float, gap: float, check: Callable[[], None] | None = None
    ) -> Tangent:
        """A tangent close to the optimum of a memory.

        Parameters
        ----------
        start
            Another, and the result is no worse; None: memory is free.
        low
            What some schedule gets.
        gap
            How far above `low`, or above the optimum as far as steps can tell, will do.
        """
        best = start or self.priced(np.zeros(self._borders))[0]
        price = best.price
        aim, waited = (best.bound(memory) - low) / 2, 0
        way = np.zeros(self._borders)
        for _ in range(STEPS):
            if best.bound(memory) - low <= gap or aim <= FINE * gap:
                break
            if check is not None:
                check()
            now, held = self.priced(price)
            if now.bound(memory) < best.bound(memory) - aim / 4:
                waited = 0
            elif (waited := waited + 1) == PATIENCE:
                aim, waited = SHORTER * aim, 0
            if now.bound(memory) < best.bound(memory):
                best = now
            way = memory - held + AS_BEFORE * way
            way[(price == 0.0) & (way > 0.0)] = 0.0  # no price is below 0
            steep = float(way @ way)
            if not steep:
                break
            price = np.maximum(price - (now.bound(memory) - best.bound(memory) + aim) / steep * way, 0.0)
        return best

    def schedule(self, tangent: Tangent, memory: int) -> float:
        """What a schedule gets that holds the tuples within a memory that gain most beyond these prices, as far as they fit."""
        stops = np.cumsum([0, *(part.stop_tick.size for part in self._parts)])
        sums = [part.sums() for part in self._parts]
        places = np.cumsum([0, *(gained.size for gained, _ in sums)])
        first = np.concatenate([part.first + at for part, at in zip(self._parts, stops[:-1], strict=True)])
        last = np.concatenate([part.last + at for part, at in zip(self._parts, stops[:-1], strict=True)])
        tick = np.concatenate([part.tick for part in self._parts])
        stop_tick = np.concatenate([part.stop_tick for part in self._parts])
        gained = np.concatenate([one for one, _ in sums])
        base = np.concatenate([one + at for (_, one), at in zip(sums, places[:-1], strict=True)])
        paid = np.concatenate(([0.0], np.cumsum(tangent.price)))
        stop = np.empty(first.size, np.int64)
        net = best_stops(first, last, tick, stop_tick, gained, base, paid, stop)
        order = np.argsort(-net, kind="stable")
        order = order[stop[order] >= 0]
        held = np.zeros(2 << max(self._borders - 1, 0).bit_length(), np.int64)
        return float(fill(order, first, tick, stop_tick, gained, base, paid, stop, memory, held, np.zeros_like(held)))


@dataclass(frozen=True, slots=True)
class _Part:
    """The tuples of one stream."""

    order: Ints  # by key, then by time
    first: Ints
    last: Ints
    tick: Ints
    stop_tick: Ints
    gain: Floats
    alike: bool  # all gain the same at a stop: `gain` is that, summed up; else what each gains, one after the other

    @classmethod
    def of(cls, timeline: Timeline, stream: int, stops: Stops, worth: Worth, unit: float) -> _Part:
        side = timeline.sides[stream]
        order = np.argsort(side.key, kind="stable")
        gain: Floats = (
            stops.begin.astype(np.float64) * unit if worth.counts else gains_of(timeline, stream, stops, worth)
        )
        return cls(order, stops.first, np.maximum(stops.first, stops.last), side.tick, stops.tick, gain, worth.counts)

    def sums(self) -> tuple[Floats, Ints]:
        """Gains summed up over stops, and where in them each tuple begins."""
        if self.alike:
            return self.gain, self.first
        met = self.last - self.first
        return np.concatenate(([0.0], np.cumsum(self.gain))), np.cumsum(met) - met

    def hold(self, paid: Floats, change: Ints) -> float:
        """Hold every tuple as long as it pays; add to `change` how many are held from an instant on."""
        places = self.first, self.last, self.tick, self.stop_tick, self.gain, paid, change
        return float(hold_alike(self.order, *places) if self.alike else hold_each(*places))
