"""A copy of an engine on the host: its arrays in a file that is mapped into memory, so that another process goes on with them
and nothing is copied again.

A copy is a short cut for this host and this boot of it, no more: files may be lost or half written when a machine goes down. What
must last is `Engine.snapshot`.
"""

from __future__ import annotations

import json
import mmap
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.boot import boot_mark
from shedjoin.engine.engine import Engine
from shedjoin.engine.handle import Handle
from shedjoin.engine.records import code_fields
from shedjoin.engine.trying import COLUMN, FORESIGHT
from shedjoin.errors import SnapshotError

FORMAT = 8
#: Two files of a copy: the engine's settings and numbers, and its arrays.
META, ARRAYS = "engine", "arrays"
#: Arrays begin where a cache line does.
LINE = 64
#: Arrays that have grown lie at the end of the file. When so much of it, and that many bytes, is of no use, it is written anew.
WASTE, LEAST_WASTE = 1 / 8, 1 << 18
#: How many kinds of joins a process remembers.
REMEMBERED = 8


class Kept(NamedTuple):
    """What was kept with an engine: plain data, and bytes."""

    notes: dict[str, Any]
    more: bytes


#: Arrays, each with its place in the file.
Places = dict[str, tuple[NDArray[Any], int]]


class Mapped(NamedTuple):
    """The arrays of an engine that are in a file."""

    file: tuple[int, int] | None  # on which device which: its directory may get another name
    end: int
    arrays: Places

    def held_by(self, engine: Engine, path: Path) -> Places:
        """Those that the engine has not changed for larger ones, if this is their file."""
        if self.file is None or self.file != _file(path):
            return {}
        now = engine._state.arrays
        return {name: one for name, one in self.arrays.items() if now.get(name) is one[0]}


class Form(NamedTuple):
    """How the state of a kind of join is laid out: its record, the kernels that it has addresses of, its arrays."""

    record: np.dtype[Any]
    codes: dict[str, int]
    arrays: dict[str, np.dtype[Any]]


_forms: dict[str, Form] = {}


def write_copy(engine: Engine, directory: Path, more: bytes = b"", **notes: Any) -> None:
    """Leave an engine in a directory. It can be used on; then it must be written again, and only there.

    Arrays that are mapped already stay where they are; those that grew since are written anew.

    Parameters
    ----------
    engine
        Between two pushes.
    directory
        Must be there, and be used for nothing else.
    more, notes
        Bytes and plain data to keep with it; `read_copy` returns them.
    """
    engine._check_idle()
    state = engine._state
    places = _placed(engine, directory)
    beside = engine.beside()
    for name in (COLUMN, FORESIGHT):
        if name in beside:
            (directory / name).write_bytes(beside[name])
    meta = {
        "format": FORMAT,
        "boot": boot_mark(),
        "signature": engine._plan.signature(),
        "extra": engine._extra(),
        "arrays": {name: [start, state.arrays[name].shape] for name, start in places.items()},
        "beside": list(beside),
        "notes": notes,
    }
    with open(directory / META, "wb") as file:
        file.write(json.dumps(meta).encode() + b"\n")
        file.write(state.record.tobytes())
        file.write(more)


def _placed(engine: Engine, directory: Path) -> dict[str, int]:
    """Where each array is in the file, once they are all there."""
    path, arrays, mapped = directory / ARRAYS, engine._state.arrays, engine.mapped
    held = {} if mapped is None else mapped.held_by(engine, path)
    end = mapped.end if held else 0
    new = [name for name in arrays if name not in held]
    if new:
        needed = sum(_lines(array.nbytes) for array in arrays.values())
        grown = end + sum(_lines(arrays[name].nbytes) for name in new)
        if not held or grown > needed + max(WASTE * needed, LEAST_WASTE):
            held, end, new = {}, 0, list(arrays)
            path.unlink(missing_ok=True)  # whoever has mapped the old one goes on with that
    places = {name: start for name, (_, start) in held.items()}
    if new:
        with open(path, "r+b" if held else "wb") as file:
            for name in new:
                file.seek(end)
                file.write(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
                places[name], end = end, end + _lines(arrays[name].nbytes)
            file.truncate(end)
        engine.mapped = Mapped(_file(path), end, held)
    return places


def _lines(size: int) -> int:
    """Room for this many bytes, up to the next line."""
    return -(-size // LINE) * LINE


def _file(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def read_copy(engine: Engine, directory: Path) -> Kept:
    """A new engine goes on as the one that was written, within its own budget. SnapshotError: throw it away.

    From now on the directory is its own: write it there again, or remove both.
    """
    meta, rest = _read(directory)
    try:
        engine.go_on_beside({name: (directory / name).read_bytes() for name in meta["beside"]})
        signature = json.dumps(engine._plan.signature())
        if json.dumps(meta["signature"]) != signature:
            raise SnapshotError(f"the copy in {directory} is of another join")
        form = _form(engine, signature)
        state = Handle(form.record)
        size = form.record.itemsize
        state.record[:] = np.frombuffer(rest[:size], form.record, 1)
        for name, address in form.codes.items():  # of this process
            state[name] = address
        engine.mapped = _mapped(state, form, meta["arrays"], directory / ARRAYS)
        engine._state = state
        engine._take_over(meta["extra"])
    except (OSError, KeyError, TypeError, ValueError) as reason:
        raise SnapshotError(f"the copy in {directory} cannot be read: {reason}") from None
    engine._put_caps(engine._plan.budget)
    return Kept(meta["notes"], rest[size:])


def _read(directory: Path) -> tuple[dict[str, Any], bytes]:
    try:
        head, _, rest = (directory / META).read_bytes().partition(b"\n")
        meta: dict[str, Any] = json.loads(head)
    except (OSError, ValueError) as reason:
        raise SnapshotError(f"no copy is in {directory}: {reason}") from None
    if meta.get("format") != FORMAT or meta.get("boot") is None or meta["boot"] != boot_mark():
        raise SnapshotError(f"the copy in {directory} is of another format, another machine or before a restart")
    return meta, rest


def _form(engine: Engine, signature: str) -> Form:
    """How the state of this join is laid out, from an empty one if none was made in this process."""
    form = _forms.get(signature)
    if form is None:
        state = engine._state
        codes = {name: int(state[name]) for name in code_fields(state.record.dtype)}
        form = Form(state.record.dtype, codes, {name: array.dtype for name, array in state.arrays.items()})
        if len(_forms) >= REMEMBERED:
            _forms.clear()
        _forms[signature] = form
    return form


def _mapped(state: Handle, form: Form, places: dict[str, Any], path: Path) -> Mapped:
    """Put the arrays of a file behind a state."""
    with open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    base = np.frombuffer(memory, np.uint8).ctypes.data
    arrays: Places = {}
    for name, dtype in form.arrays.items():
        start, shape = places[name]
        array: NDArray[Any] = np.ndarray(shape, dtype, memory, start)
        arrays[name] = array, start
        state.hold_at(name, array, base + start)
    return Mapped(_file(path), len(memory), arrays)
