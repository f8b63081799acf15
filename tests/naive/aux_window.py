"""Dual windows: rows stand in an aux-window while histograms tell how many partners they will meet (dual2006)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from naive.rows import Stored
from naive.weights import WindowWeights
from shedjoin.cpu.dual_speed import best_speed, partners, rear_share
from shedjoin.window import TimeWindow

if TYPE_CHECKING:
    from naive.twin import Twin


class AuxWindow:
    """The aux-windows of all streams as one line in order of arrival."""

    def __init__(self, twin: Twin) -> None:
        assert twin.join.dual is not None
        self.twin, self.settings = twin, twin.join.dual
        self.line: list[Stored] = []
        self.let_in = [0 for _ in twin.streams]
        #: What each window will hold when the row that entered last probes.
        self.windows: list[list[Stored]] = [[] for _ in twin.streams]
        self.weights = WindowWeights(twin, self.windows)
        self.rear = 0.0 if isinstance(self.settings.rear, bool) else self.settings.rear
        self.front = 0.0 if isinstance(self.settings.front, bool) else self.settings.front
        self.came = [0.0 for _ in twin.streams]
        self.last_adapt: int | None = None

    @property
    def by_time(self) -> bool:
        return isinstance(self.twin.windows[0], TimeWindow)

    # ----------------------------------------------------------------------------------------------- the aux-window

    def enter(self, x: Stored) -> None:
        """From the queue into the aux-window, and out of it whoever no longer fits."""
        if self.twin.join.counts_let_in:
            x.place = self.let_in[x.stream]
        self.let_in[x.stream] += 1
        self.weights.histogram = self.twin.weights.histogram
        x.expected = self.weights.chance(x)
        self.line.append(x)
        self.windows[x.stream].append(x)
        for stream, window in enumerate(self.twin.windows):
            there = self.windows[stream]
            while there and (there[0].ts <= x.ts - window.range if self.by_time else len(there) > window.size):
                there.pop(0)
        while self.is_over(x):
            self.leave()

    def is_over(self, newest: Stored) -> bool:
        """Whether it holds more than it should. No row leaves it before its whole instant has come."""
        if not self.line or self.line[0].ts == newest.ts:
            return False
        sizes = [window.size for window in self.twin.windows]
        return self.is_left_behind(newest.ts) if self.by_time else len(self.line) > sum(sizes)

    def is_left_behind(self, time: float) -> bool:
        """Whether its first row came a window or more before this time."""
        return self.by_time and bool(self.line) and self.line[0].ts <= time - max(w.size for w in self.twin.windows)

    def let_go(self, time: float) -> None:
        """Clocks were told: a window after a row came, no other has to come for it to leave."""
        while self.is_left_behind(time):
            self.leave()

    def leave(self) -> None:
        """The first row has its turn, with a probe or without."""
        x = self.line[0]
        null = self.twin.join.condition.is_null(x.row)
        x.probes = null or self.settings.rear is False or not self.sheds(x)
        self.line.pop(0)
        if self.twin.join.counts_let_in:
            later = Counter(y.stream for y in self.line if y.instant != x.instant)
            x.through = tuple(count - later[stream] for stream, count in enumerate(self.let_in))
        self.twin.turn([x])

    def flush(self) -> None:
        while self.line:
            self.leave()

    def sheds(self, x: Stored) -> bool:
        """Of the stream's rows in the aux-window the share k_r does not probe: those with fewest partners, lots at the border."""
        is_null = self.twin.join.condition.is_null
        there = [y.expected for y in self.line if y.stream == x.stream and not is_null(y.row)]
        border = self.rear * len(there)
        fewer = sum(expected < x.expected for expected in there)
        equal = there.count(x.expected)
        if fewer >= border:
            return False
        return fewer + equal <= border or self.twin.generator.unit() * equal < border - fewer

    # ---------------------------------------------------------------------------------------------------- the speeds

    def is_dropped(self, x: Stored) -> bool:
        """Front shedding: beyond the best speed rows are dropped by lot."""
        if self.twin.join.cpu is not None and (
            self.last_adapt is None or x.ts >= self.last_adapt + self.settings.period
        ):
            self.adapt(x.ts)
        self.came[x.stream] += 1.0
        return self.settings.front is not False and self.twin.generator.unit() < self.front

    def adapt(self, now: int) -> None:
        """Measure the streams' speeds; set k_r and k_f by them."""
        last, came = self.last_adapt, self.came
        self.last_adapt, self.came = now, [0.0 for _ in self.twin.streams]
        if last is None or not any(came):
            return
        cpu, rates = self.twin.join.cpu, [rows / (now - last) for rows in came]
        assert cpu is not None
        probes, updates = cpu.capacity / cpu.probe, cpu.capacity / cpu.update
        entering = sum(rates)
        if self.settings.front is True:
            best = self.best_speed(rates, probes, updates)
            if best is not None:
                self.front = max(0.0, 1.0 - best / entering)
                entering = min(entering, best)
        else:
            entering *= 1.0 - self.front
        if self.settings.rear is True:
            self.rear = rear_share(entering, probes, updates)

    def best_speed(self, rates: list[float], probes: float, updates: float) -> float | None:
        """V_opt of two streams on a key; None while nothing is known of the values."""
        distribution = self.settings.distribution or self.learned()
        if distribution is None:
            return None
        about = rates if self.by_time else [rate / sum(rates) for rate in rates]
        rounded = [float(f"{max(rate, 1e-3 * max(about)):.3g}") for rate in about]
        windows = self.twin.windows
        sizes = [w.range * (rate if self.by_time else 1.0) for w, rate in zip(windows, rounded, strict=True)]
        chances = [
            partners(distribution[stream], distribution[1 - stream], sizes[1 - stream], timed=self.by_time)
            for stream in (0, 1)
        ]
        return best_speed(chances, probes, updates, rounded).rows

    def learned(self) -> tuple[list[float], list[float]] | None:
        """How often values are in the histograms."""
        counts = [Counter(v for x in self.weights.counted(s) for v in self.weights.values(x)) for s in (0, 1)]
        if not all(counts):
            return None
        values = sorted({*counts[0], *counts[1]}, key=str)
        return [float(counts[0][v]) for v in values], [float(counts[1][v]) for v in values]
