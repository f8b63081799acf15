"""`estimate` on Spark: the numbers of the functions on arrays, for results on disk and for those that stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as fn
from streams import SECOND, read, run, write

import shedjoin as sj
from shedjoin.spark import estimate

AGGREGATES = {"n": "count", "some": "count(price)", "money": "sum(price)", "mean": "AVG(price * 2)", "rows": "distinct"}


@pytest.fixture(scope="module")
def results() -> pa.Table:
    """Results of a join that samples, with a price that some of the newer rows have."""
    rng = np.random.default_rng(4)
    rows, likely = 3000, 1.0 / np.arange(1, 41)
    sides = [rng.choice(40, rows, p=likely / likely.sum()) for _ in range(2)]
    spec = sj.JoinSpec(sj.TimeWindow(150), sj.Budget(tuples=100), sj.Sample())
    out = spec.build(seed=2).push(left={"key": sides[0]}, right={"key": sides[1]})
    newest = np.maximum(out.left, out.right)
    price = rng.normal(2.0, 5.0, rows)[newest]
    return pa.table(
        {
            "at": pa.array(newest * SECOND, pa.timestamp("us", tz="UTC")),
            "kind": newest % 3,  # of the newer row: one stored row has results in several groups
            "key": sides[0][out.left] % 4,
            "price": pa.array(price, mask=newest % 7 == 0),
            "sj_weight": out.weight,
            "sj_row": out.stored,
        }
    )


def on_arrays(results: pa.Table, group: np.ndarray[Any, Any]) -> dict[str, sj.Estimates]:
    weight, stored = results["sj_weight"].to_numpy(), results["sj_row"].to_numpy()
    price = results["price"].to_numpy(zero_copy_only=False)
    there = ~np.isnan(price)
    value = np.where(there, price, 0.0)
    return {
        "n": sj.estimate_total(weight, stored, by=group),
        "some": sj.estimate_total(weight, stored, there, by=group),
        "money": sj.estimate_total(weight, stored, value, by=group),
        "mean": sj.estimate_mean(weight[there], stored[there], 2.0 * price[there], by=group[there]),
        "rows": sj.estimate_distinct(weight, stored, by=group),
    }


def check(told: pa.Table, expected: dict[str, sj.Estimates]) -> None:
    for name, one in expected.items():
        rows = told.filter(told[name].is_valid())  # on arrays a group without a value has no mean
        for ending, column in zip(("", "_low", "_high", "_rows"), one[1:], strict=True):
            got = rows[name + ending].to_numpy(zero_copy_only=False).astype(float)
            np.testing.assert_allclose(got, column, rtol=1e-9, atol=1e-9, err_msg=name + ending)


def test_groups_have_the_numbers_of_the_functions_on_arrays(spark: Any, results: pa.Table) -> None:
    frame = spark.createDataFrame(results)
    told = estimate(frame, ["key", "kind"], AGGREGATES).orderBy("key", "kind").toArrow()
    group = results["key"].to_numpy() * 3 + results["kind"].to_numpy()
    expected = on_arrays(results, group)
    assert (told["key"].to_numpy() * 3 + told["kind"].to_numpy()).tolist() == expected["n"].group.tolist()
    check(told, expected)
    many = (
        estimate(frame, fn.col("sj_row").alias("row"), AGGREGATES).orderBy("row").toArrow()
    )  # one row each: no interval
    check(many, on_arrays(results, results["sj_row"].to_numpy()))
    assert many["n_low"].null_count > 0
    sure = estimate(frame.where("sj_weight = 1"), "key", AGGREGATES).toArrow()  # no weight above 1: taken to be exact
    for name in AGGREGATES:
        assert sure[f"{name}_low"].to_pylist() == sure[name].to_pylist() == sure[f"{name}_high"].to_pylist()
    bare = estimate(frame.drop("sj_row"), aggregates={"n": "count", "mean": "avg(price)"}).toArrow().to_pylist()[0]
    whole = on_arrays(results, np.zeros(len(results), int))
    assert bare["n"] == pytest.approx(whole["n"].value[0])
    assert bare["mean"] == pytest.approx(whole["mean"].value[0] / 2)
    assert bare["n_low"] is bare["mean_high"] is bare["n_rows"] is None


def test_windows_of_a_stream_have_the_numbers_of_results_on_disk(spark: Any, results: pa.Table, tmp_path: Path) -> None:
    """A window is told once its time is over."""
    table = results.sort_by("at")
    write(tmp_path / "in", table, 3)
    stream = read(spark, tmp_path / "in").withWatermark("at", "1 second")
    window = fn.window("at", "10 minutes")
    run(estimate(stream, [window, "key"], AGGREGATES), tmp_path / "checkpoint", tmp_path / "out")
    got = spark.read.parquet(str(tmp_path / "out")).orderBy("window", "key").toArrow().to_pylist()
    expected = (
        estimate(spark.createDataFrame(table), [window, "key"], AGGREGATES)
        .orderBy("window", "key")
        .toArrow()
        .to_pylist()
    )
    assert len(got) == 4 * 4 < len(expected)
    for one, other in zip(got, expected, strict=False):
        assert one.pop("window") == other.pop("window")
        assert one == pytest.approx(other)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"by": "nobody"}, "by: results have no column 'nobody'"),
        ({"aggregates": {"x": "max(price)"}}, r"aggregates\['x'\] must be 'count'"),
        ({"aggregates": {"x": "count(distinct key)"}}, "distinct values cannot be estimated without bias"),
        ({"aggregates": {}}, "aggregates must be a dict from names"),
        ({"by": "key", "aggregates": {"key": "count"}}, "there would be two columns 'key'"),
        ({"level": 1.0}, "level must be above 0 and below 1"),
    ],
)
def test_what_cannot_be_estimated_is_refused(
    spark: Any, results: pa.Table, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(sj.InputError, match=sentence):
        estimate(spark.createDataFrame(results.slice(0, 5)), **arguments)


def test_columns_that_are_missing_are_told(spark: Any, results: pa.Table, tmp_path: Path) -> None:
    frame = spark.createDataFrame(results.slice(0, 5))
    with pytest.raises(sj.InputError, match=r"no column sj_weight: join with policy='sample' and weights=True"):
        estimate(frame.drop("sj_weight"))
    with pytest.raises(sj.InputError, match="the results have no column sj_row"):
        estimate(frame.drop("sj_row"), aggregates={"x": "distinct"})
    write(tmp_path / "in", results.slice(0, 5), 1)
    with pytest.raises(sj.InputError, match="by: results that stream need a window of event time"):
        estimate(read(spark, tmp_path / "in"), "key")
