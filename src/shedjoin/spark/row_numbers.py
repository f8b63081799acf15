"""Row numbers over all shards, for row windows: every packing task tells every shard the times of all its rows.

The rows of a stream are numbered micro-batch by micro-batch, inside one by (time, task, place in the task), as one shard would
number them. A shard learns of each task when its rows came, and which of them are its own. So it knows the numbers of its rows,
and how many rows of each stream had come anywhere by each of its instants.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.errors import InputError
from shedjoin.numbering import Numbering

Integers = NDArray[np.int64]
CODEC = "zstd"
_HEAD = struct.Struct("<qqqB")  # how many bytes follow, how many numbers, the first of them, bytes of a step
_LENGTH = struct.Struct("<q")


class Times(NamedTuple):
    """What a task tells one shard."""

    times: Integers  # of all its rows, in order
    mine: Integers  # which of these are of rows of this shard


class Clerk:
    """Writes down when the rows of one task came, and where they went."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._ts: list[Integers] = []
        self._shard: list[NDArray[np.uint16]] = []

    def add(self, ts: Integers, shard: NDArray[np.uint16]) -> None:
        """Rows in the order of their places in the task."""
        self._ts.append(ts)
        self._shard.append(shard)

    def told(self) -> list[bytes]:
        """What each shard is told."""
        ts = np.concatenate([np.empty(0, np.int64), *self._ts])
        shard = np.concatenate([np.empty(0, np.uint16), *self._shard])
        order = np.argsort(ts, kind="stable")
        times, shard = rising_to_bytes(ts[order]), shard[order]
        return [times + rising_to_bytes(np.flatnonzero(shard == one)) for one in range(self._shards)]


def read(data: bytes) -> Times:
    """What `Clerk.told` wrote."""
    times, end = rising_from_bytes(data)
    return Times(times, rising_from_bytes(data, end)[0])


def rising_to_bytes(numbers: Integers) -> bytes:
    """Numbers that never fall, as their steps.

    Examples
    --------
    >>> rising_from_bytes(rising_to_bytes(np.array([5, 5, 900])))[0]
    array([  5,   5, 900])
    """
    steps = np.diff(numbers)
    top = int(steps.max(initial=0))
    width = next(width for width in (1, 2, 4, 8) if top < 1 << (8 * width))
    # Low bytes first, then high ones: these are mostly 0.
    by_byte = steps.astype(f"<u{width}").view(np.uint8).reshape(-1, width).T
    body: bytes = pa.compress(np.ascontiguousarray(by_byte).tobytes(), codec=CODEC, asbytes=True)
    return _HEAD.pack(len(body), numbers.size, int(numbers[0]) if numbers.size else 0, width) + body


def rising_from_bytes(data: bytes, at: int = 0) -> tuple[Integers, int]:
    """What `rising_to_bytes` wrote, and where it ends."""
    length, size, first, width = _HEAD.unpack_from(data, at)
    start = at + _HEAD.size
    if not size:
        return np.empty(0, np.int64), start + length
    plain = pa.decompress(data[start : start + length], (size - 1) * width, codec=CODEC, asbytes=True)
    by_byte = np.frombuffer(plain, np.uint8).reshape(width, -1)
    steps = np.ascontiguousarray(by_byte.T).reshape(-1).view(f"<u{width}")
    numbers = np.cumsum(np.concatenate([[first], steps.astype(np.int64)]))
    return numbers, start + length


def with_counts(counts: bytes | None, told: bytes) -> bytes:
    """One message of what a task has counted, if it has, and of when its rows came."""
    return _LENGTH.pack(len(counts or b"")) + (counts or b"") + told


def without_counts(blob: bytes) -> tuple[bytes | None, bytes]:
    """What `with_counts` put together."""
    (length,) = _LENGTH.unpack_from(blob)
    start = _LENGTH.size + length
    return blob[_LENGTH.size : start] or None, blob[start:]


def number(batch: Batch, told: Sequence[Sequence[Times]], start: Sequence[int]) -> tuple[Batch, tuple[int, ...]]:
    """The rows of a shard with their numbers, and the rows of each stream that have come anywhere then.

    Parameters
    ----------
    batch
        Sorted by time, inside a stream and time by task and place.
    told
        For each stream what its tasks told, in the order of tasks.
    start
        Rows of each stream that came before this micro-batch.
    """
    seq, arrived = np.zeros(len(batch), np.int64), np.zeros((len(batch), len(start)), np.int64)
    end = []
    for stream, tasks in enumerate(told):
        times = np.concatenate([np.empty(0, np.int64), *(task.times for task in tasks)])
        order = np.argsort(times, kind="stable")
        places = np.empty(times.size, np.int64)
        places[order] = np.arange(times.size)
        firsts = np.cumsum([0, *(task.times.size for task in tasks)])
        mine = [places[first + task.mine] for first, task in zip(firsts, tasks, strict=False)]
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
    numbered = replace(batch, numbers=Numbering(seq, arrived))
    return numbered, tuple(end)
