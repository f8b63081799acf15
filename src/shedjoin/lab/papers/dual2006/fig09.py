"""Figure 9: real temperatures of two years, W = 1000, as a share of what a fast CPU gives (section 5.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shedjoin.lab.data.folder import data_set_folder
from shedjoin.lab.data.tower import DATA_SET, tower_temperatures
from shedjoin.lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin.lab.papers.dual2006.speeds import CAPTION, run
from shedjoin.lab.plot import Panel, Plot
from shedjoin.lab.summary import shares

WINDOW = 1000
METHODS = ("OPT", "DUAL", "PROB", "RAND")


def parameters(scale: Scale) -> list[Params]:
    """Rows beside rows of two years, all of them; the first 3 W rows warm the windows up."""
    speeds = (100, 400) if scale.quick else (60, 80, 100, 120, 150, 200, 250, 300, 400, 600)
    fixed: dict[str, Any] = {"window": [WINDOW], "warmup": [3 * WINDOW]}
    return [
        *grid(method=["EXACT"], **fixed, speed=speeds, seed=[0]),
        *grid(method=METHODS, **fixed, speed=speeds, seed=range(scale.seeds)),
    ]


def measure(params: Params, data: Path | None) -> list[Row]:
    """One method at one speed; V_opt from a sample of every tenth row."""
    workload = tower_temperatures(data_set_folder(DATA_SET, data))
    size = max(int(np.max(stream["key"])) for stream in workload.streams) + 1
    sampled = tuple(np.bincount(np.asarray(stream["key"])[::10], minlength=size) + 1e-9 for stream in workload.streams)
    return [{**params, **run(workload, params, sampled)}]


def share_of_ideal(rows: list[Row]) -> list[Row]:
    """Each row with its share of the fast CPU's output rate."""
    whole = [{**row, "seed": seed} for row in rows if row["method"] == "EXACT" for seed in {r["seed"] for r in rows}]
    others = [row for row in rows if row["method"] != "EXACT"]
    return [row for row in shares([*whole, *others], "rate", ("speed", "seed")) if row["method"] != "EXACT"]


FIGURE = Figure(
    paper="dual2006",
    name="fig09",
    title="Output on real temperatures as a share of a fast CPU's, W = 1000",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="speed",
        x_label="rows of both streams in a time unit (V_w = 400)",
        panels=(Panel("", "share", "output as a share of a fast CPU's"),),
        caption=f"Air temperature at Tharandt, 1996 and 1998, in tenths of a degree. {CAPTION}",
        derive=share_of_ideal,
    ),
    minutes=1.0,
    data=DATA_SET,
)
