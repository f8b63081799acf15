"""What crosses the shuffle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shards import TRAVELS, messages, table

import shedjoin as sj
from shedjoin.spark.exchange import from_blob, partition_hash, shard_labels, sorted_by_time, times_of
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.packing import Packing, pack


def test_the_hash_is_sparks(spark: Any) -> None:
    labels = [0, 1, -1, 7, 2**31 - 1, -(2**31), 123456789]
    rows = spark.createDataFrame([(label,) for label in labels], "label int").selectExpr("hash(label) as h").collect()
    assert partition_hash(np.array(labels, np.int32)).tolist() == [row["h"] for row in rows]


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 8, 13, 26, 34, 64, 200, 511])
def test_every_shard_has_a_partition_of_its_own(partitions: int) -> None:
    for shards in {1, partitions // 2, min(partitions, 32)} - {0}:
        labels = shard_labels(shards, partitions)
        places = partition_hash(np.array(labels, np.int32)).astype(np.int64) % partitions
        assert len(set(places.tolist())) == len(labels) == shards


def test_the_first_label_never_changes() -> None:
    """Whatever changes, the first shard finds its old state and can refuse to go on."""
    firsts = {shard_labels(shards, parts)[0] for shards in (1, 2, 5) for parts in (1, 2, 13, 17, 200, 511)}
    assert len(firsts) == 1


def test_every_task_tells_every_shard_how_far_it_is() -> None:
    labels = shard_labels(3, 8)
    sent = list(messages(([table([1, 2, None], [5, 9, 7]), table([], [])], [table([1], [3])]), labels))
    told = {(row["label"], row["stream"], row["task"]): row["newest"] for row in sent if row["blob"] is None}
    assert len(told) == 3 * 3
    assert {newest for (_, stream, task), newest in told.items() if (stream, task) == (0, 0)} == {9}
    assert {newest for (_, stream, _), newest in told.items() if stream == 1} == {3}
    assert sum(row["rows"] for row in sent) == 4


def test_a_time_that_travels_is_sent_once() -> None:
    """Whether it comes as a column of its own or among the others, rows have the same times, in the same order."""
    key, ts, row = pa.array([5, None, 7]), pa.array([9, 3, 6], pa.timestamp("us", "UTC")), pa.array([0, 1, 2])
    travels = pa.schema([("row", pa.int64()), ("at", ts.type)]).serialize().to_pybytes()
    once = Packing(0, "left", (7,), HyperCube.of_key(2, 1), travels, "at", time_at=1)
    twice = replace(once, time_at=None)
    sent = []
    for one, columns in ((once, [key, row, ts]), (twice, [key, ts, row, ts])):
        batch = pa.RecordBatch.from_arrays(columns, names=[str(place) for place in range(len(columns))])
        sent.append(next(pack(iter([batch]), one, 0)))
    assert len(sent[0]["blob"][0].as_py()) < len(sent[1]["blob"][0].as_py())
    for message in sent:
        rows = sorted_by_time(from_blob(message["blob"][0].as_py()))
        assert times_of(rows).tolist() == [3, 6, 9]
        assert rows["c0"].to_pylist() == [1, 2, 0]
        assert rows["c1"].cast(pa.int64()).to_pylist() == [3, 6, 9]


@pytest.mark.parametrize("weight", [float("nan"), 0.0, -1.0, float("inf"), None])
def test_an_importance_that_is_none_is_named(weight: float | None) -> None:
    cube = HyperCube.of_key(2, 1)
    how = Packing(0, "left", (7,), cube, TRAVELS.serialize().to_pybytes(), "ts", importance="w")
    row = {"key": [1], "ts": [5], "w": pa.array([weight], pa.float64()), "row": [1], "text": ["x"]}
    with pytest.raises(sj.InputError, match=r"importance: left\.w must be finite and above 0, but a row has"):
        list(pack(iter([pa.RecordBatch.from_pydict(row)]), how, 0))
