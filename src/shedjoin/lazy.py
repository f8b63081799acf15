"""Packages whose names are imported when they are first asked for (PEP 562), as lazy_loader and scipy do it.

Engines bring numba with them, 40 MB and half a second, and whoever plans a query or reads a job file runs none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(package: str, names: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package that finds its names late.

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
    """
    modules = {name: f"{package}.{module}" for module, those in names.items() for name in those}

    def get(name: str) -> Any:
        here = sys.modules[package]
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=here)
        found = getattr(import_module(modules[name]), name)
        setattr(here, name, found)  # so that it is not asked for again
        return found

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, listed
