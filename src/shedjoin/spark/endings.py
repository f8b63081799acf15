"""What is to be done when a query is over, however it ended: one listener a session, however many queries it runs."""

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def at_end(spark: SparkSession, query: StreamingQuery, action: Callable[[], None]) -> None:
    """Do something once, when this run of a query is over."""
    if spark not in _listeners:
        _listeners[spark] = Endings()
        spark.streams.addListener(_listeners[spark])
        # Spark would call it when Python is gone already, and say so at length.
        atexit.register(_remove, spark, _listeners[spark])
    run = str(query.runId)
    _listeners[spark].awaited[run] = action
    if not query.isActive:  # it was over before anybody listened
        _listeners[spark].over(run)


class Endings(StreamingQueryListener):
    """What is awaited in one session, by the `runId` of queries."""

    def __init__(self) -> None:
        self.awaited: dict[str, Callable[[], None]] = {}

    def over(self, run: str) -> None:
        """Whoever is first to know that a run is over does what is to be done."""
        action = self.awaited.pop(run, None)
        if action is not None:
            action()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names
        """Not what is waited for."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Not what is waited for."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Not what is waited for."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self.over(str(event.runId))


_listeners: WeakKeyDictionary[SparkSession, Endings] = WeakKeyDictionary()


def _remove(spark: SparkSession, listener: Endings) -> None:
    with suppress(Exception):  # the session may have been stopped
        spark.streams.removeListener(listener)
