"""Rows cross Spark's shuffle as Arrow blobs: what messages look like, which shard has which label, and blobs and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

#: What a packing task sends: which shard, which stream, which task, the blob's index, how many rows, the newest time.
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
#: Which files a shard has written, by their kinds.
FILES = "files"
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
    >>> inputs_of(["left", "right"])
    ('input_left', 'input_right')
    """
    return tuple(f"input_{name}" for name in names)


#: The engine's own columns, before the user's. `key` is a number, a struct of attributes, or what a predicate compares; `where` a
#: struct of the numbers that the condition compares.
OWN = ("key", "ts", "importance", "bytes", "kind", "dropped", "where")
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


def valid(column: pa.Array) -> NDArray[np.bool_]:
    """Where a column is not null."""
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def dropped_in(table: pa.RecordBatch) -> NDArray[np.bool_]:
    """Which rows were dropped in front: they come for the log only."""
    marks = table.column("dropped")
    if pa.types.is_null(marks.type):
        return np.zeros(table.num_rows, np.bool_)
    return np.asarray(marks.to_numpy(zero_copy_only=False), np.bool_)


def split(table: pa.RecordBatch, shard: NDArray[Any], shards: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each shard that has any."""
    counts = np.bincount(shard, minlength=shards)
    if counts.max() == shard.size:
        if shard.size:
            yield int(shard[0]), table
        return
    order, ends = np.argsort(shard, kind="stable"), np.cumsum(counts)
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
    options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)  # threads would be waited for
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
