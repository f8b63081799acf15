"""DGL's constants, which the paper does not give: quality over a grid of gain and loss (settings of Figures 9, 11)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import shedjoin as sj
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.methods import Setting, counted
from shedjoin_lab.papers.importance2006.methods import METHODS, method
from shedjoin_lab.papers.importance2006.synthetic import IMPORTANCE, ROWS, workload_of
from shedjoin_lab.summary import number, shares

GAINS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
LOSSES = (0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999)
#: Where DGL is compared: Figure 9 at three memory sizes, and Figure 11 at its most skewed.
PLACES: dict[str, dict[str, Any]] = {
    "uncorrelated, M = 100": {"memory": [100], "skew_left": [1.0], "skew_right": [0.0]},
    "uncorrelated, M = 200": {"memory": [200], "skew_left": [1.0], "skew_right": [0.0]},
    "uncorrelated, M = 400": {"memory": [400], "skew_left": [1.0], "skew_right": [0.0]},
    "correlated, M = 200": {"memory": [200], "skew_left": [1.0], "skew_right": [1.0]},
}
WORKLOAD = ("place", "importance_of", "seed")


def parameters(scale: Scale) -> list[Params]:
    """DGL with every pair of constants; EXACT and DIMPPROB to compare."""
    gains, losses = ((0.1, 1.0), (0.9, 0.99)) if scale.quick else (GAINS, LOSSES)
    rows: list[Params] = []
    for place, settings in PLACES.items():
        common: dict[str, Any] = {
            "place": [place],
            "rows": [ROWS],
            "window": [400],
            "warmup": [800],
            "domain": [100],
            **settings,
            "importance_of": IMPORTANCE,
            "seed": range(scale.seeds),
        }
        rows += grid(method=["EXACT", "DIMPPROB"], gain=[None], loss=[None], **common)
        rows += grid(method=["DGL"], gain=gains, loss=losses, **common)
    return rows


def measure(params: Params, data: Path | None) -> list[Row]:
    """Simulate DGL with the constants of `params`, or another method as it is."""
    del data
    p: dict[str, Any] = dict(params)
    run = method(sj.Dgl(gain=p["gain"], loss=p["loss"])) if p["method"] == "DGL" else METHODS[p["method"]]
    setting = Setting(p["window"], None if p["method"] == "EXACT" else p["memory"], p["warmup"], p["seed"])
    return [{**params, **counted(run(workload_of(params), setting))}]


def share_of_exact(rows: list[Row]) -> list[Row]:
    """Each row with its share of EXACT's importance on the same workload."""
    return shares(rows, "importance", WORKLOAD)


def _drawn(rows: list[Row]) -> list[Row]:
    """One line a gain over the half-life of a priority; DIMPPROB, which has no constants, is a level line."""
    drawn = []
    for row in share_of_exact(rows):
        if row["method"] == "DGL":
            half_life = math.log(0.5) / math.log(number(row, "loss"))
            drawn.append({**row, "series": f"DGL, gain {row['gain']:g}", "half_life": half_life})
        elif row["method"] == "DIMPPROB":
            drawn.append({**row, "series": "DIMPPROB", "half_life": None})
    return drawn


FIGURE = Figure(
    paper="importance2006",
    name="dgl_constants",
    title="DGL's gain and loss",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="half_life",
        x_label="half-life of a priority (time units without output)",
        series="series",
        log_x=True,
        panels=tuple(
            Panel(
                f"{place}\n{text}",
                "share",
                "importance as a share of EXACT's",
                {"place": place, "importance_of": kind},
                from_zero=False,
            )
            for kind, text in IMPORTANCE.items()
            for place in PLACES
        ),
        caption="Not in the paper, which gives neither constant. w = 400, domain 100, N = 5600.",
    ),
    derive=_drawn,
    minutes=0.1,
)
