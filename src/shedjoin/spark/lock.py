"""A lock on a directory, so that two jobs do not write there at once. The system gives it back when its holder dies."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from shedjoin.errors import InputError

NAME = "_lock"


@contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Hold the lock of a directory; InputError, with who has it, if it is taken.

    What counts is the lock that the system keeps on the file, not that the file is there: no lock outlives its process. Addresses
    such as `s3://...` have no locks, and the file systems that know none go without.
    """
    if "://" in folder and not folder.startswith("file://"):
        yield
        return
    path = Path(folder.removeprefix("file://"), NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(file, path)
        yield
    finally:
        os.close(file)


def _lock(file: int, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(file, 200).decode(errors="replace").strip() or "another process"
        raise InputError(f"{path.parent} is being refined by {holder}: one refinement at a time") from None
    except OSError as reason:
        if reason.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
    now = datetime.now(UTC).isoformat(timespec="seconds")
    os.truncate(file, 0)
    os.pwrite(file, f"process {os.getpid()} on {socket.gethostname()}, since {now}\n".encode(), 0)
