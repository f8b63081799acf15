"""An error target on shards: memory follows it as in the library, metrics say so, and sums stay unbiased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shards import Shards, cut, hashed, job
from streams import read, side, write

import shedjoin as sj
from shedjoin.cli.view import of_rows
from shedjoin.spark import shed_join, start
from shedjoin.spark.error_columns import ErrorColumns
from shedjoin.spark.exchange import METRIC, RESULT

ROWS, BATCHES, WINDOW, LIMIT = 3000, 20, 300, 400


def drawn(rows: int = ROWS) -> list[Any]:
    rng, likely = np.random.default_rng(5), 1.0 / np.arange(1, 41)
    keys = [rng.choice(40, rows, p=likely / likely.sum()) for _ in range(2)]
    return [np.where(key == 3, 41, key) for key in keys]  # 3 stands for null there


def run(
    shards: int,
    within: float = 0.1,
    limit: int = LIMIT,
    *,
    seed: int = 0,
    sum_of: Any = None,
    by: Any = (),
    batches: int = BATCHES,
) -> Any:
    """The rows of metrics, and the results."""
    spec = sj.JoinSpec(sj.TimeWindow(WINDOW), sj.Budget(tuples=limit), sj.Sample())
    error = ErrorColumns(sj.ErrorTarget(within), by, sum_of)
    made = Shards(job(spec, shards, weights=True, error=error, seed=seed))
    metrics: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for part in cut([(key, np.arange(ROWS)) for key in drawn()], batches):
        given = made.batch(*part)
        metrics += given[METRIC]
        results += given[RESULT]
    return metrics, results


def test_one_shard_has_the_memory_that_the_library_has() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(WINDOW), sj.Budget(tuples=LIMIT), sj.Sample())
    control = sj.ErrorControl(0.1, spec)
    engine = spec.with_budget(control.budget).build()
    left, right = (np.array([hashed(int(key)) for key in keys]) for keys in drawn())
    budgets = []
    for ts in np.array_split(np.arange(ROWS), BATCHES):
        budgets.append(engine.budget.total)
        batch = engine.batch({"left": {"key": left[ts], "ts": ts}, "right": {"key": right[ts], "ts": ts}})
        engine.push(batch)
        control.follow(engine, batch)
    metrics, _ = run(1)
    assert [row["allowed"] for row in metrics] == budgets
    assert len(set(budgets)) > 3
    assert metrics[-1]["error"] == pytest.approx(control.error)
    assert (metrics[-1]["error_groups"], metrics[-1]["error_small_groups"]) == (1, 0)


def test_metrics_say_whether_the_limit_stops_it() -> None:
    metrics, _ = run(1, within=0.001, limit=200)
    last = metrics[-1:]
    assert all(row["limited"] for row in last)
    view = of_rows(metrics, {"tuples": 200})
    assert view is not None
    assert view.limited
    assert view.error == max(row["error"] for row in last) > 0.001


def test_columns_are_summed() -> None:
    """The sum of a column that grows is known less well than a count."""
    counted, summed = (run(1, sum_of=place)[0] for place in (None, (1, 0)))
    assert counted[-1]["error"] != summed[-1]["error"]


def test_columns_of_both_streams_make_groups() -> None:
    """Each pair of rows is a group of its own here, and none of these has enough rows."""
    metrics, _ = run(1, by=((0, 1), (1, 0)))
    assert metrics[-1]["error_groups"] == 0
    assert metrics[-1]["error_small_groups"] > 1000
    assert {row["allowed"] for row in metrics} == {LIMIT * 7 // 8}
    assert metrics[-1]["limited"]


def test_sums_are_unbiased_while_memory_follows_the_error() -> None:
    left, right = drawn()
    true = sj.simulate(sj.JoinSpec(sj.TimeWindow(WINDOW)), {"key": left}, {"key": right}).matches
    totals, memory = [], set()
    for seed in range(30):
        metrics, results = run(2, seed=100 * seed, limit=250, batches=8)
        totals.append(sum(row["sj_weight"] for row in results))
        memory.add(tuple(row["allowed"] for row in metrics))
    assert len(memory) > 10
    assert abs(np.mean(totals) - true) < 4.0 * np.std(totals) / np.sqrt(len(totals))


JOIN: dict[str, Any] = {
    "on": "k",
    "time": "ts",
    "window": "4 seconds",
    "select": ["a", "b"],
    "budget": "400 tuples",
    "policy": "sample",
    "weights": True,
    "lateness": 0,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("error")
    for seed, name in ((1, "a"), (2, "b")):
        write(folder / name, side(seed, 2400, 60, name), 4)
    return folder


def test_a_query_follows_groups_of_its_results(spark: Any, folder: Path, tmp_path: Path) -> None:
    inputs = [read(spark, folder / name).selectExpr("*", f"{name} % 2 AS half_{name}") for name in "ab"]
    error = {"by": ["half_a", "half_b"], "sum": "a", "within": 0.2}
    args = JOIN | {"select": ["a", "b", "half_a", "half_b"], "error": error, "shards": 1}
    start(*inputs, output=tmp_path, trigger={"availableNow": True}, recall=False, **args).awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "metrics")).orderBy("batch").collect()
    assert rows[-1]["error_groups"] + rows[-1]["error_small_groups"] == 4
    assert rows[-1]["allowed"] <= 350
    assert rows[-1]["error"] is not None


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"weights": False}, "error: intervals are made of the weights of results"),
        ({"policy": "prob", "weights": False}, r"error: only results of Sample\(\) have a known error"),
        ({"error": {"within": 0.1, "by": "c"}}, "error: results have no column 'c'; they have a, b"),
        ({"error": 3}, "error must be a table such as"),
        ({"target": 0.9}, r"would bias the weights of Sample\(\)"),
    ],
)
def test_what_cannot_follow_an_error_is_refused(
    spark: Any, folder: Path, settings: dict[str, Any], sentence: str
) -> None:
    inputs = [read(spark, folder / name) for name in "ab"]
    with pytest.raises(sj.SpecError, match=sentence):
        shed_join(*inputs, **JOIN | {"error": {"within": 0.1}} | settings)


def test_batch_joins_and_columns_without_numbers_are_refused(spark: Any, folder: Path) -> None:
    frames = [spark.read.parquet(str(folder / name)) for name in "ab"]
    with pytest.raises(sj.SpecError, match="error: memory follows it from micro-batch to micro-batch"):
        shed_join(*frames, **JOIN, error={"within": 0.1})
    inputs = [read(spark, folder / name).selectExpr("*", f"CAST({name} AS STRING) AS text_{name}") for name in "ab"]
    with pytest.raises(sj.SpecError, match="sum must be a column of numbers, and 'text_a' is string"):
        shed_join(*inputs, **JOIN | {"select": ["text_a"], "error": {"within": 0.1, "sum": "text_a"}})
