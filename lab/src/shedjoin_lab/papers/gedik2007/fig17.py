"""Figure 17: improvement in utility against the number of types (section 6.5)."""

from __future__ import annotations

import math
from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Scale, grid
from shedjoin_lab.papers.gedik2007.joins import measure
from shedjoin_lab.papers.gedik2007.utility import CAPTION, improvement

FACTORS = (5, 10, 20)
TYPES = (2, 4, 8, 16, 32)


def parameters(scale: Scale) -> list[Params]:
    """The highest utility is `factor` times the lowest; frequent types have low utility."""
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
        "frequency": ["inverse"],
    }
    rows: list[Params] = []
    for factor in FACTORS[:1] if scale.quick else FACTORS:
        for types in TYPES[:1] if scale.quick else TYPES:
            fixed |= {"series": [f"{factor} x"], "types": [types], "value_skew": [math.log(factor, types)]}
            rows += grid(method=["ALL", "UTILITY"], **fixed, seed=range(scale.seeds))
    return rows


FIGURE = Figure(
    paper="gedik2007",
    name="fig17",
    title="Improvement in output utility against the number of types",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="types",
        x_label="types",
        panels=(Panel("", "gain", "improvement (%)", from_zero=False),),
        caption=CAPTION,
        series="series",
        log_x=True,
    ),
    derive=improvement,
    minutes=0.3,
)
