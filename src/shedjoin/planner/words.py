"""A recommendation in words."""

from __future__ import annotations

from shedjoin.planner.result import Need, Point, what
from shedjoin.policies import Policy

#: From so many windows on a stretch is taken to be long enough.
ENOUGH = 4
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def size(count: int) -> str:
    """Bytes as people say them.

    Examples
    --------
    >>> size(900), size(1_536_000)
    ('900 bytes', '1.54 MB')
    """
    amount, unit = float(count), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if not unit else f"{amount:.3g} {_UNITS[unit]}"


def in_words(
    best: Point | None,
    policy: Policy | None,
    need: Need,
    *,
    target: float,
    objective: str,
    windows: float,
    blocks: int,
    at_least: int | None,
    complete: bool,
) -> str:
    """What to run for the target, what it gets, and what exact would need."""
    counted = what(objective)
    exact = f"An exact join needs {need.tuples:,} tuples ({size(need.bytes)})"
    if best is None:
        why = "no policy reaches it with less memory" if complete else "nothing that needs less was found so far"
        said = [f"For {target:.4g} of the {counted}, run the exact join: {why}.", f"{exact}."]
    else:
        shared = "a fixed half for each stream" if best.allocation == "fixed" else "one memory for both streams"
        assert best.bytes is not None
        said = [
            f"For {target:.4g} of the {counted}, run {policy!r} within {best.memory:,} tuples ({size(best.bytes)}), {shared} "
            f"(allocation={best.allocation!r}): on this stretch it gets {best.share:.1%}{_between(best, blocks)}.",
            f"{exact}, so this is {best.memory / need.tuples:.0%} of that.",
        ]
    if at_least is not None:
        said.append(f"With less than {at_least:,} tuples no policy could, even with foreknowledge.")
    if windows < ENOUGH:
        said.append(f"The stretch is only {windows:.2g} windows long: a longer one would say more.")
    if not complete:
        found = "which policy reaches it is not known yet" if best is None else "this is the best found until then"
        said.append(f"The work was ended early: {found}.")
    return " ".join(said)


def _between(best: Point, blocks: int) -> str:
    if best.lowest is None or best.highest is None:
        return ""
    return f" (from {best.lowest:.1%} to {best.highest:.1%} in its {blocks} blocks)"
