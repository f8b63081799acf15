"""Missing pairs by Spark, against the exact join by two nested loops."""

from __future__ import annotations

from typing import Any

import archives
import pytest

import shedjoin as sj
from shedjoin.spark.archive import Archive, Layout
from shedjoin.spark.missing import Span, missing_pairs

T, R = sj.TimeWindow, sj.RowWindow
WINDOWS = [(T(5), T(5)), (T(2), T(9)), (R(3), R(3)), (R(2), R(6)), (T(4), R(3)), (R(3), T(4))]


def archive_of(spark: Any, made: archives.Made, upto: int) -> Archive:
    left, right, shed = archives.tables(made, upto)
    layout = Layout((), (("left", 0, "label"), ("right", 1, "label")))
    return Archive(*(spark.createDataFrame(table) for table in (left, right, shed)), made.windows, layout)


def pairs_of(frame: Any) -> list[archives.Pair]:
    found = []
    for row in frame.collect():
        assert row["left"]["label"] == f"{row['_sj_shard']}/0/{row['_sj_left']}"
        assert row["right"]["label"] == f"{row['_sj_shard']}/1/{row['_sj_right']}"
        found.append((row["_sj_shard"], row["_sj_left"], row["_sj_right"]))
    return found


@pytest.mark.parametrize("windows", WINDOWS, ids=str)
def test_results_and_missing_pairs_are_the_exact_join_at_every_step(spark: Any, windows: Any) -> None:
    made = archives.make(windows, shards=60, batches=6, seed=11)
    exact = made.exact()
    assert len(made.met) > 200
    assert len(exact) > 1.2 * len(made.met)
    assert any(record["why"] == "late" for record in made.shed)
    whole = pairs_of(missing_pairs(archive_of(spark, made, 5)))
    assert sorted(whole) == sorted(exact - set(made.met))

    steps: list[archives.Pair] = []
    after: int | None = None
    for upto in (1, 2, 5):
        arrived = {
            shard: tuple(
                sum(
                    r.shard == shard and r.stream == side and r.batch <= (-1 if after is None else after)
                    for r in made.rows
                )
                for side in (0, 1)
            )
            for shard in range(60)
        }
        steps += pairs_of(missing_pairs(archive_of(spark, made, upto), Span(after, arrived)))
        after = upto
    assert sorted(steps) == sorted(whole)
