"""Figure 11: rates and the fractions of the two windows over time (section 6.4)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Scale, grid
from shedjoin_lab.papers.gedik2007.joins import CAPTION, measure


def parameters(scale: Scale) -> list[Params]:
    """100 tuples a second, then 500, 300, and 100 again."""
    fixed: dict[str, Any] = {
        "join": ["overlap"],
        "at_least": [3],
        "window": [20],
        "basic": [1000],
        "skew": [0.6],
        "shift": [5 / 8],
    }
    if scale.quick:
        fixed |= {"quick": [True]}
    return grid(method=["ALL"], **fixed, every=[5], seed=range(scale.seeds))


FIGURE = Figure(
    paper="gedik2007",
    name="fig11",
    title="Stream rates and the fractions r1, r2",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="time",
        x_label="time (s)",
        panels=(
            Panel("rates", "arriving", "tuples/s of each stream"),
            Panel("left window", "r1", "fraction r1"),
            Panel("right window", "r2", "fraction r2"),
        ),
        caption=CAPTION,
        kind="time",
    ),
    minutes=0.1,
)
