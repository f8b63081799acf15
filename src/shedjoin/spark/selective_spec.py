"""Joins that compare rows with a part of the windows: their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from shedjoin.cpu.settings import Selective
from shedjoin.errors import SpecError
from shedjoin.parse import parse_duration, parse_windows
from shedjoin.plain_dict import only
from shedjoin.window import RowWindow, TimeWindow, Window

#: A window has this many basic windows (gedik2007), which are ranked this many times in the length of a window.
BASIC, RANKED = 20, 4
#: How often basic windows of rows are ranked, in microseconds, or in the unit of whole-number times.
RANKED_ROWS = {"time": 10_000_000, "number": 1_000}
#: Settings that follow a virtual CPU.
VIRTUAL = ("rate", "period")
SETTINGS = [one.name for one in fields(Selective) if one.name not in VIRTUAL]


def selective_of(value: Any, windows: Sequence[Window], seconds: float | None, kind: str | None) -> Selective | None:
    """How a join copes when there are too many rows; None: it compares them with whole windows.

    Parameters
    ----------
    value
        As it is given: a `Selective`, a table of its settings, or None.
    windows
        Of all streams.
    seconds
        The deadline, if there is one.
    kind
        Whether times are timestamps ("time") or whole numbers ("number"); None: not known yet.
    """
    if isinstance(value, Selective):
        return replace(value, rate=False)  # the clock sets r, or r is constant
    if value is None and seconds is None:
        return None
    if value is not None and not isinstance(value, Mapping):
        raise SpecError(f"selective must be a Selective or a table of its settings, not {value!r}")
    given = dict(value or {})
    only("selective", given, SETTINGS)
    longest = max(window.size for window in windows)
    times = [window.size for window in windows if isinstance(window, TimeWindow)]
    ranked = max(1, max(times) // RANKED) if times else RANKED_ROWS[kind or "time"]
    basic = _basic(given["basic"], windows, kind) if "basic" in given else max(1, -(-longest // BASIC))
    every = _time(given["rank_period"], "rank_period", kind) if "rank_period" in given else ranked
    try:
        return Selective(**{**given, "basic": basic, "rate": False, "period": every, "rank_period": every})
    except SpecError as reason:
        raise SpecError(f"selective: {reason}") from None


def check_types(selective: Selective | None, columns: Sequence[str | None]) -> None:
    """Utility-based shedding needs a column of types, and a column of types is for nothing else."""
    typed, types = any(name is not None for name in columns), 0 if selective is None else selective.types
    if typed and not types:
        raise SpecError(
            "kind is for selective={types: N}, which tells N types of rows apart by it: give types, or leave it out"
        )
    if types and not typed:
        raise SpecError(
            f"kind is missing: selective tells {types} types of rows apart, so name the column that has them"
        )


def _basic(value: Any, windows: Sequence[Window], kind: str | None) -> int:
    """The length of a basic window: a duration, or rows where windows are of rows."""
    if isinstance(value, int) and all(isinstance(window, RowWindow) for window in windows):
        return value
    if isinstance(value, str):
        (made,) = parse_windows(value, 1, argument="selective.basic")
        if not any(type(window) is type(made) for window in windows):
            raise SpecError(f"selective.basic must be of the windows' kind, time or rows, not {value!r}")
        if isinstance(made, RowWindow):
            return made.rows
    return _time(value, "basic", kind)


def _time(value: Any, name: str, kind: str | None) -> int:
    if kind == "time" and isinstance(value, int):
        raise SpecError(f"selective.{name}={value} has no unit, but times are timestamps: say '{value} seconds'")
    if kind == "number" and not isinstance(value, int):
        raise SpecError(f"selective.{name} must be a whole number, as the times are, not {value!r}")
    return parse_duration(value, argument=f"selective.{name}")
