"""Figure 6: where in the window the matches lie (section 6.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import shedjoin as sj
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.gedik2007.joins import SECOND, workload_of


def parameters(scale: Scale) -> list[Params]:
    """Four windows' time at 100 tuples a second."""
    fixed: dict[str, Any] = {
        "join": ["overlap"],
        "window": [20],
        "rate": [10 if scale.quick else 100],
        "seconds": [80],
        "shift": [5 / 8],
    }
    return grid(method=["kappa = 0.6", "kappa = 0.8"], **fixed, seed=range(scale.seeds))


def measure(params: Params, data: Path | None) -> list[Row]:
    """The share of matches of left tuples with each second of the right window, from the exact join."""
    del data
    p: dict[str, Any] = {**params, "skew": float(str(params["method"]).split("=")[1])}
    workload = workload_of(p)
    join = sj.PredicateJoin(sj.TimeWindow(p["window"] * SECOND), sj.Overlap("x", at_least=3))
    out = join.engine(warmup=2 * p["window"] * SECOND).push(left=workload.left, right=workload.right)
    ages = (workload.left["ts"][out.left] - workload.right["ts"][out.right]) // SECOND
    counts = np.bincount(ages[ages >= 0], minlength=p["window"])
    return [{**params, "age": age, "share": int(count) / max(1, counts.sum())} for age, count in enumerate(counts)]


FIGURE = Figure(
    paper="gedik2007",
    name="fig06",
    title="Match probability by age in the window, time shift 5/8 of the cycle",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="age",
        x_label="age of the partner (s)",
        panels=(Panel("", "share", "share of the matches"),),
        caption="Overlap of at least 3 items, windows of 20 s. The right stream lags by 25 s of a cycle of 40 s: "
        "a left tuple meets right ones of 15 s before.",
    ),
    minutes=0.1,
)
