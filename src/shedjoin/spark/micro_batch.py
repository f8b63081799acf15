"""A micro-batch as a shard takes it in: the messages of all packing tasks as rows in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.batch import COLUMNS, ROW_BYTES, Batch, Values
from shedjoin.engine.records import NEVER
from shedjoin.spark.budget_split import Counts
from shedjoin.spark.exchange import Message, dropped_in, from_blob, sorted_by_time, times_of, valid
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.task_report import Integers, RowTimes, TaskReport, number
from shedjoin.spark.values import from_column
from shedjoin.spec import JoinSpec


class MicroBatch(NamedTuple):
    """Rows in order: the engine's columns, and the tables of each stream."""

    rows: Batch
    clocks: tuple[int | None, ...]
    tables: list[pa.RecordBatch | None]
    counts: list[list[Counts]]
    dropped: NDArray[np.bool_] | None = None  # rows that front shedding has dropped
    arrived: tuple[int, ...] | None = None  # rows of each stream anywhere, where rows are counted elsewhere
    began: float | None = None  # when the first task began to read, by the clock on the wall, where there is a deadline

    @property
    def joined(self) -> Batch:
        """What the engine takes."""
        return self.rows.without(self.dropped)

    def numbers(self, stream: int, first: int) -> Integers:
        """The numbers of the rows of a stream, of which `first` had come before where they are counted here."""
        if self.rows.numbers is not None:
            mine: Integers = self.rows.numbers.seq[self.rows.stream == stream]
            return mine
        table = self.tables[stream]
        return np.arange(first, first + (0 if table is None else table.num_rows))


def dropped_here(rows: Batch, dropped: NDArray[np.bool_] | None, arrived: Sequence[int], part: tuple[int, int]) -> int:
    """How many dropped rows this shard counts. `arrived` is how many rows of each stream came before."""
    if dropped is None or part[1] == 1:
        return 0 if dropped is None else int(dropped.sum())
    places = [np.flatnonzero(dropped[rows.stream == stream]) + first for stream, first in enumerate(arrived)]
    return sum(int((one % part[1] == part[0]).sum()) for one in places)


def arrange(
    messages: Iterable[Message],
    join: JoinSpec,
    cube: HyperCube,
    shard: int,
    start: Sequence[int] = (),
    width: int = 1,
    checked: int = 0,
) -> MicroBatch:
    """Rows of all streams sorted by time; on equal times in the order of streams, then by task and place in it.

    Parameters
    ----------
    cube, shard
        Which rows go here.
    start
        Where rows are counted elsewhere: how many of each stream have come anywhere.
    width
        The most attributes that a stream is joined on.
    checked
        The largest number of values that the condition compares.
    """
    ordered = sorted(messages, key=lambda message: (message.stream, message.task, message.part))
    clocks: list[int | None] = []
    tables: list[pa.RecordBatch | None] = []
    reports: list[list[TaskReport]] = []
    for stream in range(len(join.windows)):
        mine = [message for message in ordered if message.stream == stream]
        newest = max((message.newest for message in mine), default=NEVER)
        clocks.append(None if newest == NEVER else newest)
        parts = [rows for message in mine if message.rows for rows in from_blob(message.blob)]
        tables.append(sorted_by_time(parts) if parts else None)
        last = (message.blob for message in mine if not message.rows)
        reports.append([TaskReport.from_bytes(blob) for blob in last if blob is not None])
    rows, dropped = _interleaved(tables, width, checked)
    arrived = None
    if join.counted_elsewhere:
        told: list[list[RowTimes]] = [[one.rows for one in tasks if one.rows is not None] for tasks in reports]
        rows, arrived = number(rows, told, start, cube, shard)
    counts = [[one.counts for one in tasks if one.counts is not None] for tasks in reports]
    began = min((one.began for tasks in reports for one in tasks if one.began is not None), default=None)
    return MicroBatch(rows, tuple(clocks), tables, counts, dropped, arrived, began)


def _interleaved(
    tables: list[pa.RecordBatch | None], width: int, checked: int
) -> tuple[Batch, NDArray[np.bool_] | None]:
    """The rows of all streams, and which of them were dropped."""
    there = [(stream, table) for stream, table in enumerate(tables) if table is not None]
    if not there:
        return Batch.nothing(width + checked), None
    sides = [_columns(table, stream, width, checked) for stream, table in there]
    columns: dict[str, Any] = {name: np.concatenate([side[name] for side in sides]) for name in COLUMNS}
    if any("kind" in side for side in sides):
        columns["kind"] = np.concatenate([side.get("kind", np.zeros_like(side["stream"])) for side in sides])
    values = [from_column(table.column("key")) for _, table in there if _has_values(table)]
    if values:
        columns["values"] = values[0] if len(values) == 1 else Values.joined(values[0], values[1])
    dropped = np.concatenate([dropped_in(table) for _, table in there])
    order = slice(None) if len(sides) == 1 else np.argsort(columns["ts"], kind="stable")
    rows = Batch(**columns)
    return rows if len(sides) == 1 else rows.take(order), dropped[order] if dropped.any() else None


def _columns(table: pa.RecordBatch, stream: int, width: int, checked: int) -> dict[str, NDArray[Any]]:
    rows = table.num_rows
    key, importance, size, kind = (table.column(name) for name in ("key", "importance", "bytes", "kind"))
    typed = {} if pa.types.is_null(kind.type) else {"kind": kind.to_numpy()}
    keys = np.zeros(rows, np.int64) if _has_values(table) else keys_of(key, width)
    return typed | {
        "stream": np.full(rows, stream, np.int64),
        "key": np.column_stack([keys, _checked(table.column("where"), checked)]) if checked else keys,
        "null": ~valid(key),
        "ts": times_of(table),
        "importance": np.ones(rows) if pa.types.is_null(importance.type) else importance.to_numpy(),
        "bytes": np.full(rows, ROW_BYTES, np.int64) if pa.types.is_null(size.type) else size.to_numpy(),
    }


def _checked(numbers: pa.Array, width: int) -> NDArray[np.int64]:
    """The values that the condition compares, a line for each row."""
    made = np.zeros((len(numbers), width), np.int64)
    for place, column in enumerate(numbers.flatten() if pa.types.is_struct(numbers.type) else ()):
        made[:, place] = column.to_numpy()
    return made


def _has_values(table: pa.RecordBatch) -> bool:
    """Whether a predicate compares numbers or sets instead of a key."""
    kind = table.schema.field("key").type
    return bool(pa.types.is_floating(kind) or pa.types.is_list(kind))


def keys_of(key: pa.Array, width: int = 1) -> NDArray[np.int64]:
    """Keys as the engine takes them: numbers, or in a join graph a line of attributes for each row."""
    if not pa.types.is_struct(key.type):
        return np.asarray(key.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    made = np.zeros((len(key), width), np.int64)
    for place, attribute in enumerate(key.flatten()[:width]):
        made[:, place] = attribute.fill_null(0).to_numpy(zero_copy_only=False)
    return made[:, 0].copy() if width == 1 else made
