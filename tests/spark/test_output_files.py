"""Files that shards write: what is in them, which of them count, and that readers see the types that Spark would write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shards import job

import shedjoin as sj
from shedjoin.errors import EnvironmentProblem
from shedjoin.spark import batch_writer, start
from shedjoin.spark.batch_writer import BatchWriter, Outputs
from shedjoin.spark.job import Job
from shedjoin.spark.output_files import WRITING, BatchFiles, OutputFiles, Table, TaskFiles, names_in
from shedjoin.spark.output_tables import ROW_TYPES
from shedjoin.spark.plan import ResultLayout

RESULT = pa.schema([("k", pa.int64()), ("day", pa.date32())])


def table(kind: str = "result", place: str = "results", **more: Any) -> Table:
    given = {"chosen": (("l0", "r0"), ("r1",)), "equal": (("l0", "r0"),), **more}
    return Table(kind, place, "batch", RESULT.serialize().to_pybytes(), **given)


def blob(left: Sequence[int | None], right: Sequence[int | None]) -> pa.RecordBatch:
    sides = {"l0": pa.array(left, pa.int64()), "r0": pa.array(right, pa.int64())}
    return pa.RecordBatch.from_pydict({**sides, "r1": pa.array(range(len(left)), pa.int64())})


def test_keys_are_compared_once_more() -> None:
    rows = blob([1, 2, None, 4], [1, 3, 3, None])
    assert [one.rows(rows, RESULT).column(0).to_pylist() for one in (table(), table(alone=True))] == [[1], [1, 3, 4]]


def written(folder: Path, rows: list[list[pa.RecordBatch]], batch: int) -> None:
    """A batch, committed: of each task what its shards give."""
    tables = (table(), table("shed", "shed"))
    told = []
    for task, shards in enumerate(rows):
        files = TaskFiles(OutputFiles(str(folder), tables), task)
        for made in shards:
            files.write("result", [made, made])
            told.append(files.names())
        files.close()
    one = BatchFiles(str(folder), batch)
    one.begin()
    for each in tables:
        one.take(each, names_in(told).get(each.kind, []))
    one.commit(tables)


def keys(folder: Path) -> list[int]:
    return sorted(key for path in folder.rglob("*.parquet") for key in pq.ParquetFile(path).read()["k"].to_pylist())


def test_a_repeated_batch_takes_the_place_of_the_first(tmp_path: Path) -> None:
    written(tmp_path, [[blob([1], [1])], [blob([2], [2]), blob([3], [3])]], 7)
    assert keys(tmp_path) == [1, 1, 2, 2, 3, 3]
    assert [path.name for path in sorted(tmp_path.rglob("*.parquet"))] == ["part-00000.parquet", "part-00001.parquet"]
    (tmp_path / "shed" / "batch=7").mkdir(parents=True)
    written(tmp_path, [[blob([5], [5])]], 7)
    assert keys(tmp_path) == [5, 5]
    names = sorted(path.name for path in tmp_path.rglob("*"))
    assert names == ["_SUCCESS", "batch=7", "part-00000.parquet", "results", "shed"]


def test_an_attempt_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        late = 0

        def batches(self, messages: object) -> Iterator[tuple[str, list[pa.RecordBatch]]]:
            yield "result", [blob([1], [1])]
            raise KeyError(messages)

    monkeypatch.setattr(Job, "shard", lambda *_: Failing())
    with pytest.raises(KeyError):
        list(
            job(sj.JoinSpec(sj.TimeWindow(5))).given(0, [], None, TaskFiles(OutputFiles(str(tmp_path), (table(),)), 0))
        )
    assert list((tmp_path / WRITING).iterdir()) == []


def test_files_that_the_driver_does_not_see(tmp_path: Path) -> None:
    one = BatchFiles(str(tmp_path), 0)
    with pytest.raises(EnvironmentProblem, match="output must be a directory that the driver and all workers see"):
        one.take(table(), ["elsewhere.parquet"])


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / WRITING).touch()
    said = rf"files cannot be written to {tmp_path}/results: File exists\.$"
    with pytest.raises(EnvironmentProblem, match=said):
        TaskFiles(OutputFiles(str(tmp_path), (table(),)), 0).write("result", [blob([1], [1])])


def test_the_trouble_of_a_sink_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not said of the output directory."""

    class Blobs:
        def persist(self) -> Blobs:
            return self

        def unpersist(self) -> None:
            pass

    def sink(results: Any, number: int) -> None:
        raise PermissionError(13, "Permission denied", "elsewhere")

    for name in ("_told", "results_of"):
        monkeypatch.setattr(batch_writer, name, lambda *_: [])
    layout = ResultLayout(None, [], [])  # type: ignore[arg-type]
    with pytest.raises(PermissionError, match="elsewhere"):
        BatchWriter(Outputs(str(tmp_path), (), layout, {}, None), sink)(Blobs(), 0)  # type: ignore[arg-type]


def test_a_new_sink_takes_back_what_was_written_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only of the batch that is repeated; and a sink may write to the same place."""
    for number in (6, 7):
        written(tmp_path, [[blob([number], [number])]], number)

    class Blobs:
        def persist(self) -> Blobs:
            return self

        def unpersist(self) -> None:
            pass

    there: list[list[int]] = []

    def sink(results: Any, number: int) -> None:
        there.append(keys(tmp_path))
        made = tmp_path / "results" / f"batch={number}"
        made.mkdir()
        pq.write_table(pa.table({"k": [70 + number]}), made / "part.parquet")

    monkeypatch.setattr(batch_writer, "_told", lambda _: [{"kind": "result", "shard": 0, "blob": None}])
    monkeypatch.setattr(batch_writer, "results_of", lambda *_: [])
    layout = ResultLayout(None, [], [])  # type: ignore[arg-type]
    writer = BatchWriter(Outputs(str(tmp_path), (), layout, {}, None, (table(),)), sink)
    for number in (7, 8):
        writer(Blobs(), number)  # type: ignore[arg-type]
    assert there == [[6, 6], [6, 6, 77]]
    assert keys(tmp_path) == [6, 6, 77, 78]


#: Columns of the left stream, and a type that Arrow would write in another way than Spark.
TYPES = (
    "k string, ts timestamp, b boolean, i8 tinyint, i16 smallint, f float, d double, dec decimal(10, 2), bin binary, day date, "
    "ntz timestamp_ntz, `a.list` array<string>, m map<string, int>, s struct<x: int, y: array<double>>"
)
ODD = "k string, at timestamp, gap interval day to second"


def test_types_are_those_that_spark_writes(spark: Any, tmp_path: Path) -> None:
    """Results and one archive are written by shards, the other archive, with intervals, by Spark."""
    at = datetime(2020, 5, 17, 12, 30, tzinfo=UTC)
    plain = at.replace(tzinfo=None)
    full = (
        "a",
        at,
        True,
        1,
        2,
        0.5,
        0.25,
        Decimal("1.25"),
        b"x",
        date(1500, 1, 1),
        plain,
        ["p", None],
        {"q": 1},
        (3, [1.0]),
    )
    rows = [full, ("a", at, *[None] * 12)]
    spark.createDataFrame(rows, TYPES).coalesce(1).write.parquet(str(tmp_path / "left"))
    spark.createDataFrame([("a", at, plain - plain), ("b", at, None)], ODD).write.parquet(str(tmp_path / "right"))
    sides = [
        spark.readStream.schema(types).parquet(str(tmp_path / name))
        for name, types in (("left", TYPES), ("right", ODD))
    ]
    names = [name for name in sides[0].columns if name != "ts"]
    start(
        *sides,
        output=tmp_path / "out",
        archive=True,
        trigger={"availableNow": True},
        on="k",
        time=("ts", "at"),
        window="1 minute",
        lateness=0,
        select={**{f"left {name}": f"left.{name}" for name in names}, "ts": "ts", "at": "at"},
    ).awaitTermination()
    results = spark.read.parquet(str(tmp_path / "out" / "results"))
    given = [one.dataType for one in sides[0].schema if one.name != "ts"]
    assert [one.dataType for one in results.schema][: len(given)] == given
    found = [tuple(row[f"left {name}"] for name in names) for row in results.collect()]
    assert sorted(found, key=str) == sorted(((row[0], *row[2:]) for row in rows), key=str)
    for name, side in zip(("left", "right"), sides, strict=True):
        archived = spark.read.parquet(str(tmp_path / "out" / "archive" / name))
        assert [(one.name, one.dataType) for one in archived.schema][: len(side.columns)] == [
            (one.name, one.dataType) for one in side.schema
        ]
        assert archived.count() == 2
    for path in (tmp_path / "out").rglob("part-*.parquet"):
        assert json.loads(pq.read_metadata(path).metadata[ROW_TYPES.encode()])["type"] == "struct"
