"""The runs of a plan: a coarse grid of memory sizes for all policies, then a bisection where a policy reaches the target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from shedjoin.offline.curve import Curve, CurveSolver, Group, total
from shedjoin.planner.candidates import Candidate
from shedjoin.planner.result import close
from shedjoin.planner.tasks import Done, Exact, Outcome, Runner, Solve, Trial

#: Memories of the grid, as parts of what exact needs.
GRID = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4)
#: Streams that share a memory, by allocation.
GROUPS: dict[str, tuple[Group, ...]] = {"fixed": ((0,), (1,)), "variable": ((0, 1),)}

Tell = Callable[[str, int, int], None]
#: What the best policy got, by allocation and memory.
Got = Callable[[str, int], float]


def even(memory: float) -> int:
    """The next even number: both streams get the same."""
    return max(2, 2 * round(memory / 2))


def caps_of(allocation: str, memory: int) -> tuple[int, ...]:
    """What each group gets of a memory."""
    return (memory // 2, memory // 2) if allocation == "fixed" else (memory,)


class Trials:
    """The runs of all policies so far, by name and allocation, then by memory.

    Parameters
    ----------
    exact
        Its memory is where every policy's curve ends: nothing is shed there.
    """

    def __init__(self, exact: Exact, tried: Sequence[Candidate], allocations: Sequence[str]) -> None:
        self.exact = exact
        self.tried = {(one.name, allocation): one for allocation in allocations for one in tried}
        self.found: dict[tuple[str, str], dict[int, Outcome]] = {
            place: {exact.need(place[1]): exact.outcome} for place in self.tried
        }

    def add(self, done: Done) -> None:
        work, outcome = done
        if isinstance(work, Trial) and isinstance(outcome, Outcome):
            self.found[work.candidate.name, work.allocation][work.memory] = outcome

    def share(self, outcome: Outcome) -> float:
        """Of what exact gets."""
        return outcome.value / self.exact.outcome.value

    def got(self, allocation: str, memory: int) -> float:
        """The most that a policy got within a memory, or a smaller one."""
        mine = (found for (_, other), found in self.found.items() if other == allocation)
        return max((one.value for found in mine for size, one in found.items() if size <= memory), default=0.0)

    def best(self, target: float) -> int:
        """The least memory with which a policy reaches the target."""
        return min(self.bracket(place, target)[1] for place in self.tried)

    def run_grid(self, grid: Sequence[int], run: Runner, tell: Tell) -> None:
        """All policies at all memories of the grid."""
        work: list[Trial | Solve] = [
            Trial(candidate, allocation, memory)
            for memory in grid
            for (_, allocation), candidate in self.tried.items()
            if memory < self.exact.need(allocation)
        ]
        tell("policies", 0, len(work))
        for place, done in enumerate(run(work)):
            self.add(done)
            tell("policies", place + 1, len(work))

    def bracket(self, place: tuple[str, str], target: float) -> tuple[int, int]:
        """(the most memory below the target, the least that reaches it) of a policy."""
        found = self.found[place]
        high = min(memory for memory, outcome in found.items() if self.share(outcome) >= target)
        return max((memory for memory in found if memory < high), default=0), high

    def run_target(self, target: float, run: Runner, tell: Tell) -> None:
        """Halve the brackets of all policies that may still need the least memory, round by round."""
        rounds = 0
        while work := self._halves(target):
            tell("target", rounds, rounds + 1)
            for done in run(work):
                self.add(done)
            rounds += 1
        tell("target", rounds, rounds)

    def _halves(self, target: float) -> list[Trial | Solve]:
        brackets = {place: self.bracket(place, target) for place in self.tried}
        least = min(high for _, high in brackets.values())
        work: list[Trial | Solve] = []
        for place, (low, high) in brackets.items():
            middle = max(2, min(max(even(math.sqrt(low * high) if low else high / 2), low + 2), high - 2))
            if low < least and middle < high and not close(low, high):
                work.append(Trial(self.tried[place], place[1], middle))
        return work


class Optima:
    """The optimum against memory, for each allocation."""

    def __init__(self, solver: CurveSolver, allocations: Sequence[str]) -> None:
        self.together = solver.together
        self._solver = solver
        self._lowered: set[tuple[str, int]] = set()  # where better bounds were sought
        self.allocations = tuple(allocations)
        self.curves: dict[Group, Curve] = {}
        for allocation in allocations:
            for group in GROUPS[allocation]:
                need = solver.need(group)
                self.curves[group] = Curve(need, solver.at(group, need).value)

    def of(self, allocation: str) -> list[Curve]:
        return [self.curves[group] for group in GROUPS[allocation]]

    def limits(self, allocation: str, memory: int) -> tuple[float, float]:
        """(what some schedule gets, what none exceeds)."""
        low, high = total(self.of(allocation), caps_of(allocation, memory))
        return self.together + low, self.together + high

    def run(
        self,
        asked: Sequence[int],
        first: int,
        got: Got,
        gap: float,
        run: Runner,
        tell: Tell,
        check: Callable[[], None] | None = None,
    ) -> None:
        """Bound, and solve, until what is between the limits is no more than `gap` at every memory asked for.

        One memory is solved. For the others its prices are moved until they bound what policies and the lines between solved
        memories leave open. Where that does not do, the memory of which least is known is solved as well, and so on.

        Parameters
        ----------
        first
            The memory to begin with.
        got
            What policies got within a memory: OPT gets that as well.
        """
        rounds = 0
        while work := self._open(asked, first, got, gap, check):
            tell("optimum", rounds, rounds + 1)
            for one, solved in run(work):
                assert isinstance(one, Solve)
                assert not isinstance(solved, Outcome)
                self.curves[one.group].solved.append(solved)
            rounds += 1
        tell("optimum", rounds, rounds)

    def _open(
        self, asked: Sequence[int], first: int, got: Got, gap: float, check: Callable[[], None] | None
    ) -> list[Trial | Solve]:
        """What is to be solved next, for each allocation."""
        work: dict[tuple[Group, int], Trial | Solve] = {}
        for allocation in self.allocations:

            def unknown(memory: int, allocation: str = allocation) -> float:
                low, high = self.limits(allocation, memory)
                return high - max(low, got(allocation, memory))

            able = [memory for memory in asked if self._solves(allocation, memory)]
            begun = any(curve.solved for curve in self.of(allocation))
            if not begun and first in able and unknown(first) > gap:
                chosen = [first]
            else:
                for memory in sorted(
                    able, key=lambda memory: abs(math.log(memory / first))
                ):  # prices go on from one to the next
                    if unknown(memory) > gap:
                        self._lower(allocation, memory, got, gap, check)
                chosen = sorted((memory for memory in able if unknown(memory) > gap), key=unknown)[-1:]
            work |= {(one.group, one.memory): one for memory in chosen for one in self._solves(allocation, memory)}
        return list(work.values())

    def _lower(self, allocation: str, memory: int, got: Got, gap: float, check: Callable[[], None] | None) -> None:
        """Look for prices that bound a memory better, and for a schedule by these prices: once for each memory."""
        if (allocation, memory) in self._lowered:
            return
        self._lowered.add((allocation, memory))
        curves, caps = self.of(allocation), caps_of(allocation, memory)
        for group, curve, cap in zip(GROUPS[allocation], curves, caps, strict=True):
            if not curve.open(cap):
                continue
            others = sum(one.high(at) for one, at in zip(curves, caps, strict=True)) - curve.high(cap)
            low = max(curve.low(cap), got(allocation, memory) - self.together - others)
            relaxation = self._solver.relaxation(group)
            tangent = relaxation.near(curve.closest(cap), cap, low, gap / len(curves), check)
            curve.tangents.append(tangent)
            if tangent.bound(cap) - low > gap / len(curves):
                curve.had.append((cap, relaxation.schedule(tangent, cap)))

    def _solves(self, allocation: str, memory: int) -> list[Solve]:
        """What is to be solved for a memory."""
        caps = zip(GROUPS[allocation], caps_of(allocation, memory), strict=True)
        return [Solve(group, cap) for group, cap in caps if self.curves[group].open(cap)]
