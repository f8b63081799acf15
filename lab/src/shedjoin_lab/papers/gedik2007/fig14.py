"""Figure 14: mean output against the size of basic windows (section 6.4.2)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Scale, grid
from shedjoin_lab.papers.gedik2007.joins import CAPTION, measure

SIZES = {"scan": (250, 500, 1000, 2000, 5000, 10000), "lists": (250, 1000, 4000, 10000, 20000, 50000)}


def parameters(scale: Scale) -> list[Params]:
    """500 tuples a second, all adaptations."""
    rows: list[Params] = []
    for index, window in (("scan", 20), ("lists", 200)):
        for name, skew in (("kappa = 0.6", 0.6), ("kappa = 0.8", 0.8)):
            fixed: dict[str, Any] = {
                "series": [name],
                "skew": [skew],
                "index": [index],
                "window": [window],
                "shift": [5 / 8],
            }
            fixed |= {"join": ["overlap"], "at_least": [3], "rate": [20 if scale.quick else 500]}
            fixed |= {"seconds": [2 * window], "warmup": [window]}
            rows += grid(
                method=["ALL"],
                **fixed,
                basic=SIZES[index][2:3] if scale.quick else SIZES[index],
                seed=range(min(scale.seeds, 3)),
            )
    return rows


FIGURE = Figure(
    paper="gedik2007",
    name="fig14",
    title="Mean output against the size of basic windows",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="basic",
        x_label="basic window (ms)",
        panels=(
            Panel("without an index, windows of 20 s", "output", "results/s", {"index": "scan"}),
            Panel("with an index, windows of 200 s", "output", "results/s", {"index": "lists"}),
        ),
        caption=f"{CAPTION} The paper also shows lists that cannot stop at a time.",
        series="series",
        log_x=True,
    ),
    minutes=6.0,
)
