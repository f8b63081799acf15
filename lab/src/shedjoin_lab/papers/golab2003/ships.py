"""Ship weather reports of three and four years in the same cell and hour: golab2003's join on real streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.errors import DataError
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.data import ships
from shedjoin_lab.data.ships import DATA_SET
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.golab2003.real import joined

YEARS = {3: (1941, 1942, 1943), 4: (1941, 1942, 1943, 1945)}
#: Exact sizes: (streams, hours) -> results, counted by other means (README of the data set).
SIZES = {(3, 3): 21_618_394, (4, 1): 49_470_336, (4, 3): 400_270_107}
METHODS = ("EXACT", "PROB")


def parameters(scale: Scale) -> list[Params]:
    """Three and four years; half the memory only where a window holds more than one hour."""
    cases = [(3, 3)] if scale.quick else list(SIZES)
    return [
        {**params, "streams": streams, "hours": hours, "case": f"{streams} years, {hours} h"}
        for streams, hours in cases
        for params in grid(method=METHODS, seed=[0])
        if params["method"] == "EXACT" or (streams, hours) == (3, 3)
    ]


def measure(params: Params, data: Path | None) -> list[Row]:
    """Results within the window."""
    if data is None:
        raise DataError(f"this figure needs the data set {DATA_SET}: give --data FOLDER")
    p: dict[str, Any] = dict(params)
    workload = ships(data, YEARS[p["streams"]], steps=False)
    return [{**params, **joined(workload, p["hours"], p["method"], p["seed"])}]


FIGURE = Figure(
    paper="golab2003",
    name="ships",
    title="Ship reports of several years from the same cell",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="case",
        x_label="streams and window",
        kind="bars",
        panels=(Panel("results", "matches", "results"),),
        caption="Royal Navy weather reports, aligned by the hour of the year; key: a cell of 10 degrees.",
    ),
    minutes=0.1,
    data=DATA_SET,
)
