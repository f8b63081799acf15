"""The join that a twin runs, whatever the engine calls it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import shedjoin as sj
from naive.conditions import Condition, Graph, Key, OnValue, common_column, on
from naive.learned import LearnedWeights
from naive.rows import Windows
from naive.weights import (
    CountMinWeights,
    DecayedWeights,
    HistoryWeights,
    InMemoryWeights,
    InWindowWeights,
    TableWeights,
    Weights,
)
from shedjoin.join_type import TYPES, JoinType
from shedjoin.window import RowWindow

if TYPE_CHECKING:
    from naive.twin import Twin

Spec = sj.JoinSpec


@dataclass(frozen=True)
class Dual:
    """Dual windows (dual2006): rows stand in an aux-window before they probe.

    `rear` is the share k_r of rows that enter without a probe, `front` the share k_f that is dropped by lot; True follows the
    speeds, which are measured every `period`. `distribution` is how likely each value is in each stream.
    """

    rear: bool | float = True
    front: bool | float = True
    period: int = 100
    distribution: tuple[Sequence[float], Sequence[float]] | None = None


@dataclass(frozen=True)
class Join:
    """All dials."""

    windows: Windows
    condition: Condition = field(default_factory=Key)
    budget: sj.Budget | None = None
    policy: sj.Policy = field(default_factory=sj.KeepAll)
    importance: str = "min"
    lateness: int = 0
    max_skew: int | None = None
    evaluate_every: int = 0
    expire_every: int = 0
    selective: sj.Selective | None = None
    cpu: sj.VirtualCpu | None = None
    queue: sj.Queue | None = None
    dual: Dual | None = None
    #: "scan": a probe looks at the whole part of the window. Only the work depends on it.
    index: str = "lists"
    how: JoinType = TYPES["inner"]
    #: After how many partners rows of each stream leave.
    matches: Sequence[int | None] | None = None

    @property
    def streams(self) -> range:
        return range(len(self.windows))

    @property
    def counts_let_in(self) -> bool:
        """Whether row windows count the rows that were let in, as dual2006 has it."""
        return self.dual is not None and any(isinstance(window, RowWindow) for window in self.windows)

    def counts_keys(self, policy: sj.Policy) -> bool:
        """Whether keys with stored rows can count against a budget in bytes."""
        inner = getattr(self.condition, "inner", self.condition)
        by_key = isinstance(inner, Key | OnValue) and self.index != "scan" and not isinstance(policy.estimator, sj.Met)
        at_once = not self.evaluate_every and not self.expire_every
        return by_key and at_once and self.cpu is None and self.dual is None and not isinstance(policy, sj.Sample)

    @classmethod
    def of(cls, spec: Spec | Join) -> Join:
        """The join that a spec of today describes."""
        match spec:
            case Join():
                return spec
            case sj.JoinSpec():
                expire = spec.evaluate_every if spec.expire_every is None else spec.expire_every
                names, text = spec.names, spec.on
                condition: Condition
                if isinstance(text, sj.Predicate):
                    condition = on(text)
                else:
                    condition = common_column(names, text) if isinstance(text, str) else Graph(names, text)
                if names == ("left", "right") and text == "key":  # rows have a key, and no other columns
                    condition = Key(2)
                join = cls(spec.windows, condition, spec.budget, spec.policy or sj.KeepAll())
                join = replace(join, evaluate_every=spec.evaluate_every, expire_every=expire, lateness=spec.lateness)
        join = replace(join, how=TYPES[spec.how], matches=spec.matches)
        return replace(join, importance=spec.importance, max_skew=spec.max_skew)


def weights_of(twin: Twin, estimator: sj.Estimator | None) -> Weights:
    """The estimator of a policy."""
    if isinstance(twin.policy, sj.Prospect):
        return LearnedWeights(twin)
    match estimator:
        case None | sj.Met():
            return Weights(twin)
        case sj.Table():
            return TableWeights(twin, estimator)
        case sj.InMemory():
            return InMemoryWeights(twin)
        case sj.History():
            return HistoryWeights(twin)
        case sj.InWindow():
            return InWindowWeights(twin)
        case sj.Decayed():
            return DecayedWeights(twin, estimator.half_life)
        case sj.CountMin():
            return CountMinWeights(twin, estimator.width, estimator.depth)
    raise TypeError(f"the twin does not know {estimator!r}")


def has_another_estimator(before: sj.Policy, after: sj.Policy) -> bool:
    """Whether what the estimator of a policy knows is of no use to another. Half-lives may change."""
    if isinstance(after, sj.Prospect):
        return not isinstance(before, sj.Prospect)
    one, other = before.estimator, after.estimator
    if other is None or (isinstance(one, sj.Decayed) and isinstance(other, sj.Decayed)):
        return False
    return one != other
