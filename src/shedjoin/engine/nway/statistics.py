"""What a running join knows about its streams, and whether another order would be better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.handle import Handle
from shedjoin.engine.nway.plan import NPlan, Orders
from shedjoin.engine.state import NEVER
from shedjoin.errors import SpecError
from shedjoin.ordering import Equality, JoinOrder, Model, StreamStats, Theta, along_the_graph, best_orders

#: A stream that has stopped still has a rate, so that its window has a length.
SLOWEST = 1e-9
#: Beyond this many streams the exact search takes too long to be done while a join runs.
EXACT = 12


@dataclass(frozen=True, slots=True)
class Reordering:
    """When a running join looks for a better order.

    Parameters
    ----------
    every
        Rows between two looks; as many as are stored, where that is more.
    drift
        Another order is taken when the one in use is expected to cost more than 1 + drift times the best.
    """

    every: int = 10_000
    drift: float = 0.2

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int | np.integer) or self.every < 1:
            raise SpecError(f"every must be a whole number of at least 1, not {self.every!r}")
        if isinstance(self.drift, bool) or not isinstance(self.drift, int | float) or not 0 <= self.drift < np.inf:
            raise SpecError(f"drift must be a number of at least 0, not {self.drift!r}")


class Statistics:
    """Rates since the last look, and sizes and distinct values of the windows as they are."""

    def __init__(self, plan: NPlan, reordering: Reordering | None) -> None:
        self._plan = plan
        self.reordering = reordering
        self.next_look = reordering.every if reordering is not None else None
        self._time: int | None = None
        self._arrived = [0] * plan.streams
        self.rates: list[float] | None = None
        self.reorderings = 0

    def start(self, time: int) -> None:
        """Rates are counted from the time of the first row."""
        if self._time is None:
            self._time = time

    def look(self, st: Handle) -> Model | None:
        """The cost model of the streams as they are; None while no time has passed."""
        streams = self._plan.streams
        clocks = [int(clock) for clock in st["clock"][:streams] if clock != NEVER]
        arrived = [int(count) for count in st["arrived"][:streams]]
        if not clocks:
            return None
        now = max(clocks)
        if self._time is not None and now > self._time:
            self.rates = [
                (after - before) / (now - self._time) for after, before in zip(arrived, self._arrived, strict=True)
            ]
        if self._time is None or now > self._time:
            self._time, self._arrived = now, arrived
        return self.model(st)

    def model(self, st: Handle) -> Model | None:
        """The cost model with the rates of the last look; None while there are none."""
        if self.rates is None:
            return None
        plan, graph = self._plan, self._plan.graph
        live = _live(st, plan.streams)
        streams = []
        for stream, rate in enumerate(self.rates):
            rate = max(rate, SLOWEST)
            buckets = [
                int(index["many"]) for index in st.arrays["indexes"] if index["stream"] == stream and index["attr"] >= 0
            ]
            streams.append(StreamStats(rate, live[stream].size / rate, values=1.0, buckets=float(max([1, *buckets]))))
        attr = st.arrays["attr"].reshape(-1, plan.width)
        equalities = [
            Equality({stream: _distinct(attr[live[stream], column]) for stream, column in part.items()})
            for part in graph.parts
        ]
        thetas = [Theta(one.left, one.right) for one in graph.thetas]
        return Model.of(streams, equalities, thetas, tau=float(plan.evaluate_every), names=plan.names)

    def better(self, st: Handle, orders: Orders) -> JoinOrder | None:
        """Another plan, if the one in use has drifted too far from the best."""
        model = self.look(st)
        if model is None or self.reordering is None:
            return None
        if self._plan.streams <= EXACT:
            best = best_orders(model, general=self._plan.evaluate_every > 0)
        else:
            best = along_the_graph(model)
        if model.cost_of_orders(orders) <= (1.0 + self.reordering.drift) * best.cost:
            return None
        self.reorderings += 1
        return best

    def saved(self) -> dict[str, Any]:
        """Plain data, for a snapshot."""
        return {
            "next_look": self.next_look,
            "time": self._time,
            "arrived": self._arrived,
            "rates": self.rates,
            "reorderings": self.reorderings,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from `saved`."""
        if self.reordering is not None:
            self.next_look = int(saved["next_look"])
        self._time = None if saved["time"] is None else int(saved["time"])
        self._arrived = [int(count) for count in saved["arrived"]]
        self.rates = None if saved["rates"] is None else [float(rate) for rate in saved["rates"]]
        self.reorderings = int(saved["reorderings"])


def _live(st: Handle, streams: int) -> list[NDArray[np.int64]]:
    """The places of what is stored of each stream."""
    pool, free = st.arrays["pool"], st.arrays["free"]
    stored = np.ones(pool.size, np.bool_)
    stored[free[: int(st["free_count"])]] = False
    return [np.flatnonzero(stored & (pool["stream"] == stream)) for stream in range(streams)]


def _distinct(values: NDArray[np.int64]) -> float:
    return float(max(np.unique(values).size, 1))
