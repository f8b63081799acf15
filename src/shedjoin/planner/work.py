"""The runs that a plan is made of, each a small thing that any process can do: a policy's, exact's, an optimum's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from shedjoin.budget import Budget
from shedjoin.engine.engine import Engine
from shedjoin.offline.curve import Group, Landscape, Solved
from shedjoin.offline.solver import Progress
from shedjoin.planner.candidates import Candidate
from shedjoin.planner.stretch import Stretch
from shedjoin.spec import JoinSpec


@dataclass(frozen=True, slots=True)
class Trial:
    """A policy within a memory."""

    candidate: Candidate
    allocation: str
    memory: int


@dataclass(frozen=True, slots=True)
class Solve:
    """The optimum of streams that share a memory."""

    group: Group
    memory: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial: the objective in each block, results, and the most that was stored."""

    blocks: tuple[float, ...]
    matches: int
    importance: float
    peak_tuples: int
    peak_bytes: int

    @property
    def value(self) -> float:
        return math.fsum(self.blocks)


@dataclass(frozen=True, slots=True)
class Exact:
    """The join without a budget, and the memory it takes: in all, and with a fixed half for each stream. Even numbers."""

    outcome: Outcome
    tuples: int
    tuples_fixed: int

    def need(self, allocation: str) -> int:
        """The memory within which nothing is shed."""
        return self.tuples_fixed if allocation == "fixed" else self.tuples


Done = tuple[Trial, Outcome] | tuple[Solve, Solved]
#: Does some work, and gives each piece when it is done.
Runner = Callable[[list[Trial | Solve]], Iterable[Done]]


@dataclass(frozen=True, slots=True)
class Bench:
    """What all runs of a plan have in common."""

    spec: JoinSpec
    stretch: Stretch
    objective: str
    seed: int
    within: float

    def exact(self) -> Exact:
        """The join without a budget."""
        engine, outcome = self._run(replace(self.spec, budget=None, policy=None), trace=1)
        sides = engine.trace[:, 1:].max(axis=0, initial=1)
        most = max(outcome.peak_tuples, 2)
        return Exact(outcome, most + most % 2, 2 * int(sides.max()))

    def trial(self, trial: Trial) -> Outcome:
        """One run of a policy."""
        return self._run(self.spec_of(trial))[1]

    def spec_of(self, trial: Trial) -> JoinSpec:
        """The join of a trial."""
        budget = Budget(tuples=trial.memory, allocation=trial.allocation)
        return replace(self.spec, budget=budget, policy=trial.candidate.policy)

    def landscape(self) -> Landscape:
        """The streams laid out for optima."""
        return Landscape(self.spec, self.stretch.batch, self.stretch.warmup, self.objective)

    def _run(self, spec: JoinSpec, trace: int = 0) -> tuple[Engine, Outcome]:
        """Block after block; how the input is cut at instant borders changes nothing."""
        engine = spec.engine(self.seed, warmup=self.stretch.warmup, trace_every=trace, emit=False)
        blocks, before = [], 0.0
        for place, piece in enumerate(self.stretch.pieces):
            engine.push(self.stretch.batch.take(piece))
            now = engine.counters["matches"] if self.objective == "matches" else engine.matched_importance
            if place:
                blocks.append(float(now - before))
            before = now
        counters = engine.counters
        outcome = Outcome(
            tuple(blocks),
            counters["matches"],
            engine.matched_importance,
            counters["peak_tuples"],
            counters["peak_bytes"],
        )
        return engine, outcome


class Here:
    """A runner in this process.

    Parameters
    ----------
    check
        Called between runs, and wherever a solver can stop; raises KeyboardInterrupt to stop.
    """

    def __init__(
        self, bench: Bench, landscape: Landscape | None, progress: Progress, check: Callable[[], None]
    ) -> None:
        self._bench = bench
        self._landscape = landscape
        self._progress = progress
        self._check = check

    def __call__(self, work: list[Trial | Solve]) -> Iterator[Done]:
        for one in work:
            self._check()
            yield do(one, self._bench, self._landscape, self._progress, self._check)


def do(
    work: Trial | Solve,
    bench: Bench,
    landscape: Landscape | None,
    progress: Progress | None = None,
    check: Callable[[], None] | None = None,
) -> Done:
    """One piece of work."""
    if isinstance(work, Trial):
        return work, bench.trial(work)
    assert landscape is not None
    return work, landscape.at(work.group, work.memory, within=bench.within, progress=progress, check=check)
