"""Listener for Spark's reports on queries: it cleans up after them and warns about late rows. One a session."""

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

from shedjoin.spark.late import Limit, warn

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


def warn_when_late(spark: SparkSession, observation: str, limit: Limit) -> None:
    """Warn of late rows in every micro-batch whose `observation` counts some."""
    _listener(spark).limits[observation] = limit


class QueryEvents(StreamingQueryListener):
    """What is to be done in one session: at the end of queries, by their `runId`, and on late rows, by observation."""

    def __init__(self) -> None:
        self.awaited: dict[str, Callable[[], None]] = {}
        self.limits: dict[str, Limit] = {}

    def over(self, run: str) -> None:
        """Do what awaits the end of a run, once."""
        action = self.awaited.pop(run, None)
        if action is not None:
            action()

    @property
    def _jlistener(self) -> Any:
        """PySpark adds this to Java's listeners."""
        if not hasattr(self, "_java"):
            from pyspark import SparkContext

            jvm: Any = SparkContext._jvm
            self._java = jvm.PythonStreamingQueryListenerWrapper(_FromJava(self))
        return self._java

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names
        """Nothing waits for a start."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """`_FromJava` has already read the report."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing waits for an idle query."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self.over(str(event.runId))


class _FromJava:
    """What Java calls. PySpark's own would read each figure of each report, with a call to Java for every one."""

    def __init__(self, events: QueryEvents) -> None:
        self.events = events

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's names
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        if not self.events.limits:
            return
        progress = event.progress()
        observed = progress.observedMetrics()
        for name, limit in list(self.events.limits.items()):
            if (found := observed.get(name)) is not None and (late := found.getLong(0)):
                warn(late, progress.batchId(), limit)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self.events.over(str(event.runId().toString()))

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


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
