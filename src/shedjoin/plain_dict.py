"""Policies, estimators and budgets as plain data, for TOML and JSON; and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from shedjoin.errors import SpecError
from shedjoin.estimators import ESTIMATORS, Estimator
from shedjoin.policies import POLICIES, Policy

Made = TypeVar("Made")


def only(what: str, data: Any, known: list[str]) -> None:
    """Reject a table with settings that are not known."""
    if not isinstance(data, Mapping):
        raise SpecError(f"{what} must be a table of settings, not {data!r}")
    unknown = [str(name) for name in data if name not in known]
    if unknown:
        raise SpecError(f"{what} has no setting {unknown[0]!r}; it has {', '.join(known) or 'none'}")


def make_policy(data: Any) -> Policy:
    """The policy of a name, or of a table with a name and settings."""
    kind, settings = _named("policy", data, POLICIES)
    if settings.get("estimator") is not None:
        settings["estimator"] = make_estimator(settings["estimator"])
    policy: Policy = made_of(kind, kind.__name__, settings)
    return policy


def make_estimator(data: Any) -> Estimator:
    kind, settings = _named("estimator", data, ESTIMATORS)
    if kind.name == "table":
        settings = {
            side: [_table(one) for one in table] if side == "more" else _table(table)
            for side, table in settings.items()
        }
    estimator: Estimator = made_of(kind, kind.__name__, settings)
    return estimator


def _table(table: Any) -> Any:
    """Weights by key. JSON and TOML know only text as keys: numbers are what is written as such. Or a path."""
    if isinstance(table, str):
        return table
    if not isinstance(table, Mapping):
        raise SpecError(f"estimator: a table must give keys their weights, not {table!r}")
    try:
        numbers = {int(key): value for key, value in table.items()}
    except (TypeError, ValueError):
        return table
    return numbers if [str(key) for key in numbers] == [str(key) for key in table] else table


def _named(what: str, data: Any, registry: Mapping[str, type[Any]]) -> tuple[type[Any], dict[str, Any]]:
    if not isinstance(data, str | Mapping):
        raise SpecError(f"{what} must be a name or a table of settings with a name, not {data!r}")
    settings = {"name": data} if isinstance(data, str) else dict(data)
    name = settings.pop("name", None)
    if not isinstance(name, str) or name not in registry:
        raise SpecError(f"{what} must be one of {', '.join(registry)}, not {name!r}")
    return registry[name], settings


def made_of(kind: type[Made], what: str, settings: Any) -> Made:
    """An object from a table of its settings."""
    if is_dataclass(kind):
        only(what, settings, [field.name for field in fields(kind)])
    try:
        return kind(**settings)
    except TypeError as reason:
        raise SpecError(f"{what} does not take these settings: {reason}") from None


def plain(part: Any) -> dict[str, Any]:
    """A policy, an estimator or a budget as plain data."""
    names = [field.name for field in fields(part)] if is_dataclass(part) else ["left", "right", "more"]
    data: dict[str, Any] = {"name": part.name} if hasattr(part, "name") else {}
    for name in names:
        value = getattr(part, name)
        if value is not None and not (name in ("more", "row_bytes", "key_bytes") and not value):
            data[name] = _plain(value)
    return data


def _plain(value: Any) -> Any:
    """A value as JSON and TOML have it: keys are text, tuples are lists."""
    if isinstance(value, Estimator):
        return plain(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value
