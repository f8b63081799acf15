"""Tables 5 to 7: what the heuristic finds, and what all orders cost (section 5.1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shedjoin.join_order import Model, best_global, best_orders
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.golab2003.exhaustive import costs_of_all
from shedjoin_lab.papers.golab2003.heuristics import heuristic
from shedjoin_lab.papers.golab2003.streams import TABLES, spoken

METHODS = ("heuristic", "best", "order per origin", "mean", "worst")


def parameters(scale: Scale) -> list[Params]:
    """Each way of choosing an order, for each table."""
    del scale
    return grid(method=METHODS, table=list(TABLES), seed=[0])


def measure(params: Params, data: Path | None) -> list[Row]:
    """The order and its cost."""
    del data
    model = Model.of(TABLES[str(params["table"])])
    orders, costs = costs_of_all(model)
    ranked = np.sort(costs)
    method = params["method"]
    if method == "mean":
        return [{**params, "order": "", "cost": float(costs.mean()), "fifth": float(ranked[4])}]
    if method == "worst":
        at = int(np.argmax(costs))
        return [{**params, "order": spoken(orders[at].tolist()), "cost": float(costs[at]), "fifth": float(ranked[4])}]
    found = {"heuristic": heuristic, "best": best_global, "order per origin": best_orders}[str(method)](model)
    order = "" if method == "order per origin" else spoken(found.orders[_first(found.orders)])
    return [{**params, "order": order, "cost": found.cost, "fifth": float(ranked[4])}]


def _first(orders: tuple[tuple[int, ...], ...]) -> int:
    """The stream on top of a global order: the only one whose new tuples walk it as it is."""
    return next(
        origin
        for origin, order in enumerate(orders)
        if all(tuple(s for s in order if s != o) == orders[o][1:] for o in range(len(orders)))
    )


FIGURE = Figure(
    paper="golab2003",
    name="tables567",
    title="Cost of the heuristic's order, the best, the mean and the worst (Tables 5, 6, 7)",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="table",
        x_label="streams of",
        kind="bars",
        panels=(Panel("cost", "cost", "comparisons per time unit"),),
        caption="By the cost model, nested loops, eager evaluation.",
    ),
    minutes=0.1,
)
