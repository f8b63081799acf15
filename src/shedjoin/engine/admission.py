"""How rows come to their turn, in plain numbers: a slow CPU, the queue in front of it, dual windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from shedjoin.engine.codes import BY_STOCK, BY_WEIGHT, BY_WINDOW, DROP_NONE

#: How often each value is in the histograms of two streams; None while nothing is known of one.
Histograms = Callable[[], tuple[list[float], list[float]] | None]


class Speeds(Protocol):
    """Dual windows: what the engine asks when it has measured how many rows of each stream come in a time unit."""

    def __call__(
        self, rates: Sequence[float], rear: float, front: float, histograms: Histograms
    ) -> tuple[float, float]:
        """The shares k_r and k_f that hold from now on."""
        ...


@dataclass(frozen=True, slots=True)
class Admission:
    """What stands between the arrival of a row and its turn.

    Attributes
    ----------
    capacity
        Units of work that the CPU does in a unit of time; 0: it is never busy.
    probe, comparison, lookup, update
        What costs how many units.
    tuples, span, drop, integrated
        The bound of the queue (0: none), which row it drops, and whether it shares the budget.
    rear, front, period
        Dual windows: whether shares are shed there, and how often they are set (0: never).
    shares
        The shares at the beginning; None: no dual windows.
    speeds
        Sets them.
    known
        What else a snapshot must agree on, as plain data.
    table
        An estimator that the queue asks instead of counting; the policy then asks none, or the same.
    """

    capacity: float = 0.0
    probe: float = 0.0
    comparison: float = 0.0
    lookup: float = 0.0
    update: float = 0.0
    tuples: int = 0
    span: int = 0
    drop: int = DROP_NONE
    integrated: bool = False
    rear: bool = False
    front: bool = False
    period: int = 0
    shares: tuple[float, float] | None = None
    speeds: Speeds | None = None
    known: tuple[Any, ...] = ()
    table: Any = None

    @property
    def dual(self) -> bool:
        return self.shares is not None

    def settings(self, by_rows: bool) -> dict[str, Any]:
        """The settings, as kernels read them. `by_rows`: windows are of rows."""
        return {
            "waits": 1,
            "capacity": self.capacity,
            "probe_cost": self.probe,
            "comparison_cost": self.comparison,
            "lookup_cost": self.lookup,
            "update_cost": self.update,
            "queue_tuples": self.tuples,
            "queue_span": self.span,
            "drop": self.drop,
            "drop_by": BY_WEIGHT if self.table is not None else BY_WINDOW if self.dual else BY_STOCK,
            "integrated": int(self.integrated),
            "dual": int(self.dual),
            "rear": int(self.rear),
            "front": int(self.front),
            "adapts": self.period,
            "let_in": int(self.dual and by_rows),
        }

    def meaning(self) -> list[Any]:
        """What must be the same for a snapshot to be resumed."""
        costs = [self.capacity, self.probe, self.comparison, self.lookup, self.update]
        queue = [self.tuples, self.span, self.drop, self.integrated, self.table is not None]
        shares = None if self.shares is None or self.speeds is None else list(self.shares)
        dual = [self.rear, self.front, self.period, shares]
        return [costs, queue, dual, list(self.known)]
