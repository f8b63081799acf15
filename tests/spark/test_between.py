"""Intervals on Spark: `between` gives the rows of Spark's own join, and keeps rows no longer than they can find partners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streams import SECOND, pairs, read, run, side, write

import shedjoin as sj
from shedjoin.spark import refine, shed_join, start

#: From ... to ..., as durations and in microseconds: after, around, before, and at one distance.
INTERVALS = {
    "after": (("0 seconds", "2 seconds"), (0, 2 * SECOND)),
    "later": (("1 second", "3 seconds"), (SECOND, 3 * SECOND)),
    "around": (("-1 second", "500 ms"), (-SECOND, SECOND // 2)),
    "before": (("-2 seconds", "-1 second"), (-2 * SECOND, -SECOND)),
    "exactly": (("40 ms", "40 ms"), (40_000, 40_000)),
}
LAG = SECOND // 10


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("between")
    write(folder / "l", side(1, 600, 40, "a", lag=LAG), 2)
    write(folder / "r", side(2, 600, 40, "b", lag=LAG), 2)
    return folder


def spark_join(spark: Any, folder: Path, low: int, high: int) -> list[tuple[int, ...]]:
    """What SQL's BETWEEN gives, in batch."""
    for name in "lr":
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(f"between_{name}")
    rows = spark.sql(
        "SELECT a, b FROM between_l l JOIN between_r r ON l.k = r.k AND unix_micros(r.ts) - unix_micros(l.ts) "
        f"BETWEEN {low} AND {high}"
    ).toArrow()
    return sorted(zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True))


@pytest.mark.parametrize("name", INTERVALS)
def test_an_interval_gives_the_rows_of_sql(small: Any, streams: Path, name: str) -> None:
    between, (low, high) = INTERVALS[name]
    past = [small.read.parquet(str(streams / one)) for one in "lr"]
    joined = shed_join(*past, on="k", time="ts", between=between, select=["a", "b"]).toArrow()
    expected = spark_join(small, streams, low, high)
    assert expected
    assert sorted(zip(joined["a"].to_pylist(), joined["b"].to_pylist(), strict=True)) == expected


def test_streams_give_the_same(spark: Any, streams: Path, tmp_path: Path, cache: str) -> None:
    between, (low, high) = INTERVALS["later"]
    joined = shed_join(
        *(read(spark, streams / one) for one in "lr"),
        on="k",
        time="ts",
        between=between,
        lateness="100 ms",
        select=["a", "b"],
        shards=2,
        cache=cache,
    )
    run(joined, tmp_path / "c", tmp_path / "o")
    assert pairs(spark, tmp_path / "o") == spark_join(spark, streams, low, high)


def test_what_a_budget_sheds_is_refined(spark: Any, streams: Path, tmp_path: Path, cache: str) -> None:
    between, (low, high) = INTERVALS["later"]
    query = start(
        read(spark, streams / "l"),
        read(spark, streams / "r"),
        on="k",
        time="ts",
        between=between,
        lateness="100 ms",
        budget="40 tuples",
        select=["a", "b"],
        shards=2,
        cache=cache,
        archive=True,
        output=tmp_path / "o",
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    kept = pairs(spark, tmp_path / "o" / "results")
    expected = spark_join(spark, streams, low, high)
    assert 0 < len(kept) < len(expected)
    refine(tmp_path / "o")
    assert sorted([*kept, *pairs(spark, tmp_path / "o" / "refined")]) == expected


def test_rows_stay_only_while_they_can_find_partners() -> None:
    """A right row meets left rows that are older: in order, none is stored."""
    engine = sj.JoinSpec(between=(5, 10)).build()
    engine.push(left={"key": [1] * 50}, right={"key": [1] * 50})
    assert engine.residents == (11, 0)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"between": ("10 minutes", "0 seconds")}, "between must have low <= high"),
        ({"between": ("0 seconds", "1 hour"), "window": "1 hour"}, "between replaces window"),
        ({"between": "1 hour"}, "between must be a pair"),
        ({"between": (0, 600)}, r"between\[1\]=600 has no unit"),
        ({"between": (False, "1 hour")}, r"between\[0\] must be a duration such as .* not False"),
        ({"between": ("-soon", "1 hour")}, r"between\[0\] must be a duration such as .* not '-soon'"),
        ({"between": ("-1 hour", "-2 hours")}, "between must have low <= high"),
        ({}, "window is missing"),
    ],
)
def test_bad_intervals_get_a_sentence(small: Any, streams: Path, args: dict[str, Any], said: str) -> None:
    with pytest.raises(sj.SpecError, match=said):
        shed_join(
            *(read(small, streams / one) for one in "lr"), on="k", time="ts", lateness=0, suffixes=("_l", "_r"), **args
        )
