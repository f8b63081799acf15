"""Figure 2: offline approximation quality against memory, w = 10 (section 5.1)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.importance2006.synthetic import (
    IMPORTANCE,
    ROWS,
    UNCORRELATED,
    UNEVEN,
    measure,
    thousands,
)
from shedjoin_lab.summary import number

#: Tuples of each stream in memory; 10 would be exact.
HALVES = (1, 2, 3, 4, 5, 6, 7, 8, 9)
#: Readings: SJA does not look at importance, so its errors depend on the domain alone, and fix it at 2 or 3 values.
FIFTY = tuple(IMPORTANCE)
TWO = ("thousandfold",)
KINDS = {
    **{kind: f"50 values, {text}" for kind, text in IMPORTANCE.items()},
    **{kind: f"2 values, {UNEVEN[kind]}" for kind in TWO},
}


def parameters(scale: Scale) -> list[Params]:
    """ODJA and ESJA are both run: they must agree."""
    halves = (1, 5) if scale.quick else HALVES
    common: dict[str, Any] = {"rows": [ROWS], "window": [10], "warmup": [20], **UNCORRELATED}
    common |= {"seed": range(scale.seeds)}
    rows: list[Params] = []
    for kinds, domain in ((FIFTY, 50), (TWO, 2)):
        reading = {**common, "domain": [domain], "importance_of": kinds}
        rows += grid(method=["EXACT"], memory=[None], **reading)
        methods = ["ODJA", "ESJA", "SJA", "RAND", "RAND, input"]
        rows += grid(method=methods, memory=[2 * half for half in halves], **reading)
    return rows


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
            Panel(f"{what}\n{text}", y, label, {"importance_of": kind})
            for what, y, label in (
                ("importance", "thousands", "importance of the result (thousands)"),
                ("error", "error", "approximation error (%)"),
            )
            for kind, text in KINDS.items()
        ),
        caption="Domain and skew were lost with the figure: 50 values as in das2003, or 2, which SJA's errors fit; Zipf 1 and 0 "
        "as in Figure 8. ODJA and ESJA coincide. RAND evicts from memory; RAND, input lets in M/2w of the tuples.",
    ),
    derive=errors,
    minutes=1.2,
)
