"""Synthetic streams of importance2006 (section 5): Zipf keys, importance by tuple, an output has the smaller one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shedjoin.plots.plot import Panel, Plot
from shedjoin.workloads import Workload, zipf
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.methods import Setting, counted
from shedjoin_lab.papers.importance2006.methods import METHODS, ONLINE
from shedjoin_lab.summary import shares

ROWS = 5600
#: The lab's choices where the paper gives no distribution of importance, and their titles.
IMPORTANCE = {"rare_high": "importance 1-10, 5% of 50-100", "pareto": "importance Pareto 1.5, at most 100"}
#: Further readings, of single claims: a number that the paper prints needs more uneven importance than ours.
UNEVEN = {
    "thousandfold": "one in ten 1000 times as important",
    "ten_times_rare_high": "importance 1-10, 5% of 500-1000",
}
#: Rows that agree in these are of one workload and counted from the same time on.
WORKLOAD = ("rows", "window", "warmup", "domain", "skew_left", "skew_right", "importance_of", "seed")
#: "Uncorrelated (Zipf 1.0 and 0.0)": sections 5.2.1 to 5.2.3 and 5.2.5.
UNCORRELATED: dict[str, Any] = {"skew_left": [1.0], "skew_right": [0.0]}

CAPTION = "The paper gives no distribution of importance: both of ours are shown. Matches are counted in memory."


def workload_of(params: Params) -> Workload:
    """Two streams; equal ranks, which matter only where both are skewed ("in a correlated fashion", section 5.2.4)."""
    p: dict[str, Any] = dict(params)
    kind = p["importance_of"]
    workload = zipf(
        p["rows"],
        seed=p["seed"],
        domain=p["domain"],
        skew=(p["skew_left"], p["skew_right"]),
        ranks="correlated",
        importance=kind if kind in IMPORTANCE else "one",
    )
    if kind not in UNEVEN:
        return workload
    rng = np.random.default_rng([p["seed"], 2006])
    streams = ({**stream, "importance": _uneven(kind, rng, stream["key"].size)} for stream in workload.streams)
    return replace(workload, streams=tuple(streams))


def _uneven(kind: str, rng: np.random.Generator, rows: int) -> np.ndarray:
    if kind == "thousandfold":
        return np.where(rng.random(rows) < 0.1, 1000.0, 1.0)
    return np.where(rng.random(rows) < 0.05, rng.uniform(500.0, 1000.0, rows), rng.uniform(1.0, 10.0, rows))


def measure(params: Params, data: Path | None) -> list[Row]:
    """Simulate one method on one workload."""
    del data
    p: dict[str, Any] = dict(params)
    setting = Setting(p["window"], p["memory"], p["warmup"], p["seed"])
    return [{**params, **counted(METHODS[p["method"]](workload_of(params), setting))}]


def all_methods(scale: Scale, *, memory: list[int], optimum: bool = True, **fixed: Any) -> list[Params]:
    """EXACT once, OPT and every online method at every memory size; all seeds, both distributions of importance."""
    common: dict[str, Any] = {**fixed, "importance_of": IMPORTANCE, "seed": range(scale.seeds)}
    return [
        *grid(method=["EXACT"], memory=[None], **common),
        *grid(method=["OPT", *ONLINE] if optimum else ONLINE, memory=memory, **common),
    ]


def share_of_exact(rows: list[Row]) -> list[Row]:
    """Each row with its share of EXACT's importance on the same workload."""
    return shares(rows, "importance", WORKLOAD)


def thousands(rows: list[Row]) -> list[Row]:
    """Importance in thousands, as the figures' y axis, beside the share."""
    return [{**row, "thousands": float(str(row["importance"])) / 1000} for row in share_of_exact(rows)]


def importance_figure(
    name: str,
    title: str,
    parameters: Callable[[Scale], list[Params]],
    *,
    x: str,
    x_label: str,
    share: bool,
    minutes: float,
    log_x: bool = False,
) -> Figure:
    """Result importance (or its share of EXACT's) against something, one panel for each distribution of importance."""
    y, y_label = (
        ("share", "importance as a share of EXACT's")
        if share
        else ("thousands", "importance of the result (thousands)")
    )
    return Figure(
        paper="importance2006",
        name=name,
        title=title,
        parameters=parameters,
        measure=measure,
        plot=Plot(
            x=x,
            x_label=x_label,
            panels=tuple(Panel(text, y, y_label, {"importance_of": kind}) for kind, text in IMPORTANCE.items()),
            caption=("The paper draws importance; here its share of EXACT's. " if share else "") + CAPTION,
            log_x=log_x,
        ),
        derive=thousands,
        minutes=minutes,
    )
