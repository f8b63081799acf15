"""Packages whose names are imported when they are first asked for (PEP 562), as lazy_loader and scipy do it.

Engines bring numba with them, 40 MB and half a second, and code that plans a query or reads a job file runs none. The names of
such a package stand once, in its stub `__init__.pyi`: type checkers read it, and so does `lazily`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

#: What a package has for its own use.
ITS_OWN = {"lazily", "lazy"}


def lazily(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package that finds its names late, and the modules below it as well.

    Parameters
    ----------
    package
        Its `__name__`.
    file
        Its `__file__`, beside which there is the stub. A star in the stub stands for all classes of a package. No module may be
        called as a name of the stub: once imported it would stand in the name's place.

    Examples
    --------
    >>> import shedjoin
    >>> get, listed = lazily("shedjoin", shedjoin.__file__)
    >>> get("TimeWindow")(3), "RowWindow" in listed()
    (TimeWindow(length=3), True)
    >>> get("Prob").__name__, get("parse").__name__, "parse" in listed()
    ('Prob', 'shedjoin.parse', True)
    """
    modules, stars = _read(Path(file).with_suffix(".pyi"))

    def get(name: str) -> Any:
        here = sys.modules[package]
        if name == "__all__":
            return names()
        if name in below():
            return import_module(f"{package}.{name}")  # which makes it an attribute too
        found = None if name.startswith("_") else _find(name, modules, stars)
        if found is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=here)
        setattr(here, name, found)  # so that it is not asked for again
        return found

    def names() -> list[str]:
        return sorted({*modules, *(name for star in stars for name in _classes(import_module(star)))})

    def below() -> set[str]:
        return {one.name for one in iter_modules(sys.modules[package].__path__) if not one.name.startswith("_")}

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names(), *below()} - ITS_OWN)

    return get, listed


def _read(stub: Path) -> tuple[dict[str, str], list[str]]:
    """The names of a stub with their modules, and the packages of which it has everything."""
    imports = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)]
    listed = [(one.name, str(node.module)) for node in imports for one in node.names]
    return {name: module for name, module in listed if name != "*"}, [module for name, module in listed if name == "*"]


def _find(name: str, modules: dict[str, str], stars: list[str]) -> Any:
    if name in modules:
        return getattr(import_module(modules[name]), name)
    return next((known[name] for star in stars if name in (known := _classes(import_module(star)))), None)


def _classes(package: ModuleType) -> dict[str, type]:
    """The classes of a package, by their names."""
    own = f"{package.__name__}."
    return {
        name: one for name, one in vars(package).items() if isinstance(one, type) and one.__module__.startswith(own)
    }
