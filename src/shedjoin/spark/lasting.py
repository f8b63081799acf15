"""What may change while a checkpoint lives, and what may not."""

from __future__ import annotations

import json
from typing import Any

from shedjoin.errors import SnapshotError
from shedjoin.plain import make_policy
from shedjoin.policies import KeepAll
from shedjoin.spec import JoinSpec
from shedjoin.window import UNLIMITED, RowWindow
from shedjoin.words import format_duration, format_lateness, format_window

_KEYS = (
    "With the same checkpoint the budget may change, its shares, the length of the deadline, front, and the policy, as long as "
    "it asks the same estimator or none (Decayed's half-life may change too); window, keys, predicate, time, estimator, "
    "lateness, shards, seed and columns may not: put them back, or start from a new checkpoint"
)
#: Of a spec as plain data: what may change, and what follows from the number of shards, which may not.
MAY_DIFFER = ("budget", "policy", "counted_elsewhere")


def may_change() -> str:
    """What may change while a checkpoint lives, and what may not."""
    return _KEYS


def check_same(was: dict[str, Any], now: dict[str, Any], may_change: str, *, timestamps: bool = True) -> None:
    """A checkpoint goes on only with the join that made it. `timestamps`: or times are whole numbers."""
    for name in {**was, **now}:
        if was.get(name) != now.get(name):
            raise SnapshotError(f"{another(name, was.get(name), now.get(name), timestamps=timestamps)}. {may_change}")


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
        case "lateness" | "max_skew", int() if timestamps or value == UNLIMITED:
            return format_lateness(value)
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


def check_budget(began: bool, now: bool, query: str = "this query") -> None:
    """Whether a join has a budget: one that began without has put nothing in order, and cannot be given one."""
    if now and not began:
        raise SnapshotError(
            f"{query} began without a budget, and a budget cannot be added to it: start with a new output directory and a new "
            "checkpoint"
        )


def began_with_budget(spec: dict[str, Any]) -> bool:
    """Whether a join, as plain data, was begun with a budget; it may be without it since, but keeps its policy."""
    return bool(spec["policy"]["name"] != KeepAll.name)


def check_policy(was: dict[str, Any], now: dict[str, Any]) -> None:
    """The policy of a spec, as plain data, is that of the spec before, or one that a running join may go on by.

    Shards look at it too, but only when there are rows.
    """
    before, after = (json.loads(json.dumps(spec["policy"])) if "policy" in spec else None for spec in (was, now))
    if before == after or kept_policy(was, now) is not None:
        return
    words = may_change()
    try:
        JoinSpec.from_dict(now).plan().check_change(JoinSpec.from_dict(was).plan().signature())
    except SnapshotError as reason:
        raise SnapshotError(f"{another('policy', before, after)}. {reason}. {words}") from None


def kept_policy(was: dict[str, Any], now: dict[str, Any]) -> dict[str, Any] | None:
    """The policy of a join that goes on without a budget: without a cap nothing is evicted, and the order stays."""
    return was["policy"] if now.get("budget") is None else None
