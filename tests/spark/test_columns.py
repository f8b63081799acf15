"""Columns of any type and name, keys of any kind; and clear words where something does not fit."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.spark import shed_join
from shedjoin.spark.hashing import spread
from shedjoin.spark.keys import NUMBERS, is_number, key_number, key_value

STAMP = dt.datetime(2024, 5, 1, 12, 0, 0, 123456)
RICH = """
    k string, t timestamp, i int, d decimal(20, 4), b binary, f float, y date, z timestamp_ntz, n void, o boolean,
    l array<struct<x: int, y: array<string>>>, m map<string, decimal(5, 2)>, s struct<`a.b`: string, when: timestamp>,
    v interval day to second, tiny tinyint
"""


def rich(spark: Any) -> Any:
    row = (
        "key",
        STAMP,
        7,
        Decimal("12345.6789"),
        b"\x00\xff",
        1.5,
        dt.date(1969, 12, 31),
        STAMP,
        None,
        True,
        [(1, ["a", None]), (2, [])],
        {"x": Decimal("1.25"), "y": None},
        ("ß", STAMP),
        dt.timedelta(days=-3, microseconds=5),
        -5,
    )
    nothing = ("key", STAMP, *(None,) * 13)
    return spark.createDataFrame([row, nothing], RICH)


def test_any_payload_comes_out_as_it_went_in(spark: Any) -> None:
    left = rich(spark)
    right = spark.createDataFrame([("key", STAMP, 1)], "k string, t timestamp, r int")
    joined = shed_join(
        left, right, on="k", time="t", window="1 second", select=[*left.columns[:1], *left.columns[2:], "r"]
    )
    expected = left.drop("t").selectExpr("*", "1 as r")
    assert joined.schema.simpleString() == expected.schema.simpleString()
    assert sorted(map(str, joined.collect())) == sorted(map(str, expected.collect()))


@pytest.mark.parametrize("kind", sorted(NUMBERS))
def test_keys_that_are_numbers_are_joined_by_them(spark: Any, kind: str) -> None:
    """No two of them have the same number, the number gives the value back, and null has none."""
    text = {"date": "date_from_unix_date(n)", "timestamp": "timestamp_micros(n)"}.get(kind, f"cast(n as {kind})")
    numbers = [0, 1] if kind == "boolean" else [0, 1, -1, 7, -128, 127]
    frame = spark.createDataFrame([(number,) for number in [*numbers, None]], "n int").selectExpr(f"{text} AS k")
    assert is_number([kind])
    made = frame.select("k", key_number(frame, ["k"], [kind]).alias("number"))
    found = made.select("k", "number", key_value(made["number"], kind).alias("back")).collect()
    assert [row["number"] for row in found] == [*numbers, None]
    assert [row["back"] for row in found] == [row["k"] for row in found]


def test_keys_that_are_neighbours_go_to_all_shards() -> None:
    shards = (spread(np.arange(80_000)) >> np.uint64(32)) % np.uint64(8)
    assert np.bincount(shards.astype(np.int64)).min() > 9_500
    assert np.unique(spread(np.arange(-40_000, 40_000))).size == 80_000


def test_a_side_of_which_nothing_is_asked_still_joins(spark: Any) -> None:
    left = spark.createDataFrame([(1, 5, "a"), (2, 6, "b")], "k bigint, t bigint, x string")
    right = spark.createDataFrame([(2, 7)], "k bigint, t bigint")
    for on, select in (("k", ["x"]), ("k", ["k", "x"])):
        rows = shed_join(left, right, on=on, time="t", window=5, select=select).collect()
        assert [row["x"] for row in rows] == ["b"]


NAN = float("nan")
KEYS = {
    "string": ["a", "", "ä", None, "a"],
    "double": [0.0, -0.0, NAN, None, 1.5],
    "decimal(10,2)": [Decimal("1.10"), Decimal("1.1"), None, Decimal("-3.00"), Decimal(0)],
    "binary": [b"", b"\x00", b"\x00\x00", None, b"\x00"],
    "date": [dt.date(2020, 1, 1), dt.date(1900, 1, 1), None, dt.date(2020, 1, 1), dt.date(2020, 1, 2)],
    "boolean": [True, False, None, True, False],
    "struct<x: int, y: double>": [(1, -0.0), (1, 0.0), (None, 1.0), None, (1, NAN)],
    "array<string>": [["a"], [], [None], None, ["a", "a"]],
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_any_type_match_as_in_spark(spark: Any, kind: str) -> None:
    sides = [
        spark.createDataFrame(
            [(key, 0, number) for number, key in enumerate(KEYS[kind])], f"k {kind}, t long, {name} int"
        )
        for name in ("a", "b")
    ]
    found = shed_join(*sides, on="k", time="t", window=5, select=["a", "b"]).collect()
    assert sorted(found) == sorted(sides[0].join(sides[1], "k").select("a", "b").collect())
    assert found


def test_several_keys_of_other_names_and_types(spark: Any) -> None:
    left = spark.createDataFrame([(1, "x", 0), (1, "y", 0), (2, "x", 0), (None, "x", 0)], "id int, tag string, t long")
    right = spark.createDataFrame([(1, "x", 1), (2, "x", 1), (1, None, 1)], "number long, tag string, u long")
    joined = shed_join(left, right, on=[("id", "number"), "tag"], time=("t", "u"), window=5)
    assert joined.columns == ["tag", "id", "t", "number", "u"]
    assert sorted(map(tuple, joined.collect())) == [("x", 1, 0, 1, 1), ("x", 2, 0, 2, 1)]


def test_odd_names_and_a_choice_of_columns(spark: Any) -> None:
    left = spark.createDataFrame([(1, 0, 5)], "`a.k` int, t long, `v``x` int")
    right = spark.createDataFrame([(1, 3, 6)], "`b k` int, t long, w int")
    options: dict[str, Any] = {"on": ("a.k", "b k"), "time": "t", "window": 5}
    joined = shed_join(left, right, suffixes=("_l", "_r"), **options)
    assert joined.columns == ["a.k", "t_l", "v`x", "b k", "t_r", "w"]
    assert list(map(tuple, joined.collect())) == [(1, 0, 5, 1, 3, 6)]
    chosen = shed_join(left, right, select={"when": "right.t", "first": "left.t", "w": "w"}, **options)
    assert [row.asDict() for row in chosen.collect()] == [{"when": 3, "first": 0, "w": 6}]


def test_windows_are_half_open_and_may_differ(spark: Any) -> None:
    left = spark.createDataFrame([(1, 100)], "k int, t long")
    right = spark.createDataFrame([(1, t) for t in (94, 95, 96, 109, 110)], "k int, u long")
    joined = shed_join(left, right, on="k", time=("t", "u"), window=(10, 5))
    assert sorted(row["u"] for row in joined.collect()) == [96, 109]


#: Each stream has half of the budget, in one shard.
SPLIT: dict[str, Any] = {"allocation": "fixed", "shards": 1}


def test_bytes_are_a_budget_too(spark: Any) -> None:
    left = spark.createDataFrame([(1, t, "x" * (1000 if t == 3 else 10)) for t in range(10)], "k int, t long, p string")
    right = spark.createDataFrame([(1, 20, "q")], "k int, u long, r string")
    joined = shed_join(left, right, on="k", time=("t", "u"), window=50, budget="2400 bytes", policy="simp", **SPLIT)
    kept = [row["t"] for row in joined.collect()]
    assert 3 not in kept
    assert len(kept) == 5  # 1200 bytes for each side, 192 + 4 + 8 + 14 and some bits a row


def test_importance_decides_who_stays(spark: Any) -> None:
    left = spark.createDataFrame([(1, t, float(t % 5 + 1)) for t in range(20)], "k int, t long, w double")
    right = spark.createDataFrame([(1, 30)], "k int, u long")
    joined = shed_join(
        left,
        right,
        on="k",
        time=("t", "u"),
        window=50,
        budget="8 tuples",
        policy="simp",
        importance=("w", None),
        **SPLIT,
    )
    assert sorted(row["w"] for row in joined.collect()) == [5.0] * 4


SHARED = {"tuples": 9, "allocation": "variable"}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "key": ({"on": "z"}, "on: left has no column 'z'; it has k, t, x"),
    "no key": ({"on": []}, "on must name at least one key column"),
    "key form": ({"on": ("k", "k", "k")}, "on must be a column name, a pair"),
    "time": ({"time": "x"}, "time: left.x is of type string: it must be a timestamp or a whole number"),
    "window": ({"window": "soon"}, "window must be a duration"),
    "window unit": ({"window": "5 seconds"}, "window must be a whole number, as the times are"),
    "rows": ({"window": sj.RowWindow(5), "shards": 2, "budget": 9, "policy": "prospect"}, "or pass shards=1"),
    "budget": ({"budget": "lots"}, "budget must be an amount of tuples or bytes"),
    "allocation": ({"allocation": "some"}, "allocation must be one of fixed, variable, not 'some'"),
    "two allocations": (
        {"budget": SHARED, "allocation": "fixed"},
        "budget has allocation='variable', but .* give only one",
    ),
    "small budget": ({"budget": 3, "shards": 2}, "3 tuples are too few for 2 shards"),
    "policy": ({"budget": 10, "policy": "best"}, "policy"),
    "no budget": ({"policy": "life"}, r"policy Life\(.*\) is given without a budget"),
    "shards": ({"shards": 0}, "shards must be a whole number from 1 to"),
    "clash": ({"suffixes": None}, "both sides have a column 't': choose with select"),
    "select": ({"select": ["q"]}, "select: there is no column 'q'"),
    "select twice": ({"select": ["left.t", "right.t"]}, "two columns 't'"),
    "select which": ({"select": ["t"], "suffixes": None}, "say 'left.t' or 'right.t'"),
    "importance": ({"importance": "nope"}, "importance: left has no column 'nope'"),
    "lateness": ({"lateness": -1}, "lateness"),
    "seed": ({"seed": -1}, "seed must be a whole number"),
    "cache": ({"cache": 5}, "cache must be a directory"),
    "combine": ({"combine": "most"}, "combine must be one of min, max"),
}


def test_durations_of_timestamps_need_a_unit(spark: Any) -> None:
    frame = spark.createDataFrame([(1, STAMP, "x")], "k int, t timestamp, x string")
    sides = frame, frame.selectExpr("k", "t AS u", "x AS y")
    for given in (
        {"window": 600},
        {"window": ("10 s", 600)},
        {"window": "1 s", "lateness": 600},
        {"window": "1 s", "max_skew": 600},
    ):
        with pytest.raises(sj.SpecError, match=r"(window|lateness|max_skew)=600 has no unit.* say '600 seconds' or"):
            shed_join(*sides, on="k", time=("t", "u"), **given)


@pytest.mark.parametrize("name", BAD)
def test_wrong_arguments_are_named(spark: Any, name: str) -> None:
    frame = spark.createDataFrame([(1, 1, "x")], "k int, t long, x string")
    options, message = BAD[name]
    given = {"on": "k", "time": "t", "window": 5, "suffixes": ("_l", "_r"), **options}
    with pytest.raises(sj.SpecError, match=message):
        shed_join(frame, frame, **given)


def test_dataframes_that_do_not_fit_are_named(spark: Any) -> None:
    frame = spark.createDataFrame([(1, 1)], "k int, t long")
    text = spark.createDataFrame([("1", STAMP)], "k string, u timestamp")
    stream = spark.readStream.format("rate").load().selectExpr("value as k", "timestamp as u")
    options: dict[str, Any] = {"on": "k", "window": 5}
    with pytest.raises(sj.SpecError, match="left must be a Spark DataFrame, not list"):
        shed_join([], frame, time="t", **options)
    with pytest.raises(sj.SpecError, match="both be streaming or both be batch DataFrames; only right is streaming"):
        shed_join(frame, stream, time=("t", "u"), **options)
    with pytest.raises(sj.SpecError, match=r"left.t is a number and right.u a timestamp"):
        shed_join(frame, text, time=("t", "u"), **options)
    with pytest.raises(sj.SpecError, match="text and other types are not compared"):
        shed_join(frame, text.selectExpr("k", "1L as t"), time="t", suffixes=("", "_r"), **options)


ROWS = {
    "null time": ("(1, null)", "left.t is null in 1 rows"),
    "absurd time": ("(1, 90000000000000000)", "within .*but a row has 90000000000000000"),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_cannot_be_joined_stop_the_query(spark: Any, name: str) -> None:
    values, message = ROWS[name]
    left = spark.sql(f"select * from values {values}, (1, 5) as v(k, t)").selectExpr("k", "cast(t as long) as t")
    right = spark.createDataFrame([(1, 5)], "k int, u long")
    with pytest.raises(Exception, match=message):
        shed_join(left, right, on="k", time=("t", "u"), window=5).collect()


def test_an_importance_that_is_none_stops_the_query(spark: Any) -> None:
    left = spark.createDataFrame([(1, 5, NAN)], "k int, t long, w double")
    right = spark.createDataFrame([(1, 5)], "k int, u long")
    with pytest.raises(Exception, match=r"importance: left.w must be finite and above 0, but a row has"):
        shed_join(left, right, on="k", time=("t", "u"), window=5, budget=10, importance=("w", None)).collect()
