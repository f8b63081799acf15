"""A copy of a shard on the worker's host, so that the next micro-batch need not read the state store.

A copy is a directory named by the token of the state it is a copy of; the token in the committed state decides whether it
is the right one. Who uses a copy takes it by renaming the directory: two attempts never share one. A copy that was taken
and not given back (a task failed) is lost, and the state store is read instead: nothing depends on copies but time.

Copies go when their query ends, as far as its driver is told and is on this host; when Spark's processes that made them are no
more; and after an hour in which nobody asked for them. The last two are seen to by whoever next leaves a copy here.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from shedjoin.engine.park import Parkable, boot_mark, fill, notes_of, park
from shedjoin.errors import SnapshotError, SpecError
from shedjoin.spark.payload import Payload
from shedjoin.spark.state import segment_name, with_numbers, without_numbers

VARIABLE = "SHEDJOIN_CACHE"
#: Shared memory is used if it has at least this much room.
ROOM = 1 << 28
#: Copies that nobody asked for in this many seconds go.
OLD = 3600.0
#: How many copies of one shard are kept: attempts of which one is committed.
KEPT = 2
OWNER = "owner.json"


def cache_root(option: str | bool | None) -> Path | None:
    """Where copies are kept; None: nowhere.

    Parameters
    ----------
    option
        A directory, False for none, None for the default: what the environment variable SHEDJOIN_CACHE says (a directory, or
        "off"), else a private directory in shared memory, or below the system's directory for temporary files.
    """
    root = _place(option)
    try:
        return None if root is None else _private(root)
    except OSError:
        return None


def _place(option: str | bool | None) -> Path | None:
    if option is None:
        option = os.environ.get(VARIABLE) or None
    if option is False or option == "off" or boot_mark() is None:
        return None
    return Path(str(option)) if isinstance(option, str) else _default()


def check_option(option: Any) -> None:
    if option is not None and option is not False and not (isinstance(option, str) and option):
        raise SpecError(f"cache must be a directory, False (none) or None (the default), not {option!r}")


def _default() -> Path:
    name = f"shedjoin-{os.getuid()}"
    shared = Path("/dev/shm")
    with contextlib.suppress(OSError):
        if os.access(shared, os.W_OK) and shutil.disk_usage(shared).free >= ROOM:
            return shared / name
    return Path(tempfile.gettempdir()) / name


def _private(root: Path) -> Path:
    """Make the directory ours alone; one that others can write to is not used."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise OSError(f"{root} is not a private directory")
    return root


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
        """The copy of the state with this token, if it is here and nobody else has it."""
        path = _taken(root, lineage)
        try:
            os.rename(root / f"{lineage}.{token}", path)
        except OSError:
            return None
        return cls(root, lineage, path)

    def load(self, engine: Parkable) -> tuple[list[Payload], bytes]:
        """What was kept: a new engine goes on from it; the payload of each stream, and what else was given are returned.

        SnapshotError: it is no good, and neither is the engine.
        """
        fill(engine, self.path)
        payloads = []
        try:
            for stream, kept in enumerate(notes_of(self.path)["payloads"]):
                segments = []
                for number, level, first, plain in kept["segments"]:
                    source = pa.memory_map(str(self.path / f"segment-{stream}-{number}"))
                    batch = pa.ipc.open_file(source).get_batch(0)
                    segments.append(without_numbers(batch, number, level, first, plain))
                payloads.append(Payload(segments, kept["next"]))
            more = (self.path / "more").read_bytes()
        except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as reason:
            raise SnapshotError(f"the copy in {self.path} cannot be read: {reason}") from None
        return payloads, more

    def give(self, token: str, engine: Parkable, payloads: list[Payload], more: bytes, query: str = "") -> None:
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
            for old in self.path.glob("segment-*"):
                if old.name not in wanted:
                    old.unlink()
            (self.path / "more").write_bytes(more)
            (self.path / OWNER).write_text(json.dumps({**_owner(), "query": query}))
            park(engine, self.path, payloads=notes)
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
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _sweep(root: Path, lineage: str) -> None:
    """Older copies of the same shard go, and what was left behind long ago."""
    mine = sorted(_by_age(root, f"{lineage}.*"))
    for _, path in mine[:-KEPT]:
        shutil.rmtree(path, ignore_errors=True)
    oldest = time.time() - OLD
    for changed, path in _by_age(root, "*"):
        if changed < oldest or not _is_of_use(path):
            shutil.rmtree(path, ignore_errors=True)


def _by_age(root: Path, pattern: str) -> Iterator[tuple[float, Path]]:
    for path in root.glob(pattern):
        with contextlib.suppress(OSError):
            yield path.stat().st_mtime, path


# ------------------------------------------------------------------------------------------------------- who has it


def _owner() -> dict[str, Any]:
    """Names the process that Spark's Python workers are made by: it lives as long as the executor."""
    parent = os.getppid()
    return {"pid": parent, "began": _began(parent)}


def _began(pid: int) -> str | None:
    """When a process began, in the system's own count; None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _is_of_use(path: Path) -> bool:
    """Whether the process that took a copy, or those that may take it, still run."""
    if path.name.startswith("taken-"):
        return path.name.split("-")[1].isdecimal() and _began(int(path.name.split("-")[1])) is not None
    owner = _owner_of(path)
    return owner is None or (owner["began"] is not None and _began(owner["pid"]) == owner["began"])


def _owner_of(path: Path) -> dict[str, Any] | None:
    try:
        owner: dict[str, Any] = json.loads((path / OWNER).read_text())
    except (OSError, ValueError):  # it is being taken
        return None
    return owner


def forget(query: str, option: str | bool | None) -> None:
    """Remove the copies that a query has left on this host."""
    root = _place(option)
    for path in root.glob("*") if root is not None else ():
        owner = _owner_of(path)
        if owner is not None and owner["query"] == query:
            shutil.rmtree(path, ignore_errors=True)


def forget_at_exit(query: str, option: str | bool | None) -> None:
    """Remove them when this process ends, at the latest."""
    atexit.register(forget, query, option)
