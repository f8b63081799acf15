"""A target recall: memory follows it, and the budget is the upper limit.

A join begins with the whole budget. When a window has passed since the last change, recall is measured over another half of a
window. Above the target memory shrinks, below it grows. The measurement depends only on the rows. So the same rows give the
same memory, for any number of restarts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shedjoin.batch import ROW_BYTES, Batch
from shedjoin.budget import Budget
from shedjoin.errors import SpecError
from shedjoin.recall.estimate import LIVE_COLUMNS, combine
from shedjoin.window import RowWindow, TimeWindow

if TYPE_CHECKING:
    from shedjoin.engine.engine import Engine
    from shedjoin.engine.output import Output
    from shedjoin.recall.live import LiveRecall
    from shedjoin.spec import JoinSpec

#: The most that memory shrinks and grows at once.
SHRINK, GROW = 0.7, 2.0
#: Recall is measured over at least this many results, and this part of a window.
FEWEST_RESULTS, PART = 100.0, 0.5
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*(?:recall)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """The recall that a join should reach.

    Parameters
    ----------
    recall
        The share of results to deliver, above 0 and below 1. Memory shrinks while recall is certainly above it.

    Examples
    --------
    >>> Target.of("95% recall")
    Target(recall=0.95)
    """

    recall: float

    def __post_init__(self) -> None:
        if isinstance(self.recall, bool) or not isinstance(self.recall, float | int) or not 0.0 < self.recall < 1.0:
            raise SpecError(f"Target.recall must be above 0 and below 1, such as 0.95, not {self.recall!r}")

    @classmethod
    def of(cls, value: Any) -> Target:
        """From text such as "95% recall", a number, a table or a `Target`."""
        if isinstance(value, Target):
            return value
        given = value
        if isinstance(value, str) and (found := _TEXT.fullmatch(value)):
            value = float(found[1]) / 100.0
        if isinstance(value, Mapping) and {*value} == {"recall"}:
            value = value["recall"]
        if isinstance(value, bool) or not isinstance(value, float | int) or not 0.0 < value < 1.0:
            raise SpecError(f"target must be a share of results such as '95% recall' or 0.95, not {given!r}")
        return cls(float(value))


def check_target(spec: JoinSpec) -> None:
    """Refuse joins whose memory cannot follow a target."""
    if spec.budget is None:
        raise SpecError("target: memory needs an upper limit, so give a budget as well")
    if spec.policy is not None and spec.policy.name == "sample":
        raise SpecError(
            "target: memory that depends on lost results would bias the weights of Sample(): leave one of the two out"
        )
    if spec.how in ("left_semi", "left_anti"):
        raise SpecError(f"target: live recall counts pairs, and a {spec.how} join delivers none")


def progress(engine: Engine, spec: JoinSpec) -> tuple[int | None, int]:
    """The progress of a join and the length of a window: by the clocks, or for row windows by the arrived rows."""
    lengths = [window.size for window in spec.windows if isinstance(window, TimeWindow)]
    if not lengths:
        lengths = [window.rows for window in spec.windows if isinstance(window, RowWindow)]
        return min(engine.arrived), max(lengths)
    clocks = [clock for clock in engine.clocks if clock is not None]
    return (min(clocks) if len(clocks) == len(engine.clocks) else None), max(lengths)


@dataclass
class TargetControl:
    """Adapts the memory of one join to a target. Call `follow` after each push, after `LiveRecall.follow`.

    Parameters
    ----------
    target
        A `Target`, or a value that `Target.of` takes.
    spec
        The join. Its budget is the upper limit.

    Attributes
    ----------
    share
        The part of the upper limit that is in use.
    limited
        Whether recall is below the target and memory cannot grow, because it has reached the upper limit.
    """

    target: Target
    spec: JoinSpec
    share: float = 1.0
    limited: bool = False
    _since: int | None = None  # the time of the last change
    _from: dict[str, float] | None = field(default=None, repr=False)  # sums of live recall when measuring began
    _measured: int = 0  # and the time

    def __post_init__(self) -> None:
        self.target = Target.of(self.target)
        check_target(self.spec)

    @property
    def budget(self) -> Budget:
        """The budget of the join now."""
        assert self.spec.budget is not None
        return self.part_of(self.spec.budget)

    def part_of(self, limit: Budget) -> Budget:
        """What is in use of a limit: at least room for some rows of each stream."""
        least = 16 * len(self.spec.windows) * (1 if limit.unit == "tuples" else ROW_BYTES)
        total = min(max(int(limit.total * self.share), least), limit.total)
        return replace(limit, **{limit.unit: total})  # type: ignore[arg-type]

    def follow(self, engine: Engine, live: LiveRecall) -> Output | None:
        """Measure recall since the last change, and change the budget if necessary. Returns the output of that change."""
        if not self.measure(engine, live):
            return None
        out = engine.set_budget(self.budget)
        live.follow(Batch.of(), out)
        return out

    def measure(self, engine: Engine, live: LiveRecall) -> bool:
        """Whether the share has changed, by what has come since."""
        now, window = progress(engine, self.spec)
        if now is None:
            return False
        if self._since is None:
            self._since = now
        if self._from is None:
            if now - self._since >= window:  # what was evicted before the last change is found missing for a window
                self._from, self._measured = live.sums(), now
            return False
        if now - self._measured < PART * window:
            return False
        sums = live.sums()
        apart = {name: max(sums[name] - self._from[name], 0.0) for name in LIVE_COLUMNS}
        apart |= {name: sums[name] for name in ("live_unit", "live_shed")}
        recent = combine([apart])
        if recent.results + recent.missing < FEWEST_RESULTS:
            return False
        before, self.share = self.share, self._next(recent.recall, recent.low)
        self.limited = recent.recall < self.target.recall and before >= 1.0
        self._from = None
        if self.share == before:
            self._from, self._measured = sums, now
            return False
        self._since = now
        return True

    def measure_anew(self) -> None:
        """Call this when the recall estimate restarts: it drops the earlier sums."""
        self._from = None

    def _next(self, recall: float, low: float) -> float:
        """Missing results fall about with the square root of memory: grow at once, shrink slowly."""
        lost = (1.0 - recall) / (1.0 - self.target.recall)
        if lost > 1.0:
            return min(self.share * min(max(lost, 1.1), GROW), 1.0)
        if low > self.target.recall:
            return max(self.share * max(lost**0.5, SHRINK), 1e-4) if lost < 0.9 else self.share
        return self.share

    # ------------------------------------------------------------------------------------------------- as plain data

    def to_dict(self) -> dict[str, Any]:
        """The state of the control as plain data."""
        return {
            "share": self.share,
            "limited": self.limited,
            "since": self._since,
            "from": self._from,
            "measured": self._measured,
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Continue from `to_dict()`; the target may differ."""
        self.share, self.limited = float(data["share"]), bool(data["limited"])
        self._since, self._from, self._measured = data["since"], data["from"], int(data["measured"])
