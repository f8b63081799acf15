"""Joins on a predicate, or with a deadline: their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from shedjoin.errors import SpecError
from shedjoin.predicates import PREDICATES, Equal, Predicate
from shedjoin.spark.keys import per_stream
from shedjoin.words import parse_duration


def join_condition(on: Any, predicate: Any) -> tuple[Any, Predicate | None]:
    """What rows are joined on: keys, or a predicate."""
    if on is None and predicate is None:
        raise SpecError("on is missing: name the key columns, or give a predicate")
    if on is not None and predicate is not None:
        raise SpecError(
            "on and predicate cannot both be given: join on the predicate and filter the result on equal keys, or join on the "
            "keys and filter by the predicate"
        )
    found = None if predicate is None else read_predicate(predicate)
    return (found.column, None) if isinstance(found, Equal) else (on, found)  # the same join, by the same names


def read_predicate(value: Any) -> Predicate:
    """A predicate, or a table of its name and settings."""
    if isinstance(value, Predicate):
        return value
    if not isinstance(value, Mapping) or value.get("name") not in PREDICATES:
        raise SpecError(
            "predicate must be a predicate such as Overlap('tags', at_least=2), or a table with a name, one of "
            f"{', '.join(PREDICATES)}, not {value!r}"
        )
    settings = {name: setting for name, setting in value.items() if name != "name"}
    if isinstance(settings.get("column"), Mapping):
        settings["column"] = per_stream("predicate.column", settings["column"])
    try:
        return PREDICATES[value["name"]](**settings)
    except TypeError as reason:
        raise SpecError(f"predicate {value['name']} does not take these settings: {reason}") from None
    except SpecError as reason:
        raise SpecError(f"predicate: {reason}") from None


def read_deadline(value: Any) -> float | None:
    """Seconds."""
    if value is None:
        return None
    if isinstance(value, str | timedelta):
        seconds = parse_duration(value, argument="deadline") / 1e6
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        raise SpecError(f"deadline must be a duration such as '2 seconds', or a number of seconds, not {value!r}")
    if not 0.0 < seconds < 1e9:
        raise SpecError(f"deadline must be above 0, not {value!r}")
    return seconds
