"""Figure 4(b): hash tables of different sizes when one stream is fifty times as fast (section 6.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.join_order import Model, StreamStats, best_global
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.golab2003.buckets import buckets_by_cost, buckets_by_size
from shedjoin_lab.papers.golab2003.streams import FIFTY_TIMES, run

#: Buckets of each slow stream; None: as many as the fast one; 0: shared out by window size, or (ours) by cost.
METHODS = {"Equal": None, "1 to slow": 1, "5 to slow": 5, "10 to slow": 10, "by size": 0, "by cost": 0}
TAU = 5


def parameters(scale: Scale) -> list[Params]:
    """The average number of buckets per window."""
    averages = (5, 12) if scale.quick else range(3, 14)
    settings = grid(
        method=list(METHODS), average=averages, rows=[1500 if scale.quick else 12_000], seed=range(scale.seeds)
    )
    return [params for params in settings if (METHODS[str(params["method"])] or 0) <= int(str(params["average"]))]


def allocation(method: str, average: int) -> tuple[int, ...]:
    """Buckets of the four windows."""
    slow = METHODS[method]
    if slow is None:
        return (average,) * 4
    if method == "by cost":
        return buckets_by_cost(Model.of(FIFTY_TIMES), 4 * average)
    if slow == 0:
        return buckets_by_size([stream.size for stream in FIFTY_TIMES], 4 * average)
    return (slow, slow, slow, 4 * average - 3 * slow)


def measure(params: Params, data: Path | None) -> list[Row]:
    """Tuples per million units of virtual CPU, with the best order for these buckets."""
    del data
    p: dict[str, Any] = dict(params)
    buckets = allocation(p["method"], p["average"])
    hashed = [StreamStats(s.rate, s.window, s.values, b) for s, b in zip(FIFTY_TIMES, buckets, strict=True)]
    orders = best_global(Model.of(hashed)).orders
    order = (orders[3][1], *orders[orders[3][1]][1:])
    return [{**params, **run(FIFTY_TIMES, order, buckets, TAU, p["rows"], p["seed"])}]


FIGURE = Figure(
    paper="golab2003",
    name="fig04b",
    title="Rate against the average number of buckets, one stream fifty times as fast",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="average",
        x_label="average buckets per window",
        panels=(Panel("rate", "rate", "tuples per million units of virtual CPU"),),
        caption="tau = 5. “by size” and “by cost” share the buckets out; the latter is ours.",
    ),
    minutes=0.1,
)
