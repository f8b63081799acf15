"""What may change while a checkpoint lives, and what may not."""

from __future__ import annotations

from typing import Any

from shedjoin.errors import SnapshotError
from shedjoin.parse import format_duration, format_interval, format_lateness, format_window
from shedjoin.plain_dict import make_policy
from shedjoin.window import UNLIMITED, RowWindow

#: What may change while a checkpoint lives, and what may not, in words.
WORDS = (
    "With the same checkpoint the budget may change, its shares, the policy and its estimator, the length of the deadline, front "
    "and the share of rear; what results mean may not (keys, predicate, where, time, window, lateness), nor seed. The number of "
    "shards and the columns of results may change in a query of `start` alone. Put the rest back, or start from a new checkpoint"
)
#: Of a spec as plain data: what may change, and what follows from things that may not: the number of shards, the text of `where`.
MAY_DIFFER = ("budget", "policy", "counted_elsewhere", "where", "what_if")


def lasting(spec: dict[str, Any]) -> dict[str, Any]:
    """What may not change of a spec as plain data. Whether there is rear shedding may not, but its share may.

    Examples
    --------
    >>> lasting({"lateness": 5, "budget": {"tuples": 90}, "dual": {"rear": 0.2, "front": False}})
    {'lateness': 5, 'rear': 'a share'}
    """
    rear = {"rear": "a share"} if "dual" in spec else {}
    return {name: value for name, value in spec.items() if name not in (*MAY_DIFFER, "dual")} | rear


def check_same(was: dict[str, Any], now: dict[str, Any], *, timestamps: bool = True) -> None:
    """Check that a checkpoint continues with the join that made it. `timestamps`: False if times are whole numbers."""
    for name in {**was, **now}:
        if was.get(name) != now.get(name):
            raise SnapshotError(f"{another(name, was.get(name), now.get(name), timestamps=timestamps)}. {WORDS}")


def another(name: str, was: Any, now: Any, *, timestamps: bool = True) -> str:
    """What differs.

    Examples
    --------
    >>> another("window", {"time": 600_000_000}, {"time": 600_000_001})
    'this checkpoint belongs to a join with another window: it has 10 minutes, this query 10 minutes 1 microsecond'
    """
    before, after = (in_words(name, value, timestamps=timestamps) for value in (was, now))
    return f"this checkpoint belongs to a join with another {name}: it has {before}, this query {after}"


def in_words(name: str, value: Any, *, timestamps: bool = True) -> str:
    """A setting of a join, which is plain data, as its user would write it.

    Examples
    --------
    >>> in_words("lateness", 5_000_000), in_words("lateness", 5, timestamps=False), in_words("max_skew", None)
    ('5 seconds', '5', 'none')
    >>> in_words("window", [{"time": 60_000_000}, {"row": 50}])
    '1 minute, 50 rows'
    >>> in_words("between", [0, 600_000_000])
    'from 0 seconds to 10 minutes'
    >>> in_words("windows", {"a": {"time": 60}, "b": {"time": 70}}, timestamps=False)
    'a 60, b 70'
    >>> in_words("on", [["ad", "ad_id"], ["day", "day"]])
    'ad = ad_id, day = day'
    """
    match name, value:
        case _, None:
            return "none"
        case "window" | "windows", {"time": length}:
            return format_duration(length) if timestamps else str(length)
        case "window" | "windows", {"row": rows}:
            return format_window(RowWindow(rows))
        case "between", [int(low), int(high)]:
            return format_interval(low, high) if timestamps else f"from {low} to {high}"
        case "lateness" | "max_skew", int() if timestamps or value == UNLIMITED:
            return format_lateness(value)
        case "budget", dict():
            amount = next(f"{value[unit]} {unit}" for unit in ("tuples", "bytes") if value.get(unit) is not None)
            return amount if value.get("allocation") in (None, "variable") else f"{amount} ({value['allocation']})"
        case "policy", {"name": _}:
            return repr(make_policy(value))
        case "on", [[*_], *_]:
            return ", ".join(" = ".join(pair) for pair in value)
        case _, {"name": kind, **settings}:
            return f"{kind} ({in_words(name, settings, timestamps=timestamps)})" if settings else str(kind)
        case _, dict():
            return ", ".join(f"{key} {in_words(name, one, timestamps=timestamps)}" for key, one in value.items())
        case _, [[*_], *_]:
            return ", ".join(f"({in_words(name, one, timestamps=timestamps)})" for one in value)
        case _, list() | tuple():
            return ", ".join(in_words(name, one, timestamps=timestamps) for one in value) or "none"
    return str(value)


def kept_policy(was: dict[str, Any], now: dict[str, Any]) -> dict[str, Any] | None:
    """The policy of a join that continues without a budget: nothing is evicted, and priorities stay."""
    return was["policy"] if now.get("budget") is None else None


def changes(was: dict[str, Any], now: dict[str, Any], *, timestamps: bool = True) -> str | None:
    """What has changed from one job to the next, in words; None: nothing. Of settings as plain data.

    Examples
    --------
    >>> changes({"budget": None, "shards": 4}, {"budget": {"tuples": 900}, "shards": 4})
    'budget: none -> 900 tuples'
    """
    told = [
        f"{name}: {in_words(name, was.get(name), timestamps=timestamps)} -> "
        f"{in_words(name, now.get(name), timestamps=timestamps)}"
        for name in {**was, **now}
        if was.get(name) != now.get(name)
    ]
    return "; ".join(told) or None
