"""The curve of a plan, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.planner.result import OPT, Plan, what
from shedjoin.plots.draw import draw_rows
from shedjoin.plots.plot import Panel, Plot

TITLES = {"fixed": "fixed shares", "variable": "one memory for both"}


def draw(plan: Plan, paths: list[Path]) -> list[Path]:
    """A panel for each allocation; the target as a line."""
    counted = what(plan.objective)
    panels = tuple(
        Panel(
            TITLES[allocation],
            "share",
            f"share of exact's {counted}",
            {"allocation": allocation},
            line=(plan.target, "target"),
            band=("low", "high"),
        )
        for allocation in dict.fromkeys(point.allocation for point in plan.curve)
    )
    best = plan.recommendation
    caption = (
        f"Exact needs {plan.need.tuples:,} tuples. Recommended: {best.name}, {TITLES[best.allocation]}, {best.tuples:,} tuples; "
        "its band: least and most over the blocks of the sample. OPT's band: what is proved."
    )
    plot = Plot("memory", "memory (tuples)", panels, caption, series="policy")
    title = f"Memory for {plan.target:.4g} of the exact join's {counted}"
    return draw_rows(plot, _drawn(plan), title, paths)


def _drawn(plan: Plan) -> list[dict[str, Any]]:
    rows = []
    best = plan.recommendation
    for row in plan.rows():
        low: float | None = None
        high: float | None = None
        if row["policy"] == OPT:
            low, high = row["share"], row["bound"]
        elif (row["policy"], row["allocation"]) == (best.name, best.allocation):
            low, high = row["lowest"], row["highest"]
        rows.append({**row, "low": low, "high": high})
    return rows
