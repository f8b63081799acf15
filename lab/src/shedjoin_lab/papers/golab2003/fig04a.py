"""Figure 4(a): rate against the re-execution and expiration interval, nested loops and hash joins (sections 6.3, 6.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.golab2003.streams import EQUAL, run

METHODS = {"NLJ": 1, "HASH2": 2, "HASH10": 10, "HASH30": 30}
TAUS = (0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)


def parameters(scale: Scale) -> list[Params]:
    """Four equal windows, T = 100, 50 values."""
    taus = (0, 4, 30) if scale.quick else TAUS
    return grid(method=list(METHODS), tau=taus, rows=[1500 if scale.quick else 8000], seed=range(scale.seeds))


def measure(params: Params, data: Path | None) -> list[Row]:
    """Tuples per million units of virtual CPU."""
    del data
    p: dict[str, Any] = dict(params)
    buckets = (METHODS[p["method"]],) * 4
    return [{**params, **run(EQUAL, (0, 1, 2, 3), buckets, p["tau"], p["rows"], p["seed"])}]


FIGURE = Figure(
    paper="golab2003",
    name="fig04a",
    title="Rate against the re-execution interval",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="tau",
        x_label="re-execution and expiration interval tau (0: eager)",
        panels=(Panel("rate", "rate", "tuples per million units of virtual CPU"),),
        caption="A look at a bucket for expired tuples counts as five comparisons on the virtual CPU.",
    ),
    minutes=0.1,
)
