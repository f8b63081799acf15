"""The what-if curve, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.plots.draw import draw_rows
from shedjoin.plots.plot import Panel, Plot
from shedjoin.what_if import Curve, Point


def draw_curve(curve: Curve, paths: list[Path]) -> list[Path]:
    """Recall by memory with its limits, and where it differs the share of importance; other policies with the current memory."""
    panels = [Panel("results", "share", "share of the exact join", {"what": "results"}, band=("low", "high"))]
    rows = _rows("results", curve.policy, curve.recall)
    rows += [row for policy, point in curve.others.items() for row in _rows("results", policy, {1.0: point})]
    if curve.importance is not None:
        panels.append(
            Panel("importance", "share", "share of the exact join", {"what": "importance"}, band=("low", "high"))
        )
        rows += _rows("importance", curve.policy, curve.importance)
    twice = curve.recall[2.0]
    caption = f"Over the last {curve.rows:,} rows. With twice the memory {twice}."
    plot = Plot("memory", "memory (% of the budget)", tuple(panels), caption, series="policy", log_x=True)
    return draw_rows(plot, rows, "What other memories would deliver", paths)


def _rows(what: str, policy: str, points: dict[float, Point]) -> list[dict[str, Any]]:
    return [
        {
            "what": what,
            "policy": policy,
            "memory": round(100 * memory),
            "share": one.recall,
            "low": one.low,
            "high": one.high,
        }
        for memory, one in points.items()
    ]
