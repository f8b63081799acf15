"""A recommendation in words."""

from __future__ import annotations

from typing import NamedTuple

from shedjoin.parse import format_bytes
from shedjoin.planner.result import Need, Point, what
from shedjoin.spec import JoinSpec

#: A sample of this many windows is long enough.
ENOUGH = 4


class Summary(NamedTuple):
    """What a plan found besides the best point."""

    need: Need
    target: float
    objective: str
    windows: float
    blocks: int
    at_least: int | None
    complete: bool


def in_words(best: Point | None, spec: JoinSpec, found: Summary) -> str:
    """What to run for the target, what it gets, and what the exact join needs. `best`: None if only the exact join does."""
    need, target, counted = found.need, found.target, what(found.objective)
    exact = f"An exact join needs {need.tuples:,} tuples ({format_bytes(need.bytes)})"
    if best is None:
        why = "no policy reaches it with less memory" if found.complete else "nothing that needs less was found so far"
        said = [f"For {target:.4g} of the {counted}, run the exact join: {why}.", f"{exact}."]
    else:
        shared = "a fixed half for each stream" if best.allocation == "fixed" else "one memory for both streams"
        said = [
            f"For {target:.4g} of the {counted}, run {spec.policy!r} within {best.memory:,} tuples "
            f"({format_bytes(best.bytes or 0)}), {shared} (allocation={best.allocation!r}): on this sample it gets "
            f"{best.share:.1%}{_between(best, found.blocks)}.",
            f"{exact}, so this is {best.memory / need.tuples:.0%} of that.",
        ]
    if found.at_least is not None:
        said.append(f"With less than {found.at_least:,} tuples no policy could, even with foreknowledge.")
    if found.windows < ENOUGH:
        said.append(f"The sample is only {found.windows:.2g} windows long: a longer one would say more.")
    if not found.complete:
        result = "which policy reaches it is not known yet" if best is None else "this is the best found until then"
        said.append(f"The work was ended early: {result}.")
    return " ".join(said)


def _between(best: Point, blocks: int) -> str:
    if best.lowest is None or best.highest is None:
        return ""
    return f" (from {best.lowest:.1%} to {best.highest:.1%} in its {blocks} blocks)"
