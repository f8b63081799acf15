"""Methods: how a paper's names (EXACT, RAND, PROBV, ...) run on a workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import shedjoin as sj
from shedjoin.errors import SpecError
from shedjoin.workloads import Workload
from shedjoin_lab.experiment import Row


@dataclass(frozen=True, slots=True)
class Setting:
    """What a figure fixes for one simulation: window and memory in tuples, when counting starts, seed and trace."""

    window: int
    memory: int | None
    warmup: int
    seed: int
    trace: int = 0


#: Runs a workload; the result has matches, importance, peak_tuples and, but for an offline optimum, a trace.
Method = Callable[[Workload, Setting], Any]
#: The policy may look at what the workload knows in advance.
PolicyOf = Callable[[Workload], sj.Policy]


def exact(workload: Workload, setting: Setting) -> Any:
    """EXACT: the whole join, as if memory were 2w."""
    spec = sj.JoinSpec(window=sj.TimeWindow(setting.window))
    return sj.simulate(spec, workload.left, workload.right, warmup=setting.warmup, trace=setting.trace)


def online(policy: PolicyOf, allocation: str = "fixed") -> Method:
    """A policy within a memory of `setting.memory` tuples, half and half ("fixed") or shared ("variable")."""

    def method(workload: Workload, setting: Setting) -> Any:
        if setting.memory is None:
            raise SpecError("an online method needs a memory size")
        spec = sj.JoinSpec(
            window=sj.TimeWindow(setting.window),
            budget=sj.Budget(tuples=setting.memory, allocation=allocation),
            policy=policy(workload),
        )
        return sj.simulate(
            spec, workload.left, workload.right, warmup=setting.warmup, seed=setting.seed, trace=setting.trace
        )

    return method


def best(objective: str = "matches", allocation: str = "fixed") -> Method:
    """The offline optimum within a memory of `setting.memory` tuples: no method without foreknowledge can do better."""

    def method(workload: Workload, setting: Setting) -> Any:
        if setting.memory is None:
            raise SpecError("an offline optimum needs a memory size")
        spec = sj.JoinSpec(
            window=sj.TimeWindow(setting.window), budget=sj.Budget(tuples=setting.memory, allocation=allocation)
        )
        return sj.optimum(spec, workload.left, workload.right, warmup=setting.warmup, objective=objective)

    return method


def counted(run: Any) -> Row:
    """What every figure stores of a simulation. No wall-clock time: the same seed gives the same row."""
    return {"matches": int(run.matches), "importance": float(run.importance), "peak_tuples": int(run.peak_tuples)}
