"""What a packing task tells every shard of its rows, wherever these went: when it began, what it counted, when its rows came.

All shards share the streams' clocks and the memory by it (see `budget_split`), and number rows over all shards for row windows:
micro-batch by micro-batch, inside one by (time, task, place in the task), as one shard would number them. A shard learns of each
task when its rows came, and which of them are its own. So it knows the numbers of its rows, and how many rows of each stream had
come anywhere by each of its instants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.errors import InputError
from shedjoin.row_numbers import RowNumbers
from shedjoin.spark.budget_split import Counts
from shedjoin.spark.exchange import from_blob, to_blob
from shedjoin.spark.hypercube import HyperCube

Integers = NDArray[np.int64]


class RowTimes(NamedTuple):
    """When the rows of a task came, and where they went: of all its rows in the order of their times."""

    times: Integers
    first: NDArray[np.uint16]  # the first shard of each; this and the number of shards where it goes nowhere else

    @classmethod
    def of(cls, times: Sequence[Integers], first: Sequence[NDArray[np.uint16]]) -> RowTimes:
        """Pieces of rows in the order of their places in the task."""
        whole = np.concatenate([np.empty(0, np.int64), *times])
        order = np.argsort(whole, kind="stable")
        return cls(whole[order], np.concatenate([np.empty(0, np.uint16), *first])[order])

    def mine(self, cube: HyperCube, shard: int, stream: int) -> Integers:
        """Which of these rows go to a shard."""
        here = (self.first == cube.first_of(shard, stream)) | (self.first == cube.shards + shard)
        return np.flatnonzero(here)


class TaskReport(NamedTuple):
    """What a task tells. Parts that no shard asks for are None."""

    began: float | None = None  # by the clock on the wall
    counts: Counts | None = None
    rows: RowTimes | None = None

    def to_bytes(self) -> bytes | None:
        """As it travels; None: there is nothing to tell."""
        columns: dict[str, pa.Array] = {}
        if self.began is not None:
            columns["began"] = pa.array([self.began])
        if self.counts is not None:
            columns |= {name: pa.array([part]) for name, part in self.counts._asdict().items()}
        if self.rows is not None:
            columns["steps"] = pa.array([_planes(np.diff(self.rows.times, prepend=0))])
            columns["first"] = pa.array([self.rows.first.astype("<u2").tobytes()])
        return to_blob(pa.RecordBatch.from_pydict(columns), codec="zstd") if columns else None

    @classmethod
    def from_bytes(cls, blob: bytes) -> TaskReport:
        """What `to_bytes` wrote."""
        (line,) = (row for batch in from_blob(blob) for row in batch.to_pylist())
        counts = rows = None
        if "oldest" in line:
            counts = Counts(line["oldest"], *(np.array(line[name], np.int64) for name in Counts._fields[1:]))
        if "steps" in line:
            steps = np.frombuffer(line["steps"], np.uint8).reshape(8, -1).T
            times = np.cumsum(np.ascontiguousarray(steps).view("<i8").reshape(-1), dtype=np.int64)
            rows = RowTimes(times, np.frombuffer(line["first"], "<u2").astype(np.uint16))
        return cls(line.get("began"), counts, rows)


def _planes(numbers: Integers) -> bytes:
    """All low bytes first, then higher ones: these are mostly 0, and take no room."""
    by_byte = numbers.astype("<i8").view(np.uint8).reshape(-1, 8).T
    return np.ascontiguousarray(by_byte).tobytes()


def number(
    batch: Batch, told: Sequence[Sequence[RowTimes]], start: Sequence[int], cube: HyperCube, shard: int
) -> tuple[Batch, tuple[int, ...]]:
    """The rows of a shard with their numbers, and the rows of each stream that have come anywhere then.

    Parameters
    ----------
    batch
        Sorted by time, inside a stream and time by task and place.
    told
        For each stream what its tasks told, in the order of tasks.
    start
        Rows of each stream that came before this micro-batch.
    cube, shard
        Which rows this shard has.
    """
    seq, arrived = np.zeros(len(batch), np.int64), np.zeros((len(batch), len(start)), np.int64)
    end = []
    for stream, tasks in enumerate(told):
        times = np.concatenate([np.empty(0, np.int64), *(task.times for task in tasks)])
        order = np.argsort(times, kind="stable")
        places = np.empty(times.size, np.int64)
        places[order] = np.arange(times.size)
        firsts = np.cumsum([0, *(task.times.size for task in tasks)])
        mine = [places[first + task.mine(cube, shard, stream)] for first, task in zip(firsts, tasks, strict=False)]
        numbers = np.sort(np.concatenate([np.empty(0, np.int64), *mine]))
        rows = np.flatnonzero(batch.stream == stream)
        if numbers.size != rows.size or not np.array_equal(times[order[numbers]], batch.ts[rows]):
            raise InputError(
                f"the tasks that read stream {stream} told of {numbers.size} rows for this shard and sent {rows.size}, or "
                "others: a task that was run again has read other rows than before"
            )
        seq[rows] = start[stream] + numbers
        arrived[:, stream] = start[stream] + np.searchsorted(times[order], batch.ts, side="right")
        end.append(start[stream] + times.size)
    return replace(batch, numbers=RowNumbers(seq, arrived)), tuple(end)
