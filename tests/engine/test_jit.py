"""The stamp of a cached kernel covers every source that the kernel is compiled from."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import shedjoin
from shedjoin.engine.jit import PACKAGES, sources_of

ROOT = Path(str(shedjoin.__file__)).parent


def imports_of(path: Path) -> set[Path]:
    """The sources of the shedjoin modules that a file imports at its top."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "shedjoin":
            place = ROOT.joinpath(*str(node.module).split(".")[1:])
            found |= {place.with_suffix(".py"), *(place / f"{one.name}.py" for one in node.names)}
    return {path for path in found if path.is_file()}


def has_kernels(path: Path) -> bool:
    return ROOT / "engine" / "jit.py" in imports_of(path)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_stamp_covers_what_kernels_import(package: str) -> None:
    folder = ROOT.joinpath(*package.split("."))
    kernels = {path for path in folder.glob("*.py") if has_kernels(path)}
    assert kernels
    stamped = {*sources_of(package)}
    assert kernels <= stamped
    every = {path for name in PACKAGES for path in sources_of(name)}
    for path in kernels:
        assert imports_of(path) & every <= stamped, f"{path} calls kernels that its stamp leaves out"


def test_every_file_with_kernels_is_in_a_package_with_a_stamp() -> None:
    stamped = {path for name in PACKAGES for path in sources_of(name)}
    assert {path for path in ROOT.rglob("*.py") if has_kernels(path)} - stamped == {ROOT / "warm.py"}
