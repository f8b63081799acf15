"""Results with a watermark: aggregations and joins in append mode can follow a `shed_join`.

Spark has one watermark a query: the lowest of (newest event time - delay) over all `withWatermark` of its plan. A result is
older than the newest row by up to the lateness and the window. So the inputs' watermarks are delayed by both. Then no result is
behind the watermark of the query, however small its micro-batches are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shedjoin.errors import SpecError
from shedjoin.spark.inputs import DELAY, is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Which of several watermarks is that of the query: min or max.
WHICH = "spark.sql.streaming.multipleWatermarkPolicy"
MILLISECOND = 1_000


def milliseconds(micros: int) -> int:
    """A delay in Spark's unit, rounded up."""
    return -(-micros // MILLISECOND)


def check_lowest(spark: Any) -> None:
    """Reject the setting with which the fastest stream drives the watermark: results would be dropped after the join."""
    if (spark.conf.get(WHICH, "min") or "min").lower() != "min":
        raise SpecError(f"{WHICH} must be min, not {spark.conf.get(WHICH)!r}: results would fall behind the watermark")


def delayed(frame: DataFrame, time: str, delay: int) -> DataFrame:
    """The same stream with a watermark on `time` that lags behind the newest row by `delay` milliseconds, or by more.

    `withWatermark` cannot be called twice on a stream, Spark fails at the second micro-batch: delays are changed in the plan.
    """
    present = frame.schema[time].metadata.get(DELAY)
    if present is None:
        return frame.withWatermark(time, f"{delay} milliseconds")
    more = max(delay - int(present), 0)
    return _delayed_on_connect(frame, more) if is_connect(frame.sparkSession) else _delayed(frame, more)


def _delayed(frame: Any, more: int) -> DataFrame:
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    session = frame.sparkSession
    plan = _with_delay(session._jvm, frame._jdf.logicalPlan(), more)
    return Classic(session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)


def _with_delay(jvm: Any, plan: Any, more: int) -> Any:
    """A plan of the JVM in which every watermark lags by `more` milliseconds more."""
    children = plan.children()
    if children.size():
        changed = jvm.java.util.ArrayList()
        for place in range(children.size()):
            changed.add(_with_delay(jvm, children.apply(place), more))
        plan = plan.withNewChildren(jvm.org.apache.spark.api.python.PythonUtils.toSeq(changed))
    if plan.nodeName() != "EventTimeWatermark":
        return plan
    watermark = jvm.org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark
    micros = (watermark.getDelayMs(plan.delay()) + more) * MILLISECOND
    delay = jvm.org.apache.spark.unsafe.types.CalendarInterval(0, 0, micros)
    return watermark(plan.nodeId(), plan.eventTime(), delay, plan.child())


def _delayed_on_connect(frame: Any, more: int) -> DataFrame:
    from pyspark.sql.connect.dataframe import DataFrame as Remote
    from pyspark.sql.connect.plan import LogicalPlan

    class Delayed(LogicalPlan):
        """The same plan; in its message every watermark lags by more."""

        def plan(self, session: Any) -> Any:
            assert self._child is not None
            relation = self._child.plan(session)
            for watermark in _watermarks(relation):
                watermark.delay_threshold += f" {more} milliseconds"
            return relation

    return Remote(Delayed(frame._plan), frame.sparkSession)


def _watermarks(message: Any) -> Iterator[Any]:
    """All `WithWatermark` messages in a plan of Spark Connect."""
    if message.DESCRIPTOR.name == "WithWatermark":
        yield message
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for one in value if field.is_repeated else [value]:
            yield from _watermarks(one)
