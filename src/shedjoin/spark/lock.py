"""Locks on directories: two jobs must not write there at once. The system releases a lock when its process ends."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shedjoin.errors import InputError

#: The files whose locks count: of a refinement, and of a running query.
REFINING, RUNNING = "_lock", "_owner"
#: The queries of this process, by their output directories.
_running: dict[Path, Owner] = {}


@contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Hold the lock of a directory during `refine`; InputError with the owner if it is taken.

    What counts is the lock that the system keeps on the file, not that the file is there: no lock outlives its process. Addresses
    such as `s3://...` have no locks, and the file systems that know none go without.
    """
    if "://" in folder and not folder.startswith("file://"):
        yield
        return
    file = _locked(Path(folder.removeprefix("file://"), REFINING), "is being refined by {}: one refinement at a time")
    try:
        yield
    finally:
        os.close(file)


@dataclass
class Owner:
    """The hold on an output directory, from before a query starts until it has ended."""

    folder: Path
    file: int
    query: Any = None

    @classmethod
    def of(cls, folder: str) -> Owner:
        """Become the owner of an output directory; InputError with the owner if its query is running."""
        path = Path(folder).resolve()
        mine = _running.get(path)
        if mine is not None and mine.query is not None and not mine.query.isActive:
            mine.release()  # Spark has not reported its end yet
        owner = cls(path, _locked(path / RUNNING, "is the output of a query that runs in {}: stop that query first"))
        _running[path] = owner
        return owner

    def release(self) -> None:
        """Let go of the directory; once."""
        if _running.get(self.folder) is self:
            del _running[self.folder]
            os.close(self.file)


def is_running(folder: str | os.PathLike[str]) -> bool | None:
    """Whether the query of an output directory runs; None if this machine does not know.

    The lock is only looked up: taking it could stop a query that starts at that moment.
    """
    path = Path(folder, RUNNING)
    try:
        holder, number = path.read_text(errors="replace"), path.stat().st_ino
    except OSError:
        return None
    if f" on {socket.gethostname()}," not in holder:
        return None
    try:
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    return any(line.split()[1:2] == ["FLOCK"] and f":{number} " in line for line in locks)


def _locked(path: Path, taken: str) -> int:
    """A locked file; closing it releases the lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _lock(file, path, taken)
    except BaseException:
        os.close(file)
        raise
    return file


def _lock(file: int, path: Path, taken: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(file, 200).decode(errors="replace").strip() or "another process"
        raise InputError(f"{path.parent} {taken.format(holder)}") from None
    except OSError as reason:
        if reason.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
    now = datetime.now(UTC).isoformat(timespec="seconds")
    os.truncate(file, 0)
    os.pwrite(file, f"process {os.getpid()} on {socket.gethostname()}, since {now}\n".encode(), 0)
