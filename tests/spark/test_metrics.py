"""Metric rows, what is made of them, and the endpoint that serves them."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql.pandas.types import from_arrow_schema

from shedjoin.errors import EnvironmentProblem, InputError
from shedjoin.recall.estimate import LIVE_COLUMNS
from shedjoin.spark.metrics import METRIC_SCHEMA, by_batch, latest, recall_of, summarise
from shedjoin.spark.prometheus import Endpoint, QueryCollector, read_endpoint, samples_of

START = datetime(2024, 1, 1, tzinfo=UTC)


def metric(batch: int, shard: int, **values: Any) -> dict[str, Any]:
    """A row in which every number differs, so that a mixed-up column shows."""
    row: dict[str, Any] = {
        name: 1000 * place + 10 * batch + shard for place, name in enumerate(METRIC_SCHEMA.names, start=1)
    }
    row |= {"batch": batch, "shard": shard, "at": START + timedelta(seconds=batch), "restored": batch == 0}
    row |= {"seconds": 0.5 + shard, "live_results": 80.0, "live_importance": 60.0}
    row |= {name: 0.0 for name in LIVE_COLUMNS if name not in ("live_results", "live_importance")}
    row |= {"live_missing": 20.0, "live_importance_missing": 40.0, "live_recent_results": 1.0}
    return row | values


ROWS = [metric(batch, shard) for batch in (0, 1, 2) for shard in (1, 0)]


def test_spark_knows_the_types_of_all_columns() -> None:
    assert from_arrow_schema(METRIC_SCHEMA).names == METRIC_SCHEMA.names
    assert METRIC_SCHEMA.names[:3] == ["batch", "shard", "at"]
    assert set(LIVE_COLUMNS) <= set(METRIC_SCHEMA.names)


def test_a_summary_adds_counts_and_keeps_levels() -> None:
    summary = summarise(ROWS)
    assert summary is not None
    assert (summary.batches, summary.shards) == ((0, 2), 2)
    for name in (
        "nulls",
        "late",
        "results",
        "evicted",
        "scheduled",
        "expired",
        "state_bytes",
    ):
        assert getattr(summary, name) == sum(row[name] for row in ROWS), name
    for name in ("left", "right"):
        assert summary.rows_of[name] == sum(row[f"rows_{name}"] for row in ROWS), name
        for what in ("resident", "bytes"):
            now = [row[f"{what}_{name}"] for row in ROWS if row["batch"] == 2]
            assert getattr(summary, f"{what}_of")[name] == sum(now), (what, name)
    for name in ("peak_tuples", "peak_bytes"):
        assert getattr(summary, name) == sum(row[name] for row in ROWS if row["batch"] == 2), name
    assert summary.seconds == pytest.approx(3 * 1.5)  # the slower shard of three batches
    assert summary.restored == 2
    assert summary.at - summary.since == timedelta(seconds=2)
    assert summary.shed == summary.evicted + summary.scheduled
    assert summary.shed_share == summary.shed / sum(row["rows_left"] + row["rows_right"] for row in ROWS)


def test_peaks_are_added_up_within_a_batch_alone() -> None:
    """Memory moves from shard to shard: peaks of different batches were not there at once."""
    peaks = {(0, 0): 70, (0, 1): 20, (1, 0): 10, (1, 1): 90}
    rows = [metric(batch, shard, peak_tuples=peak) for (batch, shard), peak in peaks.items()]
    summary = summarise(rows)
    assert summary is not None
    assert summary.peak_tuples == 100


def test_recall_is_that_of_all_shards_together() -> None:
    rows = [metric(3, 0, live_results=90.0, live_missing=10.0), metric(2, 1, live_results=10.0, live_missing=90.0)]
    found = recall_of(latest([*ROWS, *rows]))
    assert found is not None
    assert found.recall == 0.5
    assert recall_of([*rows, metric(3, 2, live_results=None)]) is None
    assert recall_of([]) is None
    summary = summarise(rows)
    assert summary is not None
    assert summary.recall is not None
    assert summary.recall.recall == 0.5


def test_batches_are_told_apart() -> None:
    assert summarise([]) is None
    assert by_batch([]) == []
    assert [summary.batches for summary in by_batch(ROWS)] == [(0, 0), (1, 1), (2, 2)]
    assert [summary.shards for summary in by_batch(ROWS)] == [2, 2, 2]


def test_prometheus_can_read_the_board() -> None:
    collector = QueryCollector(query='a "query"\\', budget={"tuples": 500})
    collector.add(ROWS[:2])
    collector.add(ROWS[2:4])
    collector.add(ROWS[2:4])  # a batch that was repeated
    collector.add(ROWS[4:])
    families = {family.name: family for family in text_string_to_metric_families(generate_latest(collector).decode())}
    assert families["shedjoin_shed"].type == "counter"
    assert all(family.documentation for family in families.values())
    shed = {
        (sample.labels["shard"], sample.labels["why"]): sample.value for sample in families["shedjoin_shed"].samples
    }
    for shard in (0, 1):
        for why, column in (("evicted", "evicted"), ("late", "late"), ("schedule", "scheduled")):
            assert shed[str(shard), why] == sum(row[column] for row in ROWS if row["shard"] == shard)
    resident = families["shedjoin_resident_tuples"]
    assert resident.type == "gauge"
    left = [
        sample for sample in resident.samples if sample.labels == {"query": 'a "query"\\', "shard": "1", "side": "left"}
    ]
    assert [sample.value for sample in left] == [ROWS[4]["resident_left"]]
    recall = {sample.labels["bound"]: sample.value for sample in families["shedjoin_recall"].samples}
    assert recall["estimate"] == 0.8
    assert recall["low"] <= 0.8 <= recall["high"]
    importance = {sample.labels["bound"]: sample.value for sample in families["shedjoin_importance_recall"].samples}
    assert importance["estimate"] == 0.6
    assert families["shedjoin_budget_tuples"].samples[0].value == 500
    when = families["shedjoin_last_batch_timestamp_seconds"].samples[0].value
    assert when == (START + timedelta(seconds=2)).timestamp()


def test_a_query_without_a_budget_has_no_recall() -> None:
    collector = QueryCollector()
    collector.add([metric(0, 0, clock_left=None, **dict.fromkeys(LIVE_COLUMNS))])
    text = generate_latest(collector).decode()
    assert "recall" not in text
    assert 'clock{shard="0",side="left"}' not in text
    assert 'clock{shard="0",side="right"}' in text
    assert list(QueryCollector().collect())


def test_the_endpoint_serves_the_board_on_the_loopback() -> None:
    collector = QueryCollector(query='odd "name" \\ here\nand there')
    with Endpoint(collector) as endpoint:
        assert endpoint.url.startswith("http://127.0.0.1:")
        collector.add(ROWS)
        with urllib.request.urlopen(endpoint.url, timeout=5) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert answer.read().decode() == generate_latest(collector).decode()
        assert read_endpoint(endpoint.url) == samples_of(collector.collect())
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(endpoint.url + "/secrets", timeout=5)
        url = endpoint.url
    with pytest.raises(InputError, match=r"the metrics at http://127\.0\.0\.1:"):
        read_endpoint(url)


def test_a_port_in_use_gets_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentProblem, match=f"cannot listen at .*:{port}"):
            Endpoint(QueryCollector(), port=port)
