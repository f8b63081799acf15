"""Figure 10: mean output with rate adaptation against skew (section 6.3)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Scale, grid
from shedjoin_lab.papers.gedik2007.joins import CAPTION, measure

WINDOWS = (10, 20, 40)
SKEWS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def parameters(scale: Scale) -> list[Params]:
    """The profile of changing rates, averaged, for each skew."""
    fixed: dict[str, Any] = {
        "join": ["overlap"],
        "at_least": [3],
        "window": WINDOWS,
        "one_window": [True],
        "basic": [1000],
        "shift": [0.0],
    }
    if scale.quick:
        fixed |= {"quick": [True]}
    return grid(method=["DROP", "RATE"], **fixed, skew=(0.6,) if scale.quick else SKEWS, seed=range(scale.seeds))


FIGURE = Figure(
    paper="gedik2007",
    name="fig10",
    title="Mean output against skew with and without rate adaptation",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="skew",
        x_label="kappa",
        panels=tuple(
            Panel(f"one window of {window} s", "output", "results/s", {"window": window}) for window in WINDOWS
        ),
        caption=CAPTION,
    ),
    minutes=0.3,
)
