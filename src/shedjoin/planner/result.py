"""The result of a plan: the curve, a table, a plot, and a recommendation in words."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from shedjoin.errors import SpecError
from shedjoin.plain_dict import plain
from shedjoin.policies import Policy
from shedjoin.spec import JoinSpec

#: The name of the optimum in curves.
OPT = "OPT"
#: The memory for the target is found to this part of itself.
CLOSE = 0.02


def close(low: int, high: int) -> bool:
    """Whether two memories are so close that nothing between them is worth a run."""
    return high <= max(low * (1 + CLOSE), low + 2)


@dataclass(frozen=True, slots=True)
class Point:
    """A policy (or OPT) within a memory.

    Attributes
    ----------
    policy, allocation, memory
        The settings, and the budget in tuples.
    share
        Its share of the exact join: recall, or the share of importance.
    bound
        For OPT, the upper bound of any schedule; else None.
    spread, lowest, highest
        Over the blocks of the sample: the standard deviation of the share, its least and its most. None with one block, and
        for OPT.
    matches, importance, bytes
        Results, their summed importance, the most bytes that were stored; None for OPT.
    """

    policy: str
    allocation: str
    memory: int
    share: float
    bound: float | None = None
    spread: float | None = None
    lowest: float | None = None
    highest: float | None = None
    matches: int | None = None
    importance: float | None = None
    bytes: int | None = None


def spread_of(blocks: Sequence[float], exact: Sequence[float]) -> dict[str, float]:
    """Spread, least and most of the share over the blocks in which exact has results; nothing where only one has."""
    shares = [mine / whole for mine, whole in zip(blocks, exact, strict=True) if whole]
    if len(shares) < 2:
        return {}
    mean = math.fsum(shares) / len(shares)
    spread = math.sqrt(math.fsum((share - mean) ** 2 for share in shares) / (len(shares) - 1))
    return {"spread": spread, "lowest": min(shares), "highest": max(shares)}


@dataclass(frozen=True, slots=True)
class Need:
    """What the join without a budget gets, and the memory it takes.

    `tuples` is the most that is stored at one time; with a fixed half for each stream, nothing is shed from `tuples_fixed`
    on.
    """

    matches: int
    importance: float
    tuples: int
    tuples_fixed: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The least memory that reaches the target, and how.

    Attributes
    ----------
    policy, name
        The policy, and its name in the table. None where none reaches the target with less memory than exact.
    allocation, tuples, bytes
        The budget, and the most bytes stored with it.
    share, spread, lowest, highest
        What it gets of exact on the sample, and over its blocks.
    at_least
        With fewer than this many tuples no schedule reaches the target, even with knowledge of the future; None if OPT was
        not solved.
    spec
        The join to run.
    text
        All this in words.
    """

    policy: Policy | None
    name: str
    allocation: str
    tuples: int
    bytes: int
    share: float
    spread: float | None
    lowest: float | None
    highest: float | None
    at_least: int | None
    spec: JoinSpec
    text: str

    def __str__(self) -> str:
        return self.text

    def settings(self) -> str:
        """What to write into a job file, as TOML."""
        if self.policy is None:
            return "[join]\n# no budget and no policy: the exact join"
        return (
            f'[join]\nbudget = {self.tuples}\nallocation = "{self.allocation}"\npolicy = {_as_toml(plain(self.policy))}'
        )


def _as_toml(value: Any) -> str:
    """A policy as a job file has it: a name that says all, or a table."""
    if isinstance(value, Mapping):
        if set(value) == {"name"}:
            return _as_toml(value["name"])
        return "{" + ", ".join(f"{name} = {_as_toml(one)}" for name, one in value.items()) + "}"
    return json.dumps(value)


@dataclass(frozen=True, slots=True)
class Plan:
    """Recall (or the share of importance) against memory, and a recommendation.

    Attributes
    ----------
    curve
        One `Point` for each policy, allocation and memory, OPT among them.
    recommendation
        The settings for the target.
    need
        The memory of the exact join.
    objective, target
        What is counted, ``"matches"`` or ``"importance"``, and the target share of it.
    windows
        How many windows long the sample is.
    memories
        The memories at which all were run, in tuples.
    complete
        False if Ctrl-C or the time limit ended the work early: the other fields have the results until then.
    """

    curve: tuple[Point, ...] = field(repr=False)
    recommendation: Recommendation
    need: Need
    objective: str
    target: float
    windows: float
    memories: tuple[int, ...]
    complete: bool

    def rows(self) -> list[dict[str, Any]]:
        """The curve as flat rows, for a data frame or a file."""
        return [asdict(point) for point in self.curve]

    def table(self) -> str:
        """The curve as text: a line for each policy, a column for each memory; last the memory for the target."""
        return "\n\n".join(
            _table(self, allocation) for allocation in dict.fromkeys(one.allocation for one in self.curve)
        )

    def __str__(self) -> str:
        return f"{self.table()}\n\n{self.recommendation.text}"

    def plot(self, *paths: str | Path) -> list[Path]:
        """Draw the curve into files that end in .png or .svg. Needs the extra `plot`."""
        if not paths:
            raise SpecError("plot needs a path that ends in .png or .svg")
        from shedjoin.planner.plot import draw

        return draw(self, [Path(path) for path in paths])


def what(objective: str) -> str:
    return "results" if objective == "matches" else "importance"


def _table(plan: Plan, allocation: str) -> str:
    mine = [point for point in plan.curve if point.allocation == allocation]
    need = plan.need.tuples_fixed if allocation == "fixed" else plan.need.tuples + plan.need.tuples % 2
    grid = [*(memory for memory in plan.memories if memory < need), need]
    by_name: dict[str, dict[int, Point]] = {}
    for point in mine:
        by_name.setdefault(point.policy, {})[point.memory] = point
    head = ["tuples", *(f"{memory:,}" for memory in grid), f"for {plan.target:.4g}"]
    lines = [head]
    for name, points in by_name.items():
        cells = [_cell(points.get(memory)) for memory in grid]
        lines.append([name, *cells, _reached(plan, name, allocation, points)])
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    shares = "fixed shares, half and half" if allocation == "fixed" else "one memory for both streams"
    title = f"share of the exact join's {what(plan.objective)}, {shares}"
    return "\n".join([title, *("  ".join(_padded(line, widths)).rstrip() for line in lines)])


def _padded(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]


def _cell(point: Point | None) -> str:
    if point is None:
        return ""
    low, high = f"{100 * point.share:.1f}", f"{100 * (point.share if point.bound is None else point.bound):.1f}"
    return f"{low}%" if low == high else f"{low}-{high}%"


def _reached(plan: Plan, name: str, allocation: str, points: Mapping[int, Point]) -> str:
    """The memory for the target. The search leaves a policy as soon as another needs less: what is then known is a limit."""
    reached = [memory for memory, point in points.items() if point.share >= plan.target]
    if name == OPT or not reached:
        return ""
    least = min(reached)
    below = max((memory for memory in points if memory < least), default=0)
    limit = "" if close(below, least) else "<= "
    best = plan.recommendation
    mark = " <-" if (name, allocation) == (best.name, best.allocation) else ""
    return f"{limit}{least:,}{mark}"
