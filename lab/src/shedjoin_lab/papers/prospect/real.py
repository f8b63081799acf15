"""The same on real streams."""

from __future__ import annotations

from pathlib import Path

from shedjoin.errors import DataError
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.prospect import contest
from shedjoin_lab.papers.prospect.gap import PLOT
from shedjoin_lab.papers.prospect.streams import REAL

DATA = "ship_weather_ww2"


def parameters(scale: Scale) -> list[Params]:
    """Every stream, memory and allocation, once: nothing is drawn by lot but for RAND and the like."""
    few = scale.quick
    return grid(
        workload=["ships, by the hour"] if few else REAL,
        part=[0.25] if few else contest.MEMORIES,
        allocation=["fixed"] if few else contest.ALLOCATIONS,
        seed=[0],
    )


def measure(params: Params, data: Path | None) -> list[Row]:
    """All methods at once."""
    if data is None:
        raise DataError("this figure needs the real streams: give --data FOLDER")
    return contest.measure(params, REAL[str(params["workload"])](data))


FIGURE = Figure(
    paper="prospect",
    name="real",
    title="How much of the gap between the best paper policy and OPT Prospect closes, on real streams",
    parameters=parameters,
    measure=measure,
    plot=PLOT,
    derive=contest.contests,
    minutes=0.1,
    data=DATA,
)
