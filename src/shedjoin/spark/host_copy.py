"""A copy of a shard on the worker's host, so that the next micro-batch need not read the state store.

A copy is a directory named by the token of the state it is a copy of; the token in the committed state decides whether it
is the right one. An attempt takes a copy by renaming the directory: two attempts never share one. A copy that was taken
and not given back (a task failed) is lost, and the state store is read instead: nothing depends on copies but time.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from shedjoin.engine.engine import Engine
from shedjoin.engine.host_copy import LINE, read_copy, write_copy
from shedjoin.errors import SnapshotError
from shedjoin.spark.exchange import from_blob, to_blob
from shedjoin.spark.host_cache import OWNER, is_of_use, owner
from shedjoin.spark.payload import Payload
from shedjoin.spark.state import segment_name, with_numbers, without_numbers

#: Copies that no task used for this many seconds are removed.
OLD = 3600.0
#: A process looks for these this often, in seconds; and when it last did, by where copies are kept.
EVERY = 60.0
_swept: dict[Path, float] = {}
#: Segments of this many bytes have a file of their own; smaller ones are written each time, all in one file.
APART = 1 << 18
#: How many copies of one shard are kept: attempts, one of which is committed.
KEPT = 2


class Copy:
    """A directory that one attempt has for itself: an engine, the segments of its rows."""

    def __init__(self, root: Path, lineage: str, path: Path) -> None:
        self._root = root
        self._lineage = lineage
        self.path = path
        self._files: set[str] = set()  # of segments
        self._owner: dict[str, Any] | None = None  # that it says it has

    @classmethod
    def new(cls, root: Path, lineage: str) -> Copy:
        path = _taken(root, lineage)
        path.mkdir(mode=0o700)
        return cls(root, lineage, path)

    @classmethod
    def take(cls, root: Path, lineage: str, token: str) -> Copy | None:
        """The copy of the state with this token, if it is here and no other task has it."""
        path = _taken(root, lineage)
        try:
            os.rename(root / f"{lineage}.{token}", path)
        except OSError:
            return None
        return cls(root, lineage, path)

    def load(self, engine: Engine) -> tuple[list[Payload], bytes]:
        """What was kept: a new engine goes on from it; the payload of each stream, and what else was given are returned.

        SnapshotError: it is no good, and neither is the engine.
        """
        kept = read_copy(engine, self.path)
        try:
            self._owner = kept.notes["owner"]
            more, *blobs = _cut(kept.more, kept.notes["sizes"])
            small = {place: iter(from_blob(blob)) for place, blob in zip(kept.notes["small"], blobs, strict=True)}
            payloads = []
            for stream, one in enumerate(kept.notes["payloads"]):
                segments = []
                for number, level, first, plain, apart in one["segments"]:
                    batch = self._apart(f"segment-{stream}-{number}") if apart else next(small[_group(stream, plain)])
                    segments.append(without_numbers(batch, number, level, first, plain))
                payloads.append(Payload(segments, one["next"]))
        except (OSError, KeyError, TypeError, ValueError, StopIteration, pa.ArrowException) as reason:
            raise SnapshotError(f"the copy in {self.path} cannot be read: {reason}") from None
        return payloads, bytes(more)

    def _apart(self, name: str) -> pa.RecordBatch:
        """A segment that has a file of its own."""
        self._files.add(name)
        source = pa.memory_map(str(self.path / name))
        return pa.ipc.open_stream(source).read_next_batch()  # a file's reader would wait for a thread

    def give(self, token: str, engine: Engine, payloads: list[Payload], more: bytes, query: str = "") -> None:
        """Leave it for the next micro-batch, as the copy of the state with this token. Should that fail, there is none."""
        try:
            small: dict[str, list[pa.RecordBatch]] = {}
            files, notes = set(), []
            for stream, payload in enumerate(payloads):
                listed = []
                for one in payload.segments:
                    plain, apart, name = one.seqs is None, one.batch.nbytes >= APART, segment_name(stream, one)
                    if not apart:
                        small.setdefault(_group(stream, plain), []).append(with_numbers(one))
                    elif name not in self._files:
                        _write(self.path / name, with_numbers(one))
                    files |= {name} if apart else set()
                    listed.append([one.number, one.level, one.first, plain, apart])
                notes.append({"segments": listed, "next": payload.next_number})
            for old in self._files - files:
                (self.path / old).unlink()
            pieces = [more, *(to_blob(*batches) for batches in small.values())]
            sizes = [len(piece) for piece in pieces]
            who = {**owner(), "query": query}
            if who != self._owner:
                (self.path / OWNER).write_text(json.dumps(who))
            said = {"payloads": notes, "small": list(small), "sizes": sizes, "owner": who}
            write_copy(engine, self.path, b"".join(piece + bytes(-len(piece) % LINE) for piece in pieces), **said)
            os.rename(self.path, self._root / f"{self._lineage}.{token}")
        except (OSError, pa.ArrowInvalid):
            self.discard()
            return
        _sweep(self._root, self._lineage)

    def discard(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _group(stream: int, plain: bool) -> str:
    """Segments of one schema are kept together."""
    return f"{stream}{'' if plain else ' with numbers'}"


def _cut(pieces: bytes, sizes: list[int]) -> Iterator[memoryview]:
    """Pieces that were put one behind the other, each from a line on."""
    start, whole = 0, memoryview(pieces)
    for size in sizes:
        yield whole[start : start + size]
        start += -(-size // LINE) * LINE


def _taken(root: Path, lineage: str) -> Path:
    return root / f"taken-{os.getpid()}-{uuid.uuid4().hex}.{lineage}"


def _write(path: Path, batch: pa.RecordBatch) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _sweep(root: Path, lineage: str) -> None:
    """Older copies of the same shard go, and now and then what others left behind long ago."""
    mine = sorted(_by_age(root, f"{lineage}."))
    for _, path in mine[:-KEPT]:
        shutil.rmtree(path, ignore_errors=True)
    if time.monotonic() < _swept.get(root, -EVERY) + EVERY:  # with many shards, each would check the copies of all
        return
    _swept[root] = time.monotonic()
    oldest = time.time() - OLD
    for changed, path in _by_age(root):
        if changed < oldest or not is_of_use(path):
            shutil.rmtree(path, ignore_errors=True)


def _by_age(root: Path, first: str = "") -> Iterator[tuple[float, Path]]:
    """All that is there under names that begin so, and when it was changed."""
    for name in os.listdir(root):
        if name.startswith(first):
            with contextlib.suppress(OSError):
                yield (root / name).stat().st_mtime, root / name
