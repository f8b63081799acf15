"""The tasks of a plan, which any process can run: a policy with a budget, the exact join, an optimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from shedjoin.budget import Budget
from shedjoin.engine.engine import Engine
from shedjoin.offline.curve import CurveSolver, Group, Solved
from shedjoin.offline.solver import Progress
from shedjoin.planner.candidates import Candidate
from shedjoin.planner.sample import StreamSample
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
class TaskSetup:
    """What all runs of a plan have in common."""

    spec: JoinSpec
    sample: StreamSample
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

    def solver(self) -> CurveSolver:
        """Solves optima of the sample."""
        return CurveSolver(self.spec, self.sample.batch, self.sample.warmup, self.objective)

    def _run(self, spec: JoinSpec, trace: int = 0) -> tuple[Engine, Outcome]:
        """Block after block; how the input is cut at instant borders changes nothing."""
        engine = spec.engine(self.seed, warmup=self.sample.warmup, trace_every=trace, emit=False)
        blocks, before = [], 0.0
        for place, piece in enumerate(self.sample.pieces):
            engine.push(self.sample.batch.take(piece))
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


class LocalRunner:
    """Runs tasks in this process. `check` is called between them and by the solver; it raises KeyboardInterrupt to stop."""

    def __init__(
        self, setup: TaskSetup, solver: CurveSolver | None, progress: Progress, check: Callable[[], None]
    ) -> None:
        self._args = setup, solver, progress, check

    def __call__(self, tasks: list[Trial | Solve]) -> Iterator[Done]:
        for task in tasks:
            self._args[-1]()
            yield run_task(task, *self._args)


def run_task(
    task: Trial | Solve,
    setup: TaskSetup,
    solver: CurveSolver | None,
    progress: Progress | None = None,
    check: Callable[[], None] | None = None,
) -> Done:
    """Run a policy, or solve an optimum."""
    if isinstance(task, Trial):
        return task, setup.trial(task)
    assert solver is not None
    return task, solver.at(task.group, task.memory, within=setup.within, progress=progress, check=check)
