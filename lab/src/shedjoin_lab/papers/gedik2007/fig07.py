"""Figure 7: tuples dropped without selective processing, with and without an index (section 6.2)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Scale, grid
from shedjoin_lab.papers.gedik2007.joins import CAPTION, measure

RATES = (50, 100, 200)
#: Tuples in a window; the largest that the paper speaks of is 100 a second for 625 s.
MOST_STORED = 62_500


def parameters(scale: Scale) -> list[Params]:
    """Random dropping; the time is three windows, the last of which counts."""
    rows: list[Params] = []
    for index, windows in (("scan", (5, 25, 125)), ("lists", (25, 125, 250, 625))):
        for window in windows[:1] if scale.quick else windows:
            fixed: dict[str, Any] = {
                "index": [index],
                "window": [window],
                "seconds": [3 * window],
                "warmup": [2 * window],
            }
            fixed |= {"join": ["overlap"], "at_least": [3], "skew": [0.6], "shift": [5 / 8]}
            rows += [
                {**params, "rate": int(str(params["series"]).split()[0])}
                for params in grid(
                    method=["DROP"],
                    series=[f"{rate} tuples/s" for rate in RATES if rate * window <= MOST_STORED],
                    **fixed,
                    seed=range(scale.seeds),
                )
            ]
    return rows


FIGURE = Figure(
    paper="gedik2007",
    name="fig07",
    title="Share of tuples dropped against the window, random dropping",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="window",
        x_label="window (s)",
        panels=(
            Panel("without an index", "dropped", "share of tuples dropped", {"index": "scan"}),
            Panel("with an index", "dropped", "share of tuples dropped", {"index": "lists"}),
        ),
        caption=CAPTION,
        series="series",
    ),
    minutes=0.5,
)
