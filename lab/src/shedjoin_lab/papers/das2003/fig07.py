"""Figure 7: output on real weather reports (section 4.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.methods import Setting, counted
from shedjoin_lab.papers.das2003.methods import METHODS
from shedjoin_lab.papers.das2003.synthetic import MEMORY
from shedjoin_lab.papers.das2003.weather import (
    DATA,
    HALVES,
    STAND_IN,
    WINDOW,
    YEARS_APART,
    fixed_parameters,
    workload_of,
)
from shedjoin_lab.summary import shares

#: Only RAND draws random numbers; the streams are what they are.
WORKLOAD = ("streams", "left_year", "right_year", "rows", "window")


def parameters(scale: Scale) -> list[Params]:
    """Methods without chance run once, RAND and RANDV with every seed; PROB and PROBV also on the control."""
    fixed = fixed_parameters(scale.quick)
    window = fixed["window"][0]
    sizes = [round(share * window) for share in ((0.25, 1.0) if scale.quick else MEMORY)]
    return [
        *grid(method=["EXACT"], streams=[YEARS_APART, HALVES], **fixed, memory=[None], seed=[0]),
        *grid(method=["OPT"], streams=[YEARS_APART], **fixed, memory=sizes, seed=[0]),
        *grid(method=["PROB", "PROBV"], streams=[YEARS_APART, HALVES], **fixed, memory=sizes, seed=[0]),
        *grid(method=["LIFE"], streams=[YEARS_APART], **fixed, memory=sizes, seed=[0]),
        *grid(method=["RAND", "RANDV"], streams=[YEARS_APART], **fixed, memory=sizes, seed=range(scale.seeds)),
    ]


def measure(params: Params, data: Path | None) -> list[Row]:
    """Simulate one method on the reports of two years."""
    p: dict[str, Any] = dict(params)
    setting = Setting(p["window"], p["memory"], p["warmup"], p["seed"])
    return [{**params, **counted(METHODS[p["method"]](workload_of(params, data), setting))}]


def share_of_exact(rows: list[Row]) -> list[Row]:
    """Each row with its share of EXACT."""
    return shares(rows, "matches", WORKLOAD)


def _drawn(rows: list[Row]) -> list[Row]:
    return [{**row, "millions": float(str(row["matches"])) / 1e6} for row in share_of_exact(rows)]


FIGURE = Figure(
    paper="das2003",
    name="fig07",
    title="Output on real weather reports against memory, window 5000",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="memory",
        x_label=f"memory M (tuples; exact needs {2 * WINDOW})",
        panels=(
            Panel("output", "millions", "output tuples after the warm-up (millions)", {"streams": YEARS_APART}),
            Panel(
                "share",
                "share",
                "output as a share of EXACT",
                {"streams": YEARS_APART},
                (0.9, "0.9: the paper's, M = 5000"),
            ),
            Panel("control: two halves of 1942", "share", "output as a share of EXACT", {"streams": HALVES}),
        ),
        caption=f"{STAND_IN} Only RAND and RANDV draw lots. Control: the even and odd reports of one year. "
        "OPT, proved optimal, is added: the paper could not solve it.",
    ),
    derive=_drawn,
    minutes=1.0,
    data=DATA,
)
