"""Figure 16: improvement in utility against the skew of utilities (section 6.5)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Scale, grid
from shedjoin_lab.papers.gedik2007.joins import measure
from shedjoin_lab.papers.gedik2007.utility import CAPTION, improvement

FREQUENCIES = ("uniform", "inverse", "direct")


def parameters(scale: Scale) -> list[Params]:
    """Three types, 500 tuples a second, for each way that frequency follows utility."""
    fixed: dict[str, Any] = {
        "join": ["overlap"],
        "at_least": [3],
        "window": [20],
        "basic": [1000],
        "skew": [0.6],
        "shift": [5 / 8],
    }
    fixed |= {
        "rate": [30 if scale.quick else 500],
        "seconds": [25 if scale.quick else 60],
        "warmup": [20],
        "types": [3],
    }
    skews = (2.0,) if scale.quick else (0.0, 0.5, 1.0, 2.0, 3.0)
    return grid(method=["ALL", "UTILITY"], frequency=FREQUENCIES, **fixed, value_skew=skews, seed=range(scale.seeds))


FIGURE = Figure(
    paper="gedik2007",
    name="fig16",
    title="Improvement in output utility against the skew of utilities, three types",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="value_skew",
        x_label="skew k of the utilities 1, 1/2^k, 1/3^k",
        panels=(Panel("", "gain", "improvement (%)", from_zero=False),),
        caption=CAPTION,
        series="frequency",
    ),
    derive=improvement,
    minutes=0.3,
)
