"""From a slow CPU, its queue and dual windows to what the engine runs by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shedjoin.cpu.dual_speed import Probabilities, Speed, best_speed, partners, rear_share
from shedjoin.cpu.settings import Dual, Queue, VirtualCpu
from shedjoin.engine.admission import Admission, Histograms
from shedjoin.engine.codes import DROP_NONE, DROP_RANDOM, DROP_SEMANTIC
from shedjoin.estimators import Table
from shedjoin.window import TimeWindow, Window

_DROPS = {"random": DROP_RANDOM, "semantic": DROP_SEMANTIC}


def admission_of(
    windows: Sequence[Window], cpu: VirtualCpu | None, queue: Queue | None, dual: Dual | None
) -> Admission | None:
    """What stands between the arrival of a row and its turn; None: nothing."""
    if cpu is None and dual is None:
        return None
    numbers: dict[str, object] = {}
    if cpu is not None:
        names = ("capacity", "probe", "comparison", "lookup", "update")
        numbers |= {name: float(getattr(cpu, name)) for name in names}
    if queue is not None:
        drop = DROP_NONE if queue.integrated else _DROPS.get(str(queue.drop), DROP_SEMANTIC)
        numbers |= {"tuples": queue.tuples or 0, "span": queue.span or 0, "drop": drop, "integrated": queue.integrated}
        numbers["table"] = queue.drop if isinstance(queue.drop, Table) else None
    if dual is not None:
        follows = cpu is not None and dual.follows
        numbers |= {
            "rear": dual.rear is not False,
            "front": dual.front is not False,
            "period": dual.period if follows else 0,
            "shares": (_first(dual.rear), _first(dual.front)),
            "speeds": FollowedSpeeds(tuple(windows), cpu, dual) if cpu is not None and follows else None,
            "known": (*_known(dual, follows=follows), [list(one) for one in dual.distribution or ()]),
        }
    return Admission(**numbers)  # type: ignore[arg-type]


def _known(dual: Dual, *, follows: bool) -> tuple[object, object]:
    """What a snapshot must agree on of the shares: a share that is given, and follows nothing, may change."""
    shares = dual.rear, dual.front
    return shares if follows else tuple(one if isinstance(one, bool) else "share" for one in shares)  # type: ignore[return-value]


def _first(share: bool | float) -> float:
    """What is shed before anything is known of the speeds."""
    return 0.0 if isinstance(share, bool) else float(share)


@dataclass(frozen=True)
class FollowedSpeeds:
    """Dual windows: the shares k_r and k_f that streams of these speeds need."""

    windows: tuple[Window, ...]
    cpu: VirtualCpu
    dual: Dual
    #: V_opt by rates, for values that are known beforehand.
    known: dict[tuple[float, ...], float] = field(default_factory=dict, compare=False)

    def __call__(
        self, rates: Sequence[float], rear: float, front: float, histograms: Histograms
    ) -> tuple[float, float]:
        probes, updates = self.cpu.capacity / self.cpu.probe, self.cpu.capacity / self.cpu.update
        entering = sum(rates)
        if self.dual.front is True:
            best = self._best_speed(rates, histograms)
            if best is not None:
                front = max(0.0, 1.0 - best / entering)
                entering = min(entering, best)
        else:
            entering *= 1.0 - front
        if self.dual.rear is True:
            rear = rear_share(entering, probes, updates)
        return rear, front

    def _best_speed(self, rates: Sequence[float], histograms: Histograms) -> float | None:
        """V_opt, worked out once for rates that are about the same; None while nothing is known of the values."""
        # Row windows know only the ratio of the rates; time windows hold a number of rows, in whatever unit time is.
        about = rates if isinstance(self.windows[0], TimeWindow) else [rate / sum(rates) for rate in rates]
        rounded = tuple(float(f"{max(rate, 1e-3 * max(about)):.3g}") for rate in about)
        if self.dual.distribution is None:
            counts = histograms()
            return None if counts is None else speed_of(self.windows, self.cpu, counts, rounded).rows
        if rounded not in self.known:
            self.known[rounded] = speed_of(self.windows, self.cpu, self.dual.distribution, rounded).rows
        return self.known[rounded]


def speed_of(windows: Sequence[Window], cpu: VirtualCpu, values: Probabilities, rates: Sequence[float]) -> Speed:
    """V_opt of two streams of these values and rates."""
    timed = isinstance(windows[0], TimeWindow)
    sizes = [one.range * (rate if timed else 1.0) for one, rate in zip(windows, rates, strict=True)]
    chances = [partners(values[stream], values[1 - stream], sizes[1 - stream], timed=timed) for stream in range(2)]
    return best_speed(chances, cpu.capacity / cpu.probe, cpu.capacity / cpu.update, rates)
