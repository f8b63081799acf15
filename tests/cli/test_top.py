"""`shedjoin top`: the same query seen in its directory and at its endpoint."""

from __future__ import annotations

import io
import json
import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prometheus_client import generate_latest
from rich.console import Console

from shedjoin.cli import main, top
from shedjoin.cli.view import of_rows, of_samples
from shedjoin.parse import parse_policy
from shedjoin.plots.what_if import draw_curve
from shedjoin.recall.estimate import LIVE_COLUMNS
from shedjoin.spark.advice import WORDS, what_if_lines
from shedjoin.spark.metric_files import MetricFiles
from shedjoin.spark.metrics import METRIC_SCHEMA, metric_schema, summarise
from shedjoin.spark.prometheus import Endpoint, QueryCollector, samples_of
from shedjoin.what_if import FACTORS, GROUPS, written

START = datetime(2024, 1, 1, tzinfo=UTC)
BUDGET = {"tuples": 400, "allocation": "fixed"}


def metric(batch: int, shard: int) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(METRIC_SCHEMA.names, 0)
    row |= dict.fromkeys(LIVE_COLUMNS, 0.0)
    row |= {"batch": batch, "shard": shard, "at": START + timedelta(seconds=10 * batch), "seconds": 10.0}
    row |= {
        "rows_left": 300,
        "rows_right": 100,
        "evicted": 100,
        "late": 20,
        "results": 80,
        "nulls": 4,
        "restored": False,
        "changed": None,
    }
    row |= {"resident_left": 120, "resident_right": 60, "bytes_left": 1200, "bytes_right": 600}
    return row | {
        "live_results": 80.0 * (batch + 1),
        "live_missing": 20.0 * (batch + 1),
        "live_missing_square": 40.0,
        "live_missing_cube": 80.0,
    }


ROWS = [metric(batch, shard) for batch in range(3) for shard in range(2)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.json").write_text(json.dumps({"format": 4, "spec": {"budget": BUDGET}}))
    for batch in range(3):
        write(tmp_path, batch)
    return tmp_path


def write(folder: Path, batch: int, done: bool = True) -> None:
    """As Spark does: files, and then a note that they are all there."""
    place = folder / "metrics" / f"batch={batch}"
    place.mkdir(parents=True)
    for shard in range(2):
        table = pa.Table.from_pylist([metric(batch, shard)], METRIC_SCHEMA).drop_columns(["batch"])
        pq.write_table(table, place / f"part-{shard}.parquet")
    if done:
        (place / "_SUCCESS").touch()


def test_a_watch_gives_each_complete_batch_once(folder: Path) -> None:
    watch = MetricFiles(folder)
    assert [rows[0]["batch"] for rows in watch.new()] == [0, 1, 2]
    assert watch.new() == []
    write(folder, 3, done=False)
    assert watch.new() == []
    (folder / "metrics" / "batch=3" / "_SUCCESS").touch()
    assert watch.new() == [[metric(3, 0), metric(3, 1)]]
    assert {row["batch"] for row in watch.last(2)} == {2, 3}
    late = MetricFiles(folder)
    late.skip()
    assert late.new() == []
    assert MetricFiles(folder / "nowhere").new() == []


def test_rows_and_samples_tell_the_same_sure_limit() -> None:
    """Of a semi join, which has no estimate of pairs: that it is not known is not said."""
    rows = [row | dict.fromkeys(LIVE_COLUMNS, None) | {"certain": 3, "unknown": 10, "alone": 30} for row in ROWS]
    collector = QueryCollector(query="q", budget={"tuples": 400})
    for batch in range(3):
        collector.add(rows[2 * batch : 2 * batch + 2])
    for view in (of_rows(rows, BUDGET), of_samples(samples_of(collector.collect()), None, 20.0)):
        assert view is not None
        assert (view.recall, view.unmatched, view.sure) == (None, (18, 60), 0.75)
        printed = io.StringIO()
        Console(file=printed, width=150).print(top.frame(view, "q"))
        said = printed.getvalue()
        assert "at least 75.0% delivered" in said
        assert "not known" not in said


def test_rows_and_samples_show_the_same_query() -> None:
    collector = QueryCollector(query="q", budget={"tuples": 400})
    collector.add(ROWS[:2])
    before = samples_of(collector.collect())
    collector.add(ROWS[2:])
    seen, told = of_rows(ROWS, BUDGET), of_samples(samples_of(collector.collect()), before, 20.0)
    assert seen is not None
    assert told is not None
    assert seen.rows == told.rows == (1800, 600)
    assert seen.shed == told.shed == {"evicted": 600, "late": 120, "schedule": 0, "dropped": 0}
    assert seen.rates == (60.0, 20.0, 16.0)  # 30 seconds from the beginning of the first batch
    assert told.rates == (60.0, 20.0, 16.0)  # 20 seconds between two looks
    assert seen.recall == pytest.approx(told.recall)
    assert seen.recall is not None
    assert seen.recall[0] == pytest.approx(0.8)
    assert seen.recall[1] < 0.8 < seen.recall[2]
    for name in ("batch", "shards", "results", "nulls", "tuples", "bytes", "budget"):
        assert getattr(seen, name) == getattr(told, name), name
    assert of_rows([], None) is None
    assert of_samples({}, None, 1.0) is None


def test_a_frame_is_written_when_there_is_no_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    assert main(["top", str(folder)]) == 0
    assert "batch 2, 2 shards" in capsys.readouterr().out


def test_recent_is_not_called_late(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    collector = QueryCollector(query="q", budget={"tuples": 400})
    collector.add(ROWS)
    text = generate_latest(collector).decode()
    assert "delivered in recent micro-batches" in text
    assert "of late" not in text
    view = of_rows(ROWS, BUDGET)
    assert view is not None
    Console().print(top.frame(replace(view, recent=(0.5, 0.4, 0.6)), "q"))
    assert "recent batches" in capsys.readouterr().out


def test_one_frame_of_a_directory(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    assert main(["top", str(folder), "--once"]) == 0
    said = capsys.readouterr().out
    for words in (
        "batch 2, 2 shards",
        "left 60/s, right 20/s",
        "2,400 in the last 3 batches",
        "shed: evicted  25.0% of rows",
        "late           5.0% of rows",
        "80.0% (",
        "60.0% of the budget, 240 tuples",
        "30.0% of the budget, 120 tuples",
        "360 of 400 tuples now, 0 at most in the last 3 batches",
    ):
        assert words in said


def test_one_frame_of_an_endpoint(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr(top, "BETWEEN", 0.01)
    collector = QueryCollector(budget={"bytes": 7200})
    with Endpoint(collector) as endpoint:
        assert main(["top", endpoint.url, "--once"]) == 0
        assert "no batch yet" in capsys.readouterr().out
        collector.add(ROWS)
        assert main(["top", endpoint.url.removesuffix("/metrics"), "--once"]) == 0
    said = capsys.readouterr().out
    assert "left 0/s, right 0/s" in said  # nothing came between two looks
    assert "33.3% of the budget, 240 tuples" in said
    assert "3,600 of 7,200 bytes" in said


def test_a_join_with_a_deadline_shows_how_much_it_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    more = [
        {"fraction": 0.4, "fraction_left": 0.6, "fraction_right": 0.2, "partial": 30, "compared": 900},
        {"fraction": 0.2, "fraction_left": 0.4, "fraction_right": 0.0, "partial": 20, "compared": 100},
    ]
    ranking = {"ranking_left": [2, 0, 1, -1], "ranking_right": [-1, 1, 0, 2]}
    rows = [{**metric(0, shard), **dict.fromkeys(LIVE_COLUMNS), **part, **ranking} for shard, part in enumerate(more)]
    collector = QueryCollector()
    collector.add(rows)
    seen, told = of_rows(rows, None), of_samples(samples_of(collector.collect()), None, 1.0)
    assert seen is not None
    assert told is not None
    assert seen.fractions == pytest.approx((0.3, 0.5, 0.1))
    assert told.fractions == pytest.approx(seen.fractions)
    assert seen.ranking == told.ranking == ((2, 0, 1), (-1, 1, 0))
    assert seen.partial == told.partial == 50
    assert 'shedjoin_compared_total{shard="0"} 900' in generate_latest(collector).decode()
    (tmp_path / "job.json").write_text(json.dumps({"format": 4, "spec": {}}))
    place = tmp_path / "metrics" / "batch=0"
    place.mkdir(parents=True)
    pq.write_table(
        pa.Table.from_pylist(rows, metric_schema(("left", "right"), selective=True)).drop_columns(["batch"]),
        place / "0.parquet",
    )
    (place / "_SUCCESS").touch()
    assert main(["top", str(tmp_path), "--once"]) == 0
    said = capsys.readouterr().out
    assert "30.0% of the windows" in said
    assert "left 50.0%, right 10.0%; 50 probes of a part" in said
    assert "left 2, 0, 1; right -1, 1, 0" in said
    assert "not known" in said  # of recall: no budget, but not exact


def test_a_join_that_tries_policies_shows_what_it_goes_by() -> None:
    found = ("Prospect()", 0, "nothing is compared yet"), ("Dgl()", 2, "it found 9% more than Rand()")
    names = ("policy", "policy_changes", "policy_why")
    rows = [{**metric(0, shard), **dict(zip(names, one, strict=True))} for shard, one in enumerate(found)]
    collector = QueryCollector()
    collector.add(rows)
    seen, told = of_rows(rows, BUDGET), of_samples(samples_of(collector.collect()), None, 1.0)
    for view in (seen, told):
        assert view is not None
        assert (view.policies, view.policy_changes) == (("Prospect()", "Dgl()"), 2)
    assert seen is not None
    assert seen.policy_why == (found[0][2], found[1][2])
    printed = io.StringIO()
    Console(file=printed, width=150).print(top.frame(seen, "q"))
    assert "Prospect() in 1 shard, Dgl() in 1 shard" in printed.getvalue()
    assert "it found 9% more than Rand()" in printed.getvalue()
    assert "2 changes since the beginning" in printed.getvalue()


def test_what_cannot_be_watched_gets_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", str(tmp_path), "--once"]) == 2
    assert "is not the output directory of a query: it has no job.json" in capsys.readouterr().err
    assert main(["top", str(tmp_path / "nowhere"), "--once"]) == 2
    assert f"the directory {tmp_path / 'nowhere'} does not exist" in capsys.readouterr().err
    assert main(["top", "http://127.0.0.1:1/metrics", "--once"]) == 2
    assert "the metrics at http://127.0.0.1:1/metrics cannot be read" in capsys.readouterr().err
    assert main(["top", str(tmp_path), "--every", "0"]) == 2
    assert "--every must be from 0.1" in capsys.readouterr().err


def test_a_join_that_tries_other_memories_shows_what_they_would_deliver(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sums = np.zeros((1, len(FACTORS) + 3, 2 * GROUPS))
    sums[0, :, :GROUPS] = np.array([300, 500, 700, 900, 1000, 740, 950, 1000])[:, None]
    found = {"rows": 5000, "policy": "Prob(estimator=History())", "rivals": ["Rand()", "Age(estimator=None)"]}
    found |= {
        "held": 512.0,
        "need": 8.0,
        "sampled": [0.1, 1.0],
        "seen": 10_000.0,
        "delivered": [7000.0],
        "sums": sums.tolist(),
    }
    rows = [
        {**metric(0, shard), "what_if": written(found), "what_if_why": None, "live_results": None} for shard in (0, 1)
    ]
    collector = QueryCollector()
    collector.add(rows)
    seen, told = of_rows(rows, BUDGET), of_samples(samples_of(collector.collect()), None, 1.0)
    assert seen is not None
    assert told is not None
    assert [factor for factor, _ in seen.what_if] == list(FACTORS)
    assert np.allclose(np.array([share for _, share in told.what_if]), [share for _, share in seen.what_if])
    assert [policy for policy, _ in told.by_policy] == [policy for policy, _ in seen.by_policy]
    for view in (seen, told):
        printed = io.StringIO()
        Console(file=printed, width=200).print(top.frame(view, "q"))
        assert "2 x the memory: 9" in printed.getvalue()
        assert "policy Rand()" in printed.getvalue()
        assert 'set policy = "age"' in printed.getvalue()
        assert "no more than a random choice" in printed.getvalue()
    done = summarise(rows)
    assert done is not None
    curve = done.what_if
    assert curve is not None
    draw_curve(replace(curve, importance=curve.recall), [tmp_path / "curve.png"])
    assert (tmp_path / "curve.png").stat().st_size > 1000
    (tmp_path / "job.json").write_text(json.dumps({"format": 4, "spec": {}}))
    assert main(["top", str(tmp_path), "--plot", str(tmp_path / "none.svg")]) == 2
    assert "it needs what_if = true" in capsys.readouterr().err
    place = tmp_path / "metrics" / "batch=0"
    place.mkdir(parents=True)
    given = pa.Table.from_pylist(rows, metric_schema(("left", "right"), what_if=True))
    pq.write_table(given.drop_columns(["batch"]), place / "0.parquet")
    (place / "_SUCCESS").touch()
    assert main(["top", str(tmp_path), "--plot", str(tmp_path / "none.pdf")]) == 2
    assert main(["top", str(tmp_path), "--plot", str(tmp_path / "curve.svg")]) == 0
    assert "the curve is drawn in" in capsys.readouterr().out
    assert any(line.startswith("With twice the memory recall would be about 9") for line in what_if_lines(done.what_if))


@pytest.mark.parametrize(("written_as", "policy"), WORDS.items())
def test_advised_policies_are_written_as_job_files_take_them(written_as: str, policy: str) -> None:
    wanted = tomllib.loads(f"policy = {policy}")["policy"]
    assert repr(parse_policy(wanted)) == written_as
