"""Tables of job files as dataclasses: each setting is a field, checked by its type. Errors name a setting with its path."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from shedjoin.errors import InputError, SpecError
from shedjoin.parse import nearest

Made = TypeVar("Made")
#: A setting that is not any text.
Column = Annotated[str, "the name of a column"]
_WORDS = {str: "a text", bool: "true or false", int: "a whole number", tuple: "a list of texts"}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a job file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as reason:
        raise InputError(f"the job file {path} cannot be read: {reason.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise SpecError(f"{path} is not valid TOML: {reason} (texts need quotes)") from None


def settings(data: Any, where: str, known: Iterable[str] | None) -> Mapping[str, Any]:
    """A table, if it has known settings only; None: any.

    Examples
    --------
    >>> settings({"windw": "10 minutes"}, "join", ["on", "window"])
    Traceback (most recent call last):
    ...
    shedjoin.errors.SpecError: unknown setting `[join] windw`; perhaps `window`
    """
    if not isinstance(data, Mapping):
        raise SpecError(f"{where} must be a table of settings, not {data!r}")
    allowed = list(data if known is None else known)
    for name in data:
        if name not in allowed:
            near = nearest(name, allowed)
            hint = f"perhaps `{near}`" if near else f"there are {', '.join(allowed)}"
            raise SpecError(f"unknown {f'setting `[{where}] {name}`' if where else f'table `[{name}]`'}; {hint}")
    return data


def read_table(kind: type[Made], data: Any, where: str, **given: Any) -> Made:
    """A table as a dataclass, with fields that are given beside it."""
    hints = get_type_hints(kind, include_extras=True)
    table = settings(data, where, [name for name in hints if name not in given])
    made = {name: _checked(hints[name], value, f"{where}.{name}") for name, value in table.items()}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in {**made, **given} and field.default is field.default_factory is MISSING:
            raise SpecError(f"{where}.{field.name} is missing")
    with errors_in(where, hints):
        return kind(**made, **given)


def _checked(hint: Any, value: Any, where: str) -> Any:
    """A value, if it has the type of its setting."""
    optional = NoneType in get_args(hint)
    kind = get_args(hint)[0] if optional else hint
    kind, what = get_args(kind) if get_origin(kind) is Annotated else (kind, None)
    kind = get_origin(kind) or kind
    if kind is Mapping:
        return dict(flattened("", settings(value, where, None), where))
    fits = {
        str: isinstance(value, str) and bool(value.strip()),
        bool: isinstance(value, bool),
        int: isinstance(value, int) and not isinstance(value, bool),
        tuple: isinstance(value, list) and bool(value) and all(isinstance(one, str) and one for one in value),
    }
    if not fits[kind]:
        raise SpecError(f"{where} must be {what or _WORDS[kind]}, not {value!r}")
    return tuple(value) if kind is tuple else value


def flattened(prefix: str, data: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """Settings as Spark takes them: dotted names, values as text. TOML reads a dotted name as a table in a table."""
    for name, value in data.items():
        full = f"{prefix}.{name}" if prefix and not (prefix == "spark" and name.startswith("spark.")) else name
        match value:
            case Mapping():
                yield from flattened(full, value, f"{where}.{name}")
            case bool():
                yield full, str(value).lower()
            case str() | int() | float():
                yield full, str(value)
            case _:
                raise SpecError(f"{where}.{name} must be a text, a number, true or false, not {value!r}")


def located(data: Any, folder: Path) -> Any:
    """A table with its paths, which are relative to the job file. Those with a scheme stay as they are."""
    if not isinstance(data, Mapping):
        return data
    places = {name: data[name] for name in ("path", "checkpoint") if isinstance(data.get(name), str)}
    return {**data, **{name: str(folder / path) for name, path in places.items() if path.strip() and "://" not in path}}


@contextmanager
def errors_in(where: str, names: Iterable[str] = ()) -> Iterator[None]:
    """Errors say in which table something is wrong. Those that begin with one of these names name the setting.

    Examples
    --------
    >>> with errors_in("join", ["window"]):
    ...     raise SpecError("window must be longer than 0")
    Traceback (most recent call last):
    ...
    shedjoin.errors.SpecError: join.window must be longer than 0
    """
    try:
        yield
    except SpecError as reason:
        named = re.match(rf"(?:{'|'.join(names)})\b", str(reason))
        raise SpecError(f"{where}{'.' if named and named[0] else ': '}{reason}") from None
