"""A Table on Spark has the users' keys, of any type."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from streams import pairs, read, run, write

import shedjoin as sj
from shedjoin.spark import shed_join

ROWS, KEYS = 300, 12
DAY = date(2024, 2, 27)
#: A key of each type, from its number: its columns in Spark's words, and what a user calls it.
TYPES: dict[str, tuple[list[str], Any]] = {
    "whole number": (["k"], lambda k: k),
    "text": (["concat('key ', k)"], lambda k: f"key {k}"),
    "text of numbers": (["cast(k as string)"], lambda k: k),
    "date": (["date_add(date'2024-02-27', cast(k as int))"], lambda k: DAY + timedelta(k)),
    "date as text": (["date_add(date'2024-02-27', cast(k as int))"], lambda k: str(DAY + timedelta(k))),
    "decimal": (["cast(k as decimal(9, 2))"], lambda k: str(k)),
    "two columns": (["cast(k % 3 as int)", "concat('x', k div 3)"], lambda k: (k % 3, f"x{k // 3}")),
}


def streams() -> list[pa.Table]:
    random = np.random.default_rng(5)
    return [
        pa.table(
            {"k": random.integers(0, KEYS, ROWS), "ts": np.sort(random.integers(0, 300, ROWS)), name: np.arange(ROWS)}
        )
        for name in ("a", "b")
    ]


def weights(seed: int) -> dict[int, float]:
    """Some keys have none: they weigh 0."""
    drawn = np.random.default_rng(seed).permutation(KEYS)[: KEYS - 3]
    return {int(key): 0.01 * (place + 1) for place, key in enumerate(drawn)}


def expected(table: sj.Table) -> list[tuple[int, int]]:
    spec = sj.JoinSpec(sj.TimeWindow(60), sj.Budget(tuples=30), sj.Prob(table))
    left, right = ({"key": one["k"].to_numpy(), "ts": one["ts"].to_numpy()} for one in streams())
    out = spec.build().push(left=left, right=right)
    return sorted(zip(out.left.tolist(), out.right.tolist(), strict=True))


def joined(spark: Any, columns: list[str], table: sj.Table, **more: Any) -> Any:
    names = [f"k{place}" for place in range(len(columns))]
    sides = []
    for one in streams():
        frame = spark.createDataFrame(one)
        value = one.schema.names[-1]
        sides.append(
            frame.selectExpr(*(f"{made} AS {name}" for made, name in zip(columns, names, strict=True)), "ts", value)
        )
    given = {"on": names, "time": "ts", "window": 60, "budget": 30, "select": ["a", "b"], "shards": 1, **more}
    return shed_join(*sides, policy=sj.Prob(table), **given)


@pytest.mark.parametrize("name", TYPES)
def test_keys_of_each_type_weigh_what_the_table_says(spark: Any, name: str) -> None:
    columns, called = TYPES[name]
    one, two = weights(1), weights(2)
    table = sj.Table(*({called(key): weight for key, weight in side.items()} for side in (one, two)))
    found = sorted(tuple(row) for row in joined(spark, columns, table).collect())
    assert found == expected(sj.Table(one, two))
    assert found != expected(sj.Table(two, one))


def test_weights_from_a_dataframe_and_a_file(spark: Any, tmp_path: Path) -> None:
    one, two = weights(1), weights(2)
    left = spark.createDataFrame(
        [(f"key {key}", weight) for key, weight in one.items()], "k0 string, probability double"
    )
    lines = [f"key {key},{weight!r}" for key, weight in two.items()]
    (tmp_path / "right.csv").write_text("\n".join(["k0,probability", *lines]))
    found = joined(spark, TYPES["text"][0], sj.Table(left, tmp_path / "right.csv"))
    assert sorted(tuple(row) for row in found.collect()) == expected(sj.Table(one, two))


def test_a_query_goes_on_by_its_table(spark: Any, tmp_path: Path) -> None:
    """Two shards, and copies of none: the second run recovers from the state store."""
    for name, table in zip(("l", "r"), streams(), strict=True):
        write(tmp_path / "whole" / name, table, 2)
        write(tmp_path / "parts" / name, table.slice(0, ROWS // 2), 1)

    def join(folder: str, table: sj.Table) -> Any:
        frames = (
            read(spark, tmp_path / folder / name).selectExpr("concat('key ', k) AS k", "*") for name in ("l", "r")
        )
        sides = (frame.toDF("key", *frame.columns[1:]) for frame in frames)
        given: dict[str, Any] = {"on": "key", "time": "ts", "window": 60, "budget": 30, "lateness": 10}
        return shed_join(*sides, policy=sj.Prob(table), shards=2, cache=False, select=["a", "b"], **given)

    one, two = ({f"key {key}": weight for key, weight in weights(seed).items()} for seed in (1, 2))
    run(join("whole", sj.Table(one, two)), tmp_path / "c1", tmp_path / "o1")
    run(join("parts", sj.Table(one, two)), tmp_path / "c2", tmp_path / "o2")
    for name, table in zip(("l", "r"), streams(), strict=True):
        write(tmp_path / "parts" / name, table.slice(ROWS // 2), 1, first=1)
    run(join("parts", sj.Table(one, two)), tmp_path / "c2", tmp_path / "o2")
    assert pairs(spark, tmp_path / "o2") == pairs(spark, tmp_path / "o1")


ONE, TWO = TYPES["whole number"][0], TYPES["two columns"][0]
BAD: dict[str, tuple[list[str], Any, str]] = {
    "no number": (ONE, {"x": 0.5}, r"Table, left has a key that is null or no value of \(bigint\): 'x'"),
    "half": (ONE, {1.5: 0.5}, r"Table, left has a key that is null or no value of \(bigint\): '1.5'"),
    "twice": (ONE, {"1": 0.5, "01": 0.25}, "Table, left has a key twice: '0?1'"),
    "mixed": (ONE, {"1": 0.5, 2: 0.25}, "must have keys of one type in each column"),
    "one of two": (TWO, {1: 0.5}, r"needs keys that are tuples of \(k0, k1\), not 1"),
    "text": (TYPES["text"][0], {date(2024, 1, 1): 0.5}, "the key 'k0' is date where the streams have text"),
    "no file": (ONE, "/nowhere/weights.parquet", "/nowhere/weights.parquet cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_tables_that_do_not_fit_are_named(spark: Any, name: str) -> None:
    columns, side, message = BAD[name]
    with pytest.raises(sj.SpecError, match=message):
        joined(spark, columns, sj.Table(side, {}))


def test_dataframes_that_do_not_fit_are_named(spark: Any) -> None:
    def refused(frame: Any, message: str) -> None:
        with pytest.raises(sj.SpecError, match=message):
            joined(spark, ONE, sj.Table({}, frame))

    made = spark.createDataFrame([(1, 0.5, 0.5)], "k0 int, weight double, probability double")
    refused(made.drop("probability"), "Table, right needs .* k0, probability: it has k0, weight, but no 'probability'")
    refused(made.selectExpr("k0", "-1 AS probability"), "Table, right must hold numbers from 0 to 1e.250, not -1.0")
    refused(made.selectExpr("k0", "'x' AS probability"), "Table, right must hold numbers .* not nan")
    refused(made.selectExpr("cast(null AS int) AS k0", "probability"), "a key that is null")
    stream = spark.readStream.format("rate").load().selectExpr("value AS k0", "0.5 AS probability")
    refused(stream, "Table, right needs a batch DataFrame .* it is streaming")
    with pytest.raises(sj.SpecError, match=r"Table.* is for 3 streams"):
        joined(spark, ONE, sj.Table({}, {}, [{}]))


#: Conditions other than a key: what is said on Spark, in the library, and the column as Spark's expression of the number k.
CONDITIONS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "band": ({"predicate": sj.Band("v", within=2.0)}, sj.Band("k", within=2.0), "cast(k as double)"),
    "theta": ({"predicate": sj.Theta("v", "<", offset=-8.0)}, sj.Theta("k", "<", offset=-8.0), "k"),
    "graph": (
        {"on": ["left.v = right.v", "left.w <= right.w"]},
        ("left.k = right.k", "left.w <= right.w"),
        "concat('key ', k)",
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_other_conditions_weigh_by_true_values(spark: Any, name: str) -> None:
    """Numbers of predicates, and attributes of join graphs, as the library has them."""
    given, on, column = CONDITIONS[name]
    one, two = weights(1), weights(2)
    spec = sj.JoinSpec(sj.TimeWindow(60), sj.Budget(tuples=30), sj.Prob(sj.Table(one, two)), on=on)
    plain, sides = [], []
    for table in streams():
        w = np.arange(ROWS) % 7
        plain.append({"k": table["k"].to_numpy(), "w": w, "ts": table["ts"].to_numpy()})
        value = table.schema.names[-1]
        sides.append(
            spark.createDataFrame(table.append_column("w", pa.array(w))).selectExpr(f"{column} AS v", "w", "ts", value)
        )
    out = spec.build().push(left=plain[0], right=plain[1])
    called = (lambda k: f"key {k}") if name == "graph" else (lambda k: k)
    table = sj.Table(*({called(key): weight for key, weight in side.items()} for side in (one, two)))
    joined = shed_join(
        *sides, **given, time="ts", window=60, budget=30, policy=sj.Prob(table), select=["a", "b"], shards=1
    )
    found = sorted(tuple(row) for row in joined.collect())
    assert found == sorted(zip(out.left.tolist(), out.right.tolist(), strict=True))
    assert len(found) > 20


def test_items_of_sets_weigh_what_the_table_says(spark: Any) -> None:
    """Sets of text: a row with items that partners often have stays."""
    random = np.random.default_rng(3)
    sets = [[sorted({f"i{item}" for item in random.integers(0, 8, 3)}) for _ in range(200)] for _ in range(2)]
    frames = [
        spark.createDataFrame(pa.table({"tags": one, "ts": np.arange(200), name: np.arange(200)}))
        for name, one in zip("ab", sets, strict=True)
    ]
    numbers = [[[int(item[1:]) for item in one] for one in side] for side in sets]
    left, right = {0: 0.5, 1: 0.2, 5: 0.1}, {2: 0.4, 3: 0.3}
    spec = sj.JoinSpec(
        sj.TimeWindow(60), sj.Budget(tuples=20), sj.Prob(sj.Table(left, right)), on=sj.Overlap("tags", at_least=2)
    )
    out = spec.build().push(left={"tags": numbers[0]}, right={"tags": numbers[1]})
    table = sj.Table(*({f"i{item}": weight for item, weight in side.items()} for side in (left, right)))
    joined = shed_join(
        *frames, predicate=sj.Overlap("tags", at_least=2), time="ts", window=60, budget=20, policy=sj.Prob(table),
        select=["a", "b"], shards=1,
    )  # fmt: skip
    found = sorted(tuple(row) for row in joined.collect())
    assert found == sorted(zip(out.left.tolist(), out.right.tolist(), strict=True))


def test_a_dataframe_has_the_columns_of_some_attributes(spark: Any) -> None:
    """The attributes of a stream may be of different types: a DataFrame says which one it is about."""
    rows = [(key, f"x{key}", ts) for ts, key in enumerate([1, 2, 1, 3, 2, 1])]
    frames = [
        spark.createDataFrame(rows, "k int, t string, ts int").withColumnRenamed("ts", f"ts{side}") for side in "ab"
    ]
    known = spark.createDataFrame([("x1", 0.5)], "t string, probability double")
    joined = shed_join(
        *frames, on=["left.k = right.k", "left.t = right.t", "left.k <= right.k"], time=("tsa", "tsb"), window=5, budget=4,
        policy=sj.Prob(sj.Table(known, {})), select=["tsa", "tsb"], shards=1,
    )  # fmt: skip
    assert joined.count() > 0
    with pytest.raises(sj.SpecError, match=r"Table, left has a key that is null or no value of \(int\): 'x1'"):
        shed_join(
            *frames, on=["left.k = right.k", "left.k <= right.k"], time=("tsa", "tsb"), window=5, budget=4,
            policy=sj.Prob(sj.Table({"x1": 0.5}, {})), select=["tsa"], shards=1,
        )  # fmt: skip
