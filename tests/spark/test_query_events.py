"""What is done when queries end: once each, by one listener a session."""

from types import SimpleNamespace

from shedjoin.spark.query_events import QueryEvents, _remove, at_end


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
