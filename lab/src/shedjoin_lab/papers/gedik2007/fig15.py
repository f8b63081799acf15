"""Figure 15: improvement over random dropping for four kinds of join (section 6.4.1)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.gedik2007.joins import CAPTION, measure
from shedjoin_lab.summary import number

KINDS = {
    "overlap": ("overlap", "scan", 20),
    "equi": ("equal", "scan", 20),
    "indexed overlap": ("overlap", "lists", 200),
    "indexed equi": ("equal", "lists", 200),
}


def parameters(scale: Scale) -> list[Params]:
    """Every kind at every rate, dropping and with all adaptations."""
    rows: list[Params] = []
    for name, (join, index, window) in KINDS.items():
        fixed: dict[str, Any] = {
            "series": [name],
            "join": [join],
            "index": [index],
            "window": [window],
            "at_least": [3],
        }
        fixed |= {"skew": [0.6], "shift": [5 / 8], "basic": [1000 if window == 20 else 4000]}
        fixed |= {"seconds": [2 * window], "warmup": [window]}
        rates = (20,) if scale.quick else (100, 200, 300, 400, 500)
        rows += grid(method=["DROP", "ALL"], **fixed, rate=rates, seed=range(min(scale.seeds, 3)))
    return rows


def improvement(rows: list[Row]) -> list[Row]:
    """ALL over DROP in per cent, for equal workloads."""
    base = {(row["series"], row["rate"], row["seed"]): number(row, "output") for row in rows if row["method"] == "DROP"}
    result = []
    for row in rows:
        place = (row["series"], row["rate"], row["seed"])
        if row["method"] == "ALL" and base.get(place):
            result.append({**row, "gain": 100.0 * (number(row, "output") / base[place] - 1.0)})
    return result


FIGURE = Figure(
    paper="gedik2007",
    name="fig15",
    title="Improvement in output over random dropping",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="rate",
        x_label="tuples/s of each stream",
        panels=(Panel("", "gain", "improvement (%)", from_zero=False),),
        caption=CAPTION,
        series="series",
    ),
    derive=improvement,
    minutes=0.7,
)
