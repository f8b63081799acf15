"""Registries: what a package imports is what it offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

Kind = TypeVar("Kind")


def registered(base: type[Kind], names: Mapping[str, Any]) -> dict[str, type[Kind]]:
    """The classes below `base` among the names of a package, by their `name`, in the order of their own names.

    Examples
    --------
    >>> from shedjoin import policies
    >>> list(registered(policies.Policy, vars(policies)))[:3]
    ['additive', 'age', 'auto']
    """
    classes = [one for one in names.values() if isinstance(one, type) and issubclass(one, base) and one is not base]
    return {one.name: one for one in sorted(classes, key=lambda one: one.__name__)}  # type: ignore[attr-defined]
