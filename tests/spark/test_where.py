"""Conditions on Spark: `where` gives the rows of Spark's own join with the same condition, nulls and all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from streams import SECOND, pairs, read, run, write

import shedjoin as sj
from shedjoin.spark import refine, shed_join, start
from shedjoin.spark.keys import SIDES
from shedjoin.spark.where_split import Splitter, split_where
from shedjoin.spark.where_text import read_where

ROWS, KEYS, WINDOW = 90, 4, SECOND
#: Columns with some values that are near each other, and the strange ones of their type.
VALUES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "i": (pa.int32(), (0, 1, 2, 3, -2_000)),
    "n": (pa.int64(), (0, 1, 2, 3, 2**63 - 1, -(2**63))),
    "d": (pa.float64(), (0.0, -0.0, 1.5, 2.0, float("nan"), float("inf"), float("-inf"), -1.5)),
    "f": (pa.float32(), (0.1, 1.5, -0.0, 0.0, float("nan"))),
    "m": (pa.decimal128(10, 2), ("1.50", "2.00", "0.00", "-1.50")),
    "w": (pa.decimal128(30, 4), ("1.5000", "2.0000", "123456789012345678901.0000")),
    "s": (pa.string(), ("DE", "FR", "", "de", "Ä")),
    "x": (pa.binary(), (b"", b"1", b"\x00")),
    "day": (pa.date32(), (0, 1, 18_000)),
    "at": (pa.timestamp("us", tz="UTC"), (0, 1, SECOND, 86_400 * SECOND)),
    "g": (pa.bool_(), (True, False)),
}
#: What is asked of both sides, with {l} and {r} for their names, and whether all of it is decided before or in the workers.
CONDITIONS: list[tuple[str, bool]] = [
    ("{l}.i < {r}.i", True),
    ("{l}.i <= {r}.n AND {r}.s IN ('DE', 'FR')", True),
    ("{l}.n > {r}.d", True),
    ("{l}.d >= {r}.d", True),
    ("{l}.f = {r}.f OR {l}.f < {r}.d", True),
    ("{l}.d <=> {r}.d", True),
    ("{l}.m != {r}.m", True),
    ("{l}.m <= {r}.i", True),
    ("{l}.m < {r}.d", True),
    ("{l}.w < {r}.w", False),
    ("{l}.s = {r}.s", True),
    ("{l}.s <> {r}.s AND NOT {l}.g", True),
    ("{l}.s IS NOT DISTINCT FROM {r}.s", True),
    ("{l}.s < {r}.s", False),
    ("{l}.x = {r}.x OR {r}.x IS NULL", True),
    ("{l}.day < {r}.at", True),
    ("{l}.at = {r}.at", True),
    ("{l}.g = {r}.g", True),
    ("NOT ({l}.i < {r}.i AND {l}.g)", True),
    ("({l}.i < {r}.i) IS NULL", True),
    ("({l}.i < {r}.i) IS NOT TRUE AND {r}.g IS NOT NULL", True),
    ("{l}.i BETWEEN {r}.i - 1 AND {r}.i + {r}.i", True),
    ("{l}.i NOT BETWEEN {r}.i AND 2", True),
    ("CASE WHEN {l}.g THEN {l}.i < {r}.i WHEN {r}.g THEN {l}.d > {r}.d END", True),
    ("IF({l}.g, {r}.g, {l}.n < {r}.n)", True),
    ("COALESCE({l}.i < {r}.i, {l}.g, FALSE)", True),
    ("{l}.i IN ({r}.i, 2)", False),
    ("{l}.i + {r}.i < 3 AND {l}.g", False),
    ("{l}.i < {r}.i OR levenshtein({l}.s, {r}.s) > 0", False),
    ("length({l}.s) = length({r}.s) AND upper({l}.s) = {r}.s", True),
    ("{l}.i % 2 = {r}.i % 2", True),
    ("{l}.g", True),
    ("{r}.g IS NULL AND {l}.i IS NOT NULL", True),
    ("1 = 1", True),
    ("CAST(NULL AS BOOLEAN)", True),
    ("{l}.i = {r}.i OR NULL", True),
]


def table(seed: int, name: str) -> pa.Table:
    """Rows of all types, every fifth value null."""
    draw = Random(seed)
    columns: dict[str, Any] = {
        "k": pa.array([draw.choice((*range(KEYS), None)) for _ in range(ROWS)], pa.int64()),
        "ts": pa.array(np.arange(ROWS) * 50_000, pa.timestamp("us", tz="UTC")),
        name: pa.array(range(ROWS)),
    }
    for column, (kind, values) in VALUES.items():
        drawn = [None if draw.random() < 0.2 else draw.choice(values) for _ in range(ROWS)]
        plain = pa.string() if pa.types.is_decimal(kind) else pa.int64() if pa.types.is_timestamp(kind) else None
        columns[column] = pa.array(drawn, plain).cast(kind) if plain else pa.array(drawn, kind)
    return pa.table(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("where")
    for place, name in enumerate("abc"):
        write(folder / name, table(place, name), 2)
    return folder


def frames(spark: Any, folder: Path, names: str = "ab") -> list[Any]:
    return [spark.read.parquet(str(folder / name)) for name in names]


def expected(spark: Any, folder: Path, condition: str, names: str = "ab") -> list[tuple[int, ...]]:
    """Spark's own join on the key, the times and a condition."""
    return expected_of_each(spark, folder, [condition], names)[0]


def expected_of_each(
    spark: Any, folder: Path, conditions: Sequence[str], names: str = "ab"
) -> list[list[tuple[int, ...]]]:
    """The same with each of some conditions, all of which one query works out."""
    for name, frame in zip(names, frames(spark, folder, names), strict=True):
        frame.createOrReplaceTempView(f"where_{name}")
    near = [
        f"abs(unix_micros({one}.ts) - unix_micros({two}.ts)) < {WINDOW}" for one in names for two in names if one < two
    ]
    keys = [f"{names[0]}.k = {name}.k" for name in names[1:]]
    held = [f"({condition}) AS held_{place}" for place, condition in enumerate(conditions)]
    rows = spark.sql(
        f"SELECT {', '.join([*(f'{name}.{name}' for name in names), *held])} "
        f"FROM {', '.join(f'where_{name} {name}' for name in names)} WHERE {' AND '.join([*keys, *near])}"
    ).toArrow()
    found = list(zip(*(rows[name].to_pylist() for name in names), strict=True))
    return [
        sorted(row for row, holds in zip(found, rows[f"held_{place}"].to_pylist(), strict=True) if holds)
        for place in range(len(conditions))
    ]


def joined(spark: Any, folder: Path, conditions: Sequence[str], **more: Any) -> list[list[tuple[int, ...]]]:
    """The results of many joins, which one query runs."""
    options: dict[str, Any] = {"on": "k", "time": "ts", "window": "1 second", "select": ["a", "b"], "shards": 1, **more}
    made = [
        shed_join(*frames(spark, folder), where=one, **options).selectExpr(f"{place} AS place", "a", "b")
        for place, one in enumerate(conditions)
    ]
    rows = reduce(lambda one, two: one.unionAll(two), made).toArrow().to_pylist()
    return [sorted((row["a"], row["b"]) for row in rows if row["place"] == place) for place in range(len(conditions))]


@pytest.mark.parametrize("part", range(3))
def test_conditions_give_the_rows_of_spark(small: Any, folder: Path, part: int) -> None:
    chosen = [text for text, _ in CONDITIONS[part::3]]
    found = joined(small, folder, [text.format(l="left", r="right") for text in chosen])
    theirs = expected_of_each(small, folder, [text.format(l="a", r="b") for text in chosen])
    for text, mine, wanted in zip(chosen, found, theirs, strict=True):
        assert mine == wanted, text


def test_what_workers_decide(small: Any, folder: Path) -> None:
    """Only what workers cannot decide is left to a filter behind the join."""
    sides = frames(small, folder)
    for text, whole in CONDITIONS:
        split = split_where(text.format(l="left", r="right"), sides, SIDES)
        assert split is not None
        assert (not split.behind) == whole, (text, split.behind)


LEAVES = (
    "{l}.i < {r}.i", "{l}.n >= {r}.i", "{l}.d <> {r}.f", "{l}.s = {r}.s", "{l}.m <=> {r}.m", "{r}.day > {l}.day", "{l}.g",
    "{r}.g", "{l}.i = 1", "{r}.s LIKE 'D%'", "{l}.g = {r}.g", "{l}.x != {r}.x", "TRUE", "CAST(NULL AS BOOLEAN)",
)  # fmt: skip


def drawn(draw: Random, depth: int = 3) -> str:
    """A random condition."""
    kind = draw.choice(("AND", "AND", "OR", "OR", "NOT", "IS", "CASE", "COALESCE")) if depth else "leaf"
    if kind in ("AND", "OR"):
        return f"({drawn(draw, depth - 1)} {kind} {drawn(draw, depth - 1)})"
    if kind == "NOT":
        return f"NOT ({drawn(draw, depth - 1)})"
    if kind == "IS":
        return f"(({drawn(draw, depth - 1)}) IS {draw.choice(('', 'NOT '))}{draw.choice(('NULL', 'TRUE', 'FALSE'))})"
    if kind == "CASE":
        one, two, three = (drawn(draw, depth - 1) for _ in range(3))
        return f"(CASE WHEN {one} THEN {two} ELSE {three} END)"
    if kind == "COALESCE":
        return f"COALESCE({drawn(draw, depth - 1)}, {drawn(draw, depth - 1)})"
    return draw.choice(LEAVES)


def test_random_conditions_give_the_rows_of_spark(small: Any, folder: Path) -> None:
    draw = Random(5)
    chosen = [drawn(draw) for _ in range(16)]
    written = [text.format(l="left", r="right") for text in chosen]
    found = joined(small, folder, written)
    theirs = expected_of_each(small, folder, [text.format(l="a", r="b") for text in chosen])
    for text, mine, wanted in zip(chosen, found, theirs, strict=True):
        assert mine == wanted, text
    splits = [split_where(text, frames(small, folder), SIDES) for text in written]
    assert not [split.behind for split in splits if split is not None and split.behind]


MIXED = "({l}.i < {r}.i OR {l}.s = {r}.s) AND {r}.d IS NOT NULL AND {l}.n <= {r}.n"


@pytest.mark.parametrize(
    "on",
    [
        {"on": ("left.k = right.k", "left.i <= right.n")},
        {"predicate": sj.Band("k", within=0)},
        {"on": None, "predicate": {"name": "equal", "column": "k"}},
    ],
    ids=["graph", "band", "equal"],
)
def test_every_kind_of_join_takes_a_condition(small: Any, folder: Path, on: dict[str, Any]) -> None:
    (found,) = joined(small, folder, [MIXED.format(l="left", r="right")], **{"on": None, **on})
    more = " AND a.i <= b.n" if isinstance(on.get("on"), tuple) else ""
    assert found == expected(small, folder, MIXED.format(l="a", r="b") + more)
    assert found


def test_three_streams(small: Any, folder: Path) -> None:
    """A condition may speak of all of them at once; names that one stream alone has need not be qualified."""
    condition = "(x.i < y.i OR y.s = z.s OR NOT z.g) AND x.i <= z.n AND c >= 0 AND x.d IS NOT NULL"
    rows = shed_join(
        *frames(small, folder, "abc"),
        on="k",
        time="ts",
        window="1 second",
        names=["x", "y", "z"],
        select=["a", "b", "c"],
        where=condition,
        shards=1,
    ).toArrow()
    said = condition.replace("x.", "a.").replace("y.", "b.").replace("z.", "c.")
    found = sorted(zip(*(rows[name].to_pylist() for name in "abc"), strict=True))
    assert found
    assert found == expected(small, folder, said, "abc")


def test_a_stream_counts_and_completes_what_passes(spark: Any, folder: Path, tmp_path: Path, cache: str) -> None:
    """Results and recall speak of rows that pass; what the budget cost is refined with the same condition."""
    where = MIXED.format(l="left", r="right") + " AND a + b > 20"
    query = start(
        *(read(spark, folder / name) for name in "ab"),
        on="k",
        time="ts",
        window="1 second",
        where=where,
        lateness=0,
        budget="12 tuples",
        select=["a", "b"],
        shards=2,
        cache=cache,
        archive=True,
        output=tmp_path / "o",
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    kept = pairs(spark, tmp_path / "o" / "results")
    whole = expected(spark, folder, MIXED.format(l="a", r="b") + " AND a.a + b.b > 20")
    assert 0 < len(kept) < len(whole)
    refine(tmp_path / "o")
    assert sorted([*kept, *pairs(spark, tmp_path / "o" / "refined")]) == whole
    told = spark.read.parquet(str(tmp_path / "o" / "metrics")).selectExpr("sum(results)", "max(rows_left)").first()
    candidates = expected(spark, folder, MIXED.format(l="a", r="b"))
    assert len(kept) <= told[0] < len(candidates)
    assert json.loads((tmp_path / "o" / "job.json").read_text())["where"] == where
    with pytest.raises(sj.SnapshotError, match="another where"):
        start(
            *(read(spark, folder / name) for name in "ab"),
            on="k", time="ts", window="1 second", where="left.i < right.i", lateness=0, budget="12 tuples",
            select=["a", "b"], cache=cache, archive=True, output=tmp_path / "o",
        )  # fmt: skip


def test_an_archive_without_rows_of_a_stream_is_refined(spark: Any, folder: Path, tmp_path: Path, cache: str) -> None:
    (tmp_path / "none").mkdir()
    nothing = spark.readStream.schema(frames(spark, folder)[1].schema).parquet(str(tmp_path / "none"))
    query = start(
        read(spark, folder / "a"), nothing, on="k", time="ts", window="1 second", lateness=0, budget="12 tuples", select=["a"],
        shards=1, cache=cache, archive=True, output=tmp_path / "o", trigger={"availableNow": True},
        where="left.i < length(right.s) AND right.d > 1",
    )  # fmt: skip
    query.awaitTermination()
    assert refine(tmp_path / "o").count == 0


def test_rows_that_cannot_pass_are_not_stored(spark: Any, folder: Path, tmp_path: Path, cache: str) -> None:
    """A condition on one side is looked at before the join: its rows count as nulls, and their times still move clocks."""
    joined = shed_join(
        *(read(spark, folder / name) for name in "ab"),
        on="k", time="ts", window="1 second", lateness=0, select=["a", "b"], shards=1, cache=cache,
        where="left.i = 1 AND right.s = 'DE'",
    )  # fmt: skip
    run(joined, tmp_path / "c", tmp_path / "o")
    assert pairs(spark, tmp_path / "o") == expected(spark, folder, "a.i = 1 AND b.s = 'DE'")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("left.nope = 1", "where: left has no column 'nope'; it has k, ts, a"),
        ("nope = 1", "where: there is no column 'nope'"),
        (
            "l.a < right.b",
            "where: there is no stream or column 'l'; the streams are left and right, and left has k, ts",
        ),
        ("i = 1", "left and right have a column 'i': say left.i or right.i"),
        ("count(left.i) > 1", "where has the aggregate count"),
        ("left.i IN (SELECT 1)", "where has a subquery"),
        ("rank() OVER (ORDER BY left.i) = 1", "where has a window function"),
        ("left.i + 1", "where must be true or false, but"),
        ("left.i <", "where cannot be read"),
        ("left.i NEAR 3", "where cannot be read"),
        ("rand() < left.d", "where calls rand"),
        ("nosuch(left.i)", "where cannot be evaluated: (?!.*SQLSTATE)"),
        ("left.i = 1 AS y", "where must be one SQL condition"),
        ("", "where must be an SQL condition"),
        (7, "where must be an SQL condition"),
    ],
)
def test_bad_conditions_get_a_sentence(small: Any, folder: Path, where: Any, said: str) -> None:
    with pytest.raises(sj.SpecError, match=said):
        shed_join(*frames(small, folder), on="k", time="ts", window="1 second", select=["a", "b"], where=where)


def test_what_is_said_of_a_condition() -> None:
    clause = read_where("left.bid < right.price AND right.s IN ('DE') AND f(left.a, right.b)", SIDES)
    assert list(Splitter(clause, SIDES).split().explained()) == [
        ("before the join", "right.s IN ('DE')"),
        ("in the workers", "left.bid < right.price"),
        ("behind the join", "F(left.a, right.b) (workers know no such function of several streams)"),
    ]
