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

import pyarrow as pa

from shedjoin.engine.engine import Engine
from shedjoin.engine.host_copy import notes_of, read_copy, write_copy
from shedjoin.errors import SnapshotError
from shedjoin.spark.host_cache import OWNER, is_of_use, owner
from shedjoin.spark.payload import Payload
from shedjoin.spark.state import segment_name, with_numbers, without_numbers

#: Copies that no task used for this many seconds are removed.
OLD = 3600.0
#: A process looks for these this often, in seconds; and when it last did, by where copies are kept.
EVERY = 60.0
_swept: dict[Path, float] = {}
#: How many copies of one shard are kept: attempts, one of which is committed.
KEPT = 2


class Copy:
    """A directory that one attempt has for itself: an engine, the segments of its rows."""

    def __init__(self, root: Path, lineage: str, path: Path) -> None:
        self._root = root
        self._lineage = lineage
        self.path = path

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
        read_copy(engine, self.path)
        payloads = []
        try:
            for stream, kept in enumerate(notes_of(self.path)["payloads"]):
                segments = []
                for number, level, first, plain in kept["segments"]:
                    source = pa.memory_map(str(self.path / f"segment-{stream}-{number}"))
                    batch = pa.ipc.open_stream(source).read_next_batch()  # a file's reader would wait for a thread
                    segments.append(without_numbers(batch, number, level, first, plain))
                payloads.append(Payload(segments, kept["next"]))
            more = (self.path / "more").read_bytes()
        except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as reason:
            raise SnapshotError(f"the copy in {self.path} cannot be read: {reason}") from None
        return payloads, more

    def give(self, token: str, engine: Engine, payloads: list[Payload], more: bytes, query: str = "") -> None:
        """Leave it for the next micro-batch, as the copy of the state with this token. Should that fail, there is none."""
        try:
            wanted = set()
            notes = []
            for stream, payload in enumerate(payloads):
                for segment in payload.segments:
                    name = segment_name(stream, segment)
                    wanted.add(name)
                    if not (self.path / name).exists():
                        _write(self.path / name, with_numbers(segment))
                listed = [[one.number, one.level, one.first, one.seqs is None] for one in payload.segments]
                notes.append({"segments": listed, "next": payload.next_number})
            for old in os.listdir(self.path):
                if old.startswith("segment-") and old not in wanted:
                    (self.path / old).unlink()
            (self.path / "more").write_bytes(more)
            (self.path / OWNER).write_text(json.dumps({**owner(), "query": query}))
            write_copy(engine, self.path, payloads=notes)
            os.rename(self.path, self._root / f"{self._lineage}.{token}")
        except OSError:
            self.discard()
            return
        _sweep(self._root, self._lineage)

    def discard(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


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
