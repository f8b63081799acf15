"""From when on results have weights, of a join that changed to `Sample` from a policy that had shed rows.

Rows that were stored at the change are those that the other policy left: no weight stands for the ones that it shed. Sums are
unbiased once all rows of before have expired.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shedjoin.engine.plan import Plan
from shedjoin.window import RowWindow

#: A time that all clocks are to reach (None: no window is of time), and for each stream how many rows are to have come.
Since = tuple[int | None, tuple[int, ...]]


def since(plan: Plan, clocks: Sequence[int | None], arrived: Sequence[int]) -> Since:
    """For a join that changes now."""
    known = [clock for clock in clocks if clock is not None]
    lengths = [window.size for window in plan.windows if not isinstance(window, RowWindow)]
    time = max(known) + max(lengths) + plan.lateness if known and lengths else None
    rows = [window.rows if isinstance(window, RowWindow) else 0 for window in plan.windows]
    return time, tuple(came + length for came, length in zip(arrived, rows, strict=True))


def is_over(wanted: Since, clocks: Sequence[int | None], arrived: Sequence[int]) -> bool:
    """Whether all rows of before have expired."""
    time, rows = wanted
    if time is not None and any(clock is None or clock < time for clock in clocks):
        return False
    return all(came >= least for came, least in zip(arrived, rows, strict=True))


def checked(data: Any, streams: int) -> Since | None:
    """What a snapshot says, which comes from outside."""
    if data is None:
        return None
    time, rows = data
    whole = [*rows, *([] if time is None else [time])]
    if len(rows) != streams or not all(type(one) is int for one in whole):
        raise ValueError(f"weights from {data!r}")
    return time, tuple(rows)
