"""`weights=True` on Spark: results have the engine's weights, rows keep their numbers over restarts, and sums are unbiased."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shards import Shards, cut, job
from streams import SECOND, exact, read, rows_of, side, write

import shedjoin as sj
from shedjoin.spark import shed_join, start
from shedjoin.spark.exchange import RESULT
from shedjoin.spark.state import read_head

KEYS, WINDOW, ROWS = 60, 4 * SECOND, 2400
JOIN: dict[str, Any] = {
    "on": "k",
    "time": "ts",
    "window": "4 seconds",
    "select": ["a", "b"],
    "budget": "120 tuples",
    "policy": "sample",
    "weights": True,
    "lateness": 0,
}
COLUMNS = ("a", "b", "sj_row", "sj_weight")


@pytest.fixture(scope="module")
def tables() -> list[Any]:
    return [side(seed, ROWS, KEYS, name) for seed, name in ((1, "a"), (2, "b"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tables: list[Any]) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    for name, table in zip("ab", tables, strict=True):
        write(folder / name, table, 4)
        write(folder / f"first_{name}", table.slice(0, ROWS // 2), 2)
    return folder


def check(found: list[tuple[Any, ...]], tables: list[Any]) -> None:
    """Each stored row has one number, its weights never fall, and the total is near the exact one."""
    a, b, row, weight = (np.array(column) for column in zip(*found, strict=True))
    true = exact(*tables, WINDOW)
    assert 0.2 * len(true) < len(found) < 0.9 * len(true)
    assert {*zip(a.tolist(), b.tolist(), strict=True)} <= {*true}
    by_row: dict[int, set[tuple[int, int]]] = {}
    for left, right, one in zip(a.tolist(), b.tolist(), row.tolist(), strict=True):
        by_row.setdefault(one, set()).add((one & 1, right if one & 1 else left))
    assert all(len(stored) == 1 for stored in by_row.values())
    assert len(set().union(*by_row.values())) == len(by_row), "two rows have one number"
    newer = np.where(row & 1, a, b)
    order = np.lexsort((newer, row))
    same = row[order][1:] == row[order][:-1]
    assert (np.diff(weight[order])[same] >= 0).all()
    assert weight.min() == 1.0 < weight.max()
    told = sj.estimate_total(weight, row, level=0.9999)
    assert told.low[0] < len(true) < told.high[0]


def test_a_batch_join_has_weights_by_shard(spark: Any, folder: Path, tables: list[Any]) -> None:
    frames = [spark.read.parquet(str(folder / name)) for name in "ab"]
    check(rows_of(shed_join(*frames, **JOIN, shards=2), COLUMNS), tables)


def test_a_query_that_is_stopped_and_goes_on_gives_the_same_weights(spark: Any, folder: Path, tmp_path: Path) -> None:
    results = []
    for cuts in (("",), ("first_", "")):
        place = tmp_path / f"in {len(cuts)}"
        for part in cuts:
            for name in "ab":
                (tmp_path / f"{len(cuts)}{name}").mkdir(exist_ok=True)
                for file in sorted((folder / f"{part}{name}").iterdir()):
                    to = tmp_path / f"{len(cuts)}{name}" / file.name
                    if not to.exists():
                        to.hardlink_to(file)
            inputs = [read(spark, tmp_path / f"{len(cuts)}{name}") for name in "ab"]
            start(
                *inputs, output=place, trigger={"availableNow": True}, recall=False, shards=2, **JOIN
            ).awaitTermination()
        results.append(rows_of(spark.read.parquet(str(place / "results")), COLUMNS))
    assert results[0] == results[1]
    with pytest.raises(
        sj.SpecError, match="with policy Sample, the probabilities of stored rows belong to their shard"
    ):
        start(*inputs, output=place, **JOIN, shards=1)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"policy": "prob"}, r"weights need a budget and policy='sample', not Prob"),
        ({"policy": None, "budget": None}, "not no policy"),
        ({"front": 0.5}, "weights: rows that front drops have no part in the weights"),
        ({"weights": 1}, "weights must be True or False, not 1"),
        ({"select": {"sj_row": "a"}}, "select: with weights=True the column 'sj_row' is the join's own"),
        ({"how": "left"}, "rows without a partner have no weight"),
        ({"deadline": "1 second"}, "not that a slow CPU compared it"),
    ],
)
def test_what_has_no_weights_is_refused(spark: Any, folder: Path, settings: dict[str, Any], sentence: str) -> None:
    frames = [spark.read.parquet(str(folder / name)) for name in "ab"]
    with pytest.raises(sj.SpecError, match=sentence):
        shed_join(*frames, **JOIN | settings)


def test_shards_a_changed_budget_and_a_split_that_follows_the_rows_leave_sums_unbiased() -> None:
    """Over seeds, without Spark: every micro-batch begins from the state that the last one saved."""
    rng = np.random.default_rng(2)
    likely = 1.0 / np.arange(1, 41)
    keys = [np.where(draw == 3, 41, draw) for draw in (rng.choice(40, 900, p=likely / likely.sum()) for _ in range(2))]
    tables = cut([(key, np.arange(900)) for key in keys], 6)
    spec = sj.JoinSpec(sj.TimeWindow(120), sj.Budget(tuples=100), sj.Sample(keep=0.3))
    true = sj.simulate(sj.JoinSpec(sj.TimeWindow(120)), *({"key": key} for key in keys)).matches
    found, sizes = [], []
    for seed in range(40):
        run = Shards(job(spec, 2, weights=True, seed=100 * seed))
        rows: list[dict[str, Any]] = []
        for place, table in enumerate(tables):
            if place == 3:
                run = Shards(job(spec.with_budget(sj.Budget(tuples=140)), 2, weights=True, seed=100 * seed), run.stores)
            rows += run.batch(*table)["result"]
        told = sj.estimate_total([row["sj_weight"] for row in rows], [row["sj_row"] for row in rows])
        found.append(told.value[0])
        sizes.append((told.high[0] - told.low[0]) / 3.92)
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - true) < 4 * error
    assert np.sqrt(np.mean(np.square(sizes))) == pytest.approx(np.std(found), rel=0.5)


def test_the_split_of_the_budget_does_not_look_at_random_numbers() -> None:
    """Shards have the same memory for every seed, though they store other rows."""
    rng = np.random.default_rng(2)
    keys = [rng.choice([0, 1, 2, *range(4, 40)], 600, p=[0.3, 0.2, 0.1, *[0.4 / 36] * 36]) for _ in range(2)]
    spec = sj.JoinSpec(sj.TimeWindow(120), sj.Budget(tuples=100), sj.Sample())
    budgets, results = [], []
    for seed in (1, 2):
        run = Shards(job(spec, 2, weights=True, seed=100 * seed))
        found = [run.batch(*table)["result"] for table in cut([(key, np.arange(600)) for key in keys], 6)]
        heads = [read_head(store) for store in run.stores]
        budgets.append([head["budget"] for head in heads if head is not None])
        results.append([row["sj_row"] for rows in found for row in rows])
    assert budgets[0] == budgets[1]
    assert budgets[0][0] != budgets[0][1], "memory moves between shards"
    assert results[0] != results[1]


def test_rows_that_another_policy_shed_have_no_weights() -> None:
    (first, second, third, fourth), rand = cut([([1, 2, 3, 1] * 100, np.arange(400))] * 2, 4), sj.Rand()
    spec = sj.JoinSpec(sj.TimeWindow(120), sj.Budget(tuples=60), rand)
    run = Shards(job(spec, 1))
    run.batch(*first)
    sampled = replace(spec, policy=sj.Sample())
    with pytest.raises(
        sj.SpecError, match=r"weights: Rand\(\) has shed rows of this query, and no weight stands for those"
    ):
        Shards(job(sampled, 1, weights=True), run.stores).batch(*second)
    Shards(job(sampled, 1), run.stores).batch(*second)
    with pytest.raises(sj.SpecError, match="rows of before are still stored"):
        Shards(job(sampled, 1, weights=True), run.stores).batch(*third)
    Shards(job(sampled, 1), run.stores).batch(*third)
    given = Shards(job(sampled, 1, weights=True), run.stores).batch(*fourth)
    assert min(row["sj_weight"] for row in given[RESULT]) >= 1.0
