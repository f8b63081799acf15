"""A copy of an engine on the host: its arrays as files that are mapped into memory, so that another process goes on with them
and nothing is copied again.

A copy is a short cut for this host and this boot of it, no more: files may be lost or half written when a machine goes down. What
must last is `Engine.snapshot`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.boot import boot_mark
from shedjoin.engine.engine import Engine
from shedjoin.engine.records import code_fields
from shedjoin.engine.snapshot import numbers
from shedjoin.engine.trying import COLUMN, FORESIGHT
from shedjoin.errors import SnapshotError

FORMAT = 8
META = "engine.json"
#: Arrays below this are written every time, all in one file: a mapping of its own would cost more.
SMALL = 1 << 16


def write_copy(engine: Engine, directory: Path, **notes: Any) -> None:
    """Leave an engine in a directory. It can be used on; then it must be written again, and only there.

    Arrays that are mapped already stay where they are; those that grew since are written anew.

    Parameters
    ----------
    engine
        Between two pushes.
    directory
        Must be there, and be used for nothing else.
    notes
        Plain data to keep with it; `notes_of` reads it.
    """
    engine._check_idle()
    state = engine._state
    directory = directory.absolute()
    mapped, small = {}, b""
    layout = {}
    for name, array in state.arrays.items():
        file = None
        if array.nbytes < SMALL:
            small += array.tobytes()
        else:
            file = _file_of(array, directory) or _write(state, name, directory)
            mapped[name] = file
        layout[name] = {"file": file, "shape": list(array.shape)}
    for stale in directory.glob("*.array"):
        if stale.name not in mapped.values():
            stale.unlink(missing_ok=True)
    beside = engine.beside()
    for name in (COLUMN, FORESIGHT):
        if name in beside:
            (directory / name).write_bytes(beside[name])
        else:
            (directory / name).unlink(missing_ok=True)
    (directory / "small").write_bytes(numbers(state.record).tobytes() + small)
    meta = {
        "format": FORMAT,
        "boot": boot_mark(),
        "signature": engine._plan.signature(),
        "extra": engine._extra(),
        "arrays": layout,
        "notes": notes,
    }
    (directory / META).write_text(json.dumps(meta))


def read_copy(engine: Engine, directory: Path) -> None:
    """A new engine goes on as the one that was written, within its own budget. SnapshotError: throw it away.

    From now on the directory is its own: write it there again, or remove both.
    """
    meta = _meta(directory)
    files = (directory / name for name in (COLUMN, FORESIGHT))
    engine.go_on_beside({file.name: file.read_bytes() for file in files if file.exists()})
    plan, state = engine._plan, engine._state
    if meta["signature"] != json.loads(json.dumps(plan.signature())):
        raise SnapshotError(f"the copy in {directory} is of another join")
    try:
        small = (directory / "small").read_bytes()
        codes = {name: state[name] for name in code_fields(state.record.dtype)}
        state.record[:] = np.frombuffer(small, state.record.dtype, 1)
        for name, address in codes.items():  # of this process
            state[name] = address
        start = state.record.nbytes
        for name, template in list(state.arrays.items()):
            where = meta["arrays"][name]
            shape = tuple(where["shape"])
            if where["file"] is None:
                count = int(np.prod(shape))
                state.hold(**{name: np.frombuffer(small, template.dtype, count, start).reshape(shape).copy()})
                start += count * template.dtype.itemsize
            else:
                state.hold(**{name: _map(directory / where["file"], template.dtype, shape)})
        engine._take_over(meta["extra"])
    except (OSError, KeyError, TypeError, ValueError) as reason:
        raise SnapshotError(f"the copy in {directory} cannot be read: {reason}") from None
    engine._set_caps(plan.budget)


def notes_of(directory: Path) -> dict[str, Any]:
    """What was noted with a copy."""
    notes: dict[str, Any] = _meta(directory)["notes"]
    return notes


def _meta(directory: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads((directory / META).read_text())
    except (OSError, ValueError) as reason:
        raise SnapshotError(f"no copy is in {directory}: {reason}") from None
    if meta.get("format") != FORMAT or meta.get("boot") is None or meta["boot"] != boot_mark():
        raise SnapshotError(f"the copy in {directory} is of another format, another machine or before a restart")
    return meta


def _map(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    return np.memmap(path, dtype, "r+", shape=shape)


def _file_of(array: NDArray[Any], directory: Path) -> str | None:
    """The file behind an array, if that is one of the directory. (The directory may have had another name.)"""
    path = Path(array.filename) if isinstance(array, np.memmap) and array.filename is not None else None
    return path.name if path is not None and (directory / path.name).exists() else None


def _write(state: Any, name: str, directory: Path) -> str:
    """Put an array into a file of its own and go on with the file."""
    array = state.arrays[name]
    number = 0
    while (path := directory / f"{name}.{number}.array").exists():
        number += 1
    array.tofile(path)
    state.hold(**{name: _map(path, array.dtype, array.shape)})
    return path.name
