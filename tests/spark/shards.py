"""Shards without Spark: tables go in through `pack`, blobs come out, state lies in a dict (benchmarks/dict_store.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from dict_store import DictStore

import shedjoin as sj
from shedjoin.spark.exchange import LATE, METRIC, RESULT, SHED, Message, from_blob, shard_labels
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.job import Job
from shedjoin.spark.packing import Packing, pack
from shedjoin.spark.shard import Shard

#: What travels in these tests: a number that names the row, and some text.
TRAVELS = pa.schema([("row", pa.int64()), ("text", pa.string())])
#: Keys and times of each stream.
Sides = list[tuple[np.ndarray, np.ndarray]]
#: Of each micro-batch the tables of each stream.
Tables = list[tuple[list[pa.RecordBatch], ...]]


def job(spec: sj.JoinSpec, shards: int = 1, **more: Any) -> Job:
    names = spec.names
    given: dict[str, Any] = {
        "seed": 0,
        "kept": ((0, 1),) * len(names),
        "names": names,
        "signature": {},
        "kinds": (RESULT, SHED, METRIC),
        "cache": False,
        "cube": HyperCube.of_key(len(names), shards),
    }
    return Job(spec=spec.to_dict(), labels=shard_labels(shards, shards), **{**given, **more})


def hashed(key: int) -> int:
    """A number that looks like Spark's hash of the key."""
    mixed = ((key + 1) * 0x9E3779B97F4A7C15) % 2**64
    return mixed - 2**64 if mixed >= 2**63 else mixed


def table(keys: Sequence[int | None], ts: Sequence[int], first: int = 0) -> pa.RecordBatch:
    """Rows of one stream, named by numbers from `first`."""
    names = np.arange(first, first + len(ts))
    columns = {
        "key": pa.array([None if key is None else hashed(key) for key in keys], pa.int64()),
        "ts": pa.array(ts, pa.int64()),
        "row": pa.array(names),
        "text": pa.array([f"{name:>7}" for name in names]),
    }
    return pa.RecordBatch.from_pydict(columns)


def cut(sides: Sides, batches: int, tasks: int = 2) -> Tables:
    """The rows as micro-batches of several tasks each; the key 3 is null."""
    made = []
    for key, ts in sides:
        nullable = [None if one == 3 else int(one) for one in key]
        edges = np.linspace(0, len(ts), batches * tasks + 1).astype(int)
        parts = [table(nullable[a:b], ts[a:b].tolist(), a) for a, b in pairwise(edges.tolist())]
        made.append([parts[place : place + tasks] for place in range(0, batches * tasks, tasks)])
    return list(zip(*made, strict=True))


def messages(
    tables: Sequence[Sequence[pa.RecordBatch]],
    labels: Sequence[int],
    *,
    counted: bool = False,
    numbered: bool = False,
    sized: bool = False,
) -> Iterator[dict[str, Any]]:
    """What the packing tasks of each stream send; each table is a task."""
    for stream, tasks in enumerate(tables):
        how = Packing(
            stream,
            f"s{stream}",
            tuple(labels),
            HyperCube.of_key(len(tables), len(labels)),
            TRAVELS.serialize().to_pybytes(),
            "ts",
            counted=counted,
            numbered=numbered,
            sized=sized,
        )
        for task, rows in enumerate(tasks):
            for batch in pack(iter([rows]), how, task):
                yield from batch.to_pylist()


class Shards:
    """All shards of a join, micro-batch after micro-batch."""

    def __init__(self, job: Job, stores: list[DictStore] | None = None) -> None:
        self.job = job
        self.stores = stores or [DictStore() for _ in job.labels]

    def batch(self, *streams: Sequence[pa.RecordBatch]) -> dict[str, list[dict[str, Any]]]:
        """Run one micro-batch; returns the rows of each kind."""
        numbered = self.job.spec.get("counted_elsewhere", False)
        sized = self.job.asked is not None
        sent = list(messages(streams, self.job.labels, counted=self.job.adaptive, numbered=numbered, sized=sized))
        given: dict[str, list[dict[str, Any]]] = {kind: [] for kind in self.job.kinds}
        for number, (label, store) in enumerate(zip(self.job.labels, self.stores, strict=True)):
            mine = [
                Message(*(row[name] for name in Message._fields)) for row in reversed(sent) if row["label"] == label
            ]
            for kind, blob in Shard(self.job, number, store).run(mine):
                if kind == LATE:  # a number in digits
                    given.setdefault(kind, []).append({"late": int(blob)})
                    continue
                for rows in from_blob(blob):
                    given[kind] += rows.to_pylist()
        return given


def pairs(rows: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """Results by the numbers of their rows; the text that came along must be that of the number."""
    for row in rows:
        assert (int(row["l1"]), int(row["r1"])) == (row["l0"], row["r0"])
    return sorted((row["l0"], row["r0"]) for row in rows)


def numbers(rows: Sequence[dict[str, Any]], streams: int) -> list[tuple[int, ...]]:
    """The same of three and more streams."""
    for row in rows:
        assert all(int(row[f"s{stream}_1"]) == row[f"s{stream}_0"] for stream in range(streams))
    return sorted(tuple(row[f"s{stream}_0"] for stream in range(streams)) for row in rows)
