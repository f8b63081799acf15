"""`kernel`: numba's njit with an on-disk cache that notices a change in any kernel file.

numba stamps a cached kernel with its own file only, so a change in a callee of another file would leave stale machine
code behind, also after an upgrade of the package. Here the stamp is a digest of all sources that a kernel can call.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import numba

from shedjoin.engine import linked
from shedjoin.errors import EnvironmentProblem

Function = TypeVar("Function", bound=Callable[..., object])


#: The packages with kernels, each with the other packages whose kernels it calls.
PACKAGES: dict[str, tuple[str, ...]] = {
    "engine": (),
    "recall": ("engine",),
    "recall.sample": ("engine",),
}


def sources_of(package: str) -> list[Path]:
    """The sources that the kernels of a package are compiled from."""
    root = Path(__file__).parent.parent
    sources: list[Path] = []
    for name in dict.fromkeys((*PACKAGES[package], package)):
        folder = root.joinpath(*name.split("."))
        sources += sorted(folder.rglob("*.py")) if name != "engine" else _engine_sources(folder)
    return sources


#: The folders and modules of the engine that kernels are made of; the others run them.
ENGINE_FOLDERS = ("layouts", "stages", "structures")
ENGINE_MODULES = (
    *("codes", "forms", "graph", "handle", "importance", "indirect", "jit"),
    *("linked", "loop", "mem", "operation", "protocol", "record_types", "records", "views"),
)


def _engine_sources(folder: Path) -> list[Path]:
    inside = [path for name in ENGINE_FOLDERS for path in sorted((folder / name).rglob("*.py"))]
    return [*inside, *(folder / f"{name}.py" for name in ENGINE_MODULES)]


@cache
def stamp_of(package: str) -> str:
    """A digest of all sources that the kernels of a package are compiled from."""
    sources = sources_of(package)
    return hashlib.blake2b(b"".join(path.read_bytes() for path in sources), digest_size=16).hexdigest()


# Kernels allocate nothing, so they need none of numba's reference counting, which costs more than the work itself.
OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def _own() -> bool:
    """Whether kernels are compiled in the way of `linked`."""
    return not numba.config.DISABLE_JIT and linked.known()


def _part(function: Function, **options: bool) -> Function:
    """Compile a function as a part of kernels."""
    if not _own():
        return numba.njit(**OPTIONS, **options)(function)  # type: ignore[no-any-return]
    compiled = numba.njit(**OPTIONS, **options, **linked.PART)(function)
    linked.compile_once(compiled)
    return compiled  # type: ignore[no-any-return]


def kernel(function: Function) -> Function:
    """Compile a function that only other kernels call."""
    return _part(function)


def inlined(function: Function) -> Function:
    """Compile a small function of the hot path into each of its callers: a call of its own costs more than its work."""
    return _part(function, forceinline=True)


#: Where compiled kernels are kept.
_folders: set[str] = set()


def cache_folders() -> list[str]:
    """The directories of the kernels that were imported so far."""
    return sorted(_folders)


def check_private(folder: Path) -> None:
    """Refuse a directory of compiled kernels into which others can write: numba unpickles and runs what it finds there."""
    if os.name != "posix":
        return
    for place in (folder, *folder.parents):
        if not place.exists():  # numba will make it
            continue
        there = place.stat()
        own = there.st_uid in (0, os.geteuid())
        sticky = place != folder and there.st_mode & stat.S_ISVTX  # as /tmp: others cannot replace what is mine
        if not own or (there.st_mode & stat.S_IWOTH and not sticky):
            raise EnvironmentProblem(
                f"{folder} is for compiled kernels, but other users can write to {place}, and what they write would be run: take "
                "that right away (chmod o-w), or name a directory of your own in NUMBA_CACHE_DIR"
            )


def _package_of(module: str) -> str:
    """The package with kernels that a module is in."""
    while module not in PACKAGES:
        module = module.rpartition(".")[0]
    return module


def entry(function: Function) -> Function:
    """Compile a function that Python calls; its machine code is kept on disk."""
    compiled = numba.njit(cache=True, **OPTIONS, **(linked.KERNEL if _own() else {}))(function)
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is not None:  # absent when the JIT is off
        # Other versions of the engine have other files: none is ever read by the wrong one.
        stamp = stamp_of(_package_of(function.__module__.removeprefix("shedjoin.")))
        name = file._index_name.removesuffix(".nbi")
        file.__init__(file._cache_path, f"{name}.{stamp}", stamp)
        if file._cache_path not in _folders:
            check_private(Path(file._cache_path))
            _folders.add(file._cache_path)
        if _own():
            linked.load_alone(compiled)
    return compiled  # type: ignore[no-any-return]


def hot_entry(function: Function) -> Function:
    """As `entry`. All that is `inlined` is inlined, however large: for loops in which every nanosecond counts."""
    return entry(_inlining(function, sys.maxsize))


def cold_entry(function: Function) -> Function:
    """As `entry`. Only tiny functions are inlined: for much code that need not be fast."""
    return entry(_inlining(function, 20))


def _inlining(function: Function, most: int) -> Function:
    function.inlined_at_most = most  # type: ignore[attr-defined]
    return function
