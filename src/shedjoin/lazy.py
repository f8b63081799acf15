"""Packages whose names are imported when they are first asked for (PEP 562), as lazy_loader and scipy do it.

Engines bring numba with them, 40 MB and half a second, and whoever plans a query or reads a job file runs none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

#: What a package has for its own use.
ITS_OWN = {"TYPE_CHECKING", "annotations", "lazily", "lazy"}


def lazily(package: str, names: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package that finds its names late, and the modules below it as well.

    Parameters
    ----------
    package
        Its `__name__`.
    names
        The names, by the module below the package that has them. No module of it may be called as one of them: once that is
        imported it would stand in the name's place.

    Examples
    --------
    >>> get, listed = lazily("shedjoin", {"window": ["RowWindow", "TimeWindow"]})
    >>> get("TimeWindow")(3), "RowWindow" in listed()
    (TimeWindow(length=3), True)
    >>> get("words").__name__, "words" in listed()
    ('shedjoin.words', True)
    """
    modules = {name: f"{package}.{module}" for module, those in names.items() for name in those}

    def get(name: str) -> Any:
        here = sys.modules[package]
        if name not in modules:
            if name in below():
                return import_module(f"{package}.{name}")  # which makes it an attribute too
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=here)
        found = getattr(import_module(modules[name]), name)
        setattr(here, name, found)  # so that it is not asked for again
        return found

    def below() -> set[str]:
        return {one.name for one in iter_modules(sys.modules[package].__path__) if not one.name.startswith("_")}

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *below()} - ITS_OWN)

    return get, listed
