"""What the results of a pilot say of the sums of groups, and of their variance with more memory.

With more memory the threshold T is lower. Let r be its part of the pilot's: a row that the pilot has with probability 1/a is in
memory with probability 1/b, b = max(1, r a). The variance of a sum is that of `shedjoin.estimates` with b in place of a, and the
pilot's results are a sample of its terms. It is kept for some r from 1 to 0; between them it is below the straight line.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]

#: The parts of the pilot's threshold for which variances are kept.
RATIOS = np.append(2.0 ** (-np.arange(17) / 2.0), 0.0)


#: A group with less than this part of the largest one's results is forgotten.
GONE = 1e-6


class Groups(NamedTuple):
    """By group, in ascending order: its sum, the sizes of its rows' shares and of their squares, and its variances.

    Variances are by memory (one a stream, or one for all) and by `RATIOS`. `spread` has the squares of what they are made of.
    """

    group: Integers
    total: Numbers
    whole: Numbers
    square: Numbers
    variance: Numbers
    spread: Numbers

    @classmethod
    def of(cls, group: Integers, total: Numbers, memories: int) -> Groups:
        """Groups of which nothing but their sums is known."""
        nothing, none = np.zeros(group.size), np.zeros((group.size, memories, RATIOS.size))
        return cls(group, total, nothing, nothing, none, none)

    @classmethod
    def none(cls, memories: int) -> Groups:
        return cls.of(np.empty(0, np.int64), np.empty(0), memories)

    def plus(self, other: Groups, fade: float = 1.0) -> Groups:
        """With what another stretch had; of what is known already only a part counts."""
        group, place = np.unique(np.concatenate([self.group, other.group]), return_inverse=True)
        added = []
        for name, mine, theirs in zip(self._fields[1:], self[1:], other[1:], strict=True):
            both = np.zeros((group.size, *mine.shape[1:]))
            left = fade**2 if name == "spread" else fade
            np.add.at(both, place, np.concatenate([mine * left, theirs]))
            added.append(both)
        return Groups(group, *added)

    def lately(self) -> Groups:
        """Without groups that have had no results for long."""
        some = self.whole > GONE * self.whole.max(initial=0.0)
        return Groups(*(column[some] for column in self))

    def at(self, ratios: Numbers) -> tuple[Numbers, Numbers]:
        """The variance of each group at a ratio for each memory, and how far off that may be: its standard error."""
        places = np.searchsorted(-RATIOS, -ratios).clip(1, RATIOS.size - 1)
        above, below = RATIOS[places - 1], RATIOS[places]
        part, memory = (ratios - below) / (above - below), np.arange(ratios.size)

        def between(by_ratio: Numbers) -> Numbers:
            lines = by_ratio[:, memory, places - 1] * part + by_ratio[:, memory, places] * (1.0 - part)
            made: Numbers = np.maximum(lines.sum(axis=1), 0.0)
            return made

        return between(self.variance), np.sqrt(between(self.spread))


class Open(NamedTuple):
    """Rows of the pilot with results in this stretch, by row and group: their share so far, and what a later result adds to."""

    row: Integers
    group: Integers
    share: Numbers
    before: Numbers

    @classmethod
    def none(cls) -> Open:
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, np.empty(0), np.empty((0, RATIOS.size)))


#: What one of these takes.
OPEN_BYTES = sum(column.itemsize for column in Open.none()[:3]) + 8 * RATIOS.size


class Sums:
    """Adds up the results of a stretch, push by push. It remembers as many rows as the pilot stores."""

    def __init__(self, memories: int) -> None:
        self.memories = memories
        self.groups = Groups.none(memories)
        self.open = Open.none()

    def add(self, weight: Numbers, row: Integers, value: Numbers, group: Integers) -> None:
        """Results: their weights in the pilot, stored rows (2 x number + stream), values and groups."""
        if not weight.size:
            return
        order = np.lexsort((weight, group, row))
        a, y, row, group = weight[order], value[order], row[order], group[order]
        first = np.append(True, (row[1:] != row[:-1]) | (group[1:] != group[:-1]))
        which, starts = np.cumsum(first) - 1, np.flatnonzero(first)
        extra = y[:, None] * (np.maximum(a[:, None] * RATIOS, 1.0) - 1.0)
        before = np.cumsum(extra, axis=0) - extra
        before -= before[starts][which]
        known = self._known(row[starts], group[starts])
        carried = np.where(known[:, None] >= 0, np.append(self.open.before, np.zeros((1, RATIOS.size)), 0)[known], 0.0)
        before += carried[which]
        variance = a[:, None] * (y[:, None] * extra + 2.0 * y[:, None] * before)
        share = np.bincount(which, a * y).astype(np.float64)
        grown = np.add.reduceat(extra, starts, axis=0)
        names, place = np.unique(group[starts], return_inverse=True)
        made = np.zeros((names.size, self.memories, RATIOS.size))
        memory = (row[starts] & 1) if self.memories > 1 else np.zeros(starts.size, np.int64)
        spread, each = np.zeros_like(made), np.add.reduceat(variance, starts, axis=0)
        np.add.at(made, (place, memory), each)
        np.add.at(spread, (place, memory), each**2)
        new = Groups.of(names, np.bincount(place, share, names.size).astype(np.float64), self.memories)
        self.groups = self.groups.plus(new._replace(variance=made, spread=spread))
        self._remember(row[starts], group[starts], share, grown, known)

    def _known(self, row: Integers, group: Integers) -> Integers:
        """Where rows stand among those that are open; -1: nowhere. Both are in order."""
        if not self.open.row.size:
            return np.full(row.size, -1)
        mine = np.rec.fromarrays([self.open.row, self.open.group])
        asked = np.rec.fromarrays([row, group])
        place = np.searchsorted(mine, asked).clip(max=mine.size - 1)
        return np.where(mine[place] == asked, place, -1)

    def _remember(self, row: Integers, group: Integers, share: Numbers, grown: Numbers, known: Integers) -> None:
        there, new = known >= 0, known < 0
        self.open.share[known[there]] += share[there]
        self.open.before[known[there]] += grown[there]
        parts = [
            np.concatenate(pair) for pair in zip(self.open, (row[new], group[new], share[new], grown[new]), strict=True)
        ]
        order = np.lexsort((parts[1], parts[0]))
        self.open = Open(*(part[order] for part in parts))

    def close(self, stored: Integers | None = None) -> None:
        """Rows that are not stored any more have no further results. None: no row has any in this stretch."""
        gone = np.ones(self.open.row.size, np.bool_) if stored is None else ~np.isin(self.open.row, stored)
        names, place = np.unique(self.open.group[gone], return_inverse=True)
        share = self.open.share[gone]
        whole, square = (
            np.bincount(place, sizes, names.size).astype(np.float64) for sizes in (np.abs(share), share**2)
        )
        new = Groups.of(names, np.zeros(names.size), self.memories)
        self.groups = self.groups.plus(new._replace(whole=whole, square=square))
        row, group, share, before = self.open
        self.open = Open(row[~gone], group[~gone], share[~gone], before[~gone])
