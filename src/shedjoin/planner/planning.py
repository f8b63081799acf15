"""Plan: how much memory does a join need for a recall, and with which policy?"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shedjoin.batch import TableLike
from shedjoin.budget import ALLOCATIONS
from shedjoin.errors import InputError, SpecError
from shedjoin.offline.curve import least_memory
from shedjoin.offline.interrupt import Interrupts
from shedjoin.offline.solver import check_solver
from shedjoin.offline.worth import OBJECTIVES
from shedjoin.parse import parse_interval, parse_window
from shedjoin.planner.candidates import candidates
from shedjoin.planner.report import Summary, in_words
from shedjoin.planner.result import OPT, Need, Plan, Point, Recommendation, spread_of
from shedjoin.planner.sample import sample_of
from shedjoin.planner.search import GRID, Optima, Tell, Trials, caps_of, even
from shedjoin.planner.tasks import Exact, LocalRunner, Runner, TaskSetup, Trial
from shedjoin.spec import JoinSpec, check_seed


def plan(
    left: TableLike,
    right: TableLike,
    *,
    window: object = None,
    between: object = None,
    target: float = 0.95,
    objective: str | None = None,
    importance: str = "min",
    how: str = "inner",
    where: str | None = None,
    matches: Sequence[int | None] | None = None,
    policies: Iterable[object] | None = None,
    allocations: Sequence[str] = ALLOCATIONS,
    memory: Sequence[int] | None = None,
    sample: object = None,
    warmup: int | None = None,
    seed: int = 0,
    optimum: bool | None = None,
    within: float = 0.01,
    spark: Any = None,
    progress: Tell | None = None,
    time_limit: float | None = None,
) -> Plan:
    """Recall against memory for every policy and for OPT on a sample of two streams, and a recommendation for a target.

    Parameters
    ----------
    left, right
        A sample of the two streams, as for `simulate`: all rows of some hours, not some rows of many hours. Rows are taken in
        the order of `ts`.
    window
        A window, or a pair, as objects or in words ("10 minutes", "1000 rows").
    between
        Instead of a window: an interval (low, high), in numbers or in words, as in `JoinSpec`.
    target
        The target share of the exact join.
    objective
        ``"matches"`` or ``"importance"``: what is counted. Default: importance if the rows differ in it.
    importance
        How the importance of a result is computed from its rows: min, max, sum, product or mean.
    how, where, matches
        The join type, a condition, and the number of partners after which rows leave, as in `JoinSpec`. The plan counts the
        rows of the result, with or without a partner.
    policies
        Policies, their names, or tables of settings. Default: all that make sense, with estimators that a running join
        can have.
    allocations
        Fixed shares, one memory for both ("variable"), or both.
    memory
        The memory sizes of the curve in tuples. Default: from a thirty-second of the exact join's memory upwards.
    sample
        Use only the end of the streams: a time ("1 hour") or rows of both streams together (a number, or "200k rows").
    warmup
        Results before this time do not count. Default: one window after the beginning.
    seed
        The seed of random policies.
    optimum
        Whether to find OPT, which takes longer than all policies together. Needs the extra `offline`. Default: yes, for inner
        joins without `where` and `matches`; OPT is not defined for others.
    within
        The accuracy of OPT at every memory size, as a share of the exact join.
    spark
        A session: the runs become Spark jobs.
    progress
        Called with (stage, done, total).
    time_limit
        Seconds after which no run is started.

    Ctrl-C and the time limit end the work early: the plan then has the results so far, with `complete` False.

    Examples
    --------
    >>> rows = {"key": [1, 2, 3, 1, 4, 5, 1, 6] * 20}
    >>> made = plan(rows, rows, window=40, target=0.5, policies=["prob"])
    >>> made.need.tuples, made.recommendation.name
    (80, 'prob')
    >>> made.recommendation.share >= 0.5
    True
    """

    begin = time.monotonic()
    check_seed(seed)
    spec = JoinSpec(
        None if window is None else parse_window(window),
        between=None if between is None else parse_interval(between),
        importance=importance,
        how=how,
        where=where,
        matches=None if matches is None else tuple(matches),
    )
    optimum = _has_optimum(spec) if optimum is None else optimum
    if optimum:
        check_solver()  # before the work, not after it
        if not _has_optimum(spec):
            raise SpecError("optimum: OPT is that of inner joins without where and matches: leave it out")
    goal = Goal(target, objective, allocations, within, optimum, time_limit)
    rows = sample_of(spec, left, right, sample, warmup)
    if objective is None:
        differ = (rows.batch.importance != rows.batch.importance[0]).any()
        objective = "importance" if differ else "matches"
    tried = candidates(policies, objective)
    setup = TaskSetup(spec, rows, objective, seed, within / 10)
    tell = progress or (lambda stage, done, total: None)
    trials = Trials(_exact(setup, tell), tried, allocations)
    grid = _grid(memory, trials.exact)
    with Interrupts() as interrupts:
        check = _until(begin, time_limit, interrupts.check)
        optima, complete = _explore(setup, trials, grid, goal, spark, tell, check)
    return _result(setup, trials, optima, grid, target, complete)


def _has_optimum(spec: JoinSpec) -> bool:
    return spec.how == "inner" and spec.where is None and spec.matches is None


@dataclass(frozen=True, slots=True)
class Goal:
    """What a plan looks for, and where it stops."""

    target: float
    objective: str | None
    allocations: Sequence[str]
    within: float
    optimum: bool
    time_limit: float | None

    def __post_init__(self) -> None:
        if not _is_number(self.target) or not 0 < self.target <= 1:
            raise SpecError(
                f"target must be a share of the exact join, above 0 and at most 1, such as 0.95, not {self.target!r}"
            )
        if self.objective is not None and self.objective not in OBJECTIVES:
            raise SpecError(f"objective must be one of {', '.join(OBJECTIVES)}, not {self.objective!r}")
        one = isinstance(self.allocations, str)
        if one or not self.allocations or not set(self.allocations) <= set(ALLOCATIONS):
            raise SpecError(f"allocations must be a list of {' and '.join(ALLOCATIONS)}, not {self.allocations!r}")
        if not _is_number(self.within) or not 0 <= self.within < 1:
            raise SpecError(f"within must be a share of the exact join, from 0 to below 1, not {self.within!r}")
        if self.time_limit is not None and not _is_number(self.time_limit):
            raise SpecError(f"time_limit must be a number of seconds, not {self.time_limit!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _exact(setup: TaskSetup, tell: Tell) -> Exact:
    """The join without a budget; without results there is nothing to plan."""
    tell("exact", 0, 1)
    exact = setup.exact()
    if not exact.outcome.value:
        raise InputError(
            "the exact join of this sample has no results after the warm-up, so there is nothing to plan: "
            "check the key columns and the window, or take a longer sample"
        )
    return exact


def _explore(
    setup: TaskSetup,
    trials: Trials,
    grid: Sequence[int],
    goal: Goal,
    spark: Any,
    tell: Tell,
    check: Callable[[], None],
) -> tuple[Optima | None, bool]:
    """Run the policies, then OPT. What is known of OPT, and whether all was found before somebody or the clock said stop."""
    optima: Optima | None = None
    complete = True
    try:
        solver = setup.solver() if goal.optimum else None
        runner: Runner
        if spark is None:
            runner = LocalRunner(setup, solver, tell, check)
        else:
            from shedjoin.planner.on_spark import SparkRunner

            runner = SparkRunner(spark, setup, check)
        trials.run_grid(grid, runner, tell)
        trials.run_target(goal.target, runner, tell)
        if solver is not None:
            optima = Optima(solver, goal.allocations)
            best = trials.best(goal.target)
            enough = goal.within * trials.exact.outcome.value
            optima.run([*grid, best], best, trials.got, enough, runner, tell, check)
    except KeyboardInterrupt:
        complete = False
    if optima is not None:  # a solver that is stopped says what it has, without an error
        complete = complete and all(solved.complete for curve in optima.curves.values() for solved in curve.solved)
    return optima, complete


def _grid(memory: Sequence[int] | None, exact: Exact) -> list[int]:
    """The memories of the curve, below what exact needs."""
    if memory is None:
        return sorted({even(part * exact.tuples) for part in GRID})
    if isinstance(memory, str) or not isinstance(memory, Sequence) or not memory:
        raise SpecError(f"memory must be a list of numbers of tuples, such as [500, 1000, 2000], not {memory!r}")
    for one in memory:
        if isinstance(one, bool) or not isinstance(one, int) or one < 2:
            raise SpecError(f"memory must have whole numbers of at least 2 tuples, not {one!r}")
    return sorted(set(memory))


def _until(begin: float, limit: float | None, check: Callable[[], None]) -> Callable[[], None]:
    """Stops where Ctrl-C or the time limit says so."""

    def stop() -> None:
        check()
        if limit is not None and time.monotonic() - begin > limit:
            raise KeyboardInterrupt

    return stop


def _result(
    setup: TaskSetup, trials: Trials, optima: Optima | None, grid: Sequence[int], target: float, complete: bool
) -> Plan:
    exact = trials.exact
    outcome = exact.outcome
    need = Need(outcome.matches, outcome.importance, outcome.peak_tuples, exact.tuples_fixed, outcome.peak_bytes)
    curve = _curve(trials)
    best = min(
        (point for point in curve if point.share >= target and point.memory < exact.tuples),
        key=lambda point: (point.memory, -point.share),
        default=None,
    )
    at_least = None
    if optima is not None:
        curve += _optimum_points(trials, optima, sorted({*grid, *([best.memory] if best else [])}))
        at_least = _at_least(optima, trials, target)
    candidate = trials.tried[best.policy, best.allocation] if best else None
    spec = (
        setup.spec
        if candidate is None or best is None
        else setup.spec_of(Trial(candidate, best.allocation, best.memory))
    )
    summary = Summary(
        need, target, setup.objective, setup.sample.windows, sum(map(bool, outcome.blocks)), at_least, complete
    )
    point = best or Point("EXACT", "variable", need.tuples, 1.0, bytes=need.bytes)
    recommended = Recommendation(
        policy=candidate.policy if candidate else None,
        name=point.policy,
        allocation=point.allocation,
        tuples=point.memory,
        bytes=int(point.bytes or 0),
        share=point.share,
        spread=point.spread,
        lowest=point.lowest,
        highest=point.highest,
        at_least=at_least,
        spec=spec,
        text=in_words(best, spec, summary),
    )
    return Plan(tuple(curve), recommended, need, setup.objective, target, setup.sample.windows, tuple(grid), complete)


def _curve(trials: Trials) -> list[Point]:
    return [
        Point(
            name,
            allocation,
            memory,
            trials.share(outcome),
            matches=outcome.matches,
            importance=outcome.importance,
            bytes=outcome.peak_bytes,
            **spread_of(outcome.blocks, trials.exact.outcome.blocks),
        )
        for (name, allocation), found in trials.found.items()
        for memory, outcome in sorted(found.items())
    ]


def _optimum_points(trials: Trials, optima: Optima, memories: Sequence[int]) -> list[Point]:
    """What is known of OPT. What a policy got within as much memory or less, OPT gets as well."""
    whole = trials.exact.outcome.value
    points = []
    for allocation in dict.fromkeys(allocation for _, allocation in trials.tried):
        for memory in sorted({*memories, trials.exact.need(allocation)}):
            low, high = optima.limits(allocation, memory)
            low = max(low, trials.got(allocation, memory))
            points.append(Point(OPT, allocation, memory, min(low / whole, 1.0), bound=min(max(low, high) / whole, 1.0)))
    return points


def _at_least(optima: Optima, trials: Trials, target: float) -> int:
    """Below this no schedule of any allocation reaches the target, for all that is proved."""
    wanted = target * trials.exact.outcome.value * (1 - 1e-12) - optima.together
    least = []
    for allocation in dict.fromkeys(allocation for _, allocation in trials.tried):

        def caps(memory: int, allocation: str = allocation) -> Sequence[int]:
            return caps_of(allocation, memory)

        least.append(least_memory(optima.of(allocation), caps, wanted, trials.exact.need(allocation)))
    return math.ceil(min(least))
