"""A small figure of made-up rows, so that storing, drawing and judging can be tested without simulating."""

from __future__ import annotations

from pathlib import Path

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid


def parameters(scale: Scale) -> list[Params]:
    return grid(method=["EXACT", "RAND"], memory=[10, 20], seed=range(scale.seeds))


def measure(params: Params, data: Path | None) -> list[Row]:
    del data
    if params["memory"] == 20 and params["seed"] == 99:
        raise ValueError("this one always fails")
    return [{**params, "matches": 100 * int(str(params["memory"])) + int(str(params["seed"]))}]


FIGURE = Figure(
    paper="made_up",
    name="fig01",
    title="Matches against memory",
    parameters=parameters,
    measure=measure,
    plot=Plot("memory", "memory (tuples)", (Panel("all", "matches", "matches"),), "Made up."),
)
