"""A view of whole queries from Spark's own events: rows and results a second, time a batch. Works for `shed_join` alone."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from shedjoin.spark.late import late_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OBSERVED = "shedjoin"


def observe(results: DataFrame, *, name: str = OBSERVED) -> DataFrame:
    """The same DataFrame, of which each micro-batch tells the listeners how many results it had."""
    from pyspark.sql import functions as F

    return results.observe(name, F.count(F.lit(1)).alias("results"))


@dataclass(frozen=True, slots=True)
class Progress:
    """One micro-batch of a query.

    Attributes
    ----------
    results
        Of this batch; None if the query's results were not given to `observe`.
    late
        Late rows of this batch, in all joins of the query.
    seconds
        From the trigger to the commit.
    state_bytes
        Memory that Spark's state store uses.
    """

    query: str
    name: str | None
    batch: int
    at: str
    rows: int
    rows_per_second: float
    results: int | None
    late: int
    seconds: float
    state_bytes: int

    def as_row(self) -> dict[str, Any]:
        """Plain values, to be stored."""
        return asdict(self)


class Listener(StreamingQueryListener):
    """Keeps the last micro-batches of every query: ``spark.streams.addListener(listener)``.

    Parameters
    ----------
    keep
        How many batches are kept.
    """

    def __init__(self, *, keep: int = 1000, name: str = OBSERVED) -> None:
        self._keep = keep
        self._name = name
        self._rows: list[Progress] = []
        self._failures: dict[str, str] = {}
        self._lock = threading.Lock()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names
        """Nothing is known before the first batch."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        observed = progress.observedMetrics.get(self._name)
        made = Progress(
            query=str(progress.id),
            name=progress.name,
            batch=int(progress.batchId),
            at=str(progress.timestamp),
            rows=int(progress.numInputRows),
            rows_per_second=float(progress.processedRowsPerSecond),
            results=None if observed is None else int(observed["results"]),
            late=late_in(progress.observedMetrics),
            seconds=progress.durationMs.get("triggerExecution", 0) / 1000,
            state_bytes=sum(int(state.memoryUsedBytes) for state in progress.stateOperators),
        )
        with self._lock:
            self._rows = [*self._rows, made][-self._keep :]

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """An idle query has nothing to tell."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        if event.exception is not None:
            with self._lock:
                self._failures[str(event.id)] = str(event.exception)

    def rows(self, query: str | None = None) -> list[Progress]:
        """What is kept, of one query or of all."""
        with self._lock:
            return [row for row in self._rows if query is None or row.query == query]

    def failure(self, query: str) -> str | None:
        """Why a query ended, if it failed."""
        with self._lock:
            return self._failures.get(query)
