"""Late rows: lateness is given or taken from watermarks, and what is late is counted, warned of and completed."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest
from streams import SECOND, exact, pairs, read, run, side, write

import shedjoin as sj
from shedjoin.spark import refine, shed_join, start
from shedjoin.spark.join import plan_join
from shedjoin.spark.join_args import complete
from shedjoin.spark.late import late_in

JOIN = {"on": "k", "time": "ts", "window": "2 seconds", "select": ["k", "a", "b"]}


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Any, Any]:
    """The left stream's last file comes first, so that all of its other rows are late."""
    left, right = side(1, 600, 30, "a"), side(2, 600, 30, "b")
    write(tmp_path / "l", left.slice(400), 1)
    write(tmp_path / "l", left.slice(0, 400), 2, first=1)
    write(tmp_path / "r", right, 3)
    return left, right


def streams(spark: Any, folder: Path) -> list[Any]:
    return [read(spark, folder / name) for name in ("l", "r")]


def test_streams_must_say_their_lateness_or_have_watermarks(spark: Any, tmp_path: Path, tables: Any) -> None:
    left, right = streams(spark, tmp_path)
    marked = left.withWatermark("ts", "3 seconds"), right.withWatermark("ts", "1 second")
    with pytest.raises(sj.SpecError, match=r"lateness is missing: left\.ts and right\.ts have no watermark"):
        shed_join(left, right, **JOIN)
    with pytest.raises(sj.SpecError, match=r"lateness is missing: right\.ts has no watermark .* lateness='5 minutes'"):
        shed_join(marked[0], right, **JOIN)
    for given, lateness in (
        ({}, 3 * SECOND),
        ({"lateness": "7 seconds"}, 7 * SECOND),
        ({"lateness": None}, sj.UNLIMITED),
    ):
        assert plan_join(marked, complete({**JOIN, **given}, shed_join)).spec.lateness == lateness
    renamed = [frame.withColumnRenamed("ts", name) for frame, name in zip(marked, ("one", "two"), strict=True)]
    assert plan_join(tuple(renamed), complete({**JOIN, "time": ("one", "two")}, shed_join)).spec.lateness == 3 * SECOND
    batch = [spark.read.parquet(str(tmp_path / name)) for name in ("l", "r")]
    assert plan_join(tuple(batch), complete(JOIN, shed_join)).spec.lateness == 0


def test_shed_join_alone_tells_of_late_rows(
    spark: Any, tmp_path: Path, tables: Any, cache: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="shedjoin"):
        query = run(
            shed_join(*streams(spark, tmp_path), lateness=0, cache=cache, **JOIN), tmp_path / "c", tmp_path / "o"
        )
        end = time.monotonic() + 30  # listeners hear of a batch a little after its end
        while len(caplog.messages) < 2 and time.monotonic() < end:
            time.sleep(0.05)
    late = [late_in(batch["observedMetrics"]) for batch in query.recentProgress if batch["numInputRows"]]
    assert late == [0, 200, 200]
    assert sorted(caplog.messages) == [
        f"batch {batch}: 200 rows were later than lateness='0 seconds': they joined only rows that were still stored. Raise "
        "lateness; with start(archive=True), refine adds the pairs that they missed."
        for batch in (1, 2)
    ]
    assert len(pairs(spark, tmp_path / "o")) < len(exact(*tables, 2 * SECOND))


def test_start_tells_of_late_rows_and_refine_completes_them(
    spark: Any, tmp_path: Path, tables: Any, cache: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"output": tmp_path / "out", "archive": True, "trigger": {"availableNow": True}, "cache": cache}
    with caplog.at_level(logging.WARNING, logger="shedjoin"):
        start(*streams(spark, tmp_path), lateness=0, **given, **JOIN).awaitTermination()
    assert [message.split(" later")[0] for message in caplog.messages] == [f"batch {i}: 200 rows were" for i in (1, 2)]
    missed = [(row["a"], row["b"]) for row in refine(tmp_path / "out").rows.collect()]
    assert sorted([*pairs(spark, tmp_path / "out" / "results"), *missed]) == exact(*tables, 2 * SECOND)


def test_with_unlimited_lateness_no_row_is_late(spark: Any, tmp_path: Path, tables: Any, cache: str) -> None:
    joined = shed_join(*streams(spark, tmp_path), lateness=None, cache=cache, **JOIN)
    query = run(joined, tmp_path / "c", tmp_path / "o")
    assert [late_in(batch["observedMetrics"]) for batch in query.recentProgress] == [0, 0, 0]
    assert pairs(spark, tmp_path / "o") == exact(*tables, 2 * SECOND)
