"""Age: the rates at which tuples of each age find partners, as the join learns them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from naive.arithmetic import added
from naive.rows import Stored

if TYPE_CHECKING:
    from naive.twin import Twin

#: Steps of a window, and how many are told apart; the windows after which half is forgotten; what an unknown step is worth.
STEPS, PLACES = 64, 128
FADE = 2.0 ** (-1.0 / (8.0 * STEPS))
PRIOR = 1.0 / 1024.0


def whole(expected: float) -> int:
    """Expected partners as they are counted."""
    return int(min(expected, 2.0**22) * 2.0**20)


class Ages:
    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        nothing = [0.0] * PLACES
        self.now: list[int | None] = [None for _ in twin.streams]
        self.met = [[*nothing] for _ in twin.streams]
        self.seen = [[*nothing] for _ in twin.streams]
        self.worth = [[*nothing] for _ in twin.streams]

    def width(self, stream: int) -> int:
        return max(1, -(-self.twin.windows[stream].size // STEPS))

    def step(self, stream: int) -> int:
        return self.twin.order.base(stream) // self.width(stream)

    def left(self, x: Stored) -> int:
        """How many steps a tuple has left."""
        now = self.now[x.stream]
        assert now is not None
        return self.twin.order.end(x) // self.width(x.stream) - now

    def taking_part(self, stream: int) -> list[Stored]:
        return [x for x in self.twin.stored[stream] if x not in self.twin.fresh]

    def follow(self) -> None:
        """The base of a stream may be in another step."""
        for stream in self.twin.streams:
            now, before = self.step(stream), self.now[stream]
            self.now[stream] = now
            if now == before:
                continue
            if before is not None and 0 < now - before <= PLACES:
                for step in range(before + 1, now + 1):
                    self.now[stream] = step
                    self.count(stream)
            self.weigh(stream)

    def count(self, stream: int) -> None:
        there = [(self.left(x), x) for x in self.taking_part(stream)]
        for left in range(PLACES):
            expected = sum(whole(x.priority) for steps, x in there if steps == left)
            self.met[stream][left] *= FADE
            self.seen[stream][left] = self.seen[stream][left] * FADE + expected / 2.0**20

    def weigh(self, stream: int) -> None:
        """The best mean rate over the next step, the next two, and so on."""
        met, seen = added(self.met[stream]), added(self.seen[stream])
        mean = met / seen if seen > 0 else 0.0
        prior = seen * PRIOR
        pools: list[tuple[float, int]] = []
        for left in range(PLACES):
            total, steps = 0.0, 1
            if seen > 0:
                total = (self.met[stream][left] + prior * mean) / (self.seen[stream][left] + prior)
            while pools and pools[-1][0] * steps > total * pools[-1][1]:
                more, further = pools.pop()
                total, steps = total + more, steps + further
            pools.append((total, steps))
            self.worth[stream][left] = total / steps / float(self.width(stream))

    def see(self, x: Stored) -> None:
        """A new tuple."""
        if 0 <= self.left(x) < PLACES:
            self.seen[x.stream][self.left(x)] += whole(x.priority) / 2.0**20

    def meet(self, x: Stored) -> None:
        """An older tuple was part of an output in this instant."""
        if 0 <= self.left(x) < PLACES:
            self.met[x.stream][self.left(x)] += 1.0

    def priority(self, x: Stored) -> float:
        left = self.left(x)
        worth = 0.0 if left < 0 else self.worth[x.stream][min(left, PLACES - 1)]
        return worth * x.priority if worth > 0 else 0.0

    def offer(self, stream: int) -> Stored:
        """Tuples with equally many steps left name the lowest of them, and of these the lowest goes."""
        cohorts: dict[int, list[Stored]] = {}
        for x in self.twin.stored[stream]:
            cohorts.setdefault(min(max(self.left(x), -1), PLACES), []).append(x)
        named = [
            min(some, key=lambda x: (float(self.twin.order.end(x)) if left == PLACES else x.priority, x.arrival))
            for left, some in cohorts.items()
        ]
        return min(named, key=lambda x: (self.priority(x), x.arrival))
