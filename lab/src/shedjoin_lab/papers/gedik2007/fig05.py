"""Figure 5: optimality of basic windows against their size and the load (section 5.1.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.gedik2007.optimality import SHAPES, density, optimality


def parameters(scale: Scale) -> list[Params]:
    """No chance in it: one seed."""
    sizes = (0.02, 0.1) if scale.quick else (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
    return grid(
        method=["r' = 0.05", "r' = 0.1", "r' = 0.2", "r' = 0.5", "r' = 0.9"], shape=SHAPES, basic=sizes, seed=[0]
    )


def measure(params: Params, data: Path | None) -> list[Row]:
    """phi for one shape, size and load."""
    del data
    p: dict[str, Any] = dict(params)
    load = float(p["method"].split("=")[1])
    return [{**params, "load": load, "phi": optimality(density(p["shape"]), p["basic"], load)}]


FIGURE = Figure(
    paper="gedik2007",
    name="fig05",
    title="Optimality of the join for different loads and sizes of basic windows",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="basic",
        x_label="size of a basic window / size of the window",
        panels=tuple(Panel(shape, "phi", "optimality", {"shape": shape}) for shape in SHAPES),
        caption="Two bell curves around 5/8 of the window, of standard deviation 0.15 and 0.05 of it. The paper draws surfaces.",
    ),
    minutes=0.1,
)
