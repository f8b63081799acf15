"""What is done when queries end: once each, by one listener a session."""

import logging
from types import SimpleNamespace

import pytest

from shedjoin.spark.late import Limit
from shedjoin.spark.query_events import QueryEvents, _FromJava, _remove, at_end


class Session:
    """Of a Spark session, what is used of it."""

    def __init__(self) -> None:
        self.listeners: list[object] = []
        self.streams = SimpleNamespace(addListener=self.listeners.append, removeListener=self.listeners.remove)


def query(run: str, *, active: bool = True) -> SimpleNamespace:
    return SimpleNamespace(runId=run, isActive=active)


def test_each_query_is_seen_to_once_by_one_listener() -> None:
    spark, done = Session(), []
    for run in ("one", "two", "three"):
        at_end(spark, query(run), lambda run=run: done.append(run))
    (listener,) = spark.listeners
    for run in ("two", "of another", "two", "one"):
        listener.onQueryTerminated(SimpleNamespace(runId=run))
    assert done == ["two", "one"]


def test_a_query_that_was_over_already_is_seen_to() -> None:
    spark, done = Session(), []
    at_end(spark, query("one", active=False), lambda: done.append("one"))
    spark.listeners[0].onQueryTerminated(SimpleNamespace(runId="one"))
    assert done == ["one"]


def test_a_listener_goes_when_its_events_have_arrived() -> None:
    done: list[str] = []
    bus = SimpleNamespace(waitUntilEmpty=lambda _: done.append("waited"))
    context = SimpleNamespace(listenerBus=lambda: bus)
    spark = SimpleNamespace(
        sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context)),
        streams=SimpleNamespace(removeListener=lambda _: done.append("removed")),
    )
    _remove(spark, QueryEvents())
    assert done == ["waited", "removed"]


def test_only_observed_queries_are_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    """Of a report as Java hands it over: rows with one number, by the names of observations."""
    events = QueryEvents()
    java, found = _FromJava(events), {"ours": 3, "another": 5, "none late": 0}
    metrics = SimpleNamespace(get={name: SimpleNamespace(getLong=lambda _, n=n: n) for name, n in found.items()}.get)
    report = SimpleNamespace(observedMetrics=lambda: metrics, batchId=lambda: 7)
    with caplog.at_level(logging.WARNING, "shedjoin"):
        java.onQueryProgress(SimpleNamespace())  # nothing is awaited: the report is not asked for
        events.limits |= dict.fromkeys(("ours", "none late", "not there"), Limit(None, False))
        java.onQueryProgress(SimpleNamespace(progress=lambda: report))
    assert [one.getMessage().partition(":")[0] for one in caplog.records] == ["batch 7"]
    assert "3 rows were later" in caplog.text


def test_java_tells_of_an_end_once() -> None:
    events, done = QueryEvents(), []
    events.awaited["one"] = lambda: done.append("one")
    for _ in range(2):
        _FromJava(events).onQueryTerminated(SimpleNamespace(runId=lambda: SimpleNamespace(toString=lambda: "one")))
    assert done == ["one"]
