"""The join of a query, of two streams or of more: `Many` gives an n-way join on one key the face that `JoinSpec` has.

Its streams go by their places and not by their names. What a shard makes of either is in `engines`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shedjoin.budget import Budget
from shedjoin.multi import MultiJoinSpec
from shedjoin.policies import Policy
from shedjoin.spec import JoinSpec
from shedjoin.window import Window

if TYPE_CHECKING:
    from shedjoin.spark.engines import ManyEngine

#: What the engine calls the hash of the key columns.
KEY = "key"


@dataclass(frozen=True, slots=True)
class Many:
    """An n-way join on one key."""

    spec: MultiJoinSpec

    @property
    def names(self) -> tuple[str, ...]:
        return self.spec.names

    @property
    def windows(self) -> tuple[Window, ...]:
        return tuple(self.spec.windows.values())

    @property
    def budget(self) -> Budget | None:
        return self.spec.budget

    @property
    def policy(self) -> Policy | None:
        return self.spec.policy

    @property
    def importance(self) -> str:
        return self.spec.importance

    @property
    def lateness(self) -> int:
        return self.spec.lateness

    @property
    def max_skew(self) -> int | None:
        return self.spec.max_skew

    def with_budget(self, budget: Budget | None) -> Many:
        return Many(self.spec.with_budget(budget))

    def to_dict(self) -> dict[str, Any]:
        return self.spec.to_dict()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Many:
        return cls(MultiJoinSpec.from_dict(data))

    def build(self, seed: int = 0) -> ManyEngine:
        from shedjoin.spark.engines import ManyEngine

        return ManyEngine(self.spec.build(seed))

    def resume(self, snapshot: bytes) -> ManyEngine:
        from shedjoin.spark.engines import ManyEngine

        return ManyEngine(self.spec.resume(snapshot))


Join = JoinSpec | Many


def join_of(data: Mapping[str, Any]) -> Join:
    """The join that plain data describes: of two streams, or of more."""
    return Many.from_dict(data) if "windows" in data else JoinSpec.from_dict(data)
