"""Figure 13: mean output with selective processing against skew (section 6.4)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Scale, grid
from shedjoin_lab.papers.gedik2007.joins import CAPTION, measure

WINDOWS = (20,)
SKEWS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def parameters(scale: Scale) -> list[Params]:
    """The profile of changing rates, averaged, for each skew."""
    fixed: dict[str, Any] = {"join": ["overlap"], "at_least": [4], "window": WINDOWS, "basic": [1000], "shift": [5 / 8]}
    if scale.quick:
        fixed |= {"quick": [True]}
    return grid(method=["RATE", "TIME", "ALL"], **fixed, skew=(0.6,) if scale.quick else SKEWS, seed=range(scale.seeds))


FIGURE = Figure(
    paper="gedik2007",
    name="fig13",
    title="Mean output against skew with selective processing",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="skew",
        x_label="kappa",
        panels=tuple(Panel(f"windows of {window} s", "output", "results/s", {"window": window}) for window in WINDOWS),
        caption=CAPTION,
    ),
    minutes=0.2,
)
