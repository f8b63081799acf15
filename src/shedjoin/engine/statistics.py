"""What a running join knows about its streams, and whether another order would be better."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.handle import Handle
from shedjoin.engine.plan import Orders, Plan
from shedjoin.engine.records import NEVER
from shedjoin.engine.reordering import Reordering
from shedjoin.engine.stored import keys_of, live_tuples
from shedjoin.join_order import Equality, JoinOrder, Model, StreamStats, Theta, along_the_graph, best_orders

#: A stream that has stopped still has a rate, so that its window has a length.
SLOWEST = 1e-9
#: Beyond this many streams the exact search takes too long to be done while a join runs.
EXACT = 12


class Statistics:
    """Rates since the last look, and sizes and distinct values of the windows as they are."""

    def __init__(self, plan: Plan, reordering: Reordering | None) -> None:
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

    def look(self, cfg: NDArray[Any], state: Handle) -> Model | None:
        """The cost model of the streams as they are; None while no time has passed."""
        streams = self._plan.streams
        clocks = [int(clock) for clock in state["clock"][:streams] if clock != NEVER]
        arrived = [int(count) for count in state["arrived"][:streams]]
        if not clocks:
            return None
        now = max(clocks)
        if self._time is not None and now > self._time:
            self.rates = [
                (after - before) / (now - self._time) for after, before in zip(arrived, self._arrived, strict=True)
            ]
        if self._time is None or now > self._time:
            self._time, self._arrived = now, arrived
        return self.model(cfg, state)

    def model(self, cfg: NDArray[Any], state: Handle) -> Model | None:
        """The cost model with the rates of the last look; None while there are none."""
        if self.rates is None:
            return None
        plan, graph = self._plan, self._plan.graph
        items = live_tuples(state)
        live = [items[state.arrays["pool"]["stream"][items] == stream] for stream in range(plan.streams)]
        keys = [keys_of(cfg, state, mine) for mine in live]
        streams = []
        for stream, rate in enumerate(self.rates):
            rate = max(rate, SLOWEST)
            buckets = [
                int(index["many"])
                for index in state.arrays["indexes"]
                if index["stream"] == stream and index["attr"] >= 0
            ]
            if plan.keyed:  # a bucket for each key
                buckets = [int(_distinct(keys[stream][:, 0]))]
            streams.append(StreamStats(rate, live[stream].size / rate, values=1.0, buckets=float(max([1, *buckets]))))
        equalities = [
            Equality({stream: _distinct(keys[stream][:, column]) for stream, column in part.items()})
            for part in graph.parts
        ]
        thetas = [Theta(one.left, one.right) for one in graph.thetas]
        return Model.of(streams, equalities, thetas, tau=float(plan.evaluate_every), names=plan.names)

    def better(self, cfg: NDArray[Any], state: Handle, orders: Orders) -> JoinOrder | None:
        """Another plan, if the one in use has drifted too far from the best."""
        model = self.look(cfg, state)
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


def _distinct(values: NDArray[np.int64]) -> float:
    return float(max(np.unique(values).size, 1))
