"""JoinSpec: what to join, within which windows, with how much memory, and who stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from shedjoin.batch import LATEST, ROW_BYTES
from shedjoin.budget import Budget
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.engine.plan import Plan
from shedjoin.errors import SpecError
from shedjoin.estimators import ESTIMATORS, Estimator
from shedjoin.policies import POLICIES, KeepAll, Policy, Prospect
from shedjoin.window import RowWindow, TimeWindow, Window, check_duration

if TYPE_CHECKING:
    from shedjoin.engine.engine import Engine

STREAMS = 2
Made = TypeVar("Made")


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
        """The spec that `to_dict` described. Policies and estimators may be names, a budget a number of tuples."""
        known = [field.name for field in fields(cls)]
        only("JoinSpec", data, known)
        if "window" not in data:
            raise SpecError("JoinSpec needs a window, such as {'time': 400} or {'row': 400}")
        window = data["window"]
        made: dict[str, Any] = dict(data)
        pair = isinstance(window, Sequence) and not isinstance(window, str)
        made["window"] = tuple(make_window(one) for one in window) if pair else make_window(window)
        if data.get("budget") is not None:
            made["budget"] = make_budget(data["budget"])
        if data.get("policy") is not None:
            made["policy"] = make_policy(data["policy"])
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


def only(what: str, data: Any, known: list[str]) -> None:
    """A clear word when a table has settings that are not known."""
    if not isinstance(data, Mapping):
        raise SpecError(f"{what} must be a table of settings, not {data!r}")
    unknown = [str(name) for name in data if name not in known]
    if unknown:
        raise SpecError(f"{what} has no setting {unknown[0]!r}; it has {', '.join(known) or 'none'}")


def make_window(data: Any) -> Window:
    """The window of a table with its kind and size."""
    only("window", data, ["time", "row"])
    if len(data) != 1:
        raise SpecError(f"window must be {{'time': length}} or {{'row': rows}}, not {dict(data)!r}")
    return TimeWindow(data["time"]) if "time" in data else RowWindow(data["row"])


def make_budget(data: Any) -> Budget:
    """The budget of a table, or of a number of tuples."""
    if isinstance(data, int) and not isinstance(data, bool):
        return Budget(tuples=data)
    only("budget", data, ["tuples", "bytes", "allocation", "shares"])
    shares = data.get("shares")
    if shares is not None and not isinstance(shares, Sequence):
        raise SpecError(f"budget.shares must be a list of numbers, one a stream, not {shares!r}")
    return Budget(**{**data, "shares": tuple(shares) if shares is not None else None})


def make_policy(data: Any) -> Policy:
    """The policy of a name, or of a table with a name and settings."""
    kind, settings = _named("policy", data, POLICIES)
    if settings.get("estimator") is not None:
        settings["estimator"] = _estimator(settings["estimator"])
    policy: Policy = _make(kind, settings)
    return policy


def _estimator(data: Any) -> Estimator:
    kind, settings = _named("estimator", data, ESTIMATORS)
    if kind.name == "table":  # JSON and TOML know only text as keys
        settings = {
            side: [_with_whole_keys(one) for one in table] if side == "more" else _with_whole_keys(table)
            for side, table in settings.items()
        }
    estimator: Estimator = _make(kind, settings)
    return estimator


def _with_whole_keys(table: Mapping[str, float]) -> dict[int, float]:
    try:
        return {int(key): value for key, value in table.items()}
    except (AttributeError, TypeError, ValueError):
        raise SpecError(f"estimator: a table must give whole-number keys their weights, not {table!r}") from None


def _named(what: str, data: Any, registry: Mapping[str, type[Any]]) -> tuple[type[Any], dict[str, Any]]:
    if not isinstance(data, str | Mapping):
        raise SpecError(f"{what} must be a name or a table of settings with a name, not {data!r}")
    settings = {"name": data} if isinstance(data, str) else dict(data)
    name = settings.pop("name", None)
    if not isinstance(name, str) or name not in registry:
        raise SpecError(f"{what} must be one of {', '.join(registry)}, not {name!r}")
    return registry[name], settings


def _make(kind: type[Made], settings: dict[str, Any]) -> Made:
    if is_dataclass(kind):
        only(kind.__name__, settings, [field.name for field in fields(kind)])
    try:
        return kind(**settings)
    except TypeError as reason:
        raise SpecError(f"{kind.__name__} does not take these settings: {reason}") from None


def plain(part: Any) -> dict[str, Any]:
    """A policy, an estimator or a budget as plain data."""
    names = [field.name for field in fields(part)] if is_dataclass(part) else ["left", "right", "more"]
    data: dict[str, Any] = {"name": part.name} if hasattr(part, "name") else {}
    for name in names:
        value = getattr(part, name)
        if value is None:
            continue
        if isinstance(value, Estimator):
            value = plain(value)
        elif isinstance(value, dict):
            value = _with_text_keys(value)
        elif name == "more":
            if not value:
                continue
            value = [_with_text_keys(one) if isinstance(one, dict) else one for one in value]
        data[name] = list(value) if isinstance(value, tuple) else value
    return data


def _with_text_keys(table: dict[int, float]) -> dict[str, float]:
    return {str(key): number for key, number in table.items()}
