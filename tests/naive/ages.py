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
        self.now: list[int | None] = [None for _ in twin.streams]
        # By stream and whether tuples have found partners.
        each = [(stream, found) for stream in twin.streams for found in (False, True)]
        self.met = {one: [0.0] * PLACES for one in each}
        self.seen = {one: [0.0] * PLACES for one in each}
        self.worth = {one: [0.0] * PLACES for one in each}

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
                    for found in (False, True):
                        self.count(stream, found)
            for found in (False, True):
                self.weigh(stream, found)

    def count(self, stream: int, found: bool) -> None:
        there = [(self.left(x), x) for x in self.taking_part(stream) if x.found == found]
        met, seen = self.met[stream, found], self.seen[stream, found]
        for left in range(PLACES):
            expected = sum(whole(x.priority) for steps, x in there if steps == left)
            met[left] *= FADE
            seen[left] = seen[left] * FADE + expected / 2.0**20

    def weigh(self, stream: int, found: bool) -> None:
        """The best mean rate over the next step, the next two, and so on."""
        mets, seens = self.met[stream, found], self.seen[stream, found]
        met, seen = added(mets), added(seens)
        mean = met / seen if seen > 0 else 0.0
        prior = seen * PRIOR
        pools: list[tuple[float, int]] = []
        for left in range(PLACES):
            total, steps = 0.0, 1
            if seen > 0:
                total = (mets[left] + prior * mean) / (seens[left] + prior)
            while pools and pools[-1][0] * steps > total * pools[-1][1]:
                more, further = pools.pop()
                total, steps = total + more, steps + further
            pools.append((total, steps))
            self.worth[stream, found][left] = total / steps / float(self.width(stream))

    def see(self, x: Stored) -> None:
        """A new tuple."""
        if 0 <= self.left(x) < PLACES:
            self.seen[x.stream, x.found][self.left(x)] += whole(x.priority) / 2.0**20

    def meet(self, x: Stored) -> None:
        """An older tuple was part of an output in this instant."""
        if 0 <= self.left(x) < PLACES:
            self.met[x.stream, x.found][self.left(x)] += 1.0

    def priority(self, x: Stored) -> float:
        left = self.left(x)
        found = x.found and left < PLACES
        worth = 0.0 if left < 0 else self.worth[x.stream, found][min(left, PLACES - 1)]
        return worth * x.priority if worth > 0 else 0.0

    def offer(self, stream: int) -> Stored:
        """Tuples with equally many steps left, alike in having found partners, name the lowest; of these the lowest goes."""
        cohorts: dict[tuple[int, bool], list[Stored]] = {}
        for x in self.twin.stored[stream]:
            left = min(max(self.left(x), -1), PLACES)
            cohorts.setdefault((left, x.found and 0 <= left < PLACES), []).append(x)
        named = [
            min(some, key=lambda x: (float(self.twin.order.end(x)) if left == PLACES else x.priority, x.arrival))
            for (left, _), some in cohorts.items()
        ]
        return min(named, key=lambda x: (self.priority(x), x.arrival))
