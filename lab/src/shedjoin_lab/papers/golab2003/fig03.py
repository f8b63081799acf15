"""Figure 3: cost of NAIVE, LAZY and GENERAL LAZY against tau, with equal streams and with one fast stream (section 4.2)."""

from __future__ import annotations

from pathlib import Path

from shedjoin.join_order import Model, best_global, best_orders
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.golab2003.streams import EQUAL, TEN_TIMES

STREAMS = {"equal": EQUAL, "fast": TEN_TIMES}
METHODS = ("NAIVE", "LAZY", "GENERAL")


def parameters(scale: Scale) -> list[Params]:
    """tau from 1 to half the window."""
    taus = (1, 10, 50) if scale.quick else (1, 2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
    return grid(method=METHODS, streams=list(STREAMS), tau=taus, seed=[0])


def measure(params: Params, data: Path | None) -> list[Row]:
    """The cost of the best order, and where new tuples of the fourth stream stand in it."""
    del data
    model = Model.of(STREAMS[str(params["streams"])], tau=float(str(params["tau"])))
    if params["method"] == "NAIVE":
        found = best_global(model, naive=True)
    elif params["method"] == "LAZY":
        found = best_global(model)
    else:
        found = best_orders(model, general=True)
    return [{**params, "cost": found.cost, "place_of_4": found.orders[3].index(3) + 1}]


FIGURE = Figure(
    paper="golab2003",
    name="fig03",
    title="Cost of the best order against the re-execution interval",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="tau",
        x_label="re-execution interval tau",
        panels=(
            Panel("equal streams", "cost", "comparisons per time unit", {"streams": "equal"}),
            Panel("stream 4 ten times as fast", "cost", "comparisons per time unit", {"streams": "fast"}),
        ),
        caption="By the cost model: windows are tau/2 longer on average. The paper's Appendix A is not at hand.",
    ),
    minutes=0.1,
)
