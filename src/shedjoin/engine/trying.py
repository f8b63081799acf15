"""What the engine asks of the trials of other policies that run beside it (`shedjoin.auto`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shedjoin.batch import Batch
from shedjoin.budget import Budget
from shedjoin.engine.plan import PolicyLike

#: The column of a snapshot that has the trials.
COLUMN = "trials"


class ChangeLike(Protocol):
    """A change of the policy: after how many rows, to which, and how much more that one found."""

    @property
    def rows(self) -> int: ...
    @property
    def policy(self) -> str: ...
    @property
    def gain(self) -> float: ...


class Trying(Protocol):
    """Tries policies on a sample of the rows of a join."""

    @property
    def now(self) -> PolicyLike: ...
    @property
    def changes(self) -> Sequence[ChangeLike]: ...
    @property
    def runs(self) -> bool: ...
    @property
    def rows(self) -> int: ...
    @property
    def due(self) -> int: ...
    def see(self, batch: Batch) -> None: ...
    def look(self, clocks: Sequence[int | None]) -> PolicyLike | None: ...
    def fit(self, budget: Budget | None) -> None: ...
    def to_bytes(self) -> bytes: ...
    def load(self, saved: bytes) -> None: ...
