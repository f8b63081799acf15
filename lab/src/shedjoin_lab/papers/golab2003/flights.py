"""Flights from four hubs, joined on the destination: golab2003's join on real streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.errors import DataError
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.data import flights_from_hubs
from shedjoin_lab.data.flights import DATA_SET
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.golab2003.real import SHARES, joined

HUBS = ("ORD", "DFW", "ATL", "LAX")
#: Exact sizes: (streams, minutes) -> results, counted by other means (README of the data set).
SIZES = {(2, 30): 41_182, (3, 30): 17_499, (4, 30): 6_856, (4, 60): 53_214}


def parameters(scale: Scale) -> list[Params]:
    """Two to four hubs."""
    cases = [(4, 30)] if scale.quick else list(SIZES)
    return [
        {**params, "streams": streams, "minutes": minutes, "case": f"{streams} hubs, {minutes} min"}
        for streams, minutes in cases
        for params in grid(method=list(SHARES), seed=range(scale.seeds))
        if params["seed"] == 0 or params["method"] == "RAND"
    ]


def measure(params: Params, data: Path | None) -> list[Row]:
    """Results within the window."""
    if data is None:
        raise DataError(f"this figure needs the data set {DATA_SET}: give --data FOLDER")
    p: dict[str, Any] = dict(params)
    workload = flights_from_hubs(data, HUBS[: p["streams"]])
    return [{**params, **joined(workload, p["minutes"], p["method"], p["seed"])}]


FIGURE = Figure(
    paper="golab2003",
    name="flights",
    title="Flights from two to four hubs to the same destination",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="case",
        x_label="streams and window",
        kind="bars",
        panels=(
            Panel("results", "matches", "results"),
            Panel("with half the memory", "share", "share of the exact results"),
        ),
        caption="US flights, January to March 2001. PROB, PROBV and RAND have half of the exact join's peak memory.",
    ),
    minutes=0.1,
    data=DATA_SET,
)
