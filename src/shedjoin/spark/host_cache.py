"""Where copies of shards are kept on a worker's host (see `host_copy`), and when they go.

Copies go when their query ends, as far as its driver is told and is on this host; when Spark's processes that made them are no
more; and after an hour in which no task asked for them. Workers that leave copies here see to the last two, once a minute.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from shedjoin.engine.boot import boot_mark
from shedjoin.errors import SpecError

VARIABLE = "SHEDJOIN_CACHE"
#: Shared memory is used if it has at least this much room.
ROOM = 1 << 28
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


# ------------------------------------------------------------------------------------------------------- who has it


def owner() -> dict[str, Any]:
    """Names the process that Spark's Python workers are made by: it lives as long as the executor."""
    parent = os.getppid()
    return {"pid": parent, "began": _began_once(parent)}


@cache
def _began_once(pid: int) -> str | None:
    """The same of the process that has made this one, which lives as long."""
    return _began(pid)


def _began(pid: int) -> str | None:
    """When a process began, in the system's own count; None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def is_of_use(path: Path) -> bool:
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
