"""What may change while a checkpoint lives, and what may not."""

from __future__ import annotations

from typing import Any

from shedjoin.errors import SnapshotError
from shedjoin.spark.keys import SIDES

_TWO = (
    "While a checkpoint lives the budget may change, its shares, and the numbers of the policy (Decayed's half-life too); "
    "window, keys, time, policy, estimator, lateness, shards, seed and columns may not: put them back, or start from a new "
    "checkpoint"
)
_MANY = (
    "While a checkpoint of three and more streams lives the budget may change and its shares, nothing else: put it back, or "
    "start from a new checkpoint"
)
_PREDICATE = (
    "While a checkpoint lives the size of the budget may change, and that of the deadline; predicate, window, time, policy, "
    "lateness, shards, seed and columns may not, nor whether there is a budget and a deadline: put them back, or start from a "
    "new checkpoint"
)


def may_change(streams: int, *, predicate: bool = False) -> str:
    """What may change while a checkpoint lives, and what may not, of a join of so many streams."""
    if predicate:
        return _PREDICATE
    return _TWO if streams == len(SIDES) else _MANY


def check_same(was: dict[str, Any], now: dict[str, Any], may_change: str) -> None:
    """A checkpoint goes on only with the join that made it."""
    for name in {**was, **now}:
        if was.get(name) != now.get(name):
            raise SnapshotError(f"{another(name, was.get(name), now.get(name))}. {may_change}")


def another(name: str, was: Any, now: Any) -> str:
    """What differs."""
    return f"this checkpoint belongs to a join with another {name}: it has {was!r}, this query {now!r}"
