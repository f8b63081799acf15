"""Streams that change: drift, bursts, and popularity that rotates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.prospect import contest
from shedjoin_lab.papers.prospect.streams import SYNTHETIC

CLOSED = ("closed", "share of the gap to OPT that is closed")
CAPTION = (
    "0: as good as the best policy of the papers, chosen afterwards for each workload, memory and seed among 22 to 24 with "
    "their estimators; 1: OPT. Memory as a share of what the exact join needs. Prospect was tuned on other data."
)
#: Bars of what is closed, for each allocation.
PLOT = Plot(
    x="workload",
    x_label="",
    panels=tuple(
        Panel(f"Prospect, {allocation} shares", *CLOSED, {"allocation": allocation}, from_zero=False)
        for allocation in contest.ALLOCATIONS
    ),
    caption=CAPTION,
    series="memory",
    kind="bars",
)
#: The same for what could be known of generated streams.
ATTAINABLE = (
    Panel("told the true rates of the next instant", "known_now", CLOSED[1], from_zero=False),
    Panel("told those of all time to come", "known_ahead", CLOSED[1], from_zero=False),
)


def parameters(scale: Scale) -> list[Params]:
    """Every workload, memory and allocation."""
    few = scale.quick
    return grid(
        workload=["burst: of keys"] if few else SYNTHETIC,
        part=[0.25] if few else contest.MEMORIES,
        allocation=["fixed"] if few else contest.ALLOCATIONS,
        seed=range(scale.seeds),
    )


def measure(params: Params, data: Path | None) -> list[Row]:
    """All methods at once: they share the streams."""
    del data
    return contest.measure(params, SYNTHETIC[str(params["workload"])](int(str(params["seed"]))))


FIGURE = Figure(
    paper="prospect",
    name="gap",
    title="How much of the gap between the best paper policy and OPT Prospect closes, on streams that change",
    parameters=parameters,
    measure=measure,
    plot=replace(PLOT, panels=(*PLOT.panels, *ATTAINABLE)),
    derive=contest.contests,
    minutes=3.0,
)
