"""What the driver does when Spark reports on a query: clean up after it, warn of late rows. One listener a session."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from shedjoin.spark.late import late_in, warn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: How long Python waits at its end, in milliseconds, for Spark to report what it has to report.
PATIENCE = 3000


def at_end(spark: SparkSession, query: StreamingQuery, action: Callable[[], None]) -> None:
    """Call `action` once, when this run of a query is over."""
    listener = _listener(spark)
    run = str(query.runId)
    listener.awaited[run] = action
    if not query.isActive:  # it ended before the listener knew of it
        listener.over(run)


def warn_when_late(spark: SparkSession, observation: str, lateness: int | None) -> None:
    """Warn of late rows in every micro-batch whose `observation` counts some."""
    _listener(spark).lateness[observation] = lateness


class QueryEvents(StreamingQueryListener):
    """What is to be done in one session: at the end of queries, by their `runId`, and on late rows, by observation."""

    def __init__(self) -> None:
        self.awaited: dict[str, Callable[[], None]] = {}
        self.lateness: dict[str, int | None] = {}

    def over(self, run: str) -> None:
        """Do what awaits the end of a run, once."""
        action = self.awaited.pop(run, None)
        if action is not None:
            action()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names
        """Nothing waits for a start."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        for name, metrics in progress.observedMetrics.items():
            if name in self.lateness:
                warn(late_in({name: metrics}), progress.batchId, self.lateness[name])

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing waits for an idle query."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self.over(str(event.runId))


_listeners: WeakKeyDictionary[SparkSession, QueryEvents] = WeakKeyDictionary()


def _listener(spark: SparkSession) -> QueryEvents:
    if spark not in _listeners:
        _listeners[spark] = QueryEvents()
        spark.streams.addListener(_listeners[spark])
        # Spark would call it when Python is gone already, and log a stack trace.
        atexit.register(_remove, spark, _listeners[spark])
    return _listeners[spark]


def _remove(spark: SparkSession, listener: QueryEvents) -> None:
    with suppress(Exception):  # what is on its way to the listener arrives; a busy session may take too long
        java: Any = spark.sparkContext._jsc
        java.sc().listenerBus().waitUntilEmpty(PATIENCE)
    with suppress(Exception):  # the session may have been stopped
        spark.streams.removeListener(listener)
