"""Figure 9: output over time with rate adaptation (section 6.3)."""

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
    return grid(method=["DROP", "RATE"], **fixed, every=[5], seed=range(scale.seeds))


FIGURE = Figure(
    paper="gedik2007",
    name="fig09",
    title="Output over time with and without rate adaptation, no time shift",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="time",
        x_label="time (s)",
        panels=(Panel("", "output", "results/s"),),
        caption=CAPTION,
        kind="time",
    ),
    minutes=0.1,
)
