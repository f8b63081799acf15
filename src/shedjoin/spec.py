"""JoinSpec: what to join, within which windows, with how much memory, and who stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shedjoin.batch import LATEST, ROW_BYTES
from shedjoin.budget import Budget
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.engine.plan import Plan
from shedjoin.errors import SpecError
from shedjoin.plain import only, plain
from shedjoin.policies import POLICIES, KeepAll, Policy, Prospect
from shedjoin.window import RowWindow, TimeWindow, Window, check_duration
from shedjoin.words import parse_budget, parse_duration, parse_lateness, parse_policy, parse_window

if TYPE_CHECKING:
    from shedjoin.engine.engine import Engine

STREAMS = 2


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """A sliding-window equi-join of two streams under a memory budget.

    Parameters
    ----------
    window
        `TimeWindow` or `RowWindow`; one for both streams, or a pair.
    budget
        The hard cap on stored tuples. None: none, the join is exact.
    policy
        Who stays when memory is short. Default: `KeepAll` without a budget, `Prospect` with one.
    importance
        How an output's importance follows from its inputs': min, max, sum, product or mean.
    lateness
        How far a row may lag behind the largest `ts` of its stream and still be joined. `UNLIMITED`: rows are never
        late and never expire; only a budget bounds the memory.
    max_skew
        A stream whose clock lags behind the other's by more than this counts as idle and no longer holds up expiry.

    Examples
    --------
    >>> spec = JoinSpec(window=TimeWindow(400), budget=Budget(tuples=400))
    >>> spec.policy
    Prospect()
    >>> JoinSpec.from_dict(spec.to_dict()) == spec
    True
    """

    window: Window | tuple[Window, Window]
    budget: Budget | None = None
    policy: Policy | None = None
    importance: str = "min"
    lateness: int = 0
    max_skew: int | None = None

    def __post_init__(self) -> None:
        windows = self.window if isinstance(self.window, tuple) else (self.window,) * STREAMS
        if len(windows) != STREAMS or not all(isinstance(one, TimeWindow | RowWindow) for one in windows):
            raise SpecError(
                f"JoinSpec.window must be a TimeWindow or RowWindow, or a pair of them, not {self.window!r}"
            )
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise SpecError(f"JoinSpec.budget must be a Budget or None, not {self.budget!r}")
        if self.policy is None:
            object.__setattr__(self, "policy", KeepAll() if self.budget is None else Prospect())
        if not isinstance(self.policy, Policy):
            known = ", ".join(kind.__name__ + "()" for kind in POLICIES.values())
            raise SpecError(f"JoinSpec.policy must be a policy ({known}), not {self.policy!r}")
        if isinstance(self.policy, KeepAll) and self.budget is not None:
            raise SpecError(
                "JoinSpec.policy KeepAll() keeps everything and cannot hold a budget: leave one of the two out"
            )
        tables = getattr(self.policy.estimator, "streams", None) or getattr(self.policy, "streams", None)
        if tables is not None and tables != STREAMS:
            raise SpecError(f"JoinSpec.policy {self.policy!r} is for {tables} streams, but this join has {STREAMS}")
        if not isinstance(self.importance, str) or self.importance not in IMPORTANCE:
            raise SpecError(f"JoinSpec.importance must be one of {', '.join(IMPORTANCE)}, not {self.importance!r}")
        check_duration("JoinSpec.lateness", self.lateness)
        if self.max_skew is not None:
            check_duration("JoinSpec.max_skew", self.max_skew)
        if self.budget is not None:
            self.budget.caps(STREAMS, ROW_BYTES)

    @property
    def windows(self) -> tuple[Window, Window]:
        """The window of each stream."""
        return self.window if isinstance(self.window, tuple) else (self.window, self.window)

    def build(self, seed: int = 0) -> Engine:
        """A new engine. The same spec, seed and input give the same output."""
        from shedjoin.engine.engine import (
            Engine,  # and with it numba, which takes half a second: a spec alone needs none
        )

        check_seed(seed)
        return Engine(self.plan(), int(seed))

    def resume(self, snapshot: bytes) -> Engine:
        """Go on from `engine.snapshot()`. Budget and the numbers of the policy may be others; all else must be as it was."""
        from shedjoin.engine.engine import Engine

        return Engine.resume(self.plan(), snapshot)

    def plan(self) -> Plan:
        """The plain settings the engine runs by."""
        assert self.policy is not None  # __post_init__ fills it in
        return Plan.of(self.windows, self.budget, self.policy, self.importance, self.lateness, self.max_skew)

    def with_budget(self, budget: Budget | None) -> JoinSpec:
        """The same join within another budget. A join that kept everything gets the default policy."""
        keeps = isinstance(self.policy, KeepAll) and budget is not None
        return replace(self, budget=budget, policy=None if keeps else self.policy)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for TOML or JSON job files; `from_dict` reads it."""
        windows = [{one.kind: one.size} for one in self.windows]
        data: dict[str, Any] = {"window": windows[0] if windows[0] == windows[1] else windows}
        if self.budget is not None:
            data["budget"] = plain(self.budget)
        data["policy"] = plain(self.policy)
        data["importance"] = self.importance
        data["lateness"] = self.lateness
        if self.max_skew is not None:
            data["max_skew"] = self.max_skew
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> JoinSpec:
        """The spec that `to_dict` described, or one in words: "10 minutes" (in microseconds), "20k tuples", "prob"."""
        only("JoinSpec", data, [field.name for field in fields(cls)])
        if "window" not in data:
            raise SpecError("JoinSpec needs a window, such as {'time': 400} or {'row': 400}")
        made: dict[str, Any] = {
            **data,
            "window": parse_window(data["window"]),
            "budget": parse_budget(data.get("budget")),
            "policy": parse_policy(data.get("policy")),
            "lateness": parse_lateness(data.get("lateness", 0)),
        }
        if data.get("max_skew") is not None:
            made["max_skew"] = parse_duration(data["max_skew"], argument="max_skew")
        return cls(**made)


def check_seed(seed: object) -> None:
    """A clear word when a seed is none."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise SpecError(f"seed must be a whole number from 0 to 2**64 - 1, not {seed!r}")


def check_warmup(warmup: Any) -> None:
    """A clear word when a warm-up is no time."""
    whole = isinstance(warmup, int | np.integer) and not isinstance(warmup, bool)
    if warmup is not None and (not whole or abs(warmup) > LATEST):
        raise SpecError(f"warmup must be a whole number within +-2**53, not {warmup!r}")
