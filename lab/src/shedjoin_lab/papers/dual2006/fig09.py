"""Figure 9: real temperatures of two years, W = 1000, as a share of what a fast CPU gives (section 5.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shedjoin.plots.plot import Plot
from shedjoin_lab.data.folder import data_set_folder
from shedjoin_lab.data.tower import DATA_SET, tower_temperatures
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.dual2006.rivals import CERTAIN, METHODS, run
from shedjoin_lab.papers.dual2006.speeds import CAPTION, RIVALS, X_LABEL, for_panels, panels
from shedjoin_lab.summary import number

WINDOW = 1000


def parameters(scale: Scale) -> list[Params]:
    """Rows beside rows of two years, all of them; the first 3 W rows warm the windows up."""
    speeds = (100, 400) if scale.quick else (60, 80, 100, 120, 150, 200, 250, 300, 400, 600)
    fixed: dict[str, Any] = {"window": [WINDOW], "warmup": [3 * WINDOW], "speed": speeds}
    return [
        *grid(method=CERTAIN, **fixed, seed=[0]),
        *grid(method=[method for method in METHODS if method not in CERTAIN], **fixed, seed=range(scale.seeds)),
    ]


def measure(params: Params, data: Path | None) -> list[Row]:
    """One method at one speed; V_opt from a sample of every tenth row."""
    workload = tower_temperatures(data_set_folder(DATA_SET, data))
    size = max(int(np.max(stream["key"])) for stream in workload.streams) + 1
    sampled = tuple(np.bincount(np.asarray(stream["key"])[::10], minlength=size) + 1e-9 for stream in workload.streams)
    return [{**params, **run(workload, params, sampled)}]


def shares_of_ideal(rows: list[Row]) -> list[Row]:
    """Each row with `rate` and `subset` as shares of the fast CPU's output rate."""
    ideal = {row["speed"]: number(row, "rate") for row in rows if row["method"] == "EXACT"}
    return [
        {
            **row,
            **{
                name: number(row, name) / ideal[row["speed"]]
                for name in ("rate", "subset")
                if row.get(name) is not None
            },
        }
        for row in rows
        if row["method"] != "EXACT" and row["speed"] in ideal
    ]


def drawn(rows: list[Row]) -> list[Row]:
    """Shares, once for every panel."""
    return for_panels(shares_of_ideal(rows))


FIGURE = Figure(
    paper="dual2006",
    name="fig09",
    title="Output on real temperatures as a share of a fast CPU's, W = 1000",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="speed",
        x_label=X_LABEL,
        panels=panels("rate", "subset", "output as a share of a fast CPU's"),
        caption=f"Air temperature at Tharandt, 1996 and 1998, in tenths of a degree. {CAPTION} {RIVALS}",
    ),
    derive=drawn,
    minutes=0.1,
    data=DATA_SET,
)
