"""A Prometheus endpoint for a running query, made of its metric rows; and a reader of such endpoints."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from http.server import ThreadingHTTPServer
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import MetricsHandler
from prometheus_client.parser import text_string_to_metric_families

from shedjoin.errors import EnvironmentProblem, InputError
from shedjoin.join_type import sure_recall
from shedjoin.spark.metrics import Row, curve_of_rows, latest, recall_of, streams_of
from shedjoin.what_if import Point

PREFIX = "shedjoin_"
#: Serve the ages of this many basic windows, the most profitable ones.
BEST = 3
#: Values of labels, and the number.
_Samples = Iterable[tuple[tuple[object, ...], float]]
_SHED = {"evicted": "evicted", "late": "late", "schedule": "scheduled"}


class _ByShard(NamedTuple):
    """A metric with one sample a shard, or one a shard and value of its label: `side`, or `why`."""

    documentation: str
    column: str
    label: str = ""

    def columns(self, row: Row) -> dict[tuple[str, ...], str]:
        """Its columns in a metric row, by the values of the label. Not every join has all of them."""
        found: dict[tuple[str, ...], str] = {(): self.column}
        if self.label == "side":
            found = {(side,): f"{self.column}_{side}" for side in streams_of(row)}
        elif self.label == "why":
            found = {(why,): column for why, column in _SHED.items()}
        return {values: column for values, column in found.items() if column in row}

    def samples(self, rows: Iterable[Row]) -> _Samples:
        for row in rows:
            for values, column in self.columns(row).items():
                if row[column] is not None:
                    yield (row["shard"], *values), row[column]


#: Added up over micro-batches.
_COUNTERS = {
    "rows": _ByShard("Input rows.", "rows", "side"),
    "null_keys": _ByShard("Input rows with a null key, which match nothing.", "nulls"),
    "results": _ByShard("Results delivered.", "results"),
    "shed": _ByShard("Rows shed, by reason.", "", "why"),
    "dropped": _ByShard("Rows dropped before they were sent to shards.", "dropped", "side"),
    "expired": _ByShard("Rows that left their window.", "expired"),
    "certain": _ByShard("Rows that left without a partner and certainly have none.", "certain"),
    "unknown": _ByShard("Rows that left without a partner and may have one.", "unknown"),
    "alone": _ByShard("Rows given alone: those of semi and anti joins, and unmatched rows.", "alone"),
    "state_bytes": _ByShard("Bytes written to the state store.", "state_bytes"),
    "seconds": _ByShard("Time spent in the join.", "seconds"),
    "restored": _ByShard("Batches in which the engine was rebuilt from the state store.", "restored"),
    "partial_probes": _ByShard("Rows that a shard compared with a part of the window only.", "partial"),
    "compared": _ByShard("Stored tuples, or entries of lists, that probes looked at.", "compared"),
}
#: As of the last micro-batch.
_GAUGES = {
    "batch": _ByShard("The last micro-batch.", "batch"),
    "resident_tuples": _ByShard("Stored tuples.", "resident", "side"),
    "resident_bytes": _ByShard("Stored bytes.", "bytes", "side"),
    "clock": _ByShard("The largest event time, in microseconds or the unit of whole-number times.", "clock", "side"),
}
#: The same, of joins with a deadline.
_DEADLINE = {
    "fraction": _ByShard("r: which part of the windows rows are compared with.", "fraction"),
    "window_fraction": _ByShard("r_1, r_2, ...: which part of each window is looked at.", "fraction", "side"),
}


class QueryCollector:
    """A collector of prometheus_client for the metric rows of a query. Counters start when this process starts to watch it.

    Parameters
    ----------
    query
        The value of the label `query`; empty: samples have no such label.
    budget
        Of all shards together, by its unit.
    """

    def __init__(self, *, query: str = "", budget: Mapping[str, int] | None = None) -> None:
        self._labels = {"query": query} if query else {}
        self._budget = dict(budget or {})
        self._shards: dict[int, Row] = {}  # the last row of each, with its counters added up
        self._lock = threading.Lock()

    def add(self, rows: Iterable[Row]) -> None:
        """Count the rows of a micro-batch. One that is repeated after a failure counts once."""
        with self._lock:
            for row in rows:
                before = self._shards.get(row["shard"])
                if before is not None and before["batch"] >= row["batch"]:
                    continue
                counted = [column for metric in _COUNTERS.values() for column in metric.columns(row).values()]
                totals = {column: (row[column] or 0) + (before.get(column, 0) if before else 0) for column in counted}
                self._shards[row["shard"]] = {**row, **totals}

    def collect(self) -> Iterator[Metric]:
        """All metrics, as of now."""
        with self._lock:
            rows = latest(self._shards.values())
        selective = [row for row in rows if row.get("fraction") is not None]
        for kind, metrics, some in (
            (CounterMetricFamily, _COUNTERS, rows),
            (GaugeMetricFamily, _GAUGES, rows),
            (GaugeMetricFamily, _DEADLINE, selective),
        ):
            for name, metric in metrics.items():
                family = kind(PREFIX + name, metric.documentation, labels=self._names("shard", metric.label))
                yield self._filled(family, metric.samples(some))
        ages = (
            ((row["shard"], side, rank), age)
            for row in selective
            for side in streams_of(row)
            for rank, age in enumerate(row[f"ranking_{side}"][:BEST], 1)
        )
        what = "The most profitable basic windows: their ages, by rank."
        yield self._gauge("basic_window_age", what, ages, "shard", "side", "rank")
        in_use = [((row["shard"], row["policy"]), 1) for row in rows if row.get("policy") is not None]
        if in_use:
            yield self._gauge("policy", "1: the policy that the shard uses now.", in_use, "shard", "policy")
            changes = [((row["shard"],), row["policy_changes"]) for row in rows if row.get("policy") is not None]
            what = "How often the shard has changed its policy."
            yield self._gauge("policy_changes", what, changes, "shard")
        if rows:
            ended = max(row["at"] for row in rows).timestamp()
            yield self._gauge("last_batch_timestamp_seconds", "When the last micro-batch ended.", [((), ended)])
        for unit, amount in self._budget.items():
            yield self._gauge(f"budget_{unit}", f"The budget of all shards together, in {unit}.", [((), amount)])
        targeted = [row for row in rows if row.get("allowed") is not None]
        if targeted:
            allowed = (((row["shard"],), row["allowed"]) for row in targeted)
            limited = (((row["shard"],), int(row["limited"])) for row in targeted)
            yield self._gauge(
                "allowed", "What may be stored now to hold the target, in the budget's unit.", allowed, "shard"
            )
            what = "1 if the budget keeps recall below the target, or errors above it."
            yield self._gauge("limited", what, limited, "shard")
        errors = [((row["shard"],), row["error"]) for row in rows if row.get("error") is not None]
        if errors:
            what = "Half of the widest interval that is expected, as a part of its sum."
            yield self._gauge("error", what, errors, "shard")
        judged = [row for row in rows if row.get("alone") is not None]
        if judged:
            share = sure_recall(sum(row["alone"] for row in judged), sum(row["unknown"] for row in judged))
            what = "At least this share of the rows that the join gives alone was delivered, if no row was late."
            yield self._gauge("sure_recall", what, [((), share)])
        yield from self._what_if(rows)
        yield from self._recall(rows, "recall", "since the beginning, or since a change of shards")
        yield from self._recall(rows, "recent_recall", "in recent micro-batches", recent=True)

    def _what_if(self, rows: list[Row]) -> Iterator[Metric]:
        if (curve := curve_of_rows(rows)) is None:
            return
        for weight, what, points in (
            ("", "results", curve.recall),
            ("importance_", "importance", curve.importance or {}),
        ):
            samples = [
                ((f"{factor:g}", bound), value) for factor, point in points.items() for bound, value in _bounds(point)
            ]
            if samples:
                words = f"The share of {what} that so many times the budget would deliver, with its limits."
                yield self._gauge(f"what_if_{weight}recall", words, samples, "memory", "bound")
        named = curve.policies.items()
        by_policy = [((policy, bound), value) for policy, point in named for bound, value in _bounds(point)]
        words = "The share of results that each policy would deliver with the budget, with its limits."
        yield self._gauge("what_if_policy_recall", words, by_policy, "policy", "bound")

    def _recall(self, rows: list[Row], name: str, when: str, *, recent: bool = False) -> Iterator[Metric]:
        found = recall_of(rows, recent=recent)
        if found is None:
            return
        for weight, what, values in (
            ("", "results", (found.recall, found.low, found.high)),
            ("importance_", "importance", (found.importance, found.importance_low, found.importance_high)),
        ):
            samples = zip((("estimate",), ("low",), ("high",)), values, strict=True)
            words = f"The share of {what} delivered {when}, with its limits."
            yield self._gauge(weight + name, words, samples, "bound")

    def _gauge(self, name: str, documentation: str, samples: _Samples, *labels: str) -> Metric:
        return self._filled(GaugeMetricFamily(PREFIX + name, documentation, labels=self._names(*labels)), samples)

    def _names(self, *labels: str) -> list[str]:
        return [*self._labels, *filter(None, labels)]

    def _filled(self, family: CounterMetricFamily | GaugeMetricFamily, samples: _Samples) -> Metric:
        for values, value in samples:
            family.add_metric([*self._labels.values(), *map(str, values)], value)
        return family


def _bounds(point: Point) -> list[tuple[str, float]]:
    return [("estimate", point.recall), ("low", point.low), ("high", point.high)]


class Endpoint:
    """Serves a collector at ``/metrics`` until it is closed; a context manager.

    Parameters
    ----------
    collector
        The collector to serve.
    port
        0: any free one; `url` has the chosen port.
    host
        The address to listen at. By default only this machine can reach it.
    """

    def __init__(self, collector: QueryCollector, *, port: int = 0, host: str = "127.0.0.1") -> None:
        registry = CollectorRegistry()
        registry.register(collector)
        try:
            self._server = ThreadingHTTPServer((host, port), _Handler.factory(registry))
        except (OSError, OverflowError) as reason:
            raise EnvironmentProblem(f"the metrics endpoint cannot listen at {host}:{port}: {reason}") from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="shedjoin metrics", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class _Handler(MetricsHandler):
    """That of prometheus_client answers at every path."""

    def do_GET(self) -> None:  # noqa: N802
        if self.path.partition("?")[0] in ("/metrics", "/"):
            super().do_GET()
        else:
            self.send_error(404, "there is only /metrics")


Samples = dict[str, list[tuple[dict[str, str], float]]]


def read_endpoint(url: str, *, timeout: float = 5.0) -> Samples:
    """The samples of an endpoint."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return samples_of(text_string_to_metric_families(answer.read().decode()))
    except (urllib.error.URLError, OSError, ValueError) as reason:
        raise InputError(f"the metrics at {url} cannot be read: {getattr(reason, 'reason', reason)}") from None


def samples_of(families: Iterable[Metric]) -> Samples:
    """The samples of this library's metrics, by their names without the prefix."""
    found: Samples = {}
    for sample in (sample for family in families for sample in family.samples):
        if sample.name.startswith(PREFIX):
            found.setdefault(sample.name.removeprefix(PREFIX), []).append((sample.labels, sample.value))
    return found
