"""What can be asked of a running n-way join."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.budget import Budget
from shedjoin.engine.handle import Handle
from shedjoin.engine.nway.plan import NPlan, Orders
from shedjoin.engine.nway.state import COUNTERS
from shedjoin.engine.nway.statistics import Statistics
from shedjoin.engine.running import Running
from shedjoin.engine.state import NEVER
from shedjoin.errors import InputError


class Watched(Running):
    """The state of a `MultiEngine`, and what it says of it."""

    _plan: NPlan
    _how: NDArray[Any]
    _state: Handle
    _orders: Orders
    _statistics: Statistics
    _budget: Budget | None

    @property
    def names(self) -> tuple[str, ...]:
        """The streams, in their order."""
        return self._plan.names

    @property
    def orders(self) -> dict[str, tuple[str, ...]]:
        """For each origin, the order in which its new tuples meet the windows."""
        return {
            self.names[origin]: tuple(self.names[stream] for stream in order)
            for origin, order in enumerate(self._orders)
        }

    @property
    def reorderings(self) -> int:
        """How often the order was changed because the streams had."""
        return self._statistics.reorderings

    @property
    def budget(self) -> Budget | None:
        return self._budget

    @property
    def arrived(self) -> dict[str, int]:
        """Rows of each stream so far; the next one gets this number."""
        return self._by_stream("arrived")

    @property
    def residents(self) -> dict[str, int]:
        """Stored tuples of each stream."""
        return self._by_stream("resident")

    @property
    def stored_bytes(self) -> dict[str, int]:
        """The summed `bytes` of what is stored of each stream."""
        return self._by_stream("stored_bytes")

    @property
    def used(self) -> dict[str, int]:
        """What counts against the budget, for each stream: tuples or bytes."""
        return self._by_stream("stored_bytes" if self._how[0]["by_bytes"] else "resident")

    @property
    def clocks(self) -> dict[str, int | None]:
        """The largest time seen on each stream."""
        return {name: None if clock == NEVER else clock for name, clock in self._by_stream("clock").items()}

    @property
    def counters(self) -> dict[str, int]:
        """Totals since the beginning."""
        more = {name: int(self._state[name]) for name in ("peak_tuples", "peak_bytes")}
        return {**self._totals(), "instants": int(self._state["tick"]), **more}

    @property
    def matched_importance(self) -> float:
        """Summed importance of the results so far (after the warm-up)."""
        return float(self._state["importance"])

    def live(self, name: str) -> NDArray[np.int64]:
        """The row numbers of what is stored of a stream, in ascending order."""
        self._check_idle()
        if name not in self.names:
            raise InputError(f"there is no stream {name!r}; the streams are {', '.join(self.names)}")
        pool, free = self._state.arrays["pool"], self._state.arrays["free"]
        stored = np.ones(pool.size, np.bool_)
        stored[free[: int(self._state["free_count"])]] = False
        mine = stored & (pool["stream"] == self.names.index(name))
        return np.sort(self._state.arrays["card"]["seq"][mine])

    def forget_peaks(self) -> None:
        """From now on, peaks are those since here."""
        for peak, field in (("peak_tuples", "resident"), ("peak_bytes", "stored_bytes")):
            self._state[peak] = sum(self._by_stream(field).values())

    def _by_stream(self, field: str) -> dict[str, int]:
        return {name: int(self._state[field][stream]) for stream, name in enumerate(self.names)}

    def _arrived(self) -> list[int]:
        return [int(count) for count in self._state["arrived"][: self._plan.streams]]

    def _totals(self) -> dict[str, int]:
        return {name: int(self._state[name]) for name in COUNTERS}
