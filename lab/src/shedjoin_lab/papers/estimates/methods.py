"""Ways to tell the count of each group from a join with little memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj
from shedjoin.recall import LiveRecall
from shedjoin_lab.papers.prospect.streams import Stage

GROUPS = 8
Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]


class Told(NamedTuple):
    """By group, the total last: the count, the limits of its interval (NaN: none), and the share of results delivered."""

    value: Numbers
    low: Numbers
    high: Numbers
    delivered: float


class Case(NamedTuple):
    """Streams, memory in tuples, and the results of the exact join: pairs of row numbers, and the count of each group."""

    stage: Stage
    memory: int
    left: Integers
    right: Integers
    counts: Numbers

    @classmethod
    def of(cls, stage: Stage, part: float) -> Case:
        """`part` of what the exact join stores at most."""
        run = sj.simulate(sj.JoinSpec(sj.TimeWindow(stage.window)), stage.workload.left, stage.workload.right)
        left, right = run.pairs()
        return cls(stage, max(int(part * run.peak_tuples), 4), left, right, _counts(stage, left))

    @property
    def budget(self) -> sj.Budget:
        return sj.Budget(tuples=self.memory, allocation="variable")


def group_of(stage: Stage, left: Integers) -> Integers:
    return np.asarray(stage.workload.left["key"])[left].astype(np.int64) % GROUPS


def _counts(stage: Stage, left: Integers, weight: Numbers | None = None) -> Numbers:
    groups = np.bincount(group_of(stage, left), weight, GROUPS).astype(float)
    return np.append(groups, groups.sum())


def _pushed(
    case: Case, policy: sj.Policy, seed: int, columns: tuple[dict[str, object], ...] | None = None
) -> sj.Output:
    left, right = columns or case.stage.workload.streams
    spec = sj.JoinSpec(sj.TimeWindow(case.stage.window), case.budget, policy)
    return spec.build(seed=seed).push(left=left, right=right)


def _sampled(case: Case, out: sj.Output) -> Told:
    groups = sj.estimate_total(out.weight, out.stored, by=group_of(case.stage, out.left))
    whole = sj.estimate_total(out.weight, out.stored)
    value, low, high = np.zeros(GROUPS + 1), np.full(GROUPS + 1, np.nan), np.full(GROUPS + 1, np.nan)
    places = np.append(groups.group, GROUPS)
    for column, name in ((value, "value"), (low, "low"), (high, "high")):
        column[places] = np.append(getattr(groups, name), getattr(whole, name))
    return Told(value, low, high, len(out) / max(case.counts[-1], 1.0))


def sample(power: float = 1.0, keep: float = 0.0) -> Callable[[Case, int], Told]:
    return lambda case, seed: _sampled(case, _pushed(case, sj.Sample(power=power, keep=keep), seed))


def oracle(case: Case, seed: int) -> Told:
    """Sample, with weights that are the true numbers of partners to come."""
    left, right = (dict(stream) for stream in case.stage.workload.streams)
    times = [np.asarray(stream["ts"])[rows] for stream, rows in ((left, case.left), (right, case.right))]
    older = times[0] <= times[1]
    for stream, rows in ((left, case.left[older]), (right, case.right[~older])):
        stream["importance"] = np.maximum(np.bincount(rows, minlength=len(stream["ts"])), 1e-6)
    nothing: dict[int, float] = {}
    return _sampled(case, _pushed(case, sj.Sample(sj.Table(nothing, nothing)), seed, (left, right)))


def universe(case: Case, seed: int) -> Told:
    """Keep all rows of some keys and scale by their share. On average the rows of these keys fill the memory."""
    rate = case.memory / sum(
        2.0 * case.stage.window * len(one["key"]) / _span(one) / 2.0 for one in case.stage.workload.streams
    )
    rate = min(rate, 1.0)
    keys = np.asarray(case.stage.workload.left["key"]).astype(np.int64)
    chosen = np.random.default_rng(seed).random(int(keys.max()) + 1) < rate
    there = chosen[keys[case.left]]
    none = np.full(GROUPS + 1, np.nan)
    return Told(_counts(case.stage, case.left[there]) / rate, none, none, float(there.mean()))


def _span(stream: dict[str, object]) -> float:
    ts = np.asarray(stream["ts"])
    return float(max(ts[-1] - ts[0], 1))


def prob(case: Case, seed: int) -> Told:
    """PROB, its counts divided by live recall: one number for all groups."""
    spec = sj.JoinSpec(sj.TimeWindow(case.stage.window), case.budget, sj.Prob())
    engine, live = spec.build(seed=seed), LiveRecall(spec, seed=seed, rows=512)
    batch = engine.batch(dict(zip(("left", "right"), case.stage.workload.streams, strict=True)))
    out = engine.push(batch)
    live.follow(batch, out)
    recall = live.estimate().recall
    none = np.full(GROUPS + 1, np.nan)
    return Told(_counts(case.stage, out.left) / recall, none, none, len(out) / max(case.counts[-1], 1.0))


METHODS: dict[str, Callable[[Case, int], Told]] = {
    "Sample": sample(),
    "Sample, keep=0.5": sample(keep=0.5),
    "Sample, keep=0.9": sample(keep=0.9),
    "uniform sampling": sample(power=0.0),
    "universe sampling": universe,
    "PROB / live recall": prob,
    "oracle": oracle,
}
