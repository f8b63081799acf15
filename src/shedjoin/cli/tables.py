"""Job files: TOML read and checked, with errors that say where in the file something is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from shedjoin.errors import InputError, SpecError
from shedjoin.spark.keys import SIDES
from shedjoin.spec import JoinSpec
from shedjoin.words import parse_budget, parse_duration, parse_lateness, parse_policy, parse_windows

Made = TypeVar("Made")
#: What `join_spec` reads.
SPEC = ("window", "budget", "allocation", "policy", "lateness", "max_skew")


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a job file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as reason:
        raise InputError(f"the job file {path} cannot be read: {reason.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise SpecError(f"{path} is not a TOML file: {reason}") from None


class Table:
    """A table of settings, and its path in the file.

    Parameters
    ----------
    data
        As read.
    where
        Its path, such as ``join``; empty for the whole file.
    known
        The settings it may have; None: any.
    """

    def __init__(self, data: Any, where: str, known: tuple[str, ...] | None) -> None:
        if not isinstance(data, Mapping):
            raise SpecError(f"{where} must be a table of settings, not {data!r}")
        self.data: Mapping[str, Any] = data
        self.where = where
        for name in data:
            if known is not None and name not in known:
                raise SpecError(
                    f"{self.path(name)}: there is no such setting; {where or 'a job'} has {', '.join(known)}"
                )

    def path(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def __contains__(self, name: str) -> bool:
        return name in self.data

    def get(self, name: str) -> Any:
        return self.data.get(name)

    def need(self, name: str, such_as: str) -> Any:
        """A setting that must be there."""
        if name not in self.data:
            raise SpecError(f"{self.path(name)} is missing: it is needed, such as {such_as}")
        return self.data[name]

    def text(self, name: str) -> str | None:
        """A setting that is a text, and not an empty one."""
        value = self.data.get(name)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise SpecError(f"{self.path(name)} must be a text, not {value!r}")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.data.get(name, default)
        if not isinstance(value, bool):
            raise SpecError(f"{self.path(name)} must be true or false, not {value!r}")
        return value

    def whole(self, name: str, least: int, most: int) -> int | None:
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise SpecError(f"{self.path(name)} must be a whole number from {least} to {most}, not {value!r}")
        return value

    def one_of(self, name: str, allowed: tuple[str, ...]) -> str | None:
        value = self.data.get(name)
        if value is not None and value not in allowed:
            raise SpecError(f"{self.path(name)} must be one of {', '.join(allowed)}, not {value!r}")
        return value

    def texts(self, name: str) -> list[str] | None:
        """A list of texts."""
        value = self.data.get(name)
        if value is None:
            return None
        if not (isinstance(value, list) and value and all(isinstance(one, str) and one for one in value)):
            raise SpecError(f"{self.path(name)} must be a list of texts, not {value!r}")
        return value

    def sides(self, name: str, names: Sequence[str] = SIDES) -> Any:
        """One value for all streams; one each, as a list or a table {left = ..., right = ...}, as a tuple."""
        value = self.data.get(name)
        if isinstance(value, Mapping) and set(value) & set(names):
            Table(value, self.path(name), tuple(names))
            return tuple(value.get(side) for side in names)
        if isinstance(value, list):
            if len(value) != len(names):
                each = "both streams, or a pair" if len(names) == 2 else "all streams, or one each"
                raise SpecError(f"{self.path(name)} must be one for {each} [{', '.join(names)}], not {value!r}")
            return tuple(value)
        return value


def join_spec(join: Table, importance: str = "min") -> JoinSpec:
    """What a table [join] says of windows, memory and policy, in words or as `JoinSpec.to_dict` gives it."""
    return any_join(join, importance, SIDES)


def any_join(join: Table, importance: str, names: Sequence[str]) -> JoinSpec:
    """The same of two or more streams."""
    join.need("window", 'window = "10 minutes"')
    windows = parse_windows(join.sides("window", names), len(names), argument=join.path("window"))
    budget = parse_budget(join.get("budget"), allocation=join.get("allocation"), argument=join.path("budget"))
    policy = parse_policy(join.get("policy"), argument=join.path("policy"))
    lateness = parse_lateness(join.get("lateness") or 0, argument=join.path("lateness"))
    skew = join.get("max_skew")
    max_skew = None if skew is None else parse_duration(skew, argument=join.path("max_skew"))
    given: tuple[Any, ...] = (budget, policy, importance, lateness, max_skew)

    def make() -> JoinSpec:
        if len(names) == 2:
            left, right = windows
            return JoinSpec(left if left == right else (left, right), *given)
        return JoinSpec(dict(zip(names, windows, strict=True)), *given)

    return at(join.where, make)


def at(where: str, make: Callable[[], Made]) -> Made:
    """Say where in the file something that makes no sense is."""
    try:
        return make()
    except SpecError as reason:
        raise SpecError(f"{where}: {reason}") from None
