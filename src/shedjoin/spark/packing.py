"""What a packing task sends: its rows, each to the shards in the cube, and a report of all of them to every shard."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.batch import LATEST, ROW_BYTES, Checked, wrong_importance
from shedjoin.engine.records import NEVER
from shedjoin.errors import InputError
from shedjoin.predicates.rows import hashes_of_sets
from shedjoin.spark.budget_split import Counter
from shedjoin.spark.checked_numbers import checked_numbers
from shedjoin.spark.exchange import OWN, PACKED_ARROW, TIME_AT, dropped_in, one_batch, split, times_of, to_blob, valid
from shedjoin.spark.front import Front
from shedjoin.spark.hashing import spread
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.task_report import Integers, RowTimes, TaskReport
from shedjoin.spark.values import from_column, in_order

#: A task packs when it holds this many rows or bytes.
ROWS, BYTES = 1 << 17, 1 << 25
#: The last column of archived rows of a join graph: which row of its micro-batch and stream it is, the same in all shards.
ID = "id"
#: A task has fewer rows than this.
MOST_ROWS = 1 << 40


@dataclass(frozen=True, slots=True)
class Packing:
    """How one stream is packed.

    Columns come as: what is compared (or null), time (unless it travels, see `time_at`), importance and kind (if there are
    such), then those that travel. What is compared is the key as a number; of a join graph a struct of its attributes and, if the
    cube asks for it, a hash of the row; or what a predicate looks at.
    """

    stream: int
    name: str  # of the stream
    labels: tuple[int, ...]
    cube: HyperCube
    schema: bytes  # of what travels, as Arrow writes it; times in UTC whatever the session says
    time: str  # columns are named for messages
    time_at: int | None = None  # the place of the time among the columns that travel
    importance: str | None = None
    kind: str | None = None
    kinds: int = 0  # how many types of rows there are
    values: str | None = None  # of a predicate: what it compares
    compared: str = ""  # and the column that has it
    sized: bool = False  # whether rows are counted in bytes
    counted: bool = False  # whether shards get the number of rows in each cell
    numbered: bool = False  # whether shards get the times of all rows, to number theirs
    timed: bool = False  # whether shards get the start time of the task
    named: bool = False  # whether each row has a number that is the same in all shards
    front: float = 0.0  # the share of rows that are dropped
    marked: bool = False  # whether dropped rows are sent too, for the log
    seed: int = 0  # of the lots
    checked: Checked | None = None  # the numbers that the condition compares


def pack(batches: Iterator[pa.RecordBatch], how: Packing, task: int, number: int = 0) -> Iterator[pa.RecordBatch]:
    """What a task of a micro-batch of this number has of one stream, as blobs by shard."""
    packer = Packer(how, task, number)
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= ROWS or size >= BYTES:
            yield packer.send(held)
            held, rows, size = [], 0, 0
    if held:
        yield packer.send(held)
    yield packer.farewell()


class Packer:
    """What one task sends."""

    def __init__(self, how: Packing, task: int, number: int = 0) -> None:
        self.how = how
        self.task = task
        self.part = 0
        self.newest = NEVER
        self._began = time.time()
        self._sent = 0
        self._firsts, self._offsets = how.cube.firsts(how.stream), how.cube.offsets(how.stream).tolist()
        self.front = Front(how.front, how.seed, how.stream, number, task) if how.front else None
        self.counter = Counter(how.cube.shards) if how.counted else None
        self._times: list[Integers] = []
        self._went: list[NDArray[np.uint16]] = []
        travels = pa.ipc.read_schema(pa.py_buffer(how.schema))
        self.travels = pa.schema([field.with_name(f"c{place}") for place, field in enumerate(travels)])

    # -------------------------------------------------------------------------------------------------------- messages

    def send(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        """Blobs of these rows, for each shard that has any."""
        table = self._engine_columns(one_batch(held))
        key, rows = table.column("key"), table.num_rows
        null = ~valid(key)
        attributes, hashes = self._attributes(table)
        first = self.how.cube.first(self.how.stream, attributes, hashes)
        # Rows that meet nothing: anywhere will do, but evenly.
        first[null] = self._firsts[np.arange(self._sent, self._sent + int(null.sum())) % self._firsts.size]
        if pa.types.is_struct(key.type):
            table = table.set_column(0, pa.field("key", _struct(attributes.shape[1])), _numbers(attributes, null))
        if self.how.named:
            table = table.append_column(ID, pa.array(self.task * MOST_ROWS + np.arange(self._sent, self._sent + rows)))
        self._sent += rows
        alone = null & (len(self._offsets) > 1) & (not self.how.cube.is_everywhere)
        if self.counter is not None:
            self._count(table, first, None if pa.types.is_struct(key.type) else attributes[:, 0])
        if self.how.numbered:
            self._times.append(times_of(table))
            self._went.append((first + alone * self.how.cube.shards).astype(np.uint16))
        message = self._rows(list(self._copies(table, first, alone)))
        self.part += 1
        return message

    def _attributes(self, table: pa.RecordBatch) -> tuple[Integers, Integers | None]:
        """The numbers that determine the shards of each row, and a hash of each row if the cube needs it."""
        key = table.column("key")
        if not self.how.cube.looks_at_values and self.how.values is not None:
            return np.zeros((len(key), 1), np.int64), None if self.how.cube.is_everywhere else _hashes(table)
        if not pa.types.is_struct(key.type):
            return _plain(key)[:, None], None
        *attributes, last = (_plain(field) for field in key.flatten())
        if key.type.field(key.type.num_fields - 1).name == "row":
            return np.stack(attributes, axis=1), last
        return np.stack([*attributes, last], axis=1), None

    def _copies(
        self, table: pa.RecordBatch, first: Integers, alone: NDArray[np.bool_]
    ) -> Iterator[tuple[int, int, int, bytes]]:
        """Messages with rows, one for each shard that they go to. What goes to several is written once."""
        own = [(place, part, to_blob(part)) for place, part in split(table, first, self.how.cube.shards)]
        yield from ((place, part.num_rows, NEVER, blob) for place, part, blob in own)
        if len(self._offsets) == 1:
            return
        if alone.any():
            rest = split(table.filter(pa.array(~alone)), first[~alone], self.how.cube.shards)
            own = [(place, part, to_blob(part)) for place, part in rest]
        for offset in self._offsets[1:]:
            yield from ((place + offset, part.num_rows, NEVER, blob) for place, part, blob in own)

    def farewell(self) -> pa.RecordBatch:
        """Send every shard the clocks of this task, and its report (a blob without rows)."""
        report = TaskReport(
            self._began if self.how.timed else None,
            None if self.counter is None else self.counter.counts(),
            RowTimes.of(self._times, self._went) if self.how.numbered else None,
        ).to_bytes()
        return self._rows([(place, 0, self.newest, report) for place in range(self.how.cube.shards)])

    def _rows(self, rows: Sequence[tuple[int, int, int, bytes | None]]) -> pa.RecordBatch:
        count = len(rows)
        shard, size, newest, blob = zip(*rows, strict=True) if rows else ((),) * 4
        columns = [
            [self.how.labels[place] for place in shard],
            [self.how.stream] * count,
            [self.task] * count,
            [self.part] * count,
            size,
            newest,
            blob,
        ]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, PACKED_ARROW, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=PACKED_ARROW)

    def _count(self, table: pa.RecordBatch, first: Integers, key: Integers | None) -> None:
        """Rows that meet nothing, and those that are dropped, are never stored: they do not count."""
        assert self.counter is not None
        there = valid(table.column("key")) & ~dropped_in(table)
        sizes = table.column("bytes").to_numpy()[there] if self.how.sized else None
        keys = None if key is None else key[there]
        self.counter.add(first[there], self._offsets, times_of(table)[there], keys, sizes)

    # --------------------------------------------------------------------------------------------------------- columns

    def _engine_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns the engine takes, checked, and those that travel."""
        how, rows, at = self.how, batch.num_rows, self.how.time_at
        looks = how.checked is not None and bool(how.checked.names)
        first = 1 + (at is None) + (how.importance is not None) + (how.kind is not None) + looks
        payload = pa.RecordBatch.from_arrays(batch.columns[first:], names=self.travels.names)
        ts = self._read_times(batch.column(1 if at is None else first + at))
        self.newest = max(self.newest, int(ts.max()))
        if payload.schema != self.travels:
            payload = payload.cast(self.travels)
        key = self._compared(batch.column(0))
        dropped = None if self.front is None else self.front.dropped(rows) & valid(key)
        # A time that travels anyway is not sent twice: the schema says where it is.
        own = [key, pa.array(ts) if at is None else pa.nulls(rows)]
        columns = payload.columns if how.values is None else [*payload.columns, key]
        own += [self._importance(batch), self._sizes(columns, rows), self._kinds(batch)]
        own.append(pa.nulls(rows) if dropped is None or not how.marked else pa.array(dropped))
        own.append(checked_numbers(batch.column(first - 1), how.checked) if looks and how.checked else pa.nulls(rows))
        fields = [pa.field(name, array.type) for name, array in zip(OWN, own, strict=True)]
        known = None if at is None else {TIME_AT: self.travels.names[at]}
        made = pa.RecordBatch.from_arrays([*own, *payload.columns], schema=pa.schema([*fields, *self.travels], known))
        return made if dropped is None or how.marked else made.filter(pa.array(~dropped))

    def _compared(self, column: pa.Array) -> pa.Array:
        """What is compared: what a predicate looks at is put in order, sets that must be equal are hashed."""
        if self.how.values is None:
            return column
        values = in_order(f"{self.how.name}.{self.how.compared}", column, self.how.values)
        if not self.how.cube.looks_at_values:
            return values
        sets = from_column(values)
        return pa.array(hashes_of_sets(sets), mask=sets.null)

    def _read_times(self, column: pa.Array) -> Integers:
        name = f"{self.how.name}.{self.how.time}"
        if column.null_count:
            raise InputError(
                f"{name} is null in {column.null_count} rows: a row without a time belongs to no window, so filter such "
                "rows out first"
            )
        ts = np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
        if (np.abs(ts) > LATEST).any():
            raise InputError(
                f"{name} must lie within +-2**53 (microseconds: the years 1684 to 2255), but a row has "
                f"{column[int(np.argmax(np.abs(ts)))].as_py()}"
            )
        return ts

    def _importance(self, batch: pa.RecordBatch) -> pa.Array:
        if self.how.importance is None:
            return pa.nulls(batch.num_rows, pa.null())
        values = batch.column(1 + (self.how.time_at is None)).cast(pa.float64())
        bad, must = wrong_importance(values.to_numpy(zero_copy_only=False))  # nulls become NaN
        self._check("importance", self.how.importance, values, bad, must)
        return values

    def _kinds(self, batch: pa.RecordBatch) -> pa.Array:
        if self.how.kind is None:
            return pa.nulls(batch.num_rows, pa.null())
        values = batch.column(1 + (self.how.time_at is None) + (self.how.importance is not None))
        numbers = values.fill_null(-1).to_numpy(zero_copy_only=False)
        must = f"be from 0 to {self.how.kinds - 1}, as selective.types says"
        self._check("kind", self.how.kind, values, (numbers < 0) | (numbers >= self.how.kinds), must)
        return values

    def _check(self, argument: str, column: str, values: pa.Array, bad: NDArray[np.bool_], must: str) -> None:
        if bad.any():
            raise InputError(
                f"{argument}: {self.how.name}.{column} must {must}, but a row has {values[int(np.argmax(bad))].as_py()} "
                f"(rows like it here: {int(bad.sum())})"
            )

    def _sizes(self, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        """Bytes of each row: the engine's own and its columns'. Text and binary are measured, nested columns averaged."""
        if not self.how.sized:
            return pa.nulls(rows, pa.null())
        import pyarrow.compute as pc  # 7 MB that only packing tasks need

        total = np.full(rows, float(ROW_BYTES))
        for column in columns:
            if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
                total += np.nan_to_num(pc.binary_length(column).to_numpy(zero_copy_only=False)) + 4.0
            else:
                total += column.nbytes / rows
        return pa.array(np.minimum(np.rint(total), 2**31 - 1).astype(np.int64))


def _plain(column: pa.Array) -> Integers:
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _hashes(table: pa.RecordBatch) -> Integers:
    """A hash of each row, by its time and what a predicate compares."""
    values = from_column(table.column("key"))
    compared = hashes_of_sets(values) if values.items.size else values.number.view(np.int64)
    return spread(compared ^ spread(times_of(table)).view(np.int64)).view(np.int64)


def _struct(many: int) -> pa.DataType:
    return pa.struct([(f"k{place}", pa.int64()) for place in range(many)])


def _numbers(attributes: Integers, null: NDArray[np.bool_]) -> pa.Array:
    columns = [pa.array(np.ascontiguousarray(column)) for column in attributes.T]
    return pa.StructArray.from_arrays(columns, fields=list(_struct(len(columns))), mask=pa.array(null))
