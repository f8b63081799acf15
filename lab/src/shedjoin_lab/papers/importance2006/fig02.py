"""Figure 2: offline approximation quality against memory, w = 10 (section 5.1)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.importance2006.synthetic import IMPORTANCE, ROWS, UNCORRELATED, measure, thousands
from shedjoin_lab.summary import number

#: Tuples of each stream in memory; 10 would be exact.
HALVES = (1, 2, 3, 4, 5, 6, 7, 8, 9)


def parameters(scale: Scale) -> list[Params]:
    """ODJA and ESJA are both run: they must agree."""
    halves = (1, 5) if scale.quick else HALVES
    common: dict[str, Any] = {"rows": [ROWS], "window": [10], "warmup": [20], "domain": [50], **UNCORRELATED}
    common |= {"importance_of": IMPORTANCE, "seed": range(scale.seeds)}
    return [
        *grid(method=["EXACT"], memory=[None], **common),
        *grid(method=["ODJA", "ESJA", "SJA", "RAND"], memory=[2 * half for half in halves], **common),
    ]


def errors(rows: list[Row]) -> list[Row]:
    """Each row with its approximation error: what it lacks of EXACT's importance, in per cent."""
    return [
        {**row, "error": 100 * (1 - number(row, "share")), "half": row["memory"] and number(row, "memory") / 2}
        for row in thousands(rows)
    ]


FIGURE = Figure(
    paper="importance2006",
    name="fig02",
    title="Importance against memory, offline, w = 10",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="half",
        x_label="M/2 (tuples; exact needs 10)",
        panels=tuple(
            Panel(f"{what}, {kind}", y, label, {"importance_of": kind})
            for what, y, label in (
                ("importance", "thousands", "importance of the result (thousands)"),
                ("error", "error", "approximation error (%)"),
            )
            for kind in IMPORTANCE
        ),
        caption="Domain and skew were lost with the figure: domain 50 as in das2003, Zipf 1 and 0 as in Figure 8. "
        "ODJA and ESJA coincide. The error is drawn as well, and both of our distributions of importance.",
    ),
    derive=errors,
    minutes=1.5,
)
