"""How often the 95% interval of a count holds the exact count, over 400 seeds."""

from __future__ import annotations

from pathlib import Path

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.estimates.accuracy import in_per_cent, measured
from shedjoin_lab.papers.estimates.streams import STREAMS

#: Runs for each seed of the grid: five seeds make 400.
LOTS = 80


def parameters(scale: Scale) -> list[Params]:
    quick = scale.quick
    return grid(
        workload=["Zipf 1, permuted ranks"] if quick else STREAMS,
        part=[0.35],
        method=["Sample"] if quick else ["Sample", "Sample, keep=0.5"],
        seed=range(scale.seeds),
    )


def measure(params: Params, data: Path | None) -> list[Row]:
    del data
    return measured(params, STREAMS[str(params["workload"])](), LOTS)


FIGURE = Figure(
    paper="estimates",
    name="coverage",
    title="How often the 95% intervals of counts hold, for eight groups and the total",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="workload",
        x_label="",
        panels=(
            Panel(
                "400 seeds, groups with 10 effective rows or more",
                "covered",
                "intervals that hold, in %",
                line=(95.0, "95%"),
            ),
        ),
        caption="Memory is a third of what the exact join stores.",
        kind="bars",
    ),
    derive=in_per_cent,
    minutes=1.0,
)
