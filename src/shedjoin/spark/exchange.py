"""Rows cross Spark's shuffle as Arrow blobs: `pack` splits what a task has by shard, `unpack` makes rows of blobs again.

Every task sends every shard a last message with the newest time it saw, so that all shards share the streams' clocks, and with
what it counted, so that all share the memory alike (see `shares`). For row windows it also says when its rows came (see
`row_numbers`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.batch import LATEST, ROW_BYTES, wrong_importance
from shedjoin.engine.records import NEVER
from shedjoin.errors import InputError
from shedjoin.spark.front import Front
from shedjoin.spark.hashing import spread
from shedjoin.spark.keys import SIDES
from shedjoin.spark.row_numbers import Clerk, with_counts
from shedjoin.spark.shares import Counter

#: What a packing task sends: which shard, which stream, which task, its how manieth blob, how many rows, the newest time.
PACKED = "label int, stream int, task int, part int, rows long, newest long, blob binary"
PACKED_ARROW = pa.schema(
    [
        ("label", pa.int32()),
        ("stream", pa.int32()),
        ("task", pa.int32()),
        ("part", pa.int32()),
        ("rows", pa.int64()),
        ("newest", pa.int64()),
        ("blob", pa.binary()),
    ]
)
#: What a shard gives: blobs of several kinds.
GIVEN = "kind string, shard int, blob binary"
GIVEN_ARROW = pa.schema([("kind", pa.string()), ("shard", pa.int32()), ("blob", pa.binary())])
RESULT, SHED, LEFT_OUT, METRIC = "result", "shed", "left_out", "metric"
#: How many rows of the micro-batch were late, in digits.
LATE = "late"
Given = tuple[str, bytes]


class Message(NamedTuple):
    """What a packing task sent this shard."""

    stream: int
    task: int
    part: int
    rows: int
    newest: int
    blob: bytes | None


def inputs_of(names: Sequence[str]) -> tuple[str, ...]:
    """The kinds of blobs that echo the input, one a stream.

    Examples
    --------
    >>> inputs_of(SIDES)
    ('input_left', 'input_right')
    """
    return tuple(f"input_{name}" for name in names)


#: A task packs when it holds this many rows or bytes.
ROWS, BYTES = 1 << 17, 1 << 25
#: The engine's own columns, before the user's.
OWN = ("key", "ts", "importance", "bytes", "kind", "dropped")
#: What the schema of a blob calls the column that has the times, if that is not `ts`.
TIME_AT = "ts"

# Labels whose hash is i modulo this give each shard i a partition of its own for every number of partitions that divides it:
# 1-10, 12, 14-16, 18, 20, 24, 25, 28, 30, 32, 36, 40, 48, 50, 60, 64, 72, 80, 96, 100, 128, 200, 256, 400 ...
_PERIOD = 403_200


def partition_hash(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Spark's hash of an int column (Murmur3, seed 42), by which rows are sent to partitions.

    Examples
    --------
    >>> partition_hash(np.array([0, 5], np.int32))
    array([ 933211791, 1023896466], dtype=int32)
    """
    with np.errstate(over="ignore"):
        k = labels.astype(np.uint32) * np.uint32(0xCC9E2D51)
        k = (k << np.uint32(15)) | (k >> np.uint32(17))
        k *= np.uint32(0x1B873593)
        h = np.uint32(42) ^ k
        h = (h << np.uint32(13)) | (h >> np.uint32(19))
        h = h * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)  # the length of an int
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        h ^= h >> np.uint32(16)
    return h.astype(np.int32)


@cache
def shard_labels(shards: int, partitions: int) -> tuple[int, ...]:
    """A label for each shard such that no two shards share a partition, as far as there are enough of those.

    The labels are the same for most numbers of partitions, and the first is the same for all: whatever changes between
    two runs of a query, its first shard meets its old state and can say so.

    Examples
    --------
    >>> labels = shard_labels(4, 8)
    >>> sorted(int(h) % 8 for h in partition_hash(np.array(labels, np.int32)))
    [0, 1, 2, 3]
    >>> shard_labels(4, 200) == labels
    True
    """
    labels = _periodic_labels(shards)
    if _PERIOD % partitions == 0 or shards > partitions:
        return labels
    taken = {int(partition_hash(np.array(labels[:1], np.int32))[0]) % partitions}
    chosen, label = [labels[0]], 0
    while len(chosen) < shards:
        place = int(partition_hash(np.array([label], np.int32))[0]) % partitions
        if place not in taken:
            taken.add(place)
            chosen.append(label)
        label += 1
    return tuple(chosen)


def _periodic_labels(shards: int) -> tuple[int, ...]:
    """For each shard i the smallest label whose hash is i modulo the period."""
    found: dict[int, int] = {}
    start, step = 0, 1 << 16
    while len(found) < shards:
        labels = np.arange(start, start + step, dtype=np.int32)
        residues = partition_hash(labels).astype(np.int64) % _PERIOD
        for place in np.flatnonzero(residues < shards):
            found.setdefault(int(residues[place]), int(labels[place]))
        start += step
    return tuple(found[shard] for shard in range(shards))


@dataclass(frozen=True, slots=True)
class Packing:
    """How one side is packed.

    Columns come as: key as a number (or null), time (unless it travels, see `time_at`), importance (if `weighed`), the type of
    the row (if `typed`), then those that travel.
    """

    stream: int
    labels: tuple[int, ...]
    schema: bytes  # of what travels, as Arrow writes it; times in UTC whatever the session says
    weighed: bool
    sized: bool  # whether rows are counted in bytes
    time: str  # the names are for messages
    importance: str | None
    counted: bool = False  # whether shards are told how many rows there are where
    side: str = ""  # what the stream is called; default: left or right
    time_at: int | None = None  # the place of the time among the columns that travel
    numbered: bool = False  # whether shards are told when all rows came, to number theirs
    timed: bool = False  # whether shards are told when the task began
    typed: str | None = None  # the column with the types of rows
    types: int = 0  # how many of them there are
    front: float = 0.0  # the share of rows that are dropped
    marked: bool = False  # whether dropped rows are sent too, for the log
    seed: int = 0  # of the lots

    @property
    def called(self) -> str:
        return self.side or SIDES[self.stream]


def pack(batches: Iterator[pa.RecordBatch], how: Packing, task: int, number: int = 0) -> Iterator[pa.RecordBatch]:
    """What a task of a micro-batch of this number has of one stream, as blobs by shard."""
    yield from pack_by(Packer(how, task, number), batches)


def pack_by(packer: Packer, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same, with the task's packer."""
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
        self.front = Front(how.front, how.seed, how.stream, number, task) if how.front else None
        self.counter = Counter(len(how.labels)) if how.counted else None
        self.clerk = Clerk(len(how.labels)) if how.numbered else None
        travels = pa.ipc.read_schema(pa.py_buffer(how.schema))
        self.travels = pa.schema([field.with_name(f"c{place}") for place, field in enumerate(travels)])

    def send(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        """Blobs of these rows, one for each shard that has any."""
        table = self._engine_columns(one_batch(held))
        shards = len(self.how.labels)
        if not table.num_rows:  # all were dropped
            parts = []
        elif shards == 1:
            parts = [(0, table)]
            self._number(table, np.zeros(table.num_rows, np.uint16))
        else:
            key = table.column("key")
            hashes = spread(key.fill_null(0).to_numpy(zero_copy_only=False))
            shard = self._shard_of(key, hashes)
            self._count(table, hashes, shard)
            self._number(table, shard)
            parts = list(split(table, shard, shards))
        message = self._rows([(place, part.num_rows, NEVER, to_blob(part)) for place, part in parts])
        self.part += 1
        return message

    def farewell(self) -> pa.RecordBatch:
        """To every shard: how far this task has seen, what it counted and when its rows came (a blob of no rows)."""
        told = [(place, 0, self.newest, blob) for place, blob in enumerate(self._counted())]
        if self.how.timed:
            told += [(place, 0, NEVER, began_blob(self._began)) for place in range(len(self.how.labels))]
        return self._rows(told)

    def _counted(self) -> Sequence[bytes | None]:
        """For every shard: what this task counted, and when its rows came."""
        counts = self.counter.counts().to_bytes() if self.counter is not None else None
        if self.clerk is not None:
            return [with_counts(counts, told) for told in self.clerk.told()]
        return [counts] * len(self.how.labels)

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

    def _engine_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns the engine takes, checked, and those that travel."""
        rows, at = batch.num_rows, self.how.time_at
        first = 1 + (at is None) + self.how.weighed + (self.how.typed is not None)
        payload = pa.RecordBatch.from_arrays(batch.columns[first:], names=self.travels.names)
        ts = self._times(batch.column(1 if at is None else first + at))
        self.newest = max(self.newest, int(ts.max()))
        if payload.schema != self.travels:
            payload = payload.cast(self.travels)
        # A time that travels anyway is not sent twice: the schema says where it is.
        own = [batch.column(0), pa.array(ts) if at is None else pa.nulls(rows)]
        dropped = None if self.front is None else self.front.dropped(rows) & _valid(batch.column(0))
        own += [self._importance(batch), self._sizes(payload, rows), self._types(batch)]
        own.append(pa.nulls(rows) if dropped is None or not self.how.marked else pa.array(dropped))
        fields = [pa.field(name, array.type) for name, array in zip(OWN, own, strict=True)]
        known = None if at is None else {TIME_AT: self.travels.names[at]}
        made = pa.RecordBatch.from_arrays([*own, *payload.columns], schema=pa.schema([*fields, *self.travels], known))
        return made if dropped is None or self.how.marked else made.filter(pa.array(~dropped))

    def _times(self, column: pa.Array) -> NDArray[np.int64]:
        side, name = self.how.called, self.how.time
        if column.null_count:
            raise InputError(
                f"{side}.{name} is null in {column.null_count} rows: a row without a time belongs to no window, so filter such "
                "rows out first"
            )
        ts = np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
        if (np.abs(ts) > LATEST).any():
            raise InputError(
                f"{side}.{name} must lie within +-2**53 (microseconds: the years 1684 to 2255), but a row has "
                f"{column[int(np.argmax(np.abs(ts)))].as_py()}"
            )
        return ts

    def _importance(self, batch: pa.RecordBatch) -> pa.Array:
        if not self.how.weighed:
            return pa.nulls(batch.num_rows, pa.null())
        values = batch.column(2 if self.how.time_at is None else 1).cast(pa.float64())
        numbers = values.to_numpy(zero_copy_only=False)  # nulls become NaN
        bad, must = wrong_importance(numbers)
        if bad.any():
            raise InputError(
                f"importance: {self.how.called}.{self.how.importance} must {must}, but a row has "
                f"{values[int(np.argmax(bad))].as_py()} (rows like it here: {int(bad.sum())})"
            )
        return values

    def _types(self, batch: pa.RecordBatch) -> pa.Array:
        if self.how.typed is None:
            return pa.nulls(batch.num_rows, pa.null())
        values = batch.column(1 + (self.how.time_at is None) + self.how.weighed)
        numbers = values.fill_null(-1).to_numpy(zero_copy_only=False)
        bad = (numbers < 0) | (numbers >= self.how.types)
        if bad.any():
            raise InputError(
                f"kind: {self.how.called}.{self.how.typed} must be from 0 to {self.how.types - 1}, as selective.types says, but "
                f"a row has {values[int(np.argmax(bad))].as_py()} (rows like it here: {int(bad.sum())})"
            )
        return values

    def _sizes(self, payload: pa.RecordBatch, rows: int) -> pa.Array:
        """Bytes of each row: the engine's own and its columns'. Text and binary are measured, nested columns averaged."""
        if not self.how.sized:
            return pa.nulls(rows, pa.null())
        import pyarrow.compute as pc  # 7 MB that only packing tasks need

        total = np.full(rows, float(ROW_BYTES))
        for column in payload.columns:
            if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
                total += np.nan_to_num(pc.binary_length(column).to_numpy(zero_copy_only=False)) + 4.0
            else:
                total += column.nbytes / rows
        return pa.array(np.minimum(np.rint(total), 2**31 - 1).astype(np.int64))

    def _count(self, batch: pa.RecordBatch, hashes: NDArray[np.uint64], shard: NDArray[np.uint16]) -> None:
        """Rows without a key, and those that are dropped, are never stored: they do not count."""
        if self.counter is None:
            return
        sizes, there = batch.column("bytes"), _valid(batch.column("key")) & ~dropped_in(batch)
        bytes_of = sizes.to_numpy()[there] if self.how.sized else None
        self.counter.add(hashes[there], shard[there], times_of(batch)[there], bytes_of)

    def _number(self, batch: pa.RecordBatch, shard: NDArray[np.uint16]) -> None:
        """All rows have numbers, also those without a key."""
        if self.clerk is not None:
            self.clerk.add(times_of(batch), shard)

    def _shard_of(self, key: pa.Array, hashes: NDArray[np.uint64]) -> NDArray[np.uint16]:
        shards = len(self.how.labels)
        shard: NDArray[np.uint16] = ((hashes >> np.uint64(32)) % np.uint64(shards)).astype(np.uint16)
        if key.null_count:  # they meet nobody: anywhere will do, but evenly
            null = key.is_null().to_numpy(zero_copy_only=False)
            shard[null] = np.arange(int(null.sum())) % shards
        return shard


def _valid(column: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def dropped_in(table: pa.RecordBatch) -> NDArray[np.bool_]:
    """Which rows were dropped in front: they come for the log only."""
    marks = table.column("dropped")
    if pa.types.is_null(marks.type):
        return np.zeros(table.num_rows, np.bool_)
    return np.asarray(marks.to_numpy(zero_copy_only=False), np.bool_)


#: A message that says when its task began starts with this.
_BEGAN = b"began "


def began_blob(seconds: float) -> bytes:
    """When a task began, by the clock on the wall."""
    return _BEGAN + repr(seconds).encode()


def began_of(blob: bytes) -> float | None:
    """What `began_blob` says; None: it is another message."""
    return float(bytes(blob)[len(_BEGAN) :]) if bytes(blob).startswith(_BEGAN) else None


def split(table: pa.RecordBatch, shard: NDArray[Any], shards: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each shard that has any."""
    order = np.argsort(shard, kind="stable")
    ends = np.cumsum(np.bincount(shard, minlength=shards))
    table = table.take(pa.array(order))
    starts = np.concatenate(([0], ends[:-1]))
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        if end > start:
            yield place, table.slice(start, end - start)


def one_batch(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema as one."""
    return held[0] if len(held) == 1 else pa.concat_batches(held)


def times_of(table: pa.RecordBatch) -> NDArray[np.int64]:
    """The times of rows, wherever they are."""
    known = table.schema.metadata or {}
    column = table.column(known.get(TIME_AT.encode(), b"ts").decode())
    return np.asarray(column.cast(pa.int64()).to_numpy(), np.int64)


def sorted_by_time(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Rows of all parts in the order of their `ts`; of equal ones as they came."""
    table = one_batch(parts)
    ts = times_of(table)
    return table if (np.diff(ts) >= 0).all() else table.take(pa.array(np.argsort(ts, kind="stable")))


def to_blob(*batches: pa.RecordBatch, codec: str | None = None) -> bytes:
    """Batches of one schema as Arrow writes them."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_blob(blob: Any) -> list[pa.RecordBatch]:
    """The batches of a blob; uncompressed ones are not copied."""
    with pa.ipc.open_stream(pa.py_buffer(blob)) as reader:
        return list(reader)


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of blobs; their columns are taken by their places."""
    for batch in batches:
        for blob in batch.column("blob"):
            yield from from_blob(blob.as_buffer())
