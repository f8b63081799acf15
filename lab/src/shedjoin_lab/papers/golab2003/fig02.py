"""Figure 2: cost of NAIVE and of EAGER MULTI-WAY NLJ against the number of windows (section 4.2)."""

from __future__ import annotations

from pathlib import Path

from shedjoin.join_order import Model
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.golab2003.streams import EQUAL


def parameters(scale: Scale) -> list[Params]:
    """Two to eight equal windows: T = 100, one tuple per time unit, 50 values."""
    return grid(method=["NAIVE", "MULTI-WAY"], windows=range(2, 5 if scale.quick else 9), seed=[0])


def measure(params: Params, data: Path | None) -> list[Row]:
    """Comparisons per time unit by the cost model."""
    del data
    many = int(str(params["windows"]))
    model = Model.of([EQUAL[0]] * many)
    return [{**params, "cost": model.cost(range(many), naive=params["method"] == "NAIVE")}]


FIGURE = Figure(
    paper="golab2003",
    name="fig02",
    title="Cost against the number of windows",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="windows",
        x_label="windows",
        panels=(Panel("cost", "cost", "comparisons per time unit"),),
        caption="By the cost model; all windows T = 100, one tuple per time unit, 50 values; without the paper's Appendix A.",
    ),
    minutes=0.1,
)
