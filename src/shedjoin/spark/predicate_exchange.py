"""How rows of a join on a predicate reach the shards: every row goes to all of them (SplitJoin), or by its key to one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shedjoin.batch import Values
from shedjoin.cpu.rows import Rows
from shedjoin.engine.records import NEVER
from shedjoin.spark.exchange import OWN, Message, Packer, Packing, from_blob, one_batch, sorted_by_time, to_blob
from shedjoin.spark.keys import SIDES
from shedjoin.spark.predicate_values import in_order, rows_of, values_of

STREAMS = 2


@dataclass(frozen=True, slots=True)
class PredicatePacking(Packing):
    """How one side of a join on a predicate is packed. When rows are spread, their value is the last column."""

    kind: str = "value"  # of the values
    value: str = ""  # the column's name, for messages
    spread: bool = False  # to all shards; otherwise by the hash of the key


class PredicatePacker(Packer):
    """Sends every row to every shard, or to that of its key, and says when it began."""

    how: PredicatePacking

    def __init__(self, how: PredicatePacking, task: int) -> None:
        super().__init__(how, task)
        self._began = time.time()

    def send(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        if not self.how.spread:
            return super().send(held)
        table = self._engine_columns(one_batch(held))
        blob = to_blob(table)
        message = self._rows([(place, table.num_rows, NEVER, blob) for place in range(len(self.how.labels))])
        self.part += 1
        return message

    def farewell(self) -> pa.RecordBatch:
        told = json.dumps({"began": self._began}).encode()
        return self._rows([(place, 0, self.newest, told) for place in range(len(self.how.labels))])

    def _engine_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        table = super()._engine_columns(batch)
        if not self.how.spread:
            return table
        last = table.num_columns - 1
        name = f"{SIDES[self.how.stream]}.{self.how.value}"
        table = table.set_column(last, "value", in_order(name, table.column(last), self.how.kind))
        return table.set_column(0, OWN[0], pa.nulls(table.num_rows))


class Arrived(NamedTuple):
    """A micro-batch, in order: rows as the engine takes them, and the tables of each stream."""

    rows: Rows
    clocks: tuple[int | None, int | None]
    tables: list[pa.RecordBatch | None]
    began: float | None  # when the first task began to read, by the clock on the wall


def arrange(messages: Iterable[Message], kind: str, spread: bool) -> Arrived:
    """Rows of both streams sorted by time; on equal times left first, then by task and place in it: in all shards alike."""
    ordered = sorted(messages, key=lambda message: (message.stream, message.task, message.part))
    clocks: list[int | None] = []
    tables: list[pa.RecordBatch | None] = []
    for stream in range(STREAMS):
        mine = [message for message in ordered if message.stream == stream]
        newest = max((message.newest for message in mine), default=NEVER)
        clocks.append(None if newest == NEVER else newest)
        parts = [rows for message in mine if message.rows for rows in from_blob(message.blob)]
        tables.append(sorted_by_time(parts) if parts else None)
    starts = [json.loads(message.blob)["began"] for message in ordered if not message.rows and message.blob is not None]
    return Arrived(_interleaved(tables, kind, spread), (clocks[0], clocks[1]), tables, min(starts) if starts else None)


def _interleaved(tables: list[pa.RecordBatch | None], kind: str, spread: bool) -> Rows:
    sides = [_rows(table, stream, kind, spread) for stream, table in enumerate(tables) if table is not None]
    if not sides:
        return Rows.none()
    if len(sides) == 1:
        return sides[0]
    both = Rows.joined(sides[0], sides[1])
    return both.take(np.argsort(both.ts, kind="stable"))


def _rows(table: pa.RecordBatch, stream: int, kind: str, spread: bool) -> Rows:
    importance = table.column("importance")
    values: Values = values_of(table.column("value" if spread else "key"), kind)
    count = table.num_rows
    return rows_of(
        np.full(count, stream, np.int64),
        np.asarray(table.column("ts").to_numpy(), np.int64),
        np.ones(count) if pa.types.is_null(importance.type) else np.asarray(importance.to_numpy(), np.float64),
        values,
    )
