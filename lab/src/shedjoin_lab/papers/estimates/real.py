"""The same on real streams."""

from __future__ import annotations

from pathlib import Path

from shedjoin.errors import DataError
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.estimates.accuracy import PARTS, in_per_cent, measured, plot
from shedjoin_lab.papers.estimates.methods import METHODS
from shedjoin_lab.papers.prospect.streams import REAL

STREAMS = ("ships, by the hour", "flights", "names")


def parameters(scale: Scale) -> list[Params]:
    few = scale.quick
    return grid(
        workload=STREAMS[:1] if few else STREAMS,
        part=[0.35] if few else PARTS,
        method=METHODS,
        seed=range(min(scale.seeds, 1)),
    )


def measure(params: Params, data: Path | None) -> list[Row]:
    if data is None:
        raise DataError("this figure needs the real streams: give --data FOLDER")
    return measured(params, REAL[str(params["workload"])](data))


FIGURE = Figure(
    paper="estimates",
    name="real",
    title="How far off the counts of a join with little memory are, on real streams",
    parameters=parameters,
    measure=measure,
    plot=plot(STREAMS),
    derive=in_per_cent,
    minutes=1.0,
    data="ship_weather_ww2",
)
