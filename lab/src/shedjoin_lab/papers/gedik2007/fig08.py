"""Figure 8: rates and the fraction r over time (section 6.3)."""

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
        "one_window": [True],
        "basic": [1000],
        "skew": [0.6],
        "shift": [0.0],
    }
    if scale.quick:
        fixed |= {"quick": [True]}
    return grid(method=["RATE"], **fixed, every=[5], seed=range(scale.seeds))


FIGURE = Figure(
    paper="gedik2007",
    name="fig08",
    title="Stream rates and the fraction r",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="time",
        x_label="time (s)",
        panels=(
            Panel("rates", "arriving", "tuples/s of each stream"),
            Panel("fraction", "r", "fraction r"),
        ),
        caption=CAPTION,
        kind="time",
    ),
    minutes=0.1,
)
