"""Selective processing on Spark: its settings, types of rows, row windows, and several streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from streams import pairs, read, run, write

import shedjoin as sj
from shedjoin.spark import shed_join, start
from shedjoin.spark.selective_spec import selective_of

ROWS = 400
TIME, COUNT = sj.TimeWindow(60), sj.RowWindow(50)


def streams(count: int = 2) -> list[pa.Table]:
    random = np.random.default_rng(8)
    return [
        pa.table(
            {
                "k": random.integers(0, 9, ROWS),
                "ts": np.sort(random.integers(0, 400, ROWS)),
                "w": random.choice([0.25, 1.0, 4.0], ROWS),
                "kind": random.integers(0, 3, ROWS),
                name: np.arange(ROWS),
            }
        )
        for name in "abc"[:count]
    ]


def library(window: sj.Window, selective: sj.Selective, count: int = 2) -> list[tuple[int, ...]]:
    """What the engine finds by itself, in one push."""
    spec = sj.JoinSpec(window=dict.fromkeys("abc"[:count], window), selective=selective)
    tables = {
        name: {
            "key": one["k"].to_numpy(),
            "ts": one["ts"].to_numpy(),
            "importance": one["w"].to_numpy(),
            "kind": one["kind"].to_numpy(),
        }
        for name, one in zip("abc", streams(count), strict=False)
    }
    return sorted(map(tuple, spec.build().push(tables).rows.tolist()))


def joined(spark: Any, count: int = 2, **more: Any) -> list[tuple[int, ...]]:
    frames = [spark.createDataFrame(one).withColumnsRenamed({"w": f"w{i}"}) for i, one in enumerate(streams(count))]
    importance = [f"w{i}" for i in range(count)]
    names = list("abc"[:count])
    given = {"on": "k", "time": "ts", "importance": importance, "select": names, "shards": 1, **more}
    return sorted(tuple(row) for row in shed_join(*frames, **given).collect())


SETTINGS = {
    "part of each window": {"basic": 6, "fraction": 0.5},
    "the newest first": {"basic": 10, "fraction": 0.3, "correlation": False, "direction": False, "sample": 0.0},
    "types": {"basic": 6, "fraction": 0.4, "types": 3, "rank_period": 20, "sample": 0.5},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("window", [TIME, COUNT])
def test_the_settings_are_those_of_the_library(spark: Any, name: str, window: sj.Window) -> None:
    how = SETTINGS[name]
    kind = {"kind": "kind"} if "types" in how else {}
    expected = library(window, sj.Selective(**{"rank_period": 15, **how}, rate=False))
    for given in ({"rank_period": 15, **how}, sj.Selective(**{"rank_period": 15, **how})):
        assert joined(spark, window=window, selective=given, **kind) == expected
    everything = joined(spark, window=window)
    assert set(expected) < set(everything)


def test_types_have_columns_of_their_own(spark: Any) -> None:
    """Only one stream has types: rows of the other are of type 0."""
    how = SETTINGS["types"]
    mine = joined(spark, window=TIME, selective=how, kind=("kind", None))
    assert mine != joined(spark, window=TIME, selective=how, kind="kind")
    assert mine


def test_three_streams_show_the_part_of_each_window(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    from shedjoin.cli import main

    monkeypatch.setenv("COLUMNS", "150")
    tables = streams(3)
    for name, table in zip("abc", tables, strict=True):
        write(tmp_path / name, table, 1)
    frames = [read(spark, tmp_path / name) for name in "abc"]
    how = SETTINGS["part of each window"]
    start(
        *frames, on="k", time="ts", window=60, lateness=0, names=("a", "b", "c"), selective=how, output=tmp_path / "out",
        select=["a.a", "b.b", "c.c"], shards=2, cache=False, trigger={"availableNow": True},
    ).awaitTermination()  # fmt: skip
    assert main(["top", str(tmp_path / "out"), "--once"]) == 0
    said = capsys.readouterr().out
    assert "50.0% of the windows" in said
    assert all(f"{name} " in said.split("of the windows")[1].splitlines()[0] for name in "abc")
    assert "looks first at" in said


def test_a_query_with_row_windows_and_a_deadline(spark: Any, tmp_path: Path) -> None:
    """With time to spare it is exact, in two shards; its basic windows are of rows."""
    for name, table in zip("lr", streams(), strict=True):
        write(tmp_path / name, table, 2)
    sides = [read(spark, tmp_path / name) for name in "lr"]
    query = start(
        *sides, on="k", time="ts", window="50 rows", lateness=0, deadline="10 minutes", select=["a", "b"], shards=2,
        output=tmp_path / "out", cache=False, trigger={"availableNow": True},
    )  # fmt: skip
    query.awaitTermination()
    assert pairs(spark, tmp_path / "out" / "results") == joined(spark, window=COUNT)
    told = spark.read.parquet(str(tmp_path / "out" / "metrics")).collect()
    assert {(row.fraction, len(row.ranking_left)) for row in told} == {(1.0, 2 * 17 + 1)}  # ceil(50 / 3) ages each way


def test_a_query_with_types_that_is_stopped_goes_on(spark: Any, tmp_path: Path) -> None:
    """There are no copies: the second run pushes the rows of the first again, with their types."""
    how = SETTINGS["types"]

    def join(folder: str) -> Any:
        sides = [read(spark, tmp_path / folder / name) for name in "lr"]
        given: dict[str, Any] = {"window": 60, "lateness": 0, "selective": how, "kind": "kind", "importance": "w"}
        return shed_join(*sides, on="k", time="ts", select=["a", "b"], shards=2, cache=False, **given)

    for name, table in zip("lr", streams(), strict=True):
        write(tmp_path / "whole" / name, table, 2)
        write(tmp_path / "parts" / name, table.slice(0, ROWS // 2), 1)
    run(join("whole"), tmp_path / "c1", tmp_path / "o1")
    run(join("parts"), tmp_path / "c2", tmp_path / "o2")
    for name, table in zip("lr", streams(), strict=True):
        write(tmp_path / "parts" / name, table.slice(ROWS // 2), 1, first=1)
    run(join("parts"), tmp_path / "c2", tmp_path / "o2")
    assert pairs(spark, tmp_path / "o2") == pairs(spark, tmp_path / "o1")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"selective": 3}, "selective must be a Selective or a table of its settings, not 3"),
    ({"selective": {"rate": True}}, "selective has no setting 'rate'; it has basic, correlation"),
    ({"selective": {"sample": 2}}, r"selective: Selective.sample must be a number of at least 0 and at most 1, not 2"),
    ({"selective": {"basic": "5 seconds"}}, "selective.basic must be a whole number, as the times are"),
    ({"selective": {"basic": "5 rows"}}, "selective.basic must be of the windows' kind, time or rows, not '5 rows'"),
    ({"selective": {"types": 2}}, "kind is missing: selective tells 2 types of rows apart"),
    ({"kind": "kind"}, "kind is for selective"),
    ({"selective": {"types": 2}, "kind": "x"}, "kind: left has no column 'x'"),
    ({"selective": {"types": 2}, "kind": "w"}, "kind: left.w is of type double: number the types of rows from 0 on"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_what_does_not_fit_is_said(spark: Any, given: dict[str, Any], message: str) -> None:
    frame = spark.createDataFrame([(1, 1, 1.0, 1)], "k int, ts int, w double, kind int")
    with pytest.raises(sj.SpecError, match=message):
        shed_join(frame, frame, **{"on": "k", "time": "ts", "window": 5, "select": ["k"], **given})


def test_a_type_that_is_none_is_said(spark: Any) -> None:
    how = {**SETTINGS["types"], "types": 2}
    with pytest.raises(
        Exception, match=r"kind: left.kind must be from 0 to 1, as selective.types says, but a row has 2"
    ):
        joined(spark, window=TIME, selective=how, kind="kind")


def test_durations_of_timestamps_need_a_unit() -> None:
    windows = (sj.TimeWindow(60_000_000),) * 2
    made = selective_of({"basic": "2 seconds", "rank_period": "10 s"}, windows, None, "time")
    assert made == sj.Selective(basic=2_000_000, rate=False, period=10_000_000, rank_period=10_000_000)
    with pytest.raises(sj.SpecError, match=r"selective.basic=2 has no unit, .* say '2 seconds'"):
        selective_of({"basic": 2}, windows, None, "time")
    assert selective_of({"basic": "7 rows"}, (COUNT, TIME), 1.0, "number").basic == 7  # type: ignore[union-attr]
    assert selective_of(None, (COUNT, COUNT), 1.0, "time").rank_period == 10_000_000  # type: ignore[union-attr]
    assert selective_of(None, windows, None, "time") is None
