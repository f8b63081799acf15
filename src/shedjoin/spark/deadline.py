"""What is left of a deadline for the join itself, in a shard."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from shedjoin.batch import Batch
from shedjoin.engine.pace import Watch
from shedjoin.spec import JoinSpec

#: Not all of the deadline is planned for: no two micro-batches are alike.
AIM = 0.9
#: However late a micro-batch is, the join gets this part of its deadline.
LEAST_AIM = 0.1
#: Between a shard's end and the next micro-batch Spark commits, writes results and plans. What that takes is the shortest such
#: gap of the last few; more than this part of the deadline is idle time.
GAPS, MOST_GAP = 3, 0.5
#: The kinds of joins whose kernels this process has.
_LOADED: set[str] = set()


class Pacing:
    """Holds a shard to its deadline.

    Parameters
    ----------
    seconds
        The deadline; None: there is none.
    clock
        In seconds.
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float]) -> None:
        self.seconds = seconds
        self.clock = clock
        self.saving = 0.0  # how long it took to save the state the last time
        self.gaps: list[float] = []
        self._spent = 0.0

    def go_on(self, head: dict[str, Any]) -> None:
        """What was learned before."""
        self.saving, self.gaps = head["saving"], head["gaps"]

    def arrive(self, began: float | None, ended: float | None) -> None:
        """A micro-batch is here. `began`: when its first task began; `ended`: when the last one ended; None: not known."""
        if began is None:
            return
        if ended is not None:
            self.gaps = [*self.gaps, max(0.0, began - ended)][-GAPS:]
        self._spent = max(0.0, time.time() - began)

    def watch(self, spec: JoinSpec, spent: float) -> Watch | None:
        """Holds the join to what is left. `spent`: seconds since the shard began."""
        if self.seconds is None or spec.selective is None:
            return None
        around = min(min(self.gaps, default=0.0), MOST_GAP * self.seconds)
        left = AIM * self.seconds - max(self._spent, spent) - self.saving - around
        return Watch(max(left, LEAST_AIM * self.seconds), boost=spec.selective.boost, clock=self.clock)

    def forgive(self) -> None:
        """The start of a process is not paid for by rows that would not be compared for want of time."""
        self._spent = 0.0


def loads_kernels(spec: JoinSpec, part: tuple[int, int], batch: Batch) -> bool:
    """Whether this process has not run such a join yet. If so, a temporary engine loads the kernels."""
    kind = repr((type(spec.on), len(spec.names), spec.policy))
    if kind in _LOADED or len(batch) == 0:
        return False
    _LOADED.add(kind)
    for _ in spec.build(part=part).chunks(batch.take(slice(0, 4)), limit=1 << 10, pace=Watch(1.0)):
        pass
    return True
