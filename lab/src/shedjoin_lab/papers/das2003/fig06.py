"""Figure 6: effect of skew, window and memory 400 (section 4.3)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Scale, grid
from shedjoin_lab.papers.das2003.synthetic import BOTH, READINGS, SHARE_OF_OPT, measure, share_of_opt

SKEWS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
#: The text also says that anti-correlated streams behave alike, so they are measured as well.
RANKS = {**READINGS, "anti": "ranks reversed"}
PAPER = (0.96, "0.96: the paper's PROB")


def parameters(scale: Scale) -> list[Params]:
    """OPT, RAND and PROB, as the figure, and LIFE."""
    rows: list[Params] = []
    for skew in (0.0, 1.0, 2.0) if scale.quick else SKEWS:
        fixed: dict[str, Any] = {
            "window": [400],
            "domain": [50],
            "skew_left": [skew],
            "skew_right": [skew],
            "ranks": RANKS,
        }
        rows += grid(method=["EXACT"], **fixed, memory=[None], seed=range(scale.seeds))
        rows += grid(method=["OPT", "PROB", "LIFE", "RAND"], **fixed, memory=[400], seed=range(scale.seeds))
    return rows


FIGURE = Figure(
    paper="das2003",
    name="fig06",
    title="Output as a share of OPT against skew, memory = window = 400",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="skew_left",
        x_label="Zipf parameter of both streams",
        panels=tuple(Panel(title, *SHARE_OF_OPT, {"ranks": ranks}, PAPER) for ranks, title in RANKS.items()),
        caption=f"LIFE, EXACT and reversed ranks are added. {BOTH}",
    ),
    derive=share_of_opt,
    minutes=0.3,
)
