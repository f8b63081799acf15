"""OPT as a function of memory: solve a few memory sizes, and bound the others.

The optimum is a flow, and the gain of the best flow is concave in its number of units, the memory. So lines between solved
memories are lower bounds, and the prices of each solved memory (`shedjoin.offline.multipliers`) give upper bounds for all
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from shedjoin.batch import Batch
from shedjoin.offline.multipliers import Relaxation, Tangent
from shedjoin.offline.optimum import best_of, graph_of, paths_of, worth_of
from shedjoin.offline.paths import together
from shedjoin.offline.solver import Progress
from shedjoin.offline.timeline import demand, squeeze, stops_of, timeline_of
from shedjoin.spec import JoinSpec

#: Streams that share a memory: one, or both.
Group = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Solved:
    """The best schedule within a memory of tuples, and the bound that its prices give for all others."""

    memory: int
    value: float
    tangent: Tangent
    complete: bool = True


class CurveSolver:
    """Solves optima of two streams within any memory.

    Parameters
    ----------
    spec
        The join; its budget and policy do not matter.
    batch
        Both streams, each in the order of its `ts`.
    warmup
        Results before this time do not count.
    objective
        As for `optimum`.
    """

    def __init__(self, spec: JoinSpec, batch: Batch, warmup: int, objective: str) -> None:
        self._timeline = timeline_of(batch, spec.windows, warmup)
        self._worth, self._unit = worth_of(spec, batch, objective)
        self._stops = {stream: stops_of(self._timeline, stream) for stream in (0, 1)}
        self._by = graph_of(self._timeline, self._worth)
        self._relaxation: dict[Group, Relaxation] = {}
        #: What rows of one instant give: always produced.
        self.together = together(self._timeline, self._worth) * self._unit

    def need(self, group: Group) -> int:
        """The most tuples that have a partner to come at one time: with foreknowledge this much gets everything."""
        wanted = demand(self._timeline, [(stream, self._stops[stream]) for stream in group])
        return max(1, int(wanted.max(initial=0)))

    def at(
        self,
        group: Group,
        memory: int,
        *,
        within: float = 0.0,
        progress: Progress | None = None,
        check: Callable[[], None] | None = None,
    ) -> Solved:
        """The best of one memory; with a gap of the flow's gain `within` allowed."""
        paths = paths_of(self._timeline, group, memory, self._worth, self._by, self._stops)
        part = best_of(paths, memory, self._worth, within, progress, check or (lambda: None))
        number = squeeze(self._timeline, [(stream, self._stops[stream]) for stream in group], memory)
        price = np.diff(part.paid[np.minimum(number, part.paid.size - 1)]) * float(self._unit)
        return Solved(memory, part.value * self._unit, self.relaxation(group).priced(price)[0], part.complete)

    def relaxation(self, group: Group) -> Relaxation:
        """The streams of a group, for bounds."""
        if group not in self._relaxation:
            stops = {stream: self._stops[stream] for stream in group}
            self._relaxation[group] = Relaxation(self._timeline, stops, self._worth, self._unit)
        return self._relaxation[group]


@dataclass(slots=True)
class Curve:
    """What the best schedule gets within each memory of one group, as far as it is known.

    Parameters
    ----------
    need, everything
        The memory that gets everything, and how much that is.
    solved, tangents, had
        Solved memories; bounds from other prices than theirs; memories and what some schedule gets within them.
    """

    need: int
    everything: float
    solved: list[Solved] = field(default_factory=list)
    tangents: list[Tangent] = field(default_factory=list)
    had: list[tuple[int, float]] = field(default_factory=list)

    def low(self, memory: int) -> float:
        """What some schedule gets for sure: the best line between two memories of which that is known."""
        known = [(0, 0.0), (self.need, self.everything), *self.had]
        known += [(point.memory, point.value) for point in self.solved]
        left = [one for one in known if one[0] <= memory]
        right = [one for one in known if one[0] >= memory]
        lines = [one[1] for one in left]  # more memory is never worse
        for low in left:
            for high in right:
                if high[0] > low[0]:
                    lines.append(low[1] + (high[1] - low[1]) * (memory - low[0]) / (high[0] - low[0]))
        return max(lines)

    def high(self, memory: int) -> float:
        """What no schedule exceeds."""
        return min([self.everything, *(tangent.bound(memory) for tangent in self._all())])

    def closest(self, memory: int) -> Tangent | None:
        """The tangent that says most about a memory."""
        return min(self._all(), key=lambda tangent: tangent.bound(memory), default=None)

    def _all(self) -> list[Tangent]:
        return [*(point.tangent for point in self.solved), *self.tangents]

    def open(self, memory: int) -> bool:
        """Whether a memory is worth solving: it does not get everything, and was not solved before."""
        return memory < self.need and all(point.memory != memory for point in self.solved)


def least_memory(curves: Sequence[Curve], caps: Callable[[int], Sequence[int]], wanted: float, most: int) -> int:
    """The least memory with which `wanted` is not ruled out: below, no schedule gets it. `caps` shares a memory out."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if sum(curve.high(cap) for curve, cap in zip(curves, caps(middle), strict=True)) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


def total(curves: Sequence[Curve], caps: Sequence[int]) -> tuple[float, float]:
    """(low, high) of several memories together."""
    pairs = [(curve.low(cap), curve.high(cap)) for curve, cap in zip(curves, caps, strict=True)]
    low, high = np.sum(pairs, axis=0)
    return float(low), float(high)
