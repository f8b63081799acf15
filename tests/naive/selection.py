"""Selective processing: the part of each other window that a row is compared with (gedik2007)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naive.arithmetic import added, combine
from naive.rows import LeftOut, Stored, place_in_window
from shedjoin.window import TimeWindow

if TYPE_CHECKING:
    from naive.twin import Twin

#: r never falls below this: what is not tried at all cannot be learned about.
LEAST_FRACTION = 1e-4
#: A type's own samples count from this many on.
TRUSTED_SAMPLES = 4.0


class Selection:
    """What is known of ages and types, and the fractions that follow from it. Lists are by window, then by age or type."""

    def __init__(self, twin: Twin) -> None:
        assert twin.join.selective is not None
        self.twin, self.settings = twin, twin.join.selective
        #: How many ages lie ahead of a row, and how many there are: 0 is the farthest ahead.
        self.ahead = -(-max(window.size for window in twin.windows) // self.settings.basic)
        self.ages = 2 * self.ahead + 1
        self.kinds = max(1, self.settings.types)
        self.fraction = self.settings.fraction
        self.fractions = [self.fraction for _ in twin.streams]
        self.kind_fractions = [[self.fraction] * self.kinds for _ in twin.streams]
        #: The newest first, what lies ahead last.
        newest_first = [*range(self.ahead, self.ages), *range(self.ahead - 1, -1, -1)]
        self.ranking = [list(newest_first) for _ in twin.streams]
        self.met, self.seen, self.share, self.density = ([[0.0] * self.ages for _ in twin.streams] for _ in range(4))
        self.gain, self.kind_seen, self.kind_rows, self.kind_sum = (
            [[0.0] * self.kinds for _ in twin.streams] for _ in range(4)
        )
        self.samples = [0 for _ in twin.streams]
        self.mean_density = [0.0 for _ in twin.streams]
        self.mean_window = [0.0 for _ in twin.streams]
        self.came = self.fetched = 0
        self.next_rate: int | None = None
        self.next_rank: int | None = None
        self.is_sample = False

    @property
    def learns(self) -> bool:
        return self.settings.correlation or self.settings.direction or self.settings.types > 0

    @property
    def sizes(self) -> list[float]:
        return [float(window.range) for window in self.twin.windows]

    def kind(self, x: Stored) -> int:
        return x.row.kind if self.settings.types else 0

    # ------------------------------------------------------------------------------------------- the part of a window

    def parts(self, x: Stored, windows: Sequence[Sequence[Stored]]) -> list[list[Stored]]:
        """The tuples of each other window, oldest first, that a row is compared with."""
        self.is_sample = self.learns and self.twin.generator.unit() < self.fraction * self.settings.sample
        return [
            list(there) if other == x.stream or self.is_sample else self.part(x, other, there)
            for other, there in enumerate(windows)
        ]

    def part(self, x: Stored, other: int, there: Sequence[Stored]) -> list[Stored]:
        """Algorithm 3: the best ages first; of the last one the newest. A part of a tuple is a chance."""
        fraction = self.kind_fractions[other][self.kind(x)] if self.settings.types else self.fractions[other]
        if fraction >= 1.0:
            return list(there)
        allowed = fraction * len(there)
        chosen: list[Stored] = []
        for age in self.ranking[other]:
            of_age = [y for y in there if self.age(x, y) == age]
            if len(of_age) > allowed:
                some = int(allowed + self.twin.generator.unit())
                chosen += of_age[len(of_age) - some :]
                break
            chosen += of_age
            allowed -= len(of_age)
        return [y for y in there if y in chosen]

    def age(self, x: Stored, y: Stored) -> int:
        """How many basic windows a tuple lies behind the row, or behind the newest row of a row window."""
        if isinstance(self.twin.windows[y.stream], TimeWindow):
            now, then = x.ts, y.ts
        else:
            now, then = self.twin.arrived[y.stream] - 1, y.place
        behind = now // self.settings.basic - then // self.settings.basic
        return min(max(behind + self.ahead, 0), self.ages - 1)

    def learn(self, x: Stored, windows: Sequence[Sequence[Stored]], found: Sequence[Sequence[Stored]]) -> None:
        """After a complete comparison: where the partners were, and what they were worth."""
        how = self.twin.join.importance
        worth = added(combine(how, [y.importance for y in result]) for result in found)
        for other in self.twin.streams:
            if other != x.stream:
                self.samples[other] += 1
                for result in found:
                    self.met[other][self.age(x, result[other])] += 1.0
                for y in windows[other]:
                    self.seen[other][self.age(x, y)] += 1.0
                self.gain[other][self.kind(x)] += worth
                self.kind_seen[other][self.kind(x)] += len(windows[other])

    # ------------------------------------------------------------------------------------------------------- adapting

    def come(self, x: Stored) -> None:
        """A row arrives."""
        self.adapt(x.ts)
        if self.settings.types:
            self.kind_rows[x.stream][x.row.kind] += 1.0
            self.kind_sum[x.stream][x.row.kind] += x.importance
        self.came += 1

    def adapt(self, now: int) -> None:
        """Whatever is due at this time."""
        settings = self.settings
        if settings.rate and (self.next_rate is None or now >= self.next_rate):
            if self.came and self.twin.join.cpu is not None:
                self.follow_rate(self.fetched / self.came)
            self.came = self.fetched = 0
            self.next_rate = now - now % settings.period + settings.period
            self.set_fractions()
        if self.next_rank is None or now >= self.next_rank:
            self.rank()
            self.set_fractions()
            self.fade()
            self.next_rank = now - now % settings.rank_period + settings.rank_period

    def follow_rate(self, beta: float) -> None:
        """Algorithm 1: r after a period in which this share of the rows could be processed."""
        if beta < 1.0:
            self.fraction = max(LEAST_FRACTION, beta * self.fraction)
        else:
            self.fraction = min(1.0, self.settings.boost * self.fraction)

    def set_fraction(self, fraction: float) -> None:
        """r is given from outside."""
        self.fraction = fraction
        self.set_fractions()

    def rank(self) -> None:
        """Algorithm 2: order the ages by partners found for each tuple looked at, and begin to count anew."""
        for stream in self.twin.streams:
            met, seen = self.met[stream], self.seen[stream]
            looked = added(seen)
            if looked == 0.0:  # nothing learned: all stays as it was
                continue
            self.density[stream] = [m / s if s > 0.0 else 0.0 for m, s in zip(met, seen, strict=True)]
            self.share[stream] = [s / looked for s in seen]
            self.mean_density[stream] = added(met) / looked
            self.mean_window[stream] = looked / self.samples[stream]
            self.samples[stream] = 0
            self.met[stream], self.seen[stream] = [0.0] * self.ages, [0.0] * self.ages
            if self.settings.correlation:
                self.ranking[stream].sort(key=lambda age, of=self.density[stream]: -of[age])  # type: ignore[misc]

    def set_fractions(self) -> None:
        """r for each window, or for each window and type. Until something is known of all, they share it alike."""
        r = self.fraction
        self.fractions = [r for _ in self.twin.streams]
        self.kind_fractions = [[r] * self.kinds for _ in self.twin.streams]
        if all(size > 0.0 for size in self.mean_window) and r < 1.0:
            if self.settings.types:
                self.pack()
            elif self.settings.direction and len(set(self.mean_density)) > 1:
                self.split()

    def split(self) -> None:
        """Algorithm 4: fractions that leave r (w1 + w2 + ...) the same, better windows as large a part as can be."""
        rest = self.fraction * added(self.sizes)
        for k, size in enumerate(self.sizes):
            later = (j for j in self.twin.streams if j > k and self.mean_density[j] > self.mean_density[k])
            better = added(self.sizes[j] for j in later)
            self.fractions[k] = min(1.0, max(0.0, (rest - better) / size))
            rest -= self.fractions[k] * size

    def pack(self) -> None:
        """Algorithm 5: fill the budget of comparisons with what brings most for each of them.

        An item is a window, a type of row that probes it and an age. Of each window and type the best age left is next.
        """
        budget = added(self.fraction * size for size in self.sizes)
        value = [self.values_of_types(stream) for stream in self.twin.streams]
        self.kind_fractions = [[0.0] * self.kinds for _ in self.twin.streams]
        left = {(i, z): list(self.ranking[i]) for i in self.twin.streams for z in range(self.kinds)}

        def brings(item: tuple[int, int]) -> float:
            i, z = item
            mean = self.mean_density[i]
            return value[i][z] * (self.density[i][left[item][0]] / mean) if mean > 0.0 else 0.0

        while any(left.values()) and budget > 0.0:
            i, z = max((item for item in left if left[item]), key=lambda item: (brings(item), [-n for n in item]))
            age = left[i, z].pop(0)
            rows = [self.rows_probing(i, kind) for kind in range(self.kinds)]
            volume = self.sizes[i] * rows[z] / max(1.0, added(rows)) * self.share[i][age]
            self.kind_fractions[i][z] += (1.0 if volume <= budget else budget / volume) * self.share[i][age]
            budget -= volume

    def rows_probing(self, window: int, kind: int) -> float:
        return added(self.kind_rows[stream][kind] for stream in self.twin.streams if stream != window)

    def values_of_types(self, window: int) -> list[float]:
        """What a comparison with a window brings each type: from samples, while they are few from what types are worth."""
        seen, gain = self.kind_seen[window], self.gain[window]
        typical = [self.typical(window, z) for z in range(self.kinds)]
        brought, usual = added(gain), added(t * s for t, s in zip(typical, seen, strict=True))
        trusted = TRUSTED_SAMPLES * self.mean_window[window]
        factor = brought / usual if usual > 0.0 else 1.0
        return [(g + trusted * (t * factor)) / (s + trusted) for g, t, s in zip(gain, typical, seen, strict=True)]

    def typical(self, window: int, kind: int) -> float:
        """The usual worth of an output of such a row with a tuple of the window, by how often types occur there."""
        rows = self.rows_probing(window, kind)
        if rows == 0.0:
            return 0.0
        mine = added(self.kind_sum[stream][kind] for stream in self.twin.streams if stream != window) / rows
        there = [(n, s / n) for n, s in zip(self.kind_rows[window], self.kind_sum[window], strict=True) if n > 0.0]
        total = added(n * combine(self.twin.join.importance, [mine, mean]) for n, mean in there)
        return total / added(n for n, _ in there) if there else mine

    def fade(self) -> None:
        """What is known of types counts half as much with every ranking."""
        for table in (self.gain, self.kind_seen, self.kind_rows, self.kind_sum):
            for of_stream in table:
                of_stream[:] = [0.5 * number for number in of_stream]


def left_out(twin: Twin, x: Stored, there: Sequence[Stored], part: Sequence[Stored]) -> list[LeftOut]:
    """The stretches of a window, oldest first, that a row was not compared with; neighbours are one."""
    made: list[LeftOut] = []
    extends = False
    for y in there:
        if y in part:
            extends = False
            continue
        ts, seq = place_in_window(twin.windows, y)
        lo = made.pop()[3:5] if extends else (ts, seq)
        made.append(LeftOut(x.stream, x.seq, y.stream, *lo, ts, seq + 1))
        extends = True
    return made
